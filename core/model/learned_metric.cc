#include "core/model/learned_metric.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/philox.h"
#include "core/model/feature_chunks.h"
#include "core/model/row_weights.h"

namespace kernelstream {
namespace {

// Keeps directions that the model does not use yet in play.
constexpr double kMetricFloor = 1e-3;
constexpr size_t kRowsPerTile = 64;

// Rows [rows][cols] in panels of 16 coordinates: [panel][row][16], zeros beyond `cols`.
void PackInputs(ConstMatrixView x, size_t cols, float* out) {
  for (size_t p = 0; p < PanelsFor(cols); ++p) {
    const size_t first = p * kPanelWidth;
    const size_t width = std::min(kPanelWidth, cols - first);
    for (size_t i = 0; i < x.rows; ++i) {
      float* lanes = out + (p * x.rows + i) * kPanelWidth;
      std::copy_n(x.row(i).data() + first, width, lanes);
      std::fill(lanes + width, lanes + kPanelWidth, 0.0f);
    }
  }
}

// Coefficients of sum over outputs of sign_k f_k: [panel][16].
std::vector<float> SignedCoefficients(const GradientModel& model, uint64_t seed, size_t tile) {
  const size_t panels = PanelsFor(model.num_features);
  std::vector<float> signs(model.num_outputs, 1.0f);
  for (size_t k = 0; model.num_outputs > 1 && k < model.num_outputs; ++k) {
    const PhiloxBlock words =
        Philox4x32(StreamCounter(RandomStream::kGradientSign, tile, k), PhiloxKey(seed));
    signs[k] = (words[0] & 1) != 0 ? 1.0f : -1.0f;
  }
  std::vector<float> out(panels * kPanelWidth, 0.0f);
  const auto scale = static_cast<float>(model.scale);
  for (size_t p = 0; p < panels; ++p) {
    for (size_t k = 0; k < model.num_outputs; ++k) {
      const float* from = model.coefficients.data() + (p * model.num_outputs + k) * kPanelWidth;
      const float factor = scale * signs[k];
      for (size_t l = 0; l < kPanelWidth; ++l) out[p * kPanelWidth + l] += factor * from[l];
    }
  }
  return out;
}

// Adds the values of panels on the same frequencies up: [panel of frequencies][row][16], how many
// of them.
size_t AddWaves(const FeaturePanels& panels, size_t rows, float* values) {
  if (panels.waves == 1) return panels.num_panels;
  const size_t stride = rows * kPanelWidth;
  size_t last = 0;
  for (size_t p = 1; p < panels.num_panels; ++p) {
    const size_t q = (panels.first_wave + p) / 2;
    const float* from = values + p * stride;
    float* to = values + q * stride;
    if (q == last) {
      for (size_t i = 0; i < stride; ++i) to[i] += from[i];
    } else if (q != p) {
      std::copy_n(from, stride, to);
    }
    last = q;
  }
  return last + 1;
}

// Gradients of one tile of rows, [rows][dim].
void GradientsOfTile(const GradientModel& model, ConstMatrixView rows, uint64_t seed, size_t tile,
                     double* out) {
  const size_t dim = rows.cols, count = rows.rows;
  std::vector<float> inputs(count * dim);
  model.metric->Apply(rows, inputs.data());
  const ConstMatrixView x(inputs.data(), count, dim);
  const std::vector<float> coefficients = SignedCoefficients(model, seed, tile);
  const auto inverse_bandwidth = static_cast<float>(model.inverse_bandwidth);

  std::vector<double> gradients(count * dim, 0.0), sums(count * dim);
  std::vector<float> sines, phases;
  model.features->VisitPanels(
      0, PanelsFor(model.num_features), [&](const FeaturePanels& visited, uint64_t first) {
        FeaturePanels panels = visited;
        panels.inverse_bandwidth = inverse_bandwidth;
        phases.assign(visited.phases, visited.phases + visited.num_panels * kPanelWidth);
        for (float& phase : phases) phase -= 0.25f;  // a quarter turn back: the sine
        panels.phases = phases.data();
        sines.resize(panels.num_panels * count * kPanelWidth);
        PanelFeatures(panels, x, sines.data());
        for (size_t p = 0; p < panels.num_panels; ++p) {
          const float* weights = coefficients.data() + (first + p) * kPanelWidth;
          for (size_t i = 0; i < count; ++i) {
            float* lanes = sines.data() + (p * count + i) * kPanelWidth;
            for (size_t l = 0; l < kPanelWidth; ++l) lanes[l] *= weights[l];
          }
        }
        const size_t frequency_panels = AddWaves(panels, count, sines.data());
        FeatureSums(sines.data(), frequency_panels, count, panels.frequencies, dim, sums.data());
        for (size_t k = 0; k < sums.size(); ++k) gradients[k] += sums[k];
      });
  // d/dx of cos(2 pi (T x . frequency / bandwidth + phase)): frequencies are in turns.
  const double factor = -2 * std::numbers::pi * model.inverse_bandwidth;
  std::vector<float> raw(count * dim), mapped(count * dim);
  for (size_t k = 0; k < raw.size(); ++k) raw[k] = static_cast<float>(factor * gradients[k]);
  model.metric->Apply({raw.data(), count, dim}, mapped.data());
  std::copy(mapped.begin(), mapped.end(), out);
}

}  // namespace

LearnedMetric::LearnedMetric(MetricForm form, size_t dim, std::span<const float> values)
    : form_(form), dim_(dim) {
  if (form == MetricForm::kDiagonal) values_.assign(values.begin(), values.end());
  if (form == MetricForm::kFull) {
    // T is symmetric: its rows, packed like inputs, are what each output is summed with.
    values_.resize(PanelsFor(dim) * dim * kPanelWidth);
    PackInputs({values.data(), dim, dim}, dim, values_.data());
  }
}

void LearnedMetric::Apply(ConstMatrixView x, float* out) const {
  const size_t mapped = std::min(dim_, x.cols);
  for (size_t i = 0; i < x.rows; ++i) {
    const auto row = x.row(i);
    float* to = out + i * x.cols;
    std::copy(row.begin(), row.end(), to);
    if (form_ == MetricForm::kDiagonal) {
      for (size_t j = 0; j < mapped; ++j) to[j] *= values_[j];
    }
  }
  if (form_ != MetricForm::kFull || x.rows == 0) return;
  std::vector<float> packed(PanelsFor(dim_) * x.rows * kPanelWidth);
  if (mapped == dim_) {
    PackInputs(x, dim_, packed.data());
  } else {
    std::vector<float> wide(x.rows * dim_, 0.0f);
    for (size_t i = 0; i < x.rows; ++i) {
      std::copy(x.row(i).begin(), x.row(i).end(), wide.begin() + static_cast<long>(i * dim_));
    }
    PackInputs({wide.data(), x.rows, dim_}, dim_, packed.data());
  }
  std::vector<double> sums(x.rows * dim_);
  FeatureSums(packed.data(), PanelsFor(dim_), x.rows, values_.data(), dim_, sums.data());
  for (size_t i = 0; i < x.rows; ++i) {
    for (size_t j = 0; j < mapped; ++j) {
      out[i * x.cols + j] = static_cast<float>(sums[i * dim_ + j]);
    }
  }
}

std::vector<double> LearnedMetric::Relevance() const {
  if (is_identity()) return {};
  std::vector<double> lengths(dim_, 0.0);
  for (size_t j = 0; j < dim_; ++j) {
    if (form_ == MetricForm::kDiagonal) {
      lengths[j] = std::abs(double{values_[j]});
      continue;
    }
    for (size_t k = 0; k < dim_; ++k) {
      const double value = values_[(j / kPanelWidth * dim_ + k) * kPanelWidth + j % kPanelWidth];
      lengths[j] += value * value;
    }
    lengths[j] = std::sqrt(lengths[j]);
  }
  const double longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  for (double& length : lengths) length = longest == 0 ? 0 : length / longest;
  return lengths;
}

InputsView LearnedMetric::Mapped(InputsView x, std::vector<float>& memory) const {
  if (is_identity()) return x;
  memory.resize(std::max(memory.size(), x.rows * x.dense.cols));
  Apply(x.dense, memory.data());
  return ConstMatrixView(memory.data(), x.rows, x.dense.cols);
}

std::vector<double> AverageGradientProduct(const GradientModel& model, ConstMatrixView rows,
                                           MetricForm form, uint64_t seed, Executor& executor,
                                           std::span<const double> weights) {
  const size_t dim = rows.cols;
  std::vector<double> gradients(rows.rows * dim);
  const size_t tiles = (rows.rows + kRowsPerTile - 1) / kRowsPerTile;
  executor.ParallelFor(tiles, [&](size_t tile) {
    const size_t first = tile * kRowsPerTile;
    const size_t count = std::min(kRowsPerTile, rows.rows - first);
    GradientsOfTile(model, rows.Rows(first, count), seed, tile, gradients.data() + first * dim);
  });
  const bool full = form == MetricForm::kFull;
  std::vector<double> product(full ? dim * dim : dim, 0.0);
  std::vector<double> shares(rows.rows, 1 / static_cast<double>(std::max<size_t>(rows.rows, 1)));
  weights = UnlessEqual(weights);
  if (!weights.empty()) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < rows.rows; ++i) shares[i] = weights[i] / total;
  }
  executor.ParallelFor(dim, [&](size_t j) {
    for (size_t i = 0; i < rows.rows; ++i) {
      const double* gradient = gradients.data() + i * dim;
      const double factor = shares[i] * gradient[j];
      if (full) {
        for (size_t k = 0; k < dim; ++k) product[j * dim + k] += factor * gradient[k];
      } else {
        product[j] += factor * gradient[j];
      }
    }
  });
  return product;
}

std::vector<float> MetricRoot(std::span<const double> product, size_t dim, MetricForm form) {
  const bool full = form == MetricForm::kFull;
  double trace = 0;
  for (size_t j = 0; j < dim; ++j) trace += product[full ? j * dim + j : j];
  if (!(trace > 0) || !std::isfinite(trace)) return {};
  const double factor = static_cast<double>(dim) / trace;
  if (!full) {
    std::vector<float> root(dim);
    for (size_t j = 0; j < dim; ++j) {
      root[j] = static_cast<float>(std::sqrt(factor * product[j] + kMetricFloor));
    }
    return root;
  }
  const auto n = static_cast<Eigen::Index>(dim);
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix m = factor * Eigen::Map<const Matrix>(product.data(), n, n);
  m = 0.5 * (m + m.transpose()).eval();
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(m);
  if (solver.info() != Eigen::Success) return {};
  const Eigen::VectorXd roots = (solver.eigenvalues().array().max(0) + kMetricFloor).sqrt();
  const Matrix t = solver.eigenvectors() * roots.asDiagonal() * solver.eigenvectors().transpose();
  std::vector<float> root(dim * dim);
  for (size_t j = 0; j < dim; ++j) {
    for (size_t k = 0; k < dim; ++k) {
      root[j * dim + k] =
          static_cast<float>(0.5 * (t(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(k)) +
                                    t(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(j))));
    }
  }
  return root;
}

}  // namespace kernelstream
