// A kernel of the host whose layer is not listed.
// expect: there is a rule 'webgpu_kernel', .*'cpu_kernel', .*but layer Cube is not listed
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const cpu::Input&, const cpu::Output&) {}
  static AnyTensor reference(const AnyTensor& x) { return x; }
};
static_assert(Extension<Op>);
