// Every tensor of a result has a name, or none has.
// expect: 'outputs' must name as many tensors as the operation's result has
#include "kiln/kiln.hpp"

using namespace kiln;

template <class T>
struct Two {
  T first;
  T second;
  int count;
};

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  static constexpr std::array outputs = {"first"};
  using layers = Layers<Cube, Fusion>;
  static Two<TensorSpec> output(const TensorSpec& x) { return {x, x, 2}; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Two<Operand>&) {
    return {.source = KernelSource::wgsl("")};
  }
};
static_assert(Extension<Op>);
