// An elementwise operation applied to another number of tensors.
// expect: apply got another number of tensors than 'body' takes
#include "kiln/kiln.hpp"

using namespace kiln;

struct Twice {
  static constexpr std::string_view name = "twice";
  static Expr body(Expr x) { return x * 2; }
};

AnyTensor run(const AnyTensor& x) { return apply(Twice{}, x, x); }
