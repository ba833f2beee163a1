#include "kiln/ops/compare/compare.hpp"

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
struct EqualScalar {
  static constexpr std::string_view name = "equal";
  Param to;
  Expr body(Expr a) const { return a == to; }
};
struct LessScalar {
  static constexpr std::string_view name = "less";
  Param than;
  Expr body(Expr a) const { return a < than; }
};
struct GreaterScalar {
  static constexpr std::string_view name = "greater";
  Param than;
  Expr body(Expr a) const { return a > than; }
};
struct IsNan {
  static constexpr std::string_view name = "is_nan";
  static Expr body(Expr x) { return is_nan(x); }
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
AnyTensor greater(const AnyTensor& a, const AnyTensor& b) { return less(b, a); }
AnyTensor greater_equal(const AnyTensor& a, const AnyTensor& b) { return less_equal(b, a); }
AnyTensor equal(const AnyTensor& a, Number b) { return apply(EqualScalar{{b}}, a); }
AnyTensor less(const AnyTensor& a, Number b) { return apply(LessScalar{{b}}, a); }
AnyTensor greater(const AnyTensor& a, Number b) { return apply(GreaterScalar{{b}}, a); }
AnyTensor is_nan(const AnyTensor& x) { return apply(IsNan{}, x); }
AnyTensor logical_not(const AnyTensor& x) { return apply(LogicalNot{}, x); }
AnyTensor logical_and(const AnyTensor& a, const AnyTensor& b) { return apply(LogicalAnd{}, a, b); }
AnyTensor logical_or(const AnyTensor& a, const AnyTensor& b) { return apply(LogicalOr{}, a, b); }
AnyTensor where(const AnyTensor& condition, const AnyTensor& yes, const AnyTensor& no) {
  return apply(Where{}, condition, yes, no);
}
AnyTensor cast(const AnyTensor& x, DType dtype) {
  return x.dtype() == dtype ? x : apply(Cast{dtype}, x);
}

}  // namespace kiln
