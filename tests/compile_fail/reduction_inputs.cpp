// A reduction of several results.
// expect: the rules 'reduction' and 'view' make one tensor of one
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
  static Reduction reduction(const TensorSpec&) { return {}; }
};
static_assert(Extension<Op>);
