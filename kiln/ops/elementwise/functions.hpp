#pragma once
#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// @file
/// More elementwise functions; what holds for all of elementwise.hpp holds for these. Besides:
///
/// - Special cases are those of the C standard, on every runtime: outside of a domain the result
///   is NaN, poles are infinities, and odd functions but `sign` keep the sign of 0.
/// - In f32, the cpu runtime is right to 4 units in the last place. On webgpu sines, cosines,
///   tangents and their inverses are right to 8 of them where the adapter divides and takes roots
///   as WGSL asks, at large angles, too. The others are as precise as the adapter's `exp` and
///   `log`, near 0 as well. Numbers below 1.2e-38 may count as 0 there.

/// The sine of x in radians, with the whole of pi for every x; of an infinity NaN.
///
///     sin(tensor({0.5, 1e6}));   // [0.479426, -0.349994]
AnyTensor sin(const AnyTensor& x);
/// The cosine of x in radians; of an infinity NaN.
///
///     cos(tensor({0.0, 1.0}));   // [1, 0.540302]
AnyTensor cos(const AnyTensor& x);
/// The tangent of x in radians; of an infinity NaN.
///
///     tan(tensor({0.5, -1.0}));   // [0.546302, -1.55741]
AnyTensor tan(const AnyTensor& x);
/// The angle in [-pi/2, pi/2] whose sine is x; beyond [-1, 1] NaN.
///
///     asin(tensor({0.5, 1.0}));   // [0.523599, 1.5708]
AnyTensor asin(const AnyTensor& x);
/// The angle in [0, pi] whose cosine is x; beyond [-1, 1] NaN.
///
///     acos(tensor({0.5, -1.0}));   // [1.0472, 3.14159]
AnyTensor acos(const AnyTensor& x);
/// The angle in [-pi/2, pi/2] whose tangent is x.
///
///     atan(tensor({1.0, -3.0}));   // [0.785398, -1.24905]
AnyTensor atan(const AnyTensor& x);
/// The angle in [-pi, pi] of the point (x, y). Shapes broadcast.
///
///     atan2(tensor({0.0, 1.0}), tensor({-1.0, 1.0}));   // [3.14159, 0.785398]
AnyTensor atan2(const AnyTensor& y, const AnyTensor& x);

/// The hyperbolic sine, without an overflow on the way.
///
///     sinh(tensor({0.001, 1.0}));   // [0.001, 1.1752]
AnyTensor sinh(const AnyTensor& x);
/// The hyperbolic cosine, without an overflow on the way.
///
///     cosh(tensor({0.0, 1.0}));   // [1, 1.54308]
AnyTensor cosh(const AnyTensor& x);
/// The number whose hyperbolic sine is x.
///
///     asinh(tensor({0.001, 1.0}));   // [0.001, 0.881374]
AnyTensor asinh(const AnyTensor& x);
/// The number from 0 on whose hyperbolic cosine is x; below 1 NaN.
///
///     acosh(tensor({1.0, 2.0}));   // [0, 1.31696]
AnyTensor acosh(const AnyTensor& x);
/// The number whose hyperbolic tangent is x; of 1 infinity, beyond [-1, 1] NaN.
///
///     atanh(tensor({0.001, 0.5}));   // [0.001, 0.549306]
AnyTensor atanh(const AnyTensor& x);

/// 2^x.
///
///     exp2(tensor({-1.0, 0.5}));   // [0.5, 1.41421]
AnyTensor exp2(const AnyTensor& x);
/// The logarithm to base 2: of 0 -infinity, of a negative number NaN.
///
///     log2(tensor({8.0, 3.0}));   // [3, 1.58496]
AnyTensor log2(const AnyTensor& x);
/// log(1 + x), precise near 0: of -1 -infinity, below NaN.
///
///     log1p(tensor({1e-6, 1.0}));   // [1e-06, 0.693147]
AnyTensor log1p(const AnyTensor& x);
/// e^x - 1, precise near 0.
///
///     expm1(tensor({1e-6, 1.0}));   // [1e-06, 1.71828]
AnyTensor expm1(const AnyTensor& x);

/// The greatest whole number that is not above x. Its gradient is 0, as that of the next four.
/// Infinities and NaN stay, and a zero has the sign of x.
///
///     floor(tensor({-1.5, 2.5}));   // [-2, 2]
AnyTensor floor(const AnyTensor& x);
/// The least whole number that is not below x.
///
///     ceil(tensor({-1.5, 2.5}));   // [-1, 3]
AnyTensor ceil(const AnyTensor& x);
/// The nearest whole number: of two that are equally near the even one, as in NumPy.
///
///     round(tensor({0.5, 1.5, 2.6}));   // [0, 2, 3]
AnyTensor round(const AnyTensor& x);
/// The whole part, cut towards 0.
///
///     trunc(tensor({-1.5, 2.5}));   // [-1, 2]
AnyTensor trunc(const AnyTensor& x);
/// -1, 0 or 1. Also i32 and u32. Of -0 it is 0, of NaN NaN.
///
///     sign(tensor({-1.5, 0.0, 7.0}));   // [-1, 0, 1]
AnyTensor sign(const AnyTensor& x);

}  // namespace kiln
