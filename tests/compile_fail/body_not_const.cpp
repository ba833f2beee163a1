// A body that is neither static nor const, told where it is applied.
// expect: rule 'body' has the wrong type.*static or const
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  Expr body(Expr x) { return x; }
};

AnyTensor run(const AnyTensor& x) { return apply(Op{}, x); }
