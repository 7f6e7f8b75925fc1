#include "client/cli/input_flags.h"

#include "client/cli/globals.h"

namespace kernelstream::client {

void InputFlags::AddTo(CLI::App* app, bool input_required) {
  app->add_option("--input,-i", path, "File with rows, gzip'd or not; - for standard input")
      ->required(input_required);
  app->add_option("--format,-f", reader.format, "csv, libsvm or jsonl")
      ->transform(OneOf<Format>(
          {{"csv", Format::kCsv}, {"libsvm", Format::kLibsvm}, {"jsonl", Format::kJsonLines}}))
      ->option_text("FORMAT (csv)");
  app->add_option("--target", reader.target,
                  "CSV: target column; default the one called target, label, class or y, else the "
                  "last (without header: its number). Several, separated by commas: a regression "
                  "with several targets");
  app->add_flag("!--no-target", reader.target_required,
                "The rows have no target, or it is to be left out; default for loss novelty");
  app->add_option("--target-type", reader.target_type,
                  "number, label, or population (numerator or 1, denominator or 0 or -1); default "
                  "auto: what the first row has, population for density ratios")
      ->transform(OneOf<TargetType>({{"auto", TargetType::kAuto},
                                     {"number", TargetType::kNumber},
                                     {"label", TargetType::kLabel},
                                     {"population", TargetType::kPopulation}}))
      ->option_text("TYPE (auto)");
  app->add_option("--weight", reader.weight, "CSV: column with the weight of each row");
  app->add_option("--drop", reader.drop, "CSV: columns to leave out, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--categories", reader.categories,
                  "CSV, models created with --hashed: columns whose cells are categories even if "
                  "they look like numbers, separated by commas; others are if they do not")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--missing", reader.missing,
                  "What to do with missing cells: error, skip (the row) or zero")
      ->transform(OneOf<Missing>(
          {{"error", Missing::kError}, {"skip", Missing::kSkip}, {"zero", Missing::kZero}}))
      ->option_text("WHAT (error)");
  app->add_option("--separator", separator, "CSV: one character, or tab; default: told from line 1")
      ->check([](const std::string& text) {
        return text.size() == 1 || text == "tab" || text == "\\t"
                   ? std::string()
                   : "the separator has to be one character, or tab";
      });
  app->add_flag("!--no-header", reader.header, "CSV: the first line is a row already");
  app->add_flag_callback(
      "--zero-based", [this] { reader.index_base = 0; },
      "LIBSVM: indices in the file start from 0");
}

void InputFlags::FitTo(const ModelConfig& config) {
  const std::string& loss = config.loss.name;
  reader.named = config.hashed;
  if (loss == "novelty") reader.target_required = false;
  if ((loss == "density_ratio" || loss == "relative_novelty") &&
      reader.target_type == TargetType::kAuto) {
    reader.target_type = TargetType::kPopulation;
  }
}

absl::StatusOr<std::unique_ptr<RowReader>> InputFlags::Open() const {
  ReaderOptions options = reader;
  if (!separator.empty()) options.separator = separator.size() == 1 ? separator[0] : '\t';
  absl::StatusOr<std::unique_ptr<RowReader>> opened = OpenRowReader(path, options);
  if (opened.ok()) PrintNotes(opened->get());
  return opened;
}

void PrintNotes(RowReader* reader) {
  for (const std::string& note : reader->TakeNotes()) PrintError(note);
}

}  // namespace kernelstream::client
