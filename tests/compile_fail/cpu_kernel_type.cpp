// A kernel of the host that wants raw pointers.
// expect: rule 'cpu_kernel' has the wrong type
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static void cpu_kernel(const float* x, float* out) { *out = *x; }
};
static_assert(Extension<Op>);
