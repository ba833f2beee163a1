// A number known at run time only must be a Param field.
// expect: not a constant expression|is not usable|call to consteval
#include "kiln/kiln.hpp"

using namespace kiln;

struct Scale {
  static constexpr std::string_view name = "scale";
  double by;
  Expr body(Expr x) const { return x * by; }
};

AnyTensor run(const AnyTensor& x) { return apply(Scale{2}, x); }
