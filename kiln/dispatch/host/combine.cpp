#include "kiln/dispatch/host/combine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace kiln::dispatch::host {
namespace {

template <class T>
double extreme_of(const void* elements, std::size_t n, bool greatest) {
  const T* x = static_cast<const T*>(elements);
  return static_cast<double>(greatest ? *std::max_element(x, x + n) : *std::min_element(x, x + n));
}

double number_of(std::uint32_t word, Lane lane) {
  switch (lane) {
    case Lane::f32:
      return double{std::bit_cast<float>(word)};
    case Lane::i32:
      return std::bit_cast<std::int32_t>(word);
    default:
      return word;
  }
}

template <class T>
void put(T value, void* to) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

Combiner::Combiner(Combine combine, DType element)
    : combine_(combine),
      lane_(lane_of(element)),
      neutral_word_(dispatch::neutral_word(is_greatest() ? Combine::max
                                           : is_sum()    ? Combine::sum
                                                         : Combine::min,
                                           element)),
      neutral_(number_of(neutral_word_, lane_)) {}

/// Whether `a`, which comes later, replaces `b`. A NaN replaces every number.
bool Combiner::beats(double a, double b) const {
  if (std::isnan(b)) return false;
  if (a == 0 && b == 0 && !is_arg()) return std::signbit(a) != is_greatest();
  return std::isnan(a) || (is_greatest() ? a > b : a < b);
}

double Combiner::element(const void* elements, std::size_t i) const {
  return number_of(static_cast<const std::uint32_t*>(elements)[i], lane_);
}

double Combiner::extreme(const void* elements, std::size_t n) const {
  if (lane_ == Lane::i32) return extreme_of<std::int32_t>(elements, n, is_greatest());
  if (lane_ == Lane::u32) return extreme_of<std::uint32_t>(elements, n, is_greatest());
  const auto* x = static_cast<const float*>(elements);
  return double{is_greatest() ? tile_kernels().max_f32(x, n) : tile_kernels().min_f32(x, n)};
}

void Combiner::add(Partial& to, const void* elements, std::size_t n, std::int64_t first) const {
  if (is_sum()) {
    if (lane_ == Lane::f32) {
      const auto sum = is_norm() ? tile_kernels().sum_squares_f32 : tile_kernels().sum_f32;
      to.number += sum(static_cast<const float*>(elements), n);
    } else {
      to.word += tile_kernels().sum_u32(static_cast<const std::uint32_t*>(elements), n);
    }
    return;
  }
  const double found = extreme(elements, n);
  if (!beats(found, to.number)) return;
  to.number = found;
  if (!is_arg()) return;
  std::size_t i = 0;
  while (
      !(element(elements, i) == found || (std::isnan(found) && std::isnan(element(elements, i)))))
    ++i;
  to.word = static_cast<std::uint32_t>(first + static_cast<std::int64_t>(i));
}

void Combiner::add(Partial& to, const Partial& later) const {
  if (is_sum()) {
    to.number += later.number;
    to.word += later.word;
  } else if (beats(later.number, to.number)) {
    to = later;
  }
}

void Combiner::add_each(Partial* to, const void* elements, std::size_t n,
                        std::int64_t number) const {
  for (std::size_t i = 0; i < n; ++i) {
    const double x = element(elements, i);
    add(to[i], Partial{is_norm() ? x * x : x, static_cast<std::uint32_t>(number)});
  }
}

TileKernel Combiner::elementwise() const {
  if (is_arg() || is_norm()) return nullptr;
  const Opcode op = is_sum() ? Opcode::add : is_greatest() ? Opcode::max : Opcode::min;
  return tile_kernels().of(op, lane_);
}

Partial Combiner::from_word(std::uint32_t word) const {
  if (is_sum() && lane_ != Lane::f32) return {0, word};
  return {number_of(word, lane_), 0};
}

void Combiner::store(const Partial& partial, double scale, DType out, void* to) const {
  if (is_arg() || (is_sum() && lane_ != Lane::f32)) return put(partial.word, to);
  const double number = is_norm() ? std::sqrt(partial.number) : partial.number;
  switch (out) {
    case DType::f16:
      return put(float16(static_cast<float>(number * scale)), to);
    case DType::f32:
      return put(static_cast<float>(number * scale), to);
    case DType::i32:
      return put(static_cast<std::int32_t>(partial.number), to);
    default:
      return put(static_cast<std::uint32_t>(partial.number), to);
  }
}

}  // namespace kiln::dispatch::host
