// An output rule that returns no spec.
// expect: rule 'output' must return TensorSpec
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Cube, Fusion>;
  static Shape output(const TensorSpec& x, const TensorSpec&) { return x.shape; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};
static_assert(Extension<Op>);
