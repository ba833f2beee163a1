// A reference over another number of tensors.
// expect: rule 'reference' has the wrong type
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
  static AnyTensor reference(const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
