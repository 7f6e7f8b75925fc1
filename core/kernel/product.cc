#include <memory>

#include "core/kernel/composition.h"

namespace kernelstream {
namespace {

// Immutable. Features are products of the terms'; the terms that are kernels of x - x' together
// have one cosine of the sum of their frequencies, with the same mean and less variance.
class Product final : public CompositeKernel {
 public:
  Product(double bandwidth, std::vector<KernelTerm> terms)
      : CompositeKernel(bandwidth, std::move(terms)) {}
  double Evaluate(Point x, Point y) const override {
    double product = 1;
    for (const KernelTerm& term : terms()) product *= term.kernel->Evaluate(x, y);
    return product;
  }
  FeatureSpec features() const override {
    FeatureSpec cosines, spec;
    cosines.composition = spec.composition = Composition::kProduct;
    for (size_t m = 0; m < terms().size(); ++m) {
      const FeatureTerm term = {1, TermFeatures(m)};
      (term.spec.is_shift_invariant() ? cosines : spec).terms.push_back(term);
    }
    if (spec.terms.empty()) return cosines;
    if (!cosines.terms.empty()) spec.terms.push_back({1, cosines});
    return spec;
  }
  bool is_homogeneous() const override {
    for (const KernelTerm& term : terms()) {
      if (!term.kernel->is_homogeneous()) return false;
    }
    return true;
  }
};

}  // namespace

KernelEntry ProductKernel() {
  return {.doc = {.name = "product",
                  .doc = "product over terms of k_term(x, x'): near where all terms are. Needs "
                         "terms, each a kernel of its own with its own parameters, without weights",
                  .parameters = kTermBandwidthParameters,
                  .takes_terms = true,
                  .source = "Dai et al., NIPS 2014, section 2"},
          .inputs = "what all terms take",
          .compose = [](double bandwidth,
                        std::vector<KernelTerm> terms) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Product>(bandwidth, std::move(terms));
          }};
}

}  // namespace kernelstream
