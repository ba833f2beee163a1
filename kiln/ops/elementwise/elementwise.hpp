#pragma once
#include <string_view>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// @file
/// Elementwise operations. What holds for all of them:
///
/// - Shapes broadcast as in NumPy; the result has the broadcast shape. ShapeError otherwise.
/// - Operands have one dtype, which the result has too. DTypeError otherwise: cast one.
/// - They take f32 and f16, where nothing else is said. f16 is computed in f32 and rounded.
/// - NaN in, NaN out, except for `pow`.
/// - All are differentiable where the dtype is a float. An incoming gradient of exactly 0 gives 0,
///   even where the slope is infinite or NaN, such as that of `sqrt` at 0.

/// a + b, elementwise. Also i32 and u32, where sums wrap.
///
///     tensor({1.0, 2.0}) + tensor({0.5});   // [1.5, 2.5]
AnyTensor operator+(const AnyTensor& a, const AnyTensor& b);
/// a - b, elementwise. Also i32 and u32, where differences wrap.
///
///     tensor({1.0, 2.0}) - tensor({0.5});   // [0.5, 1.5]
AnyTensor operator-(const AnyTensor& a, const AnyTensor& b);
/// a * b, elementwise. Also i32 and u32, where products wrap.
///
///     tensor({1.0, 2.0}) * tensor({3.0, 4.0});   // [3, 8]
AnyTensor operator*(const AnyTensor& a, const AnyTensor& b);
/// a / b, elementwise. Also i32 and u32, cut towards 0.
///
///     tensor({1.0, 6.0}) / tensor({4.0});   // [0.25, 1.5]
AnyTensor operator/(const AnyTensor& a, const AnyTensor& b);
/// -x. Also i32.
///
///     -tensor({1.0, -2.0});   // [-1, 2]
AnyTensor operator-(const AnyTensor& x);

/// a + b with a number, which compiles no kernel of its own. Beside f16 the number is f32, and the
/// result is rounded. Beside i32 and u32 it must be a number that the dtype has (DTypeError).
///
///     tensor({1.0, 2.0}) + 0.5;   // [1.5, 2.5]
AnyTensor operator+(const AnyTensor& a, Number b);
/// a - b with a number; see `operator+`.
///
///     tensor({1.0, 2.0}) - 0.5;   // [0.5, 1.5]
AnyTensor operator-(const AnyTensor& a, Number b);
/// a * b with a number; see `operator+`.
///
///     tensor({1.0, 2.0}) * 3;   // [3, 6]
AnyTensor operator*(const AnyTensor& a, Number b);
/// a / b with a number; see `operator+`.
///
///     tensor({1.0, 2.0}) / 4;   // [0.25, 0.5]
AnyTensor operator/(const AnyTensor& a, Number b);
/// a + b with a number first; see above.
///
///     0.5 + tensor({1.0, 2.0});   // [1.5, 2.5]
AnyTensor operator+(Number a, const AnyTensor& b);
/// a - b with a number first; see `operator+`.
///
///     3 - tensor({1.0, 2.0});   // [2, 1]
AnyTensor operator-(Number a, const AnyTensor& b);
/// a * b with a number first; see `operator+`.
///
///     3 * tensor({1.0, 2.0});   // [3, 6]
AnyTensor operator*(Number a, const AnyTensor& b);
/// a / b with a number first; see `operator+`.
///
///     1 / tensor({1.0, 2.0});   // [1, 0.5]
AnyTensor operator/(Number a, const AnyTensor& b);

namespace detail {
/// Throws ShapeError where a handle of that rank cannot hold a tensor of that shape.
void require_rank(std::string_view op, int rank, const Shape& shape);

template <int Rank>
Tensor<Rank>& rebind(std::string_view op, Tensor<Rank>& handle, const AnyTensor& to) {
  if constexpr (Rank != any_rank) require_rank(op, Rank, to.shape());
  return handle = to;
}
}  // namespace detail

/// x += y is x = x + y, and so on: the handle gets another tensor. Other handles to the old tensor
/// keep it. The shape may become the broadcast one, but a Tensor<Rank> throws ShapeError if the
/// rank changes. The result is tracked if x or y is, so step parameters with detach().
///
///     AnyTensor total = zeros({2});
///     total += tensor({1.0, 2.0});
///     total *= 3;
///     total - 1;   // [2, 5]
template <int Rank>
Tensor<Rank>& operator+=(Tensor<Rank>& x, const AnyTensor& y) {
  return detail::rebind("+=", x, x + y);
}
template <int Rank>
Tensor<Rank>& operator-=(Tensor<Rank>& x, const AnyTensor& y) {
  return detail::rebind("-=", x, x - y);
}
template <int Rank>
Tensor<Rank>& operator*=(Tensor<Rank>& x, const AnyTensor& y) {
  return detail::rebind("*=", x, x * y);
}
template <int Rank>
Tensor<Rank>& operator/=(Tensor<Rank>& x, const AnyTensor& y) {
  return detail::rebind("/=", x, x / y);
}
template <int Rank>
Tensor<Rank>& operator+=(Tensor<Rank>& x, Number y) {
  return detail::rebind("+=", x, x + y);
}
template <int Rank>
Tensor<Rank>& operator-=(Tensor<Rank>& x, Number y) {
  return detail::rebind("-=", x, x - y);
}
template <int Rank>
Tensor<Rank>& operator*=(Tensor<Rank>& x, Number y) {
  return detail::rebind("*=", x, x * y);
}
template <int Rank>
Tensor<Rank>& operator/=(Tensor<Rank>& x, Number y) {
  return detail::rebind("/=", x, x / y);
}

/// The same as a + b.
///
///     add(tensor({1.0}), tensor({2.0}));   // [3]
inline AnyTensor add(const AnyTensor& a, const AnyTensor& b) { return a + b; }
/// The same as a - b.
///
///     sub(tensor({1.0}), tensor({2.0}));   // [-1]
inline AnyTensor sub(const AnyTensor& a, const AnyTensor& b) { return a - b; }
/// The same as a * b.
///
///     mul(tensor({3.0}), tensor({2.0}));   // [6]
inline AnyTensor mul(const AnyTensor& a, const AnyTensor& b) { return a * b; }
/// The same as a / b.
///
///     div(tensor({1.0}), tensor({2.0}));   // [0.5]
inline AnyTensor div(const AnyTensor& a, const AnyTensor& b) { return a / b; }
/// The same as -x.
///
///     neg(tensor({1.0}));   // [-1]
inline AnyTensor neg(const AnyTensor& x) { return -x; }

/// |x|. Also i32 and u32. The gradient at 0 is 0.
///
///     abs(tensor({-1.5, 2.0}));   // [1.5, 2]
AnyTensor abs(const AnyTensor& x);
/// e^x.
///
///     exp(tensor({0.0, 1.0}));   // [1, 2.71828]
AnyTensor exp(const AnyTensor& x);
/// The natural logarithm: of 0 -infinity, of a negative number NaN.
///
///     log(tensor({1.0, 2.0}));   // [0, 0.693147]
AnyTensor log(const AnyTensor& x);
/// The square root: of a negative number NaN.
///
///     sqrt(tensor({4.0, 2.0}));   // [2, 1.41421]
AnyTensor sqrt(const AnyTensor& x);
/// 1 / sqrt(x).
///
///     rsqrt(tensor({4.0, 0.25}));   // [0.5, 2]
AnyTensor rsqrt(const AnyTensor& x);
/// The hyperbolic tangent, without an overflow for large x.
///
///     tanh(tensor({0.0, 1.0, 100.0}));   // [0, 0.761594, 1]
AnyTensor tanh(const AnyTensor& x);
/// 1 / (1 + exp(-x)), without an overflow for large negative x.
///
///     sigmoid(tensor({0.0, 2.0}));   // [0.5, 0.880797]
AnyTensor sigmoid(const AnyTensor& x);
/// max(x, 0). Also i32 and u32. NaN stays. The gradient at 0 is 0.
///
///     relu(tensor({-1.0, 2.0}));   // [0, 2]
AnyTensor relu(const AnyTensor& x);
/// The gradient of relu, from its result: `grad` where `out` is above 0 or NaN, else 0. For
/// `backward` rules of operations that end with a relu.
///
///     relu_backward(tensor({0.0, 2.0}), tensor({5.0, 6.0}));   // [0, 6]
AnyTensor relu_backward(const AnyTensor& out, const AnyTensor& grad);
/// grad * slope, but 0 where `grad` is exactly 0. For `backward` rules whose slope may be infinite
/// or NaN.
///
///     scale_gradient(zeros({1}), log(zeros({1})));   // [0]
AnyTensor scale_gradient(const AnyTensor& grad, const AnyTensor& slope);
/// x * (1 + erf(x / sqrt(2))) / 2: the exact form, not the approximation by tanh (Hendrycks and
/// Gimpel, "Gaussian error linear units", 2016).
///
///     gelu(tensor({-1.0, 1.0}));   // [-0.158655, 0.841345]
AnyTensor gelu(const AnyTensor& x);
/// x * sigmoid(x).
///
///     silu(tensor({-1.0, 1.0}));   // [-0.268941, 0.731059]
AnyTensor silu(const AnyTensor& x);
/// log(1 + exp(x)), without an overflow for large x. The gradient is sigmoid(x).
///
///     softplus(tensor({0.0, 100.0}));   // [0.693147, 100]
AnyTensor softplus(const AnyTensor& x);
/// The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
///
///     erf(tensor({0.0, 1.0}));   // [0, 0.842701]
AnyTensor erf(const AnyTensor& x);

/// base ^ exponent. A negative base takes whole exponents, and gives NaN for others. As in the C
/// standard, x ^ 0 and 1 ^ y are 1 for every x and y, NaN included.
///
///     pow(tensor({2.0, -2.0}), tensor({3.0}));   // [8, -8]
AnyTensor pow(const AnyTensor& base, const AnyTensor& exponent);
/// base ^ exponent with a number, which compiles no kernel of its own.
///
///     pow(tensor({2.0, 9.0}), 0.5);   // [1.41421, 3]
AnyTensor pow(const AnyTensor& base, Number exponent);

/// The smaller of two. Also i32 and u32. NaN if either is NaN; -0 is less than +0. Where both are
/// equal, each gets half of the gradient. Either may be a number.
///
///     minimum(tensor({1.0, 5.0}), tensor({2.0}));   // [1, 2]
///     minimum(tensor({1.0, 5.0}), 2);   // [1, 2]
AnyTensor minimum(const AnyTensor& a, const AnyTensor& b);
AnyTensor minimum(const AnyTensor& a, Number b);
AnyTensor minimum(Number a, const AnyTensor& b);
/// The larger of two. Also i32 and u32. NaN if either is NaN; +0 is more than -0. Where both are
/// equal, each gets half of the gradient. Either may be a number.
///
///     maximum(tensor({1.0, 5.0}), tensor({2.0}));   // [2, 5]
///     maximum(tensor({1.0, 5.0}), 2);   // [2, 5]
AnyTensor maximum(const AnyTensor& a, const AnyTensor& b);
AnyTensor maximum(const AnyTensor& a, Number b);
AnyTensor maximum(Number a, const AnyTensor& b);
/// x limited to [low, high]. Also i32 and u32. NaN stays. The gradient is 1 inside, bounds
/// included, and 0 outside.
///
/// Where low > high, the result is high.
///
///     clamp(tensor({-2.0, 0.5, 9.0}), 0, 1);   // [0, 0.5, 1]
AnyTensor clamp(const AnyTensor& x, Number low, Number high);

}  // namespace kiln
