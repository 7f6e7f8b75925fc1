#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/inputs_view.h"
#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel.h"
#include "core/kernel/parameters.h"

namespace kernelstream {
namespace {

constexpr ParameterDoc Size(absl::string_view name, absl::string_view doc, double max,
                            std::optional<double> default_value) {
  return {.name = name,
          .doc = doc,
          .min = 1,
          .max = max,
          .default_value = default_value,
          .integer = true};
}

constexpr ParameterDoc kConvolutionParameters[] = {
    Size("height", "rows of the image; 1 for a signal", 65536, 1.0),
    Size("width",
         "columns of the image; absent: what the number of inputs leaves. Inputs are ordered by "
         "row, column, channel",
         65536, std::nullopt),
    Size("channels", "values per pixel", 1024, 1.0),
    Size("patch", "pixels per side of the filter; cut to the height and width of the image", 16,
         3.0),
    kBandwidth,
    kBandwidthScale,
};

// In place, lower triangle: product of 1 / L_ii for the Cholesky factor L of matrix [n][n].
double InverseRootDeterminant(std::vector<double>& matrix, size_t n) {
  double product = 1;
  for (size_t j = 0; j < n; ++j) {
    double* row = &matrix[j * n];
    for (size_t k = 0; k < j; ++k) {
      const double* other = &matrix[k * n];
      for (size_t i = 0; i < k; ++i) row[k] -= row[i] * other[i];
      row[k] /= other[k];
      row[j] -= row[k] * row[k];
    }
    row[j] = std::sqrt(row[j]);
    product /= row[j];
  }
  return product;
}

// Immutable. With theta a random filter, psi the image filtered by it (places where the filter lies
// inside) and w normal: sqrt(2) cos(w . psi(x) + b), the hierarchical form of Dai et al. 2014,
// section 2. psi is linear in x, so features are cosines of x itself, with heavier tails than
// normal ones.
class Convolution final : public Kernel {
 public:
  Convolution(const ImageShape& image, double bandwidth) : Kernel(bandwidth), image_(image) {}
  // Costs places * patch_size^2 + patch_size^3.
  double Evaluate(Point x, Point y) const override {
    const size_t taps = image_.patch_size();
    const double factor = 1 / (bandwidth() * bandwidth());
    std::vector<double> matrix(taps * taps, 0.0);
    ForEachPatch(x, y, [&](const std::vector<double>& patch) {
      for (size_t i = 0; i < taps; ++i) {
        for (size_t j = 0; j <= i; ++j) matrix[i * taps + j] += factor * (patch[i] * patch[j]);
      }
    });
    for (size_t i = 0; i < taps; ++i) matrix[i * taps + i] += 1;
    return InverseRootDeterminant(matrix, taps);
  }
  // Root of the sum of the squared differences of all patches.
  double Distance(Point x, Point y) const override {
    double sum = 0;
    ForEachPatch(x, y,
                 [&](const std::vector<double>& patch) { sum += InnerProduct(patch, patch); });
    return std::sqrt(sum);
  }
  FeatureSpec features() const override {
    FeatureSpec spec;
    spec.image = image_;
    // Not known yet: any image tells which samplers apply.
    if (image_.width == 0) spec.image.width = image_.patch_width;
    return spec;
  }
  absl::Status CheckDimension(size_t input_dim) const override {
    if (input_dim == 0) {
      return InvalidField("",
                          "kernel \"convolution\" has to know the size of its images before "
                          "sparse rows come");
    }
    const size_t unit = image_.height * image_.channels;
    if (image_.width == 0 ? input_dim % unit == 0 : input_dim == image_.size()) {
      return absl::OkStatus();
    }
    return InvalidField(
        "",
        absl::StrCat(
            input_dim, " inputs are no image of kernel \"convolution\": it has height ",
            image_.height, image_.width == 0 ? "" : absl::StrCat(" and width ", image_.width),
            " and ", image_.channels, " channels; expected ",
            image_.width == 0 ? absl::StrCat("a multiple of ", unit) : absl::StrCat(image_.size()),
            ". Send that many values per row, or create the model with other "
            "parameters of the kernel"));
  }

 private:
  // visit(x - y in one place of the patch), place by place.
  template <typename Visit>
  void ForEachPatch(Point x, Point y, Visit visit) const {
    const size_t row = image_.width * image_.channels;
    const size_t patch_row = image_.patch_width * image_.channels;
    std::vector<double> patch(image_.patch_size());
    for (size_t r = 0; r + image_.patch_height <= image_.height; ++r) {
      for (size_t c = 0; c + image_.patch_width <= image_.width; ++c) {
        for (size_t t = 0; t < patch.size(); ++t) {
          const size_t at = (r + t / patch_row) * row + c * image_.channels + t % patch_row;
          patch[t] = x[at] - y[at];
        }
        visit(patch);
      }
    }
  }

  const ImageShape image_;
};

size_t WholeNumber(const ParameterMap& parameters, const char* name) {
  return static_cast<size_t>(parameters.at(name));
}

std::unique_ptr<const Kernel> Make(const ParameterMap& parameters) {
  ImageShape image;
  image.height = WholeNumber(parameters, "height");
  image.channels = WholeNumber(parameters, "channels");
  if (parameters.contains("width")) image.width = WholeNumber(parameters, "width");
  const size_t patch = WholeNumber(parameters, "patch");
  image.patch_height = std::min(patch, image.height);
  image.patch_width = image.width == 0 ? patch : std::min(patch, image.width);
  return std::make_unique<Convolution>(image, parameters.at("bandwidth"));
}

absl::Status CheckSize(const ParameterMap& parameters) {
  const size_t height = WholeNumber(parameters, "height");
  const size_t channels = WholeNumber(parameters, "channels");
  const size_t width = parameters.contains("width") ? WholeNumber(parameters, "width") : 1;
  if (height * width * channels <= kMaxInputDimension) return absl::OkStatus();
  return InvalidField(
      "kernel.parameters[height]",
      absl::StrCat("kernel \"convolution\": images of height ", height, ", ",
                   parameters.contains("width") ? "width" : "any width, at least", " ", width,
                   " and ", channels, " channels have ", height * width * channels,
                   " values; a row has at most ", kMaxInputDimension, ". Make them smaller"));
}

void ChooseWidth(ConstMatrixView rows, ParameterMap& parameters) {
  const double unit = parameters.at("height") * parameters.at("channels");
  parameters.try_emplace("width", std::max(1.0, std::floor(static_cast<double>(rows.cols) / unit)));
}

}  // namespace

KernelEntry ConvolutionKernel() {
  return {.doc = {.name = "convolution",
                  .doc = "det(I + sum over places of D D' / bandwidth^2)^(-1/2), D the difference "
                         "of the patches of x and x' at a place: images and signals that are alike "
                         "after any small filter",
                  .parameters = kConvolutionParameters,
                  .source = "Dai et al., NIPS 2014, section 2"},
          .make = Make,
          .choose = ChooseWidth,
          .check_new = CheckSize};
}

}  // namespace kernelstream
