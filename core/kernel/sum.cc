#include <memory>

#include "core/kernel/composition.h"

namespace kernelstream {
namespace {

// Immutable. Features are a mixture of the terms': Dai et al. 2014, section 2, linear combinations
// of kernels.
class Sum final : public CompositeKernel {
 public:
  Sum(double bandwidth, std::vector<KernelTerm> terms)
      : CompositeKernel(bandwidth, std::move(terms)) {}
  double Evaluate(Point x, Point y) const override {
    double sum = 0;
    for (const KernelTerm& term : terms()) sum += term.weight * term.kernel->Evaluate(x, y);
    return sum;
  }
  FeatureSpec features() const override {
    FeatureSpec spec;
    spec.composition = Composition::kSum;
    for (size_t m = 0; m < terms().size(); ++m) {
      spec.terms.push_back({terms()[m].weight, TermFeatures(m)});
    }
    return spec;
  }
  bool is_homogeneous() const override {
    return terms().size() == 1 && terms()[0].kernel->is_homogeneous();
  }
};

}  // namespace

KernelEntry SumKernel() {
  return {.doc = {.name = "sum",
                  .doc = "sum over terms of weight k_term(x, x'): functions that are sums of what "
                         "each term can represent. Needs terms, each a kernel of its own with its "
                         "own parameters; weights default to 1",
                  .parameters = kTermBandwidthParameters,
                  .takes_terms = true,
                  .source = "Dai et al., NIPS 2014, section 2"},
          .inputs = "what all terms take",
          .compose = [](double bandwidth,
                        std::vector<KernelTerm> terms) -> std::unique_ptr<const Kernel> {
            return std::make_unique<Sum>(bandwidth, std::move(terms));
          },
          .takes_weights = true};
}

}  // namespace kernelstream
