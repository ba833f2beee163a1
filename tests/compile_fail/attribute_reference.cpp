// A reference cannot be seen as a field, so it would be missing in the key.
// expect: the fields of this aggregate cannot be told apart
#include "kiln/kiln.hpp"

using namespace kiln;

int number = 0;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  int& secret;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};

AnyTensor run(const AnyTensor& x) { return apply(Op{number}, x); }
