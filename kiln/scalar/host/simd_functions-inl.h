// More elementary functions of vectors of floats, as those of simd_math-inl.h: circular, inverse
// and hyperbolic functions, and exponentials and logarithms that are precise near 0.
#if defined(KILN_SCALAR_SIMD_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_SCALAR_SIMD_FUNCTIONS_INL_H_
#undef KILN_SCALAR_SIMD_FUNCTIONS_INL_H_
#else
#define KILN_SCALAR_SIMD_FUNCTIONS_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kiln/scalar/host/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln {
namespace HWY_NAMESPACE {
// Their names follow Highway's own functions, with which they are used.
// NOLINTBEGIN(readability-identifier-naming)

namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

constexpr float pi = 3.14159265F;
constexpr float half_pi = 1.57079633F;

/// From here on, angles are reduced in double precision, one after the other.
constexpr float far_angle = 400.0F;
constexpr std::size_t most_floats = 64;  // in a vector, of any target

/// An angle a in [0, 400) as the result + n * pi/2, with the result in [-pi/4, pi/4] and whole n: n
/// times the first two parts of pi/2 is exact, and so are the first differences.
template <class D, class V>
HWY_INLINE V AngleReduced(D d, V a, V& n) {
  const V round = hn::Set(d, round_f32);
  n = hn::Sub(hn::MulAdd(a, hn::Set(d, 0.636619772F), round), round);
  V r = hn::NegMulAdd(n, hn::Set(d, 1.570770263671875F), a);
  r = hn::NegMulAdd(n, hn::Set(d, 2.6063062250614166e-5F), r);
  return hn::NegMulAdd(n, hn::Set(d, 6.07710062827671e-11F), r);
}

/// Whether bit `bit` of whole n is set.
template <class D, class V>
HWY_INLINE hn::Mask<D> HasBit(D d, V n, std::uint32_t bit) {
  const hn::RebindToUnsigned<D> du;
  const auto word = hn::BitCast(du, hn::Add(n, hn::Set(d, round_f32)));
  return hn::RebindMask(d, hn::Ne(hn::And(word, hn::Set(du, bit)), hn::Zero(du)));
}

/// The sine for |r| <= pi/4, by the polynomial of the Cephes library's sinf.
template <class D, class V>
HWY_INLINE V SinNear(D d, V r) {
  const V s = hn::Mul(r, r);
  const V p = Polynomial(d, s, -1.6666654611e-1F, 8.3321608736e-3F, -1.9515295891e-4F);
  return hn::MulAdd(hn::Mul(p, s), r, r);
}

/// The cosine for |r| <= pi/4, likewise.
template <class D, class V>
HWY_INLINE V CosNear(D d, V r) {
  const V s = hn::Mul(r, r);
  const V p =
      Polynomial(d, s, 4.166664568298827e-2F, -1.388731625493765e-3F, 2.443315711809948e-5F);
  const V tail = hn::NegMulAdd(s, hn::Set(d, 0.5F), hn::Mul(hn::Mul(p, s), s));
  return hn::Add(hn::Set(d, 1.0F), tail);
}

/// The sine of r + n * pi/2.
template <class D, class V>
HWY_INLINE V SinOfAngle(D d, V r, V n) {
  const V size = hn::IfThenElse(HasBit(d, n, 1), CosNear(d, r), SinNear(d, r));
  return hn::IfThenElse(HasBit(d, n, 2), hn::Neg(size), size);
}

/// `near`, and where |x| is large or NaN `f(x)` in double precision.
template <class D, class V>
HWY_INLINE V FarAngles(D d, V x, V near, double (*f)(double)) {
  if (hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, far_angle)))) return near;
  HWY_ALIGN float in[most_floats];
  HWY_ALIGN float out[most_floats];
  hn::Store(x, d, in);
  hn::Store(near, d, out);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(std::abs(in[i]) < far_angle)) out[i] = static_cast<float>(f(static_cast<double>(in[i])));
  }
  return hn::Load(d, out);
}

/// asin(a) for a <= 0.5, and half of acos(a) beyond: the polynomial of the Cephes library's asinf.
template <class D, class V>
HWY_INLINE V AsinPart(D d, V a, hn::Mask<D> far) {
  const V rest = hn::Mul(hn::Set(d, 0.5F), hn::Sub(hn::Set(d, 1.0F), a));
  const V s = hn::IfThenElse(far, rest, hn::Mul(a, a));
  const V y = hn::IfThenElse(far, hn::Sqrt(rest), a);
  const V p = Polynomial(d, s, 1.6666752422e-1F, 7.4953002686e-2F, 4.5470025998e-2F,
                         2.4181311049e-2F, 4.2163199048e-2F);
  return hn::MulAdd(hn::Mul(p, s), y, y);
}

/// The arc tangent for a >= 0: the reductions and the polynomial of the Cephes library's atanf.
template <class D, class V>
HWY_INLINE V AtanOfPositive(D d, V a) {
  const V one = hn::Set(d, 1.0F);
  const auto large = hn::Gt(a, hn::Set(d, 2.414213562F));
  const auto middle = hn::Gt(a, hn::Set(d, 0.4142135624F));
  const V above = hn::IfThenElse(large, hn::Neg(one), hn::IfThenElse(middle, hn::Sub(a, one), a));
  const V below = hn::IfThenElse(large, a, hn::IfThenElse(middle, hn::Add(a, one), one));
  const V y = hn::Div(above, below);
  const V s = hn::Mul(y, y);
  const V p = Polynomial(d, s, -3.33329491539e-1F, 1.99777106478e-1F, -1.38776856032e-1F,
                         8.05374449538e-2F);
  const V part = hn::MulAdd(hn::Mul(p, s), y, y);
  const V quarter = hn::IfThenElseZero(middle, hn::Set(d, half_pi / 2));
  return hn::Add(hn::IfThenElse(large, hn::Set(d, half_pi), quarter), part);
}

/// exp(a) / 2 for a >= 0, to 2 ULP, without an overflow on the way.
template <class D, class V>
HWY_INLINE V HalfOfExp(D d, V a) {
  V n;
  const V fraction = ExpFraction(d, Lesser(hn::Set(d, 90.0F), a), n);
  return ScaleByPower(fraction, hn::Sub(n, hn::Set(d, 1.0F)));
}

}  // namespace detail

/// The sine, to 2 ULP for every float; of an infinity a NaN.
template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
  V n;
  const V r = detail::AngleReduced(d, hn::Abs(x), n);
  const V sine = detail::SinOfAngle(d, r, n);
  const V near = hn::Xor(sine, hn::And(x, hn::SignBit(d)));
  return detail::FarAngles(d, x, near, [](double v) { return std::sin(v); });
}

/// The cosine, to 2 ULP for every float; of an infinity a NaN.
template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
  V n;
  const V r = detail::AngleReduced(d, hn::Abs(x), n);
  const V near = detail::SinOfAngle(d, r, hn::Add(n, hn::Set(d, 1.0F)));
  return detail::FarAngles(d, x, near, [](double v) { return std::cos(v); });
}

/// The tangent, to 4 ULP for every float; of an infinity a NaN.
template <class D, class V>
HWY_INLINE V Tan(D d, V x) {
  V n;
  const V r = detail::AngleReduced(d, hn::Abs(x), n);
  const auto odd = detail::HasBit(d, n, 1);
  const V sine = detail::SinNear(d, r);
  const V cosine = detail::CosNear(d, r);
  const V ratio =
      hn::Div(hn::IfThenElse(odd, hn::Neg(cosine), sine), hn::IfThenElse(odd, sine, cosine));
  const V near = hn::Xor(ratio, hn::And(x, hn::SignBit(d)));
  return detail::FarAngles(d, x, near, [](double v) { return std::tan(v); });
}

/// The arc sine, to 3 ULP; beyond [-1, 1] a NaN.
template <class D, class V>
HWY_INLINE V Asin(D d, V x) {
  const V a = hn::Abs(x);
  const auto far = hn::Gt(a, hn::Set(d, 0.5F));
  const V part = detail::AsinPart(d, a, far);
  const V rest = hn::NegMulAdd(hn::Set(d, 2.0F), part, hn::Set(d, detail::half_pi));
  const V size = hn::IfThenElse(far, rest, part);
  return hn::IfThenElse(hn::Le(a, hn::Set(d, 1.0F)), hn::CopySignToAbs(size, x), hn::NaN(d));
}

/// The arc cosine, to 3 ULP; beyond [-1, 1] a NaN.
template <class D, class V>
HWY_INLINE V Acos(D d, V x) {
  const V a = hn::Abs(x);
  const auto far = hn::Gt(a, hn::Set(d, 0.5F));
  const V part = detail::AsinPart(d, a, far);
  const V twice = hn::Add(part, part);
  const V rest =
      hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, detail::pi), twice), twice);
  const V near = hn::Sub(hn::Set(d, detail::half_pi), hn::CopySignToAbs(part, x));
  return hn::IfThenElse(hn::Le(a, hn::Set(d, 1.0F)), hn::IfThenElse(far, rest, near), hn::NaN(d));
}

/// The arc tangent, to 3 ULP.
template <class D, class V>
HWY_INLINE V Atan(D d, V x) {
  return hn::CopySignToAbs(detail::AtanOfPositive(d, hn::Abs(x)), x);
}

/// The angle of the point (x, y) as std::atan2 has it, to 4 ULP; where it is subnormal, to 1e-45.
template <class D, class V>
HWY_INLINE V Atan2(D d, V y, V x) {
  const V a = hn::Abs(x);
  const V b = hn::Abs(y);
  const V large = detail::Greater(a, b);
  const V small = detail::Lesser(a, b);
  V ratio = hn::Div(small, large);
  ratio = hn::IfThenElse(hn::Eq(small, detail::Infinity(d)), hn::Set(d, 1.0F), ratio);
  ratio = hn::IfThenZeroElse(hn::Eq(large, hn::Zero(d)), ratio);
  const V part = detail::AtanOfPositive(d, ratio);
  const V first = hn::IfThenElse(hn::Gt(b, a), hn::Sub(hn::Set(d, detail::half_pi), part), part);
  const auto left = hn::Ne(hn::CopySign(hn::Set(d, 1.0F), x), hn::Set(d, 1.0F));
  const V size = hn::IfThenElse(left, hn::Sub(hn::Set(d, detail::pi), first), first);
  const auto none = hn::Or(hn::IsNaN(x), hn::IsNaN(y));
  return hn::IfThenElse(none, hn::NaN(d), hn::CopySignToAbs(size, y));
}

/// The hyperbolic sine, to 4 ULP: its series near 0, (e^x - e^-x) / 2 beyond.
template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  const V a = hn::Abs(x);
  const V s = hn::Mul(a, a);
  const V p = detail::Polynomial(d, s, 1.0F / 6, 1.0F / 120, 1.0F / 5040, 1.0F / 362880);
  const V near = hn::MulAdd(hn::Mul(p, s), a, a);
  const V half = detail::HalfOfExp(d, a);
  const V far = hn::Sub(half, hn::Div(hn::Set(d, 0.25F), half));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Lt(a, hn::Set(d, 1.0F)), near, far), x);
}

/// The hyperbolic cosine, to 3 ULP.
template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  const V half = detail::HalfOfExp(d, hn::Abs(x));
  return hn::Add(half, hn::Div(hn::Set(d, 0.25F), half));
}

/// 2^x, to 2 ULP; of whole x it is exact.
template <class D, class V>
HWY_INLINE V Exp2(D d, V x) {
  x = detail::Clamp(d, x, -151.0F, 129.0F);
  const V round = hn::Set(d, detail::round_f32);
  const V n = hn::Sub(hn::Add(x, round), round);
  const V r = hn::Mul(hn::Sub(x, n), hn::Set(d, 0.693147181F));
  // Up to 0.5 log(2) = 0.347.
  return detail::ScaleByPower(hn::Add(detail::ExpMinusOne(d, r), hn::Set(d, 1.0F)), n);
}

/// The logarithm to base 2, to 3 ULP; of 0 it is -inf, of less a NaN.
template <class D, class V>
HWY_INLINE V Log2(D d, V x) {
  V e;
  const V f = detail::LogReduced(d, x, e);
  const V tail = hn::NegMulAdd(hn::Mul(f, f), hn::Set(d, 0.5F), detail::LogTail(d, f));
  // 1 / log(2) in two parts: f times the first is not rounded much where the sum is small.
  const V low = hn::MulAdd(hn::Add(f, tail), hn::Set(d, 0.44269504F), tail);
  return detail::LogAnywhere(d, x, hn::Add(hn::Add(low, f), e));
}

/// log(1 + x), to 4 ULP; of -1 it is -inf, of less a NaN.
template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const auto near = hn::And(hn::Gt(x, hn::Set(d, -0.2928932F)), hn::Lt(x, hn::Set(d, 0.4142135F)));
  const V tail = hn::NegMulAdd(hn::Mul(x, x), hn::Set(d, 0.5F), detail::LogTail(d, x));
  const V far = Log(d, hn::Add(hn::Set(d, 1.0F), x));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, hn::IfThenElse(near, hn::Add(x, tail), far));
}

/// e^x - 1, to 2 ULP. With exp(x) = (1 + q) * 2^n it is 2 * (q * t + (t - 1/2)) of t = 2^(n - 1).
template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  const V half = hn::Set(d, 0.5F);
  V n;
  const V q = detail::ExpReduced(d, detail::Clamp(d, x, -40.0F, 89.0F), n);
  const V t = detail::PowerOfTwo(d, hn::Sub(n, hn::Set(d, 1.0F)));
  const V y = hn::MulAdd(q, t, hn::Sub(t, half));
  // Near 0 it is x, of which half might be less than the smallest float.
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-8F)), x, hn::Add(y, y));
}

// Whole numbers near x. Some targets lose the sign of a zero, so it is taken from x.

template <class D, class V>
HWY_INLINE V Floor(D, V x) {
  return hn::CopySignToAbs(hn::Abs(hn::Floor(x)), x);
}

template <class D, class V>
HWY_INLINE V Ceil(D, V x) {
  return hn::CopySignToAbs(hn::Abs(hn::Ceil(x)), x);
}

template <class D, class V>
HWY_INLINE V Trunc(D, V x) {
  return hn::CopySignToAbs(hn::Abs(hn::Trunc(x)), x);
}

/// To the nearest, ties to even.
template <class D, class V>
HWY_INLINE V Round(D d, V x) {
  const V large = hn::Set(d, 8388608.0F);  // 2^23: from there on all are whole
  const V size = hn::Abs(x);
  const V near = hn::Sub(hn::Add(size, large), large);
  return hn::CopySignToAbs(hn::IfThenElse(hn::Lt(size, large), near, size), x);
}

/// -1 or 1; of zeros 0, of a NaN a NaN.
template <class D, class V>
HWY_INLINE V Sign(D d, V x) {
  const V one = hn::CopySign(hn::Set(d, 1.0F), x);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), one));
}

// NOLINTEND(readability-identifier-naming)
}  // namespace HWY_NAMESPACE
}  // namespace kiln
HWY_AFTER_NAMESPACE();

#endif  // KILN_SCALAR_SIMD_FUNCTIONS_INL_H_
