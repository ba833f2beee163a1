// A body of nothing.
// expect: rule 'body' has the wrong type.*at least one
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static Expr body() { return Expr(1); }
};
static_assert(Extension<Op>);
