// A kernel for which nothing says what to allocate.
// expect: a kernel needs the rule 'output'
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube>;
  static constexpr std::array inputs = {"x"};
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
  static AnyTensor reference(const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
