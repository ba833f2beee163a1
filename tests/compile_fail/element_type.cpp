// A rule `element` that takes an expression instead of an operand.
// expect: rule 'element' has the wrong type; it must be: Expr element\(const At&, const Elements&
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At&, Expr x) { return x; }
};
static_assert(Extension<Op>);
