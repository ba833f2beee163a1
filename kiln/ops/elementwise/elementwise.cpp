#include "kiln/ops/elementwise/elementwise.hpp"

#include <fmt/format.h>

#include "kiln/ops/with_number.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

struct Add {
  static constexpr std::string_view name = "add";
  static Expr body(Expr a, Expr b) { return a + b; }
};
struct Sub {
  static constexpr std::string_view name = "sub";
  static Expr body(Expr a, Expr b) { return a - b; }
};
struct Mul {
  static constexpr std::string_view name = "mul";
  static Expr body(Expr a, Expr b) { return a * b; }
};
struct Div {
  static constexpr std::string_view name = "div";
  static Expr body(Expr a, Expr b) { return a / b; }
};
struct Neg {
  static constexpr std::string_view name = "neg";
  static Expr body(Expr x) { return -x; }
};
struct Abs {
  static constexpr std::string_view name = "abs";
  static Expr body(Expr x) { return abs(x); }
};
struct Exp {
  static constexpr std::string_view name = "exp";
  static Expr body(Expr x) { return exp(x); }
};
struct Log {
  static constexpr std::string_view name = "log";
  static Expr body(Expr x) { return log(x); }
};
struct Sqrt {
  static constexpr std::string_view name = "sqrt";
  static Expr body(Expr x) { return sqrt(x); }
};
struct Rsqrt {
  static constexpr std::string_view name = "rsqrt";
  static Expr body(Expr x) { return rsqrt(x); }
};
struct Tanh {
  static constexpr std::string_view name = "tanh";
  static Expr body(Expr x) { return tanh(x); }
};
struct Sigmoid {
  static constexpr std::string_view name = "sigmoid";
  static Expr body(Expr x) { return sigmoid(x); }
};
struct Relu {
  static constexpr std::string_view name = "relu";
  static Expr body(Expr x) { return relu(x); }
};
struct ReluBackward {
  static constexpr std::string_view name = "relu_backward";
  static Expr body(Expr out, Expr grad) { return select(out > 0 || is_nan(out), grad, 0); }
};
struct ScaleGradient {
  static constexpr std::string_view name = "scale_gradient";
  static Expr body(Expr grad, Expr slope) { return unless_zero(grad, grad * slope); }
};
struct Gelu {
  static constexpr std::string_view name = "gelu";
  static Expr body(Expr x) { return x * 0.5 * (1 + erf(x * 0.70710678118654752)); }
};
struct Silu {
  static constexpr std::string_view name = "silu";
  static Expr body(Expr x) { return x * sigmoid(x); }
};
struct Softplus {
  static constexpr std::string_view name = "softplus";
  static Expr body(Expr x) { return softplus(x); }
};
struct Erf {
  static constexpr std::string_view name = "erf";
  static Expr body(Expr x) { return erf(x); }
};
struct Pow {
  static constexpr std::string_view name = "pow";
  static Expr body(Expr base, Expr exponent) { return pow(base, exponent); }
};
struct Minimum {
  static constexpr std::string_view name = "minimum";
  static Expr body(Expr a, Expr b) { return min(a, b); }
};
struct Maximum {
  static constexpr std::string_view name = "maximum";
  static Expr body(Expr a, Expr b) { return max(a, b); }
};
Expr limited(Expr x, Expr low, Expr high) {
  const Expr raised = select(x < low, low, x);
  return select(raised > high, high, raised);
}
struct Clamp {
  static constexpr std::string_view name = "clamp";
  Param low;
  Param high;
  Expr body(Expr x) const { return select(is_nan(x), x, limited(x, low, high)); }
};
struct ClampInteger {
  static constexpr std::string_view name = "clamp";
  Param low;
  Param high;
  Expr body(Expr x) const { return limited(x, low, high); }
};

}  // namespace

void detail::require_rank(std::string_view op, int rank, const Shape& shape) {
  if (shape.rank() == rank) return;
  throw ShapeError(fmt::format("{}: the result has shape {}, and the tensor is of rank {}", op,
                               to_string(shape), rank));
}

AnyTensor operator+(const AnyTensor& a, const AnyTensor& b) { return apply(Add{}, a, b); }
AnyTensor operator-(const AnyTensor& a, const AnyTensor& b) { return apply(Sub{}, a, b); }
AnyTensor operator*(const AnyTensor& a, const AnyTensor& b) { return apply(Mul{}, a, b); }
AnyTensor operator/(const AnyTensor& a, const AnyTensor& b) { return apply(Div{}, a, b); }
AnyTensor operator-(const AnyTensor& x) { return apply(Neg{}, x); }

AnyTensor operator+(const AnyTensor& a, Number b) { return apply(BeforeNumber<Add>{{b}}, a); }
AnyTensor operator-(const AnyTensor& a, Number b) { return apply(BeforeNumber<Sub>{{b}}, a); }
AnyTensor operator*(const AnyTensor& a, Number b) { return apply(BeforeNumber<Mul>{{b}}, a); }
AnyTensor operator/(const AnyTensor& a, Number b) { return apply(BeforeNumber<Div>{{b}}, a); }
AnyTensor operator+(Number a, const AnyTensor& b) { return b + a; }
AnyTensor operator-(Number a, const AnyTensor& b) { return apply(AfterNumber<Sub>{{a}}, b); }
AnyTensor operator*(Number a, const AnyTensor& b) { return b * a; }
AnyTensor operator/(Number a, const AnyTensor& b) { return apply(AfterNumber<Div>{{a}}, b); }

AnyTensor abs(const AnyTensor& x) { return apply(Abs{}, x); }
AnyTensor exp(const AnyTensor& x) { return apply(Exp{}, x); }
AnyTensor log(const AnyTensor& x) { return apply(Log{}, x); }
AnyTensor sqrt(const AnyTensor& x) { return apply(Sqrt{}, x); }
AnyTensor rsqrt(const AnyTensor& x) { return apply(Rsqrt{}, x); }
AnyTensor tanh(const AnyTensor& x) { return apply(Tanh{}, x); }
AnyTensor sigmoid(const AnyTensor& x) { return apply(Sigmoid{}, x); }
AnyTensor relu(const AnyTensor& x) { return apply(Relu{}, x); }
AnyTensor relu_backward(const AnyTensor& out, const AnyTensor& grad) {
  return apply(ReluBackward{}, out, grad);
}
AnyTensor scale_gradient(const AnyTensor& grad, const AnyTensor& slope) {
  return apply(ScaleGradient{}, grad, slope);
}
AnyTensor gelu(const AnyTensor& x) { return apply(Gelu{}, x); }
AnyTensor silu(const AnyTensor& x) { return apply(Silu{}, x); }
AnyTensor softplus(const AnyTensor& x) { return apply(Softplus{}, x); }
AnyTensor erf(const AnyTensor& x) { return apply(Erf{}, x); }
AnyTensor pow(const AnyTensor& base, const AnyTensor& exponent) {
  return apply(Pow{}, base, exponent);
}
AnyTensor pow(const AnyTensor& base, Number exponent) {
  return apply(BeforeNumber<Pow>{{exponent}}, base);
}
AnyTensor minimum(const AnyTensor& a, const AnyTensor& b) { return apply(Minimum{}, a, b); }
AnyTensor minimum(const AnyTensor& a, Number b) { return apply(BeforeNumber<Minimum>{{b}}, a); }
AnyTensor minimum(Number a, const AnyTensor& b) { return minimum(b, a); }
AnyTensor maximum(const AnyTensor& a, const AnyTensor& b) { return apply(Maximum{}, a, b); }
AnyTensor maximum(const AnyTensor& a, Number b) { return apply(BeforeNumber<Maximum>{{b}}, a); }
AnyTensor maximum(Number a, const AnyTensor& b) { return maximum(b, a); }
AnyTensor clamp(const AnyTensor& x, Number low, Number high) {
  return is_float(x.dtype()) ? apply(Clamp{{low}, {high}}, x)
                             : apply(ClampInteger{{low}, {high}}, x);
}

}  // namespace kiln
