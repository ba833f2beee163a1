// A rule `element` whose layer is not listed.
// expect: there is a rule 'webgpu_kernel', .*'view' or 'element', but layer Cube is not listed
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) { return x(at); }
};
static_assert(Extension<Op>);
