// A kernel rule for another number of tensors than the output rule.
// expect: rule 'webgpu_kernel' has the wrong type; it must be: webgpu::Launch
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x", "y"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};
static_assert(Extension<Op>);
