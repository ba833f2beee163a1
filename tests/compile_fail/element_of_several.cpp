// A rule `element` of several results.
// expect: rule 'element' makes one tensor; 'output' must return TensorSpec
#include "kiln/kiln.hpp"

using namespace kiln;

template <class T>
struct Two {
  T a, b;
};

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<Cube, Fusion>;
  static Two<TensorSpec> output(const TensorSpec& x) { return {x, x}; }
  static Expr element(const At& at, const Elements& x) { return x(at); }
};
static_assert(Extension<Op>);
