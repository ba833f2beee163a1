// Another number of names than operands.
// expect: 'inputs' must name as many operands as rule 'output' takes
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};
static_assert(Extension<Op>);
