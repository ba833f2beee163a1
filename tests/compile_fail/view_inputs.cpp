// A view of two tensors.
// expect: the rules 'reduction' and 'view' make one tensor of one
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  static std::optional<Layout> view(const Layout& in) { return in; }
};
static_assert(Extension<Op>);
