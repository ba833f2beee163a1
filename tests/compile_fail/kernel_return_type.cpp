// A kernel rule that returns a source, not a launch.
// expect: rule 'webgpu_kernel' has the wrong type
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static KernelSource webgpu_kernel(const Operand&, const Operand&, const Operand&) {
    return KernelSource::wgsl("");
  }
};
static_assert(Extension<Op>);
