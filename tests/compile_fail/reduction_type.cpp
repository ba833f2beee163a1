// A reduction that does not take the spec.
// expect: rule 'reduction' has the wrong type; it must be: Reduction
// expect: RuleReduction<Op, .*Reduction\(\), .*Reduction\(const .*TensorSpec&\)
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Reduction reduction() { return {}; }
};
static_assert(Extension<Op>);
