// A body that takes a tensor.
// expect: rule 'body' has the wrong type
// expect: RuleBody<Op, .*Expr\(const .*AnyTensor|RuleBody<Op, .*Tensor<-1>
#include "kiln/kiln.hpp"

using namespace kiln;

struct Op {
  static constexpr std::string_view name = "op";
  static Expr body(Expr x, const AnyTensor&) { return x; }
};
static_assert(Extension<Op>);
