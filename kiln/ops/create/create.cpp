#include "kiln/ops/create/create.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

/// The Param as a part of the graph of `other`, where functions of Params alone can be made of it.
Expr beside(const Expr& other, const Param& param) {
  return other.graph()->expr(other.graph()->place(param));
}

using Words = std::array<Expr, 2>;

template <std::uint32_t by>
void mix(Words& x) {
  x[0] = x[0] + x[1];
  x[1] = ((x[1] << by) | (x[1] >> (32 - by))) ^ x[0];
}

/// Rounds whose words are rotated by these numbers, then the key schedule's step `number`.
template <std::uint32_t number, std::uint32_t... by>
void four_rounds(Words& x, const std::array<Param, 3>& keys) {
  (mix<by>(x), ...);
  x[0] = x[0] + keys[number % 3];
  x[1] = x[1] + keys[(number + 1) % 3] + number;
}

/// The two words of a counter (counter, 0): Threefry-2x32 with 20 rounds, by Salmon, Moraes, Dror
/// and Shaw. `keys`: the words of the key, then 0x1bd11bda ^ the first ^ the second.
Words threefry(const Expr& counter, const std::array<Param, 3>& keys) {
  Words x{counter + keys[0], beside(counter, keys[1])};
  four_rounds<1, 13, 15, 26, 6>(x, keys);
  four_rounds<2, 17, 29, 16, 24>(x, keys);
  four_rounds<3, 13, 15, 26, 6>(x, keys);
  four_rounds<4, 17, 29, 16, 24>(x, keys);
  four_rounds<5, 13, 15, 26, 6>(x, keys);
  return x;
}

/// In [0, 1): 24 bits, so that every result is exact in f32.
Expr unit(const Expr& word) { return cast(word >> 8, DType::f32) * 0x1p-24; }

/// The cosine of a random angle, or its sine. The angle is one in the first eighth of a turn,
/// turned over by three bits of `word`; its own 21 bits are the others. The polynomials are those
/// of the Cephes library's sinf and cosf.
Expr wave(const Expr& word, const Expr& is_sine) {
  const Expr x = cast(word >> 11, DType::f32) * 3.7450703e-7;  // pi / 4 / 2^21
  const Expr s = x * x;
  const Expr sine = x + x * s * ((-1.9515295891e-4 * s + 8.3321608736e-3) * s - 1.6666654611e-1);
  const Expr cosine =
      1 - 0.5 * s +
      s * s * ((2.443315711809948e-5 * s - 1.388731625493765e-3) * s + 4.166664568298827e-2);
  const Expr value = select(((word & 1) == 1) != is_sine, sine, cosine);
  return select((word & select(is_sine, 4, 2)) == 0, value, -value);
}

[[noreturn]] void refuse_random(std::string_view op, DType dtype) {
  throw DTypeError(fmt::format("{}: makes f32 or f16, asked for {}", op, to_string(dtype)));
}

/// The float next to a finite `x`, above or below.
float neighbour(float x, bool above) { return std::nextafter(x, above ? HUGE_VALF : -HUGE_VALF); }
float16 neighbour(float16 x, bool above) {
  const bool negative = std::signbit(static_cast<float>(x));
  const auto bits = static_cast<std::uint16_t>(x.bits() & 0x7fffU);
  if (bits == 0) return float16::from_bits(above ? 0x0001 : 0x8001);
  return float16::from_bits(static_cast<std::uint16_t>(x.bits() + (above == negative ? -1 : 1)));
}

/// The least and the largest number of T in [low, high).
template <class T>
std::pair<double, double> numbers_between_as(double low, double high) {
  const auto value = [](T x) { return static_cast<double>(static_cast<float>(x)); };
  auto least = T(static_cast<float>(low));
  if (value(least) < low) least = neighbour(least, true);
  auto most = T(static_cast<float>(high));
  if (value(most) >= high) most = neighbour(most, false);
  return {value(least), value(most)};
}

/// The same for a dtype. Throws DTypeError if the bounds are beyond its finite numbers, or if it
/// has no number between them.
std::pair<double, double> numbers_between(double low, double high, DType dtype) {
  const double largest = dtype == DType::f16 ? 65504 : std::numeric_limits<float>::max();
  const auto refuse = [&](std::string_view why) {
    throw DTypeError(
        fmt::format("random_uniform: {} [{}, {}) {}", to_string(dtype), low, high, why));
  };
  if (!(std::abs(low) <= largest && std::abs(high) <= largest))
    refuse("reaches beyond the dtype's finite numbers");
  const auto between = dtype == DType::f16 ? numbers_between_as<float16>(low, high)
                                           : numbers_between_as<float>(low, high);
  if (!(low < high && between.first <= between.second)) refuse("has no number of the dtype");
  return between;
}

/// Two elements share the words of one counter. Of a normal distribution they are the two numbers
/// that Box and Muller make of two uniform ones.
struct Random {
  static constexpr std::string_view name = "random";
  static constexpr std::array<const char*, 0> inputs{};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  DType dtype;
  bool normal;
  std::array<Param, 3> keys;
  Param half_offset;  // in halves, because a sum may be out of range even if the result is not
  Param half_scale;
  Param least;  // a uniform number outside of these becomes the nearer one
  Param most;

  TensorSpec output() const { return {shape, dtype}; }
  Expr element(const At& at) const {
    const auto words = threefry(at.position() >> 1, keys);
    const Expr second = (at.position() & 1) == 1;
    const Expr value = (half_scale * sample(words, second) + half_offset) * 2;
    if (normal) return cast(value, dtype);
    const Expr from_least = select(value < least, least, value);
    return cast(select(from_least > most, most, from_least), dtype);
  }
  [[nodiscard]] Expr sample(const Words& words, const Expr& second) const {
    if (!normal) return unit(select(second, words[1], words[0]));
    // 1 - u is never 0, so its logarithm is finite.
    return sqrt(-2 * log(1 - unit(words[0]))) * wave(words[1], second);
  }
};

/// The operation's keys for a seed.
std::array<Param, 3> keys_of(std::uint64_t seed) {
  const auto low = static_cast<std::uint32_t>(seed);
  const auto high = static_cast<std::uint32_t>(seed >> 32U);
  return {low, high, 0x1bd11bdaU ^ low ^ high};
}

struct Arange {
  static constexpr std::string_view name = "arange";
  static constexpr std::array<const char*, 0> inputs{};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  DType dtype;
  Param start;
  Param step;

  TensorSpec output() const {
    if (dtype == DType::boolean)
      throw DTypeError("arange: makes f32, f16, i32 or u32, asked for bool");
    return {shape, dtype};
  }
  Expr element(const At& at) const {
    const Expr index = dtype == DType::i32
                           ? wrapped(at.position())
                           : cast(at.position(), is_float(dtype) ? DType::f32 : dtype);
    return cast(index * step + start, dtype);
  }
  /// A u32 as the i32 of the same bits. A cast gives the nearest number.
  static Expr wrapped(const Expr& x) {
    return (cast(x >> 31, DType::i32) << 31) | cast(x & 0x7fffffff, DType::i32);
  }
};
static_assert(Extension<Random> && Extension<Arange>);

}  // namespace

AnyTensor detail::upload(const void* elements, std::size_t count, const TensorSpec& spec,
                         const Device& device) {
  if (static_cast<std::int64_t>(count) != spec.shape.elements()) {
    throw ShapeError(
        fmt::format("tensor: {} values given for shape {}", count, to_string(spec.shape)));
  }
  const RawTensor raw = dispatch::allocate("tensor", device.shared_runtime(), spec);
  const auto write = [&](std::span<const std::byte> bytes) {
    device.runtime().write(raw.buffer, 0, bytes);
  };
  if (spec.dtype == DType::boolean) {  // stored as words
    const std::span bools(static_cast<const unsigned char*>(elements), count);
    const std::vector<std::uint32_t> words(bools.begin(), bools.end());
    write(std::as_bytes(std::span(words)));
  } else {
    write({static_cast<const std::byte*>(elements), count * size_of(spec.dtype)});
  }
  return {Value(raw), device};
}

void detail::refuse_ragged(std::size_t expected, std::size_t got) {
  throw ShapeError(
      fmt::format("tensor: lists at one depth must have one length, got {} and {}", expected, got));
}

AnyTensor from_raw(const RawTensor& raw) {
  if (raw.runtime == nullptr) dispatch::refuse_empty("from_raw");
  return from_raw(raw, Device(raw.runtime));
}

AnyTensor from_raw(const RawTensor& raw, const Device& device) {
  if (raw.buffer == nullptr || raw.runtime == nullptr) dispatch::refuse_empty("from_raw");
  if (raw.runtime != device.shared_runtime()) {
    throw DeviceError(fmt::format("from_raw: the elements are on {}, not on {}",
                                  raw.runtime->adapter(), to_string(device)));
  }
  dispatch::require_countable("from_raw", raw.spec());
  dispatch::require_inside([] { return "from_raw"; }, raw);
  return {Value(raw), device};
}

AnyTensor full(const Shape& shape, Number value, DType dtype, const Device& device) {
  return {full(device, {shape, dtype}, value), device};
}
AnyTensor full_like(const AnyTensor& x, Number value) {
  return full(x.shape(), value, x.dtype(), x.device());
}

AnyTensor arange(Integer count, const Steps& steps, DType dtype, const Device& device) {
  for (const double number : {steps.start, steps.step})
    dispatch::require_number("arange", number, dtype);
  return apply(Arange{Shape{count}, dtype, {steps.start}, {steps.step}}, device);
}

AnyTensor random_uniform(const Shape& shape, Seed seed, const Interval& interval, DType dtype,
                         const Device& device) {
  if (!is_float(dtype)) refuse_random("random_uniform", dtype);
  const double low = interval.low;
  const double high = interval.high;
  const auto [least, most] = numbers_between(low, high, dtype);
  return apply(Random{shape,
                      dtype,
                      false,
                      keys_of(seed.value()),
                      {low / 2},
                      {high / 2 - low / 2},
                      {least},
                      {most}},
               device);
}

AnyTensor random_normal(const Shape& shape, Seed seed, const Normal& normal, DType dtype,
                        const Device& device) {
  if (!is_float(dtype)) refuse_random("random_normal", dtype);
  if (std::isnan(normal.mean) || std::isnan(normal.deviation)) {
    throw Error(fmt::format("random_normal: the mean {} and the deviation {} must be numbers",
                            double{normal.mean}, double{normal.deviation}));
  }
  return apply(Random{shape,
                      dtype,
                      true,
                      keys_of(seed.value()),
                      {normal.mean / 2},
                      {normal.deviation / 2},
                      {},
                      {}},
               device);
}

}  // namespace kiln
