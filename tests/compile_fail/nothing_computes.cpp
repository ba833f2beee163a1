// Nothing says what the operation computes.
// expect: neither 'body' nor 'output' nor 'reference'
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  using layers = Layers<>;
};
static_assert(Extension<Op>);
