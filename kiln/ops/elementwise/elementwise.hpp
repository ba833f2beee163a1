#pragma once
#include <string_view>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

// Elementwise operations. Shapes broadcast as in NumPy; operands have one dtype (DTypeError
// otherwise: cast one). NaN in, NaN out, but for pow. All are differentiable where their dtype is a
// float. Zero is strong in gradients: where the gradient that comes in is exactly 0, what goes out
// is 0, though the slope be infinite or NaN, as that of sqrt at 0.

AnyTensor operator+(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator-(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator*(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator/(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator-(const AnyTensor& x);

// With a scalar, which never compiles a kernel of its own. Beside f16 it takes part in f32, and the
// result is rounded; beside integers it must be one that the dtype has (DTypeError).
AnyTensor operator+(const AnyTensor& a, Number b);
AnyTensor operator-(const AnyTensor& a, Number b);
AnyTensor operator*(const AnyTensor& a, Number b);
AnyTensor operator/(const AnyTensor& a, Number b);
AnyTensor operator+(Number a, const AnyTensor& b);
AnyTensor operator-(Number a, const AnyTensor& b);
AnyTensor operator*(Number a, const AnyTensor& b);
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

// x += y is x = x + y, and the others likewise: the handle gets another tensor, and nobody else who
// has the old one sees a change. The shape may become that of the broadcast; a Tensor<Rank> throws
// ShapeError where the rank would be another. The result is tracked where x or y is: parameters are
// stepped with detach().
//
//     AnyTensor sum = zeros({3});
//     for (const AnyTensor& t : tensors) sum += 0.5 * t;
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

inline AnyTensor add(const AnyTensor& a, const AnyTensor& b) { return a + b; }
inline AnyTensor sub(const AnyTensor& a, const AnyTensor& b) { return a - b; }
inline AnyTensor mul(const AnyTensor& a, const AnyTensor& b) { return a * b; }
inline AnyTensor div(const AnyTensor& a, const AnyTensor& b) { return a / b; }
inline AnyTensor neg(const AnyTensor& x) { return -x; }

/// |x|; its gradient at 0 is 0.
AnyTensor abs(const AnyTensor& x);
AnyTensor exp(const AnyTensor& x);
/// The natural logarithm.
AnyTensor log(const AnyTensor& x);
AnyTensor sqrt(const AnyTensor& x);
/// 1 / sqrt(x).
AnyTensor rsqrt(const AnyTensor& x);
AnyTensor tanh(const AnyTensor& x);
/// 1 / (1 + exp(-x)).
AnyTensor sigmoid(const AnyTensor& x);
/// max(x, 0), NaN kept; its gradient at 0 is 0.
AnyTensor relu(const AnyTensor& x);
/// The gradient of relu from its result: `grad` where `out` is above 0 or NaN, else 0.
AnyTensor relu_backward(const AnyTensor& out, const AnyTensor& grad);
/// `grad * slope`, but 0 where `grad` is exactly 0, whatever the slope: for backward rules that
/// multiply by what may be infinite or NaN.
AnyTensor scale_gradient(const AnyTensor& grad, const AnyTensor& slope);
/// x * (1 + erf(x / sqrt(2))) / 2, not its tanh approximation.
AnyTensor gelu(const AnyTensor& x);
/// x * sigmoid(x).
AnyTensor silu(const AnyTensor& x);
/// log(1 + exp(x)), without an overflow for large x; its gradient is sigmoid(x).
///
///     AnyTensor mish = x * tanh(softplus(x));
AnyTensor softplus(const AnyTensor& x);
AnyTensor erf(const AnyTensor& x);

/// base ^ exponent; a negative base takes whole exponents, and gives NaN for others. As the C
/// standard's pow, x ^ 0 and 1 ^ y are 1 for every x and y, NaN included.
AnyTensor pow(const AnyTensor& base, const AnyTensor& exponent);
AnyTensor pow(const AnyTensor& base, Number exponent);

/// The smaller of two; NaN if either is; -0 is less than +0. Where they are equal each gets half of
/// the gradient, also where one is a number.
///
///     minimum(x, 1)
AnyTensor minimum(const AnyTensor& a, const AnyTensor& b);
AnyTensor minimum(const AnyTensor& a, Number b);
AnyTensor minimum(Number a, const AnyTensor& b);
/// The larger of two; NaN if either is; +0 is more than -0. Where they are equal each gets half of
/// the gradient, also where one is a number.
///
///     maximum(x, 0.0)
AnyTensor maximum(const AnyTensor& a, const AnyTensor& b);
AnyTensor maximum(const AnyTensor& a, Number b);
AnyTensor maximum(Number a, const AnyTensor& b);
/// x brought into [low, high]; NaN stays. The gradient is 1 inside, the bounds included, and 0
/// outside.
///
///     clamp(tensor({-2.F, 0.5F, 9.F}, {3}, device), 0, 1);   // [0, 0.5, 1]
AnyTensor clamp(const AnyTensor& x, Number low, Number high);

}  // namespace kiln
