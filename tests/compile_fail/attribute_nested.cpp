// Params and numbers at any depth are attributes.
// compiles
#include "kiln/kiln.hpp"

using namespace kiln;

struct Pair {
  Param scale;
  int size;
};

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  std::vector<std::optional<Pair>> pairs;
  std::array<Param, 9> list;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("")};
  }
};

AnyTensor run(const AnyTensor& x) { return apply(Op{{}}, x); }
