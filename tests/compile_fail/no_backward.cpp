// Layer Autodiff without its rule.
// expect: layer Autodiff is listed, but there is no rule 'backward'
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
  static AnyTensor reference(const AnyTensor& x, const AnyTensor&) { return x; }
};
static_assert(Extension<Op>);
