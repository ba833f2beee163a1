// An operation on tensors applied to a device.
// expect: this operation takes tensors: apply\(op, tensors...\)
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};
static_assert(Extension<Op>);

AnyTensor run(const Device& device) { return apply(Op{}, device); }
