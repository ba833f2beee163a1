// Two rules that would each give the result: nothing says which runs.
// expect: two rules compute the result, and only one of them would run
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
  static RawTensor webgpu_forward(Client&, const RawTensor& x, const TensorSpec&) { return x; }
};
static_assert(Extension<Op>);
