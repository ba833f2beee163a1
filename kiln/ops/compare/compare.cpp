#include "kiln/ops/compare/compare.hpp"

#include "kiln/dispatch/words.hpp"
#include "kiln/ops/with_number.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

struct Equal {
  static constexpr std::string_view name = "equal";
  static Expr body(Expr a, Expr b) { return a == b; }
};
struct NotEqual {
  static constexpr std::string_view name = "not_equal";
  static Expr body(Expr a, Expr b) { return a != b; }
};
struct Less {
  static constexpr std::string_view name = "less";
  static Expr body(Expr a, Expr b) { return a < b; }
};
struct LessEqual {
  static constexpr std::string_view name = "less_equal";
  static Expr body(Expr a, Expr b) { return a <= b; }
};
struct Greater {
  static constexpr std::string_view name = "greater";
  static Expr body(Expr a, Expr b) { return a > b; }
};
struct GreaterEqual {
  static constexpr std::string_view name = "greater_equal";
  static Expr body(Expr a, Expr b) { return a >= b; }
};
struct IsNan {
  static constexpr std::string_view name = "is_nan";
  static Expr body(Expr x) { return is_nan(x); }
};
struct IsInf {
  static constexpr std::string_view name = "is_inf";
  static Expr body(Expr x) { return is_inf(x); }
};
struct IsFinite {
  static constexpr std::string_view name = "is_finite";
  static Expr body(Expr x) { return is_finite(x); }
};
struct LogicalNot {
  static constexpr std::string_view name = "logical_not";
  static Expr body(Expr x) { return !x; }
};
struct LogicalAnd {
  static constexpr std::string_view name = "logical_and";
  static Expr body(Expr a, Expr b) { return a && b; }
};
struct LogicalOr {
  static constexpr std::string_view name = "logical_or";
  static Expr body(Expr a, Expr b) { return a || b; }
};
struct Where {
  static constexpr std::string_view name = "where";
  static Expr body(Expr condition, Expr yes, Expr no) { return select(condition, yes, no); }
};
struct WhereElseNumber {
  static constexpr std::string_view name = "where";
  Param no;
  Expr body(Expr condition, Expr yes) const { return select(condition, yes, no); }
};
struct WhereNumber {
  static constexpr std::string_view name = "where";
  Param yes;
  Expr body(Expr condition, Expr no) const { return select(condition, yes, no); }
};
struct Cast {
  static constexpr std::string_view name = "cast";
  DType to;
  Expr body(Expr x) const { return cast(x, to); }
};

}  // namespace

AnyTensor equal(const AnyTensor& a, const AnyTensor& b) { return apply(Equal{}, a, b); }
AnyTensor not_equal(const AnyTensor& a, const AnyTensor& b) { return apply(NotEqual{}, a, b); }
AnyTensor less(const AnyTensor& a, const AnyTensor& b) { return apply(Less{}, a, b); }
AnyTensor less_equal(const AnyTensor& a, const AnyTensor& b) { return apply(LessEqual{}, a, b); }
AnyTensor greater(const AnyTensor& a, const AnyTensor& b) { return apply(Greater{}, a, b); }
AnyTensor greater_equal(const AnyTensor& a, const AnyTensor& b) {
  return apply(GreaterEqual{}, a, b);
}
AnyTensor equal(const AnyTensor& a, Number b) { return apply(BeforeNumber<Equal>{{b}}, a); }
AnyTensor not_equal(const AnyTensor& a, Number b) { return apply(BeforeNumber<NotEqual>{{b}}, a); }
AnyTensor less(const AnyTensor& a, Number b) { return apply(BeforeNumber<Less>{{b}}, a); }
AnyTensor less_equal(const AnyTensor& a, Number b) {
  return apply(BeforeNumber<LessEqual>{{b}}, a);
}
AnyTensor greater(const AnyTensor& a, Number b) { return apply(BeforeNumber<Greater>{{b}}, a); }
AnyTensor greater_equal(const AnyTensor& a, Number b) {
  return apply(BeforeNumber<GreaterEqual>{{b}}, a);
}
AnyTensor equal(Number a, const AnyTensor& b) { return apply(AfterNumber<Equal>{{a}}, b); }
AnyTensor not_equal(Number a, const AnyTensor& b) { return apply(AfterNumber<NotEqual>{{a}}, b); }
AnyTensor less(Number a, const AnyTensor& b) { return apply(AfterNumber<Less>{{a}}, b); }
AnyTensor less_equal(Number a, const AnyTensor& b) { return apply(AfterNumber<LessEqual>{{a}}, b); }
AnyTensor greater(Number a, const AnyTensor& b) { return apply(AfterNumber<Greater>{{a}}, b); }
AnyTensor greater_equal(Number a, const AnyTensor& b) {
  return apply(AfterNumber<GreaterEqual>{{a}}, b);
}
AnyTensor is_nan(const AnyTensor& x) { return apply(IsNan{}, x); }
AnyTensor is_inf(const AnyTensor& x) { return apply(IsInf{}, x); }
AnyTensor is_finite(const AnyTensor& x) { return apply(IsFinite{}, x); }
AnyTensor logical_not(const AnyTensor& x) { return apply(LogicalNot{}, x); }
AnyTensor logical_and(const AnyTensor& a, const AnyTensor& b) { return apply(LogicalAnd{}, a, b); }
AnyTensor logical_or(const AnyTensor& a, const AnyTensor& b) { return apply(LogicalOr{}, a, b); }
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, const AnyTensor& no) {
  return apply(Where{}, condition, yes, no);
}
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, Number no) {
  dispatch::require_number("where", no, yes.dtype());
  return apply(WhereElseNumber{{no}}, condition, yes);
}
AnyTensor where(const AnyTensor& condition, Number yes, const AnyTensor& no) {
  dispatch::require_number("where", yes, no.dtype());
  return apply(WhereNumber{{yes}}, condition, no);
}
AnyTensor where(const AnyTensor& condition, Number yes, Number no) {
  const DType dtype = yes.is_whole() && no.is_whole() ? DType::i32 : DType::f32;
  const Device& device = condition.device();
  dispatch::require_number("where", yes, dtype);
  return where(condition, AnyTensor(full(device, {{}, dtype}, yes), device), no);
}
AnyTensor cast(const AnyTensor& x, DType dtype) {
  return x.dtype() == dtype ? x : apply(Cast{dtype}, x);
}

}  // namespace kiln
