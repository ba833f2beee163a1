// A view that is a reduction, too.
// expect: two rules compute the result, and only one of them would run
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Reduction reduction(const TensorSpec&) { return {}; }
  static std::optional<Layout> view(const Layout& in) { return in; }
};
static_assert(Extension<Op>);
