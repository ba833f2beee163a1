#include "kiln/scalar/host/tile_kernels.hpp"

#include <limits>
#include <type_traits>

#include "kiln/scalar/host/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/scalar/host/tile_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before what it compiles for each target
#include <hwy/highway.h>

#include "kiln/scalar/host/f16_tiles-inl.h"
#include "kiln/scalar/host/simd_functions-inl.h"
#include "kiln/scalar/host/simd_math-inl.h"
#include "kiln/scalar/host/tile_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln {
namespace HWY_NAMESPACE {
namespace {

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<std::int32_t>;
using DU = hn::ScalableTag<std::uint32_t>;
using I = std::int32_t;
using U = std::uint32_t;

/// A mask as words of 0 and 1.
template <class D, class M>
HWY_INLINE hn::Vec<DU> truth(D, M mask) {
  const DU du;
  return hn::IfThenElseZero(hn::RebindMask(du, mask), hn::Set(du, 1U));
}
HWY_INLINE hn::Mask<DU> holds(hn::Vec<DU> word) { return hn::Ne(word, hn::Zero(DU())); }

// The opcodes on vectors.
constexpr auto neg = [](auto, auto x) HWY_ATTR { return hn::Neg(x); };
constexpr auto abs_of = [](auto, auto x) HWY_ATTR { return hn::Abs(x); };
constexpr auto exp_of = [](auto d, auto x) HWY_ATTR { return Exp(d, x); };
constexpr auto log_of = [](auto d, auto x) HWY_ATTR { return Log(d, x); };
constexpr auto sqrt_of = [](auto, auto x) HWY_ATTR { return hn::Sqrt(x); };
constexpr auto rsqrt_of = [](auto d, auto x) HWY_ATTR { return Rsqrt(d, x); };
constexpr auto tanh_of = [](auto d, auto x) HWY_ATTR { return Tanh(d, x); };
constexpr auto sigmoid_of = [](auto d, auto x) HWY_ATTR { return Sigmoid(d, x); };
constexpr auto softplus_of = [](auto d, auto x) HWY_ATTR { return Softplus(d, x); };
constexpr auto relu_of = [](auto d, auto x) HWY_ATTR { return Relu(d, x); };
constexpr auto erf_of = [](auto d, auto x) HWY_ATTR { return Erf(d, x); };
constexpr auto sin_of = [](auto d, auto x) HWY_ATTR { return Sin(d, x); };
constexpr auto cos_of = [](auto d, auto x) HWY_ATTR { return Cos(d, x); };
constexpr auto tan_of = [](auto d, auto x) HWY_ATTR { return Tan(d, x); };
constexpr auto asin_of = [](auto d, auto x) HWY_ATTR { return Asin(d, x); };
constexpr auto acos_of = [](auto d, auto x) HWY_ATTR { return Acos(d, x); };
constexpr auto atan_of = [](auto d, auto x) HWY_ATTR { return Atan(d, x); };
constexpr auto sinh_of = [](auto d, auto x) HWY_ATTR { return Sinh(d, x); };
constexpr auto cosh_of = [](auto d, auto x) HWY_ATTR { return Cosh(d, x); };
constexpr auto exp2_of = [](auto d, auto x) HWY_ATTR { return Exp2(d, x); };
constexpr auto log2_of = [](auto d, auto x) HWY_ATTR { return Log2(d, x); };
constexpr auto log1p_of = [](auto d, auto x) HWY_ATTR { return Log1p(d, x); };
constexpr auto expm1_of = [](auto d, auto x) HWY_ATTR { return Expm1(d, x); };
constexpr auto floor_of = [](auto d, auto x) HWY_ATTR { return Floor(d, x); };
constexpr auto ceil_of = [](auto d, auto x) HWY_ATTR { return Ceil(d, x); };
constexpr auto whole_of = [](auto d, auto x) HWY_ATTR { return Round(d, x); };
constexpr auto trunc_of = [](auto d, auto x) HWY_ATTR { return Trunc(d, x); };
constexpr auto sign_of = [](auto d, auto x) HWY_ATTR { return Sign(d, x); };
constexpr auto isign = [](auto d, auto x)
                           HWY_ATTR { return hn::Max(hn::Min(x, hn::Set(d, 1)), hn::Set(d, -1)); };
constexpr auto usign = [](auto d, auto x) HWY_ATTR { return hn::Min(x, hn::Set(d, 1U)); };
constexpr auto nan_of = [](auto d, auto x) HWY_ATTR { return truth(d, hn::IsNaN(x)); };
constexpr auto inf_of = [](auto d, auto x) HWY_ATTR { return truth(d, hn::IsInf(x)); };
constexpr auto round_of = [](auto d, auto x) HWY_ATTR { return RoundF16(d, x); };
constexpr auto add = [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
constexpr auto sub = [](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); };
constexpr auto mul = [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); };
constexpr auto div_of = [](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); };
constexpr auto pow_of = [](auto d, auto a, auto b) HWY_ATTR { return Pow(d, a, b); };
constexpr auto min_of = [](auto d, auto a, auto b) HWY_ATTR { return Min(d, a, b); };
constexpr auto max_of = [](auto d, auto a, auto b) HWY_ATTR { return Max(d, a, b); };
constexpr auto atan2_of = [](auto d, auto y, auto x) HWY_ATTR { return Atan2(d, y, x); };
constexpr auto bits_not = [](auto, auto x) HWY_ATTR { return hn::Not(x); };
constexpr auto bits_and = [](auto, auto a, auto b) HWY_ATTR { return hn::And(a, b); };
constexpr auto bits_or = [](auto, auto a, auto b) HWY_ATTR { return hn::Or(a, b); };
constexpr auto bits_xor = [](auto, auto a, auto b) HWY_ATTR { return hn::Xor(a, b); };
constexpr auto shift_left = [](auto d, auto x, auto count) HWY_ATTR {
  const auto all = hn::Gt(hn::BitCast(DU(), count), hn::Set(DU(), 31U));
  const auto some = hn::Shl(x, hn::And(count, hn::Set(d, 31)));
  return hn::IfThenZeroElse(hn::RebindMask(d, all), some);
};
/// From a count of 31 on, what stays of a number with a sign is its sign.
constexpr auto ishift_right = [](auto d, auto x, auto count) HWY_ATTR {
  const auto most = hn::Min(hn::BitCast(DU(), count), hn::Set(DU(), 31U));
  return hn::Shr(x, hn::BitCast(d, most));
};
constexpr auto ushift_right = [](auto d, auto x, auto count) HWY_ATTR {
  const auto some = hn::Shr(x, hn::And(count, hn::Set(d, 31U)));
  return hn::IfThenZeroElse(hn::Gt(count, hn::Set(d, 31U)), some);
};
constexpr auto unless_zero = [](auto d, auto g, auto x)
                                 HWY_ATTR { return hn::IfThenZeroElse(hn::Eq(g, hn::Zero(d)), x); };
constexpr auto imin = [](auto, auto a, auto b) HWY_ATTR { return hn::Min(a, b); };
constexpr auto imax = [](auto, auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
constexpr auto irelu = [](auto d, auto x) HWY_ATTR { return hn::Max(x, hn::Zero(d)); };
constexpr auto keep = [](auto, auto x) HWY_ATTR { return x; };
constexpr auto equal = [](auto d, auto a, auto b) HWY_ATTR { return truth(d, hn::Eq(a, b)); };
constexpr auto less = [](auto d, auto a, auto b) HWY_ATTR { return truth(d, hn::Lt(a, b)); };
constexpr auto less_equal = [](auto d, auto a, auto b) HWY_ATTR { return truth(d, hn::Le(a, b)); };
constexpr auto iless_equal = [](auto d, auto a, auto b)
                                 HWY_ATTR { return truth(d, hn::Not(hn::Lt(b, a))); };
constexpr auto bnot = [](auto d, auto x) HWY_ATTR { return truth(d, hn::Eq(x, hn::Zero(d))); };
constexpr auto band = [](auto d, auto a, auto b)
                          HWY_ATTR { return truth(d, hn::And(holds(a), holds(b))); };
constexpr auto bor = [](auto d, auto a, auto b) HWY_ATTR { return truth(d, holds(hn::Or(a, b))); };
constexpr auto bequal = [](auto d, auto a, auto b)
                            HWY_ATTR { return truth(d, hn::Not(hn::Xor(holds(a), holds(b)))); };
constexpr auto pick = [](auto, auto c, auto yes, auto no)
                          HWY_ATTR { return hn::IfThenElse(holds(c), yes, no); };
constexpr auto to_i32 = [](auto d, auto x) HWY_ATTR { return F32ToI32(d, x); };
constexpr auto to_u32 = [](auto d, auto x) HWY_ATTR { return F32ToU32(d, x); };
constexpr auto i32_to_u32 = [](auto d, auto x)
                                HWY_ATTR { return hn::BitCast(DU(), hn::Max(x, hn::Zero(d))); };
constexpr auto u32_to_i32 = [](auto d, auto x) HWY_ATTR {
  return hn::BitCast(DI(), hn::Min(x, hn::Set(d, 0x7FFFFFFFU)));
};
constexpr auto from_i32 = [](auto, auto x) HWY_ATTR { return I32ToF32(DF(), x); };
constexpr auto from_u32 = [](auto, auto x) HWY_ATTR { return U32ToF32(DF(), x); };
// A NaN is not zero.
constexpr auto nonzero = [](auto d, auto x)
                             HWY_ATTR { return truth(d, hn::Not(hn::Eq(x, hn::Zero(d)))); };
constexpr auto one_or_zero = [](auto, auto x) HWY_ATTR {
  return hn::IfThenElseZero(hn::RebindMask(DF(), holds(x)), hn::Set(DF(), 1.0F));
};

/// a / b, cut towards 0: a where there is no such number.
template <class T>
T quotient(T a, T b) {
  const bool itself = b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1) &&
                                 a == std::numeric_limits<T>::min());
  return itself ? a : static_cast<T>(a / b);
}

/// a - floor(a / b) * b: 0 where b is 0.
template <class T>
T modulo(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  const T rest = static_cast<T>(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}

/// The quotient, rounded down.
template <class T>
T floored(T a, T b) {
  const T cut = quotient(a, b);
  return b != 0 && a % (b == static_cast<T>(-1) ? 1 : b) != 0 && (a < 0) != (b < 0)
             ? static_cast<T>(cut - 1)
             : cut;
}

/// Processors have no vectors of integer division. The result may take the memory of an operand, so
/// one that is uniform is read before anything is written.
template <class T, T (*f)(T, T)>
void divide(const TileArg* from, void* to, std::size_t n) {
  T* out = static_cast<T*>(to);
  const T* a = elements<T>(from[0]);
  const T* b = elements<T>(from[1]);
  const T first_a = a[0];
  const T first_b = b[0];
  for (std::size_t i = 0; i < n; ++i)
    out[i] = f(from[0].uniform ? first_a : a[i], from[1].uniform ? first_b : b[i]);
}

void gather(const TileArg* from, void* to, std::size_t n) {
  const U* array = elements<U>(from[0]);
  const U* at = elements<U>(from[1]);
  const U first = at[0];
  U* out = static_cast<U*>(to);
  for (std::size_t i = 0; i < n; ++i) out[i] = array[from[1].uniform ? first : at[i]];
}

/// The sum of all elements except the last few, in vectors, and how many that were.
struct VectorSum {
  double sum = 0;
  std::size_t taken = 0;
};

/// `with(sum, v)` adds a vector of elements to a sum. There are four sums, so that additions need
/// not wait for each other.
template <class With>
VectorSum vector_sum(const float* x, std::size_t n, const With& with) {
  const DF d;
  const std::size_t step = hn::Lanes(d);
  auto a = hn::Zero(d);
  auto b = a;
  auto c = a;
  auto e = a;
  std::size_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a = with(a, hn::LoadU(d, x + i));
    b = with(b, hn::LoadU(d, x + i + step));
    c = with(c, hn::LoadU(d, x + i + 2 * step));
    e = with(e, hn::LoadU(d, x + i + 3 * step));
  }
  for (; i + step <= n; i += step) a = with(a, hn::LoadU(d, x + i));
  HWY_ALIGN float parts[most_lanes];
  hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, e)), d, parts);
  VectorSum out{0, i};
  for (std::size_t k = 0; k < step; ++k) out.sum += double{parts[k]};
  return out;
}

double sum_f32(const float* x, std::size_t n) {
  const auto [vectors, taken] =
      vector_sum(x, n, [](auto all, auto v) HWY_ATTR { return hn::Add(all, v); });
  double sum = vectors;
  for (std::size_t i = taken; i < n; ++i) sum += double{x[i]};
  return sum;
}

/// The sum of squares in double precision, whose range holds the square of every float.
double sum_squares_in_double(const float* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += double{x[i]} * double{x[i]};
  return sum;
}

double sum_squares_f32(const float* x, std::size_t n) {
  const auto [sum, taken] =
      vector_sum(x, n, [](auto all, auto v) HWY_ATTR { return hn::MulAdd(v, v, all); });
  const double all = sum + sum_squares_in_double(x + taken, n - taken);
  // A square that is too large for a float made the sum infinite. Squares that are too small were
  // lost, but they do not count in a sum of this size.
  return all > 0x1p-60 && all < 0x1p127 ? all : sum_squares_in_double(x, n);
}

std::uint32_t sum_u32(const std::uint32_t* x, std::size_t n) {
  const DU d;
  const std::size_t step = hn::Lanes(d);
  auto a = hn::Zero(d);
  std::size_t i = 0;
  for (; i + step <= n; i += step) a = hn::Add(a, hn::LoadU(d, x + i));
  HWY_ALIGN std::uint32_t parts[most_lanes];
  hn::Store(a, d, parts);
  std::uint32_t sum = 0;
  for (std::size_t k = 0; k < step; ++k) sum += parts[k];
  for (; i < n; ++i) sum += x[i];
  return sum;
}

template <class F>
float extreme_of(const float* x, std::size_t n) {
  const DF d;
  const F f{};
  const std::size_t step = hn::Lanes(d);
  auto a = hn::Set(d, x[0]);
  auto b = a;
  auto c = a;
  auto e = a;
  std::size_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a = f(d, a, hn::LoadU(d, x + i));
    b = f(d, b, hn::LoadU(d, x + i + step));
    c = f(d, c, hn::LoadU(d, x + i + 2 * step));
    e = f(d, e, hn::LoadU(d, x + i + 3 * step));
  }
  for (; i + step <= n; i += step) a = f(d, a, hn::LoadU(d, x + i));
  for (; i < n; ++i) b = f(d, b, hn::Set(d, x[i]));
  a = f(d, f(d, a, b), f(d, c, e));
  HWY_ALIGN float parts[most_lanes];
  hn::Store(a, d, parts);
  for (std::size_t k = 1; k < step; ++k) a = f(d, a, hn::Set(d, parts[k]));
  return hn::GetLane(a);
}

template <class F>
auto extreme(F) {
  return extreme_of<F>;
}

TileKernels make_table() {
  TileKernels t;
  const auto set = [&](Opcode op, TileKernel f, TileKernel i, TileKernel u, TileKernel b) {
    t.by_opcode[static_cast<std::size_t>(op)] = {f, i, u, b};
  };
  const auto floating = [&](Opcode op, TileKernel f) { set(op, f, nullptr, nullptr, nullptr); };
  const auto f = [](auto op) { return unary<DF, DF>(op); };
  const auto i = [](auto op) { return unary<DI, DI>(op); };
  const auto u = [](auto op) { return unary<DU, DU>(op); };
  const auto ff = [](auto op) { return binary<DF, DF>(op); };
  const auto ii = [](auto op) { return binary<DI, DI>(op); };
  const auto uu = [](auto op) { return binary<DU, DU>(op); };
  set(Opcode::neg, f(neg), i(neg), nullptr, nullptr);
  set(Opcode::abs, f(abs_of), i(abs_of), u(keep), nullptr);
  floating(Opcode::exp, f(exp_of));
  floating(Opcode::log, f(log_of));
  floating(Opcode::sqrt, f(sqrt_of));
  floating(Opcode::rsqrt, f(rsqrt_of));
  floating(Opcode::tanh, f(tanh_of));
  floating(Opcode::sigmoid, f(sigmoid_of));
  floating(Opcode::softplus, f(softplus_of));
  floating(Opcode::erf, f(erf_of));
  floating(Opcode::sin, f(sin_of));
  floating(Opcode::cos, f(cos_of));
  floating(Opcode::tan, f(tan_of));
  floating(Opcode::asin, f(asin_of));
  floating(Opcode::acos, f(acos_of));
  floating(Opcode::atan, f(atan_of));
  floating(Opcode::sinh, f(sinh_of));
  floating(Opcode::cosh, f(cosh_of));
  floating(Opcode::exp2, f(exp2_of));
  floating(Opcode::log2, f(log2_of));
  floating(Opcode::log1p, f(log1p_of));
  floating(Opcode::expm1, f(expm1_of));
  floating(Opcode::floor, f(floor_of));
  floating(Opcode::ceil, f(ceil_of));
  floating(Opcode::round, f(whole_of));
  floating(Opcode::trunc, f(trunc_of));
  set(Opcode::sign, f(sign_of), i(isign), u(usign), nullptr);
  floating(Opcode::is_nan, unary<DF, DU>(nan_of));
  floating(Opcode::is_inf, unary<DF, DU>(inf_of));
  floating(Opcode::pow, ff(pow_of));
  floating(Opcode::atan2, ff(atan2_of));
  floating(Opcode::unless_zero, ff(unless_zero));
  set(Opcode::relu, f(relu_of), i(irelu), u(keep), nullptr);
  set(Opcode::logical_not, nullptr, nullptr, nullptr, u(bnot));
  set(Opcode::add, ff(add), ii(add), uu(add), nullptr);
  set(Opcode::sub, ff(sub), ii(sub), uu(sub), nullptr);
  set(Opcode::mul, ff(mul), ii(mul), uu(mul), nullptr);
  set(Opcode::div, ff(div_of), divide<I, quotient<I>>, divide<U, quotient<U>>, nullptr);
  const auto integer = [&](Opcode op, TileKernel signed_one, TileKernel unsigned_one) {
    set(op, nullptr, signed_one, unsigned_one, nullptr);
  };
  integer(Opcode::floor_div, divide<I, floored<I>>, divide<U, quotient<U>>);
  integer(Opcode::mod, divide<I, modulo<I>>, divide<U, modulo<U>>);
  integer(Opcode::shift_left, ii(shift_left), uu(shift_left));
  integer(Opcode::shift_right, ii(ishift_right), uu(ushift_right));
  integer(Opcode::bit_not, i(bits_not), u(bits_not));
  integer(Opcode::bit_and, ii(bits_and), uu(bits_and));
  integer(Opcode::bit_or, ii(bits_or), uu(bits_or));
  integer(Opcode::bit_xor, ii(bits_xor), uu(bits_xor));
  set(Opcode::min, ff(min_of), ii(imin), uu(imin), nullptr);
  set(Opcode::max, ff(max_of), ii(imax), uu(imax), nullptr);
  set(Opcode::equal, binary<DF, DU>(equal), binary<DI, DU>(equal), uu(equal), uu(bequal));
  set(Opcode::less, binary<DF, DU>(less), binary<DI, DU>(less), uu(less), nullptr);
  set(Opcode::less_equal, binary<DF, DU>(less_equal), binary<DI, DU>(iless_equal), uu(iless_equal),
      nullptr);
  set(Opcode::logical_and, nullptr, nullptr, nullptr, uu(band));
  set(Opcode::logical_or, nullptr, nullptr, nullptr, uu(bor));
  const TileKernel select = ternary<DU>(pick);
  set(Opcode::select, select, select, select, select);

  const auto cast = [&](Lane from, Lane to, TileKernel kernel) {
    t.cast[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = kernel;
  };
  cast(Lane::f32, Lane::i32, unary<DF, DI>(to_i32));
  cast(Lane::f32, Lane::u32, unary<DF, DU>(to_u32));
  cast(Lane::f32, Lane::boolean, unary<DF, DU>(nonzero));
  cast(Lane::i32, Lane::f32, unary<DI, DF>(from_i32));
  cast(Lane::u32, Lane::f32, unary<DU, DF>(from_u32));
  cast(Lane::i32, Lane::u32, unary<DI, DU>(i32_to_u32));
  cast(Lane::u32, Lane::i32, unary<DU, DI>(u32_to_i32));
  cast(Lane::i32, Lane::boolean, u(nonzero));
  cast(Lane::u32, Lane::boolean, u(nonzero));
  cast(Lane::boolean, Lane::f32, unary<DU, DF>(one_or_zero));
  cast(Lane::boolean, Lane::i32, u(nonzero));
  cast(Lane::boolean, Lane::u32, u(nonzero));
  t.copy = u(keep);
  t.copy_f16 = copy_f16;
  t.round_f16 = f(round_of);
  t.load_f16 = load_f16;
  t.store_f16 = store_f16;
  t.gather = gather;
  t.gather_f16 = gather_f16;
  t.sum_f32 = sum_f32;
  t.sum_squares_f32 = sum_squares_f32;
  t.sum_u32 = sum_u32;
  t.max_f32 = extreme(max_of);
  t.min_f32 = extreme(min_of);
  return t;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace kiln
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln {
namespace {
HWY_EXPORT(make_table);
}  // namespace

const TileKernels& tile_kernels() {
  static const TileKernels table = HWY_DYNAMIC_DISPATCH(make_table)();
  return table;
}

}  // namespace kiln
#endif
