// Notices when a stream changes, and when it is sorted.
#ifndef KERNELSTREAM_CORE_MODEL_DRIFT_MONITOR_H_
#define KERNELSTREAM_CORE_MODEL_DRIFT_MONITOR_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/trainer_state.h"

namespace kernelstream {

// Adds the served model's predict-then-learn losses (Loss::Misfit) of one mini-batch (in row order)
// and returns true if they report drift: of about the last 128 rows, more than 23 % have losses
// that a tenth of the rows before had, and their mean is above 1.25 times that of about the last
// third of all rows (at most 4096). Counting rows, not their size, keeps wild rows from looking
// like drift. Not before 1024 rows; after a report the history starts anew. `row`: rows learned so
// far.
// weights: [rows], > 0. A row counts as DriftWeights says.
bool NoteLosses(std::span<const double> losses, std::span<const double> weights, uint64_t row,
                DriftState& state);

// As how many rows each of a mini-batch counts: weights in units such that together they are as
// many rows as their mean is as exact as, sum w / sum w^2 times w, so that a few heavy rows do not
// look like drift; and no more than beside the rows before, whose usual weight is given (0 if there
// were none). Exactly 1 where all weights ever were equal.
std::vector<double> DriftWeights(std::span<const double> weights, double usual_weight);

// The usual weight after these rows: about the geometric mean of the last 256, of which none counts
// as more than 8 times as much or as little as is usual, so that one wild weight does not hide what
// comes after it. Where weights change for good it is within a third of the new ones after 1100
// rows (to a thousandth or thousandfold) or 2000 (a millionth). usual_weight: before them, 0 if
// there were none (then it starts from their median); rows: how many there were.
double NextUsualWeight(std::span<const double> weights, uint64_t rows, double usual_weight);

// Adds one mini-batch's label indices (in row order) and updates state.ordered: after 1024 rows,
// rows have the label of the row before far more often than chance gives, and labels come in runs
// of more than 16 rows on average.
void NoteLabels(std::span<const double> labels, DriftState& state);

}  // namespace kernelstream

#endif  // KERNELSTREAM_CORE_MODEL_DRIFT_MONITOR_H_
