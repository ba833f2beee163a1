// Elementary functions of vectors of floats, on top of Highway. They are compiled once for each
// instruction set; see kiln/scalar/host/simd_targets.hpp.
//
// Each takes a tag, ScalableTag<float>, and is right for every float. A NaN gives a NaN.
// Infinities, signed zeros and subnormals give the rounded result of the function in double
// precision. Errors are in units in the last place (ULP) of the result; simd_math_test.cpp checks
// them.
#if defined(KILN_SCALAR_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_SCALAR_SIMD_MATH_INL_H_
#undef KILN_SCALAR_SIMD_MATH_INL_H_
#else
#define KILN_SCALAR_SIMD_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace kiln {
namespace HWY_NAMESPACE {
// Their names follow Highway's own functions, with which they are used.
// NOLINTBEGIN(readability-identifier-naming)

namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

template <class D>
HWY_INLINE hn::Vec<D> Infinity(D d) {
  return hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity());
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
// On x86 each of these expressions is one instruction.
template <class V>
HWY_INLINE V Lesser(V a, V b) {
  return hn::Min(a, b);
}
template <class V>
HWY_INLINE V Greater(V a, V b) {
  return hn::Max(a, b);
}
#else
/// a < b ? a : b, so b where either is NaN.
template <class V>
HWY_INLINE V Lesser(V a, V b) {
  return hn::IfThenElse(hn::Lt(a, b), a, b);
}
/// a > b ? a : b, so b where either is NaN.
template <class V>
HWY_INLINE V Greater(V a, V b) {
  return hn::IfThenElse(hn::Gt(a, b), a, b);
}
#endif

/// `x` limited to the two; a NaN stays NaN.
template <class D, class V>
HWY_INLINE V Clamp(D d, V x, hn::TFromD<D> least, hn::TFromD<D> most) {
  return Greater(hn::Set(d, least), Lesser(hn::Set(d, most), x));
}

/// c + next[0] * x + next[1] * x^2 + ..., by Horner's rule.
template <class D, class V, class T, class... Next>
HWY_INLINE V Polynomial(D d, V x, T c, Next... next) {
  if constexpr (sizeof...(next) == 0) {
    return hn::Set(d, c);
  } else {
    return hn::MulAdd(Polynomial(d, x, next...), x, hn::Set(d, c));
  }
}

// If one of these is added to a small number, the sum has no bits for a fraction. So it is rounded
// to the nearest whole number, which stands in the lowest bits. The factor 1.5 makes it work for
// negative numbers, too.
constexpr float round_f32 = 12582912.0F;          // 1.5 * 2^23
constexpr double round_f64 = 6755399441055744.0;  // 1.5 * 2^52

/// 2^n for whole n in [-126, 127], or for doubles in [-1022, 1023].
template <class D, class V>
HWY_INLINE V PowerOfTwo(D d, V n) {
  const hn::RebindToUnsigned<D> du;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const auto biased = hn::BitCast(du, hn::Add(n, hn::Set(d, round_f32 + 127)));
    return hn::BitCast(d, hn::ShiftLeft<23>(biased));
  } else {
    const auto biased = hn::BitCast(du, hn::Add(n, hn::Set(d, round_f64 + 1023)));
    return hn::BitCast(d, hn::ShiftLeft<52>(biased));
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
template <std::size_t lanes>
HWY_INLINE hn::Vec128<float, lanes> ScaleByPower(hn::Vec128<float, lanes> x,
                                                 hn::Vec128<float, lanes> n) {
  return hn::Vec128<float, lanes>{_mm_scalef_ps(x.raw, n.raw)};
}
HWY_INLINE hn::Vec256<float> ScaleByPower(hn::Vec256<float> x, hn::Vec256<float> n) {
  return hn::Vec256<float>{_mm256_scalef_ps(x.raw, n.raw)};
}
HWY_INLINE hn::Vec512<float> ScaleByPower(hn::Vec512<float> x, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(x.raw, n.raw)};
}
#else
/// x * 2^n for whole n in [-252, 254], rounded once: in two steps, of which the first is exact
/// where x is near 1.
template <class V>
HWY_INLINE V ScaleByPower(V x, V n) {
  const hn::DFromV<V> d;
  const V round = hn::Set(d, round_f32);
  const V first = hn::Sub(hn::MulAdd(n, hn::Set(d, 0.5F), round), round);
  return hn::Mul(hn::Mul(x, PowerOfTwo(d, first)), PowerOfTwo(d, hn::Sub(n, first)));
}
#endif

/// exp(x) - 1 for |x| < 0.35, by the polynomial of the Cephes library's expf.
template <class D, class V>
HWY_INLINE V ExpMinusOne(D d, V x) {
  const V p = Polynomial(d, x, 5.0000001201e-1F, 1.6666665459e-1F, 4.1665795894e-2F,
                         8.3334519073e-3F, 1.3981999507e-3F, 1.9875691500e-4F);
  return hn::MulAdd(p, hn::Mul(x, x), x);
}

/// exp(x) = (1 + the result) * 2^n, with the result in [-0.3, 0.42]. The reduction is that of the
/// Cephes library's expf: n times the first part of log(2) is exact.
template <class D, class V>
HWY_INLINE V ExpReduced(D d, V x, V& n) {
  constexpr float inverse_of_log2 = 1.44269504088896341F;
  constexpr float log2_high = 0.693359375F;
  constexpr float log2_low = -2.12194440e-4F;
  const V round = hn::Set(d, round_f32);
  n = hn::Sub(hn::MulAdd(x, hn::Set(d, inverse_of_log2), round), round);
  const V near = hn::NegMulAdd(n, hn::Set(d, log2_high), x);
  return ExpMinusOne(d, hn::NegMulAdd(n, hn::Set(d, log2_low), near));
}

/// exp(x) = the result * 2^n, with the result in [0.7, 1.42].
template <class D, class V>
HWY_INLINE V ExpFraction(D d, V x, V& n) {
  return hn::Add(ExpReduced(d, x, n), hn::Set(d, 1.0F));
}

/// exp(x) where neither it nor its inverse overflows or is subnormal: x in [-87, 88].
template <class D, class V>
HWY_INLINE V ExpInRange(D d, V x) {
  V n;
  const V fraction = ExpFraction(d, x, n);
  return hn::Mul(fraction, PowerOfTwo(d, n));
}

}  // namespace detail

/// e^x, to 2 ULP.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  // Beyond these it is an infinity or, less than half the smallest subnormal, 0.
  x = detail::Clamp(d, x, -104.0F, 89.0F);
  V n;
  const V fraction = detail::ExpFraction(d, x, n);
  return detail::ScaleByPower(fraction, n);
}

namespace detail {

/// x = (1 + the result) * 2^e, with 1 + the result in [sqrt(1/2), sqrt(2)), for positive finite x.
template <class D, class V>
HWY_INLINE V LogReduced(D d, V x, V& e) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto root_half = hn::Set(du, 0x3F3504F3U);  // the bits of sqrt(1/2)
  const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V normal = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 8388608.0F)), x);  // * 2^23
  const auto bits = hn::Sub(hn::BitCast(du, normal), root_half);
  const V whole = hn::ConvertTo(d, hn::ShiftRight<23>(hn::BitCast(di, bits)));
  e = hn::Sub(whole, hn::IfThenElseZero(subnormal, hn::Set(d, 23.0F)));
  const auto mantissa = hn::And(bits, hn::Set(du, 0x007FFFFFU));
  return hn::Sub(hn::BitCast(d, hn::Add(mantissa, root_half)), hn::Set(d, 1.0F));
}

/// log(1 + f) - f + f^2 / 2 for f in [sqrt(1/2) - 1, sqrt(2) - 1]: the polynomial of the Cephes
/// library's logf.
template <class D, class V>
HWY_INLINE V LogTail(D d, V f) {
  const V p = Polynomial(d, f, 3.3333331174e-1F, -2.4999993993e-1F, 2.0000714765e-1F,
                         -1.6668057665e-1F, 1.4249322787e-1F, -1.2420140846e-1F, 1.1676998740e-1F,
                         -1.1514610310e-1F, 7.0376836292e-2F);
  return hn::Mul(hn::Mul(p, f), hn::Mul(f, f));
}

/// `log`, a logarithm of positive finite x, with what it is elsewhere.
template <class D, class V>
HWY_INLINE V LogAnywhere(D d, V x, V log) {
  const V infinity = Infinity(d);
  const V finite = hn::IfThenElse(hn::Lt(x, infinity), log, x);  // else x: an infinity or NaN
  const V rest = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), hn::NaN(d));
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), finite, rest);
}

}  // namespace detail

/// The natural logarithm, to 2 ULP; of 0 it is -inf, of less a NaN. As the Cephes library's logf:
/// x = m * 2^e with m in [sqrt(1/2), sqrt(2)), and a polynomial in m - 1.
template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  constexpr float log2_high = 0.693359375F;
  constexpr float log2_low = -2.12194440e-4F;
  V e;
  const V f = detail::LogReduced(d, x, e);
  V tail = hn::MulAdd(e, hn::Set(d, log2_low), detail::LogTail(d, f));
  tail = hn::NegMulAdd(hn::Mul(f, f), hn::Set(d, 0.5F), tail);
  return detail::LogAnywhere(d, x, hn::MulAdd(e, hn::Set(d, log2_high), hn::Add(f, tail)));
}

/// The hyperbolic tangent, to 4 ULP: near 0 the polynomial of the Cephes library's tanhf, beyond
/// 1 - 2 / (exp(2x) + 1).
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V a = hn::Abs(x);
  const V s = hn::Mul(a, a);
  const V p = detail::Polynomial(d, s, -3.33332819422e-1F, 1.33314422036e-1F, -5.37397155531e-2F,
                                 2.06390887954e-2F, -5.70498872745e-3F);
  const V near = hn::MulAdd(hn::Mul(p, s), a, a);
  const V bounded = detail::Lesser(hn::Set(d, 10.0F), a);  // the result is 1 from 9.02 on
  const V e = detail::ExpInRange(d, hn::Add(bounded, bounded));
  const V far = hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(e, one)));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625F)), near, far), x);
}

/// 1 / (1 + exp(-x)), to 4 ULP, without an overflow on the way.
template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

/// log(1 + exp(x)), to 4 ULP: max(x, 0) + log(1 + e) with e = exp(-|x|), where log(1 + e) is
/// 2 atanh(s), s = e / (2 + e), by its series; s <= 1/3, so what is left out is below 2e-9 of it.
template <class D, class V>
HWY_INLINE V Softplus(D d, V x) {
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  const V s = hn::Div(e, hn::Add(e, hn::Set(d, 2.0F)));
  const V p = detail::Polynomial(d, hn::Mul(s, s), 2.0F, 2.0F / 3, 2.0F / 5, 2.0F / 7, 2.0F / 9,
                                 2.0F / 11, 2.0F / 13, 2.0F / 15);
  return hn::MulAdd(p, s, hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x));
}

/// The error function, to 2 ULP: a polynomial near 0, 1 - exp(a polynomial) beyond; both by
/// N. Juffa, "Efficient faithfully rounded implementation of error function erff()", Stack
/// Overflow 35148198.
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V a = detail::Lesser(hn::Set(d, 4.0F), hn::Abs(x));  // the result is 1 from 3.92 on
  const V p = detail::Polynomial(d, hn::Mul(a, a), 1.28379166e-1F, -3.76125336e-1F, 1.12819925e-1F,
                                 -2.67681349e-2F, 4.99119423e-3F, -5.96761703e-4F);
  const V near = hn::MulAdd(p, a, a);
  const V q = detail::Polynomial(d, a, -1.28717512e-1F, -6.34846687e-1F, -1.06777877e-1F,
                                 2.42546219e-2F, -3.88396438e-3F, 3.83197126e-4F, -1.72853470e-5F);
  const V far = hn::Sub(hn::Set(d, 1.0F), detail::ExpInRange(d, hn::MulSub(q, a, a)));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Gt(a, hn::Set(d, 0.927734375F)), far, near), x);
}

/// Correctly rounded.
template <class D, class V>
HWY_INLINE V Sqrt(D /*d*/, V x) {
  return hn::Sqrt(x);
}

/// 1 / sqrt(x), to 1.5 ULP: both steps are correctly rounded.
template <class D, class V>
HWY_INLINE V Rsqrt(D d, V x) {
  return hn::Div(hn::Set(d, 1.0F), hn::Sqrt(x));
}

/// The smaller; a NaN where either is one; of two zeros -0 if there is one.
template <class D, class V>
HWY_INLINE V Min(D /*d*/, V a, V b) {
  const V smaller = hn::IfThenElse(hn::IsNaN(a), a, detail::Lesser(a, b));
  return hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), smaller);
}

/// The larger; a NaN where either is one; of two zeros +0 if there is one.
template <class D, class V>
HWY_INLINE V Max(D /*d*/, V a, V b) {
  const V larger = hn::IfThenElse(hn::IsNaN(a), a, detail::Greater(a, b));
  return hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), larger);
}

/// x <= 0 ? 0 : x.
template <class D, class V>
HWY_INLINE V Relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x);
}

namespace detail {

/// log2(a) in double precision, for positive normal a: e + log2(m), with m in [sqrt(1/2), sqrt(2))
/// and log(m) = 2 atanh(s), s = (m - 1) / (m + 1), by its series; |s| < 0.172, so what is left out
/// is below 6e-11 of the result, and in a power that is a float below a tenth of an ULP.
template <class D, class V>
HWY_INLINE V Log2InDouble(D d, V a) {
  constexpr double twice_inverse_of_log2 = 2.8853900817779268;
  const hn::RebindToUnsigned<D> du;
  const auto root_half = hn::Set(du, std::uint64_t{0x3FE6A09E667F3BCD});  // the bits of sqrt(1/2)
  const auto bias = hn::Set(du, std::uint64_t{0x3FF0000000000000});       // 1023 as an exponent
  const auto bits = hn::Add(hn::BitCast(du, a), hn::Sub(bias, root_half));
  const auto exponent = hn::Add(hn::ShiftRight<52>(bits), hn::BitCast(du, hn::Set(d, round_f64)));
  const V e = hn::Sub(hn::BitCast(d, exponent), hn::Set(d, round_f64 + 1023));
  const auto mantissa = hn::And(bits, hn::Set(du, std::uint64_t{0x000FFFFFFFFFFFFF}));
  const V m = hn::BitCast(d, hn::Add(mantissa, root_half));
  const V one = hn::Set(d, 1.0);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V p = Polynomial(d, hn::Mul(s, s), 1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11);
  return hn::MulAdd(hn::Mul(p, s), hn::Set(d, twice_inverse_of_log2), e);
}

/// 2^x in double precision, for |x| <= 1000: the exponential series, |x log(2)| < 0.347, so what is
/// left out is below 6e-9 of the result, a tenth of an ULP of a float.
template <class D, class V>
HWY_INLINE V Exp2InDouble(D d, V x) {
  constexpr double log2 = 0.69314718055994531;
  const V round = hn::Set(d, round_f64);
  const V n = hn::Sub(hn::Add(x, round), round);
  const V r = hn::Mul(hn::Sub(x, n), hn::Set(d, log2));
  const V p =
      Polynomial(d, r, 1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040);
  return hn::Mul(p, PowerOfTwo(d, n));
}

/// As floats, rounded; too large a number gives an infinity.
template <class DF, class V>
HWY_INLINE hn::Vec<DF> ToFloats(DF df, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway stops at the largest float there.
  const hn::DFromV<V> d;
  const auto half = hn::DemoteTo(df, hn::Mul(x, hn::Set(d, 0.5)));
  const auto large = hn::Add(half, half);
  return hn::IfThenElse(hn::Gt(large, hn::Set(df, 1.0F)), large, hn::DemoteTo(df, x));
#else
  return hn::DemoteTo(df, x);
#endif
}

/// a^y for a >= 0, of as many floats as there are doubles in a vector.
template <class DF, class V>
HWY_INLINE V PowOfPositive(DF df, V a, V y) {
  const hn::Rebind<double, DF> d;
  const auto base = hn::PromoteTo(d, a);
  const auto infinity = Infinity(d);
  auto log = Log2InDouble(d, base);
  log = hn::IfThenElse(hn::Eq(base, infinity), infinity, log);
  log = hn::IfThenElse(hn::Eq(base, hn::Zero(d)), hn::Neg(infinity), log);
  // Beyond these the result is an infinity or 0 as a float.
  const auto power = Clamp(d, hn::Mul(hn::PromoteTo(d, y), log), -300.0, 300.0);
  return ToFloats(df, Exp2InDouble(d, power));
}

/// The same for a whole vector.
template <class D, class V>
HWY_INLINE V PowOfPositives(D d, V a, V y) {
#if HWY_TARGET == HWY_SCALAR
  return PowOfPositive(d, a, y);
#else
  const hn::Half<D> half;
  const auto low = PowOfPositive(half, hn::LowerHalf(half, a), hn::LowerHalf(half, y));
  const auto high = PowOfPositive(half, hn::UpperHalf(half, a), hn::UpperHalf(half, y));
  return hn::Combine(d, high, low);
#endif
}

}  // namespace detail

/// x^y as std::pow has it, to 1 ULP: of a negative x for whole y only, and 1 where y is 0 or x
/// is 1.
template <class D, class V>
HWY_INLINE V Pow(D d, V x, V y) {
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0F);
  const V a = hn::Abs(x);
  // -1 to an infinite power is 1; computed, it would be 0 * inf.
  V power = hn::IfThenElse(hn::Eq(a, one), one, detail::PowOfPositives(d, a, y));

  const V half = hn::Mul(y, hn::Set(d, 0.5F));
  const auto whole = hn::Eq(hn::Trunc(y), y);
  const auto odd = hn::And(whole, hn::Ne(hn::Trunc(half), half));
  power = hn::Or(power, hn::IfThenElseZero(odd, hn::And(hn::SignBit(d), x)));

  const auto negative = hn::And(hn::Lt(x, zero), hn::Lt(a, detail::Infinity(d)));
  const auto none = hn::Or(hn::AndNot(whole, negative), hn::Or(hn::IsNaN(x), hn::IsNaN(y)));
  const V result = hn::IfThenElse(none, hn::NaN(d), power);
  return hn::IfThenElse(hn::Or(hn::Eq(y, zero), hn::Eq(x, one)), one, result);
}

/// The nearest f16, ties to even, as a float; an infinity from 65520 on.
template <class D, class V>
HWY_INLINE V RoundF16(D d, V x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::DemoteTo(d16, x));
#else
  const hn::RebindToUnsigned<D> du;
  const V a = hn::Abs(x);
  const auto bits = hn::BitCast(du, a);
  const auto even = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1U));
  const auto carried = hn::Add(hn::Add(bits, hn::Set(du, 0xFFFU)), even);
  const V normal = hn::BitCast(d, hn::And(carried, hn::Set(du, 0xFFFFE000U)));
  // Subnormals are multiples of 2^-24, which is the last place of 0.5.
  const V half = hn::Set(d, 0.5F);
  const V subnormal = hn::Sub(hn::Add(a, half), half);
  V near = hn::IfThenElse(hn::Lt(a, hn::Set(d, 6.103515625e-5F)), subnormal, normal);  // 2^-14
  near = hn::IfThenElse(hn::Ge(a, hn::Set(d, 65520.0F)), detail::Infinity(d), near);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySignToAbs(near, x));
#endif
}

/// The whole part, or the nearest i32 there is; of a NaN 0.
template <class D, class V>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> F32ToI32(D /*d*/, V x) {
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(di, hn::IfThenZeroElse(hn::IsNaN(x), x));
}

/// The whole part, or the nearest u32 there is; of a NaN 0.
template <class D, class V>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> F32ToU32(D d, V x) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const V limit = hn::Set(d, 2147483648.0F);  // 2^31
  const V positive = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), x);
  const auto large = hn::Ge(positive, limit);
  const V rest = hn::Sub(positive, hn::IfThenElseZero(large, limit));
  // From 2^31 on, the rest is at most 2^31 - 1 and 2^31 is put back as the highest bit.
  const V top = hn::IfThenElseZero(large, hn::SignBit(d));
  return hn::Or(hn::BitCast(du, hn::ConvertTo(di, rest)), hn::BitCast(du, top));
}

/// The nearest float.
template <class D, class V>
HWY_INLINE hn::Vec<D> I32ToF32(D d, V x) {
  return hn::ConvertTo(d, x);
}

/// The nearest float.
template <class D, class V>
HWY_INLINE hn::Vec<D> U32ToF32(D d, V x) {
  return hn::ConvertTo(d, x);
}

// NOLINTEND(readability-identifier-naming)
}  // namespace HWY_NAMESPACE
}  // namespace kiln
HWY_AFTER_NAMESPACE();

#endif  // KILN_SCALAR_SIMD_MATH_INL_H_
