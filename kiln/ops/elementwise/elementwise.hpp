#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

// Elementwise operations. Shapes broadcast as in NumPy; operands have one dtype (DTypeError
// otherwise: cast one). NaN in, NaN out. All are differentiable where their dtype is a float.

AnyTensor operator+(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator-(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator*(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator/(const AnyTensor& a, const AnyTensor& b);
AnyTensor operator-(const AnyTensor& x);

// With a scalar, which takes the tensor's dtype and never compiles a kernel of its own.
AnyTensor operator+(const AnyTensor& a, double b);
AnyTensor operator-(const AnyTensor& a, double b);
AnyTensor operator*(const AnyTensor& a, double b);
AnyTensor operator/(const AnyTensor& a, double b);
AnyTensor operator+(double a, const AnyTensor& b);
AnyTensor operator-(double a, const AnyTensor& b);
AnyTensor operator*(double a, const AnyTensor& b);
AnyTensor operator/(double a, const AnyTensor& b);

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
/// x * (1 + erf(x / sqrt(2))) / 2, not its tanh approximation.
AnyTensor gelu(const AnyTensor& x);
/// x * sigmoid(x).
AnyTensor silu(const AnyTensor& x);
AnyTensor erf(const AnyTensor& x);

/// base ^ exponent; a negative base takes whole exponents, and gives NaN for others.
AnyTensor pow(const AnyTensor& base, const AnyTensor& exponent);
AnyTensor pow(const AnyTensor& base, double exponent);

/// The smaller of two; NaN if either is. Where they are equal each gets half of the gradient.
AnyTensor minimum(const AnyTensor& a, const AnyTensor& b);
/// The larger of two; NaN if either is. Where they are equal each gets half of the gradient.
AnyTensor maximum(const AnyTensor& a, const AnyTensor& b);
/// x brought into [low, high]; NaN stays. The gradient is 1 inside, the bounds included, and 0
/// outside.
///
///     clamp(tensor({-2.F, 0.5F, 9.F}, {3}, device), 0, 1);   // [0, 0.5, 1]
AnyTensor clamp(const AnyTensor& x, double low, double high);

}  // namespace kiln
