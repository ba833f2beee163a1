#include "kiln/ops/elementwise/functions.hpp"

#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

struct Sin {
  static constexpr std::string_view name = "sin";
  static Expr body(Expr x) { return sin(x); }
};
struct Cos {
  static constexpr std::string_view name = "cos";
  static Expr body(Expr x) { return cos(x); }
};
struct Tan {
  static constexpr std::string_view name = "tan";
  static Expr body(Expr x) { return tan(x); }
};
struct Asin {
  static constexpr std::string_view name = "asin";
  static Expr body(Expr x) { return asin(x); }
};
struct Acos {
  static constexpr std::string_view name = "acos";
  static Expr body(Expr x) { return acos(x); }
};
struct Atan {
  static constexpr std::string_view name = "atan";
  static Expr body(Expr x) { return atan(x); }
};
struct Sinh {
  static constexpr std::string_view name = "sinh";
  static Expr body(Expr x) { return sinh(x); }
};
struct Cosh {
  static constexpr std::string_view name = "cosh";
  static Expr body(Expr x) { return cosh(x); }
};
struct Asinh {
  static constexpr std::string_view name = "asinh";
  static Expr body(Expr x) { return asinh(x); }
};
struct Acosh {
  static constexpr std::string_view name = "acosh";
  static Expr body(Expr x) { return acosh(x); }
};
struct Atanh {
  static constexpr std::string_view name = "atanh";
  static Expr body(Expr x) { return atanh(x); }
};
struct Exp2 {
  static constexpr std::string_view name = "exp2";
  static Expr body(Expr x) { return exp2(x); }
};
struct Log2 {
  static constexpr std::string_view name = "log2";
  static Expr body(Expr x) { return log2(x); }
};
struct Log1p {
  static constexpr std::string_view name = "log1p";
  static Expr body(Expr x) { return log1p(x); }
};
struct Expm1 {
  static constexpr std::string_view name = "expm1";
  static Expr body(Expr x) { return expm1(x); }
};
struct Floor {
  static constexpr std::string_view name = "floor";
  static Expr body(Expr x) { return floor(x); }
};
struct Ceil {
  static constexpr std::string_view name = "ceil";
  static Expr body(Expr x) { return ceil(x); }
};
struct Round {
  static constexpr std::string_view name = "round";
  static Expr body(Expr x) { return round(x); }
};
struct Trunc {
  static constexpr std::string_view name = "trunc";
  static Expr body(Expr x) { return trunc(x); }
};
struct Sign {
  static constexpr std::string_view name = "sign";
  static Expr body(Expr x) { return sign(x); }
};
struct Atan2 {
  static constexpr std::string_view name = "atan2";
  static Expr body(Expr y, Expr x) { return atan2(y, x); }
};

}  // namespace

AnyTensor sin(const AnyTensor& x) { return apply(Sin{}, x); }
AnyTensor cos(const AnyTensor& x) { return apply(Cos{}, x); }
AnyTensor tan(const AnyTensor& x) { return apply(Tan{}, x); }
AnyTensor asin(const AnyTensor& x) { return apply(Asin{}, x); }
AnyTensor acos(const AnyTensor& x) { return apply(Acos{}, x); }
AnyTensor atan(const AnyTensor& x) { return apply(Atan{}, x); }
AnyTensor sinh(const AnyTensor& x) { return apply(Sinh{}, x); }
AnyTensor cosh(const AnyTensor& x) { return apply(Cosh{}, x); }
AnyTensor asinh(const AnyTensor& x) { return apply(Asinh{}, x); }
AnyTensor acosh(const AnyTensor& x) { return apply(Acosh{}, x); }
AnyTensor atanh(const AnyTensor& x) { return apply(Atanh{}, x); }
AnyTensor exp2(const AnyTensor& x) { return apply(Exp2{}, x); }
AnyTensor log2(const AnyTensor& x) { return apply(Log2{}, x); }
AnyTensor log1p(const AnyTensor& x) { return apply(Log1p{}, x); }
AnyTensor expm1(const AnyTensor& x) { return apply(Expm1{}, x); }
AnyTensor floor(const AnyTensor& x) { return apply(Floor{}, x); }
AnyTensor ceil(const AnyTensor& x) { return apply(Ceil{}, x); }
AnyTensor round(const AnyTensor& x) { return apply(Round{}, x); }
AnyTensor trunc(const AnyTensor& x) { return apply(Trunc{}, x); }
AnyTensor sign(const AnyTensor& x) { return apply(Sign{}, x); }
AnyTensor atan2(const AnyTensor& y, const AnyTensor& x) { return apply(Atan2{}, y, x); }

}  // namespace kiln
