// A view that always has a layout.
// expect: rule 'view' has the wrong type; it must be: std::optional<Layout>
// expect: RuleView<Op, .*Layout\(const .*Layout&\), .*optional<
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Layout view(const Layout& in) { return in; }
};
static_assert(Extension<Op>);
