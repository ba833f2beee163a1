// An attribute that no key can spell.
// expect: an attribute must be a number, an enum, a Param, a string, a Shape, a std::vector
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Cube, Fusion>;
  std::shared_ptr<int> secret;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};
static_assert(Extension<Op>);

AnyTensor run(const AnyTensor& x) { return apply(Op{}, x, x); }
