// Two rules that compute the result.
// expect: two rules compute the result
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) { return x(at); }
  static std::optional<Layout> view(const Layout& x) { return x; }
};
static_assert(Extension<Op>);
