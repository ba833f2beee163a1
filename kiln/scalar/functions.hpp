#pragma once
#include <array>

#include "kiln/scalar/graph.hpp"

namespace kiln {

/// @file
/// What holds for all functions of bodies: operands have one dtype, and literals and Params take
/// that of the other operands. f16 is computed in f32 and rounded at the end. An operation whose
/// operands have other dtypes throws DTypeError when it is called.

/// Arithmetic: f32, f16, i32 and u32, where it wraps. Division of integers cuts towards 0; by 0 it
/// gives the dividend.
///
///     struct Line {
///       static constexpr std::string_view name = "line";
///       static Expr body(Expr x) { return (2 * x + 1) / -(x - 3); }
///     };
///     apply(Line{}, tensor({1.0, 2.0}));   // [1.5, 5]
inline Expr operator-(const Expr& x) { return detail::unary(Opcode::neg, x); }
inline Expr operator+(const Expr& a, const Expr& b) { return detail::binary(Opcode::add, a, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return detail::binary(Opcode::sub, a, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return detail::binary(Opcode::mul, a, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return detail::binary(Opcode::div, a, b); }

/// Logic of bools. Both sides are computed.
///
///     struct Between {
///       static constexpr std::string_view name = "between";
///       static Expr body(Expr x) { return !(x < 0 || x > 1) && x == x; }
///     };
///     apply(Between{}, tensor({-1.0, 0.5}));   // [0, 1]
inline Expr operator!(const Expr& a) { return detail::unary(Opcode::logical_not, a); }
inline Expr operator&&(const Expr& a, const Expr& b) {
  return detail::binary(Opcode::logical_and, a, b);
}
inline Expr operator||(const Expr& a, const Expr& b) {
  return detail::binary(Opcode::logical_or, a, b);
}

/// Comparisons give a bool: of f32, f16, i32 and u32; `==` and `!=` also of bool. With a NaN all
/// are false, except for `!=`.
///
///     struct Outside {
///       static constexpr std::string_view name = "outside";
///       static Expr body(Expr x) {
///         return select(x < -1, 1, 0) + select(x <= 0, 2, 0) + select(x > 1, 4, 0) +
///                select(x >= 2, 8, 0) + select(x == 2, 16, 0) + select(x != 2, 32, 0);
///       }
///     };
///     apply(Outside{}, tensor({-2.0, 2.0}));   // [35, 28]
inline Expr operator==(const Expr& a, const Expr& b) { return detail::binary(Opcode::equal, a, b); }
inline Expr operator!=(const Expr& a, const Expr& b) { return !(a == b); }
inline Expr operator<(const Expr& a, const Expr& b) { return detail::binary(Opcode::less, a, b); }
inline Expr operator<=(const Expr& a, const Expr& b) {
  return detail::binary(Opcode::less_equal, a, b);
}
inline Expr operator>(const Expr& a, const Expr& b) { return b < a; }
inline Expr operator>=(const Expr& a, const Expr& b) { return b <= a; }

/// |x|: f32, f16, i32 and u32. The functions from exp to trunc take f32 and f16, if they do not say
/// more.
///
///     struct Sum {
///       static constexpr std::string_view name = "sum_of_functions";
///       static Expr body(Expr x) {
///         return abs(x) + exp(x) + log(x) + sqrt(x) + rsqrt(x) + tanh(x) + sigmoid(x) +
///                softplus(x) + relu(x) + erf(x);
///       }
///     };
///     apply(Sum{}, tensor({1.0}));   // [10.3669]
inline Expr abs(const Expr& x) { return detail::unary(Opcode::abs, x); }
/// e^x.
inline Expr exp(const Expr& x) { return detail::unary(Opcode::exp, x); }
/// The natural logarithm: of 0 -infinity, of a negative number NaN.
inline Expr log(const Expr& x) { return detail::unary(Opcode::log, x); }
/// The square root: of a negative number NaN.
inline Expr sqrt(const Expr& x) { return detail::unary(Opcode::sqrt, x); }
/// 1 / sqrt(x).
inline Expr rsqrt(const Expr& x) { return detail::unary(Opcode::rsqrt, x); }
/// The hyperbolic tangent, without an overflow for large |x|.
inline Expr tanh(const Expr& x) { return detail::unary(Opcode::tanh, x); }
/// 1 / (1 + exp(-x)), without an overflow, as is its gradient.
inline Expr sigmoid(const Expr& x) { return detail::unary(Opcode::sigmoid, x); }
/// log(1 + exp(x)), without an overflow, as is its gradient.
inline Expr softplus(const Expr& x) { return detail::unary(Opcode::softplus, x); }
/// max(x, 0); NaN stays NaN. Also i32 and u32.
inline Expr relu(const Expr& x) { return detail::unary(Opcode::relu, x); }
/// The error function.
inline Expr erf(const Expr& x) { return detail::unary(Opcode::erf, x); }

/// The sine of x in radians, with the whole of pi for every x; of an infinity NaN, as `cos` and
/// `tan`.
///
///     struct Waves {
///       static constexpr std::string_view name = "waves";
///       static Expr body(Expr x) {
///         return sin(x) + cos(x) + tan(x) + asin(x) + acos(x) + atan(x) + sinh(x) + cosh(x) +
///                asinh(x) + atanh(x) + acosh(1 + x);
///       }
///     };
///     apply(Waves{}, tensor({0.5}));   // [7.57942]
inline Expr sin(const Expr& x) { return detail::unary(Opcode::sin, x); }
/// The cosine of x in radians.
inline Expr cos(const Expr& x) { return detail::unary(Opcode::cos, x); }
/// The tangent of x in radians.
inline Expr tan(const Expr& x) { return detail::unary(Opcode::tan, x); }
/// The angle in [-pi/2, pi/2] whose sine is x: beyond [-1, 1] NaN.
inline Expr asin(const Expr& x) { return detail::unary(Opcode::asin, x); }
/// The angle in [0, pi] whose cosine is x: beyond [-1, 1] NaN.
inline Expr acos(const Expr& x) { return detail::unary(Opcode::acos, x); }
/// The angle in [-pi/2, pi/2] whose tangent is x.
inline Expr atan(const Expr& x) { return detail::unary(Opcode::atan, x); }
/// The hyperbolic sine, precise near 0 and without an overflow on the way.
inline Expr sinh(const Expr& x) { return detail::unary(Opcode::sinh, x); }
/// The hyperbolic cosine, without an overflow on the way.
inline Expr cosh(const Expr& x) { return detail::unary(Opcode::cosh, x); }
/// The number whose hyperbolic sine is x, precise near 0.
Expr asinh(const Expr& x);
/// The number from 0 on whose hyperbolic cosine is x: below 1 NaN.
Expr acosh(const Expr& x);
/// The number whose hyperbolic tangent is x, precise near 0: beyond [-1, 1] NaN.
Expr atanh(const Expr& x);
/// 2^x.
///
///     struct Powers {
///       static constexpr std::string_view name = "powers";
///       static Expr body(Expr x) { return exp2(x) + log2(x) + expm1(x) + log1p(x); }
///     };
///     apply(Powers{}, tensor({1.0}));   // [4.41143]
inline Expr exp2(const Expr& x) { return detail::unary(Opcode::exp2, x); }
/// The logarithm to base 2: of 0 -infinity, of a negative number NaN.
inline Expr log2(const Expr& x) { return detail::unary(Opcode::log2, x); }
/// log(1 + x), precise near 0: of -1 -infinity, below NaN.
inline Expr log1p(const Expr& x) { return detail::unary(Opcode::log1p, x); }
/// e^x - 1, precise near 0.
inline Expr expm1(const Expr& x) { return detail::unary(Opcode::expm1, x); }
/// The greatest whole number that is not above x. This and the next four have gradient 0. This and
/// the next three keep infinities and NaN, and a zero has the sign of x.
///
///     struct Whole {
///       static constexpr std::string_view name = "whole";
///       static Expr body(Expr x) {
///         return floor(x) + 10 * ceil(x) + 100 * round(x) + 1000 * trunc(x) + 10000 * sign(x);
///       }
///     };
///     apply(Whole{}, tensor({2.5, -1.5}));   // [12232, -11212]
inline Expr floor(const Expr& x) { return detail::unary(Opcode::floor, x); }
/// The least whole number that is not below x.
inline Expr ceil(const Expr& x) { return detail::unary(Opcode::ceil, x); }
/// The nearest whole number: of two that are equally near the even one.
inline Expr round(const Expr& x) { return detail::unary(Opcode::round, x); }
/// The whole part, cut towards 0.
inline Expr trunc(const Expr& x) { return detail::unary(Opcode::trunc, x); }
/// -1, 0 or 1: f32, f16, i32 and u32. Of -0 it is 0, of NaN NaN.
inline Expr sign(const Expr& x) { return detail::unary(Opcode::sign, x); }

/// Whether x is NaN, as a bool: f32 and f16.
///
///     struct Mended {
///       static constexpr std::string_view name = "mended";
///       static Expr body(Expr x) { return select(is_nan(x), 0, x); }
///     };
///     apply(Mended{}, log(tensor({-1.0, 1.0})));   // [0, 0]
inline Expr is_nan(const Expr& x) { return detail::unary(Opcode::is_nan, x); }
/// Whether x is an infinity, as a bool: f32 and f16.
///
///     struct Kinds {
///       static constexpr std::string_view name = "kinds";
///       static Expr body(Expr x) { return select(is_inf(x), 2, select(is_finite(x), 1, 0)); }
///     };
///     apply(Kinds{}, log(tensor({-1.0, 0.0, 1.0})));   // [0, 2, 1]
inline Expr is_inf(const Expr& x) { return detail::unary(Opcode::is_inf, x); }
/// Whether x is neither NaN nor an infinity, as a bool: f32 and f16.
inline Expr is_finite(const Expr& x) { return !is_nan(x) && !is_inf(x); }
/// The angle in [-pi, pi] of the point (x, y), as the C standard's atan2: f32 and f16.
///
///     struct Angle {
///       static constexpr std::string_view name = "angle";
///       static Expr body(Expr y, Expr x) { return atan2(y, x); }
///     };
///     apply(Angle{}, tensor({0.0, 1.0}), tensor({-1.0, 1.0}));   // [3.14159, 0.785398]
inline Expr atan2(const Expr& y, const Expr& x) { return detail::binary(Opcode::atan2, y, x); }

/// a / b rounded down, of i32 and u32. Of b = 0, and of the least i32 by -1, it is a, as of a / b.
///
///     struct Digits {
///       static constexpr std::string_view name = "digits";
///       static Expr body(Expr x) { return 100 * floor_div(x, 10) + mod(x, 10); }
///     };
///     apply(Digits{}, tensor({57, -1}));   // [507, -91]
inline Expr floor_div(const Expr& a, const Expr& b) {
  return detail::binary(Opcode::floor_div, a, b);
}
/// What `floor_div` leaves, a - floor_div(a, b) * b, of i32 and u32: it has the sign of b. Where b
/// is 0 it is 0 instead.
inline Expr mod(const Expr& a, const Expr& b) { return detail::binary(Opcode::mod, a, b); }
/// The bits of i32 and u32. For a count that is not in [0, 31] all bits are shifted out: what stays
/// is 0, and -1 of a negative i32 >> count.
///
///     struct Mixed {
///       static constexpr std::string_view name = "mixed";
///       static Expr body(Expr x) { return ((x << 3) ^ (x >> 1)) & ~(x | 1); }
///     };
///     apply(Mixed{}, tensor({5, -6}));   // [42, 4]
inline Expr operator<<(const Expr& a, const Expr& count) {
  return detail::binary(Opcode::shift_left, a, count);
}
inline Expr operator>>(const Expr& a, const Expr& count) {
  return detail::binary(Opcode::shift_right, a, count);
}
inline Expr operator&(const Expr& a, const Expr& b) {
  return detail::binary(Opcode::bit_and, a, b);
}
inline Expr operator|(const Expr& a, const Expr& b) { return detail::binary(Opcode::bit_or, a, b); }
inline Expr operator^(const Expr& a, const Expr& b) {
  return detail::binary(Opcode::bit_xor, a, b);
}
inline Expr operator~(const Expr& x) { return detail::unary(Opcode::bit_not, x); }

/// base ^ exponent, as the C standard's pow: f32 and f16.
///
///     struct Cubed {
///       static constexpr std::string_view name = "cubed";
///       static Expr body(Expr x) { return pow(x, 3); }
///     };
///     apply(Cubed{}, tensor({-2.0, 3.0}));   // [-8, 27]
inline Expr pow(const Expr& base, const Expr& exponent) {
  return detail::binary(Opcode::pow, base, exponent);
}
/// The smaller one: f32, f16, i32 and u32. NaN if either is NaN; -0 is less than +0.
///
///     struct Clipped {
///       static constexpr std::string_view name = "clipped";
///       static Expr body(Expr x) { return max(min(x, 1), 0); }
///     };
///     apply(Clipped{}, tensor({-2.0, 0.5, 3.0}));   // [0, 0.5, 1]
inline Expr min(const Expr& a, const Expr& b) { return detail::binary(Opcode::min, a, b); }
/// The larger one; otherwise as `min`.
inline Expr max(const Expr& a, const Expr& b) { return detail::binary(Opcode::max, a, b); }
/// `x`, but 0 where `gate` is exactly 0. For gradients: unless_zero(g, g * slope) is 0 for a `g` of
/// 0 and an infinite slope, where g * slope is NaN. f32 and f16.
///
///     struct Slope {
///       static constexpr std::string_view name = "slope";
///       static Expr body(Expr g, Expr x) { return unless_zero(g, g / x); }
///     };
///     apply(Slope{}, tensor({0.0, 1.0}), tensor({0.0, 2.0}));   // [0, 0.5]
inline Expr unless_zero(const Expr& gate, const Expr& x) {
  return detail::binary(Opcode::unless_zero, gate, x);
}
/// `yes` where `condition` (a bool) holds, else `no`. Both are computed, and have one dtype, of any
/// kind.
///
///     struct Leaky {
///       static constexpr std::string_view name = "leaky";
///       static Expr body(Expr x) { return select(x < 0, 0.1 * x, x); }
///     };
///     apply(Leaky{}, tensor({-1.0, 2.0}));   // [-0.1, 2]
inline Expr select(const Expr& condition, const Expr& yes, const Expr& no) {
  return detail::make_expr(Opcode::select, std::array{condition, yes, no});
}
/// x in another dtype, as the operation `cast` does it.
///
///     struct Floor {
///       static constexpr std::string_view name = "whole_part";
///       static Expr body(Expr x) { return cast(x, DType::i32); }
///     };
///     apply(Floor{}, tensor({-1.5, 2.7}));   // [-1, 2]
Expr cast(const Expr& x, DType to);

}  // namespace kiln
