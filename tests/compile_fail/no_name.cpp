// An operation without a name.
// expect: the operation has no name; add: static constexpr std::string_view name
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};
static_assert(Extension<Op>);
