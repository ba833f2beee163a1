// A Param is no number of C++: what would be read is one value of many.
// expect: 'const class kiln::Param' to 'double'|cannot convert
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Param a;
  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand&) const {
    return {.source = KernelSource::wgsl("").constant("a", a)};
  }
};

AnyTensor run(const AnyTensor& x) { return apply(Op{{}}, x); }
