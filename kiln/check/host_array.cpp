#include "kiln/check/host_array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/ops/create/create.hpp"
#include "kiln/ops/movement/movement.hpp"

namespace kiln::check {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// splitmix64: turns a counter into random bits.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ (x >> 30U)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27U)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31U);
}

template <class T>
AnyTensor upload_as(const HostArray& array, const Device& device) {
  // Not std::vector<bool>, which has no elements to point to.
  const auto typed = std::make_unique<T[]>(array.values.size() + 1);
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    if constexpr (std::is_same_v<T, float16>) {
      typed[i] = float16(static_cast<float>(array.values[i]));
    } else {
      typed[i] = static_cast<T>(array.values[i]);
    }
  }
  return tensor(std::span<const T>(typed.get(), array.values.size()), array.spec.shape, device);
}

AnyTensor upload_dense(const HostArray& array, DType dtype, const Device& device) {
  switch (dtype) {
    case DType::f32:
      return upload_as<float>(array, device);
    case DType::f16:
      return upload_as<float16>(array, device);
    case DType::i32:
      return upload_as<std::int32_t>(array, device);
    case DType::u32:
      return upload_as<std::uint32_t>(array, device);
    case DType::boolean:
      return upload_as<bool>(array, device);
  }
  return {};
}

/// Calls f(index) for every index of `shape`, in row-major order.
template <class F>
void for_each_index(const Shape& shape, F f) {
  if (shape.elements() == 0) return;
  std::array<std::int64_t, max_rank> index{};
  for (std::int64_t flat = 0; flat < shape.elements(); ++flat) {
    f(index);
    for (int axis = shape.rank() - 1; axis >= 0 && ++index[at(axis)] == shape[axis]; --axis)
      index[at(axis)] = 0;
  }
}

/// The elements of `array` that a layout reads.
HostArray gathered(const HostArray& array, const Layout& from) {
  HostArray out{{from.shape, array.spec.dtype}, {}};
  for_each_index(from.shape, [&](const auto& index) {
    std::int64_t flat = from.offset;
    for (int axis = 0; axis < from.shape.rank(); ++axis)
      flat += index[at(axis)] * from.stride(axis);
    out.values.push_back(array.values[at(flat)]);
  });
  return out;
}

/// The axis that a broadcast view repeats; -1: none is longer than 1.
int repeated_axis(const Shape& shape, Form form) {
  int found = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1 && (form.last || found < 0)) found = axis;
  }
  return found;
}

AnyTensor transposed_view(const HostArray& array, DType dtype, const Device& device) {
  if (array.spec.shape.rank() < 2) {  // every second element of an array twice as long
    HostArray wide{array.spec, {}};
    wide.spec.shape[0] *= 2;
    for (const double value : array.values) wide.values.insert(wide.values.end(), {value, 77});
    return slice(upload_dense(wide, dtype, device), 0, 0, wide.spec.shape[0], 2);
  }
  Layout swapped = Layout::dense(array.spec.shape);
  const std::size_t rows = at(array.spec.shape.rank() - 2);
  std::swap(swapped.shape[-1], swapped.shape[-2]);
  std::swap(swapped.strides[rows], swapped.strides[rows + 1]);
  return transpose(upload_dense(gathered(array, swapped), dtype, device));
}

AnyTensor sliced_view(const HostArray& array, DType dtype, const Device& device) {
  const Shape& shape = array.spec.shape;
  HostArray wide{array.spec, {}};
  for (int axis = 0; axis < shape.rank(); ++axis) wide.spec.shape[axis] += 3;
  const double around = is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : 0;
  std::size_t next = 0;
  for_each_index(wide.spec.shape, [&](const auto& index) {
    bool inside = true;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      inside = inside && index[at(axis)] >= 1 && index[at(axis)] <= shape[axis];
    }
    wide.values.push_back(inside ? array.values[next++] : around);
  });
  AnyTensor view = upload_dense(wide, dtype, device);
  for (int axis = 0; axis < shape.rank(); ++axis) view = slice(view, axis, 1, shape[axis] + 1);
  return view;
}

AnyTensor broadcast_view(const HostArray& array, DType dtype, Form form, const Device& device) {
  Layout one = Layout::dense(array.spec.shape);
  one.shape[repeated_axis(array.spec.shape, form)] = 1;
  return broadcast_to(upload_dense(gathered(array, one), dtype, device), array.spec.shape);
}

/// The first element whose bits are the poison.
template <class Word>
std::int64_t first_poison(std::span<const Word> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    constexpr auto bits = 8 * sizeof(Word);
    const auto shift = static_cast<std::uint32_t>(i * bits % 32);
    if (words[i] == static_cast<Word>(dispatch::PoisonOutputs::pattern >> shift))
      return static_cast<std::int64_t>(i);
  }
  return -1;
}

template <class T, class Word>
HostArray from_bytes(const TensorSpec& spec, const std::vector<std::byte>& bytes) {
  HostArray array{spec, std::vector<double>(bytes.size() / sizeof(T))};
  std::vector<Word> words(array.values.size());
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(Word));
  for (std::size_t i = 0; i < words.size(); ++i) {
    if constexpr (std::is_same_v<T, float16>) {
      array.values[i] = float{float16::from_bits(words[i])};
    } else {
      array.values[i] = static_cast<double>(std::bit_cast<T>(words[i]));
    }
  }
  array.unwritten = first_poison<Word>(words);
  return array;
}

}  // namespace

std::string index_text(const Shape& shape, std::int64_t flat) {
  std::vector<std::int64_t> index(shape.size());
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[at(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    case DType::f16:
      return float{float16(static_cast<float>(value))};
    case DType::boolean:
      return value >= 0.5 ? 1 : 0;
    default:
      return std::floor(value);
  }
}

HostArray random_array(const TensorSpec& spec, const InputValues& values, std::uint64_t seed) {
  HostArray array{spec, {}};
  const auto count = static_cast<std::uint64_t>(spec.shape.elements());
  for (std::uint64_t i = 0; i < count; ++i) {
    const double unit = std::ldexp(static_cast<double>(mixed(mixed(seed) + i) >> 11U), -53);
    array.values.push_back(rounded(values.low + (values.high - values.low) * unit, spec.dtype));
  }
  return array;
}

std::string to_string(Form form) {
  switch (form.kind) {
    case Form::dense:
      return "";
    case Form::transposed:
      return " as a transposed view";
    case Form::sliced:
      return " as a slice";
    case Form::broadcast:
      return form.last ? " broadcast along its last axis" : " broadcast along its first axis";
  }
  return "";
}

bool has_form(const Shape& shape, Form form) {
  if (form.kind == Form::dense || shape.rank() == 0) return false;
  if (form.kind != Form::broadcast) return true;
  return shape.elements() > 0 && repeated_axis(shape, form) >= 0 &&
         !(form.last &&
           repeated_axis(shape, form) == repeated_axis(shape, {Form::broadcast, false}));
}

HostArray seen_through(const HostArray& array, Form form) {
  if (form.kind != Form::broadcast || !has_form(array.spec.shape, form)) return array;
  Layout layout = Layout::dense(array.spec.shape);
  layout.strides[at(repeated_axis(array.spec.shape, form))] = 0;
  return gathered(array, layout);
}

AnyTensor upload(const HostArray& array, DType dtype, Form form, const Device& device) {
  if (!has_form(array.spec.shape, form)) return upload_dense(array, dtype, device);
  switch (form.kind) {
    case Form::transposed:
      return transposed_view(array, dtype, device);
    case Form::sliced:
      return sliced_view(array, dtype, device);
    case Form::broadcast:
      return broadcast_view(array, dtype, form, device);
    default:
      return upload_dense(array, dtype, device);
  }
}

HostArray download(const AnyTensor& tensor) {
  const RawTensor raw = dispatch::make_dense(tensor.value().raw());
  const std::vector<std::byte> bytes =
      raw.runtime->read(raw.buffer, 0, dispatch::bytes_of(raw.spec())).get();
  switch (raw.dtype) {
    case DType::f32:
      return from_bytes<float, std::uint32_t>(raw.spec(), bytes);
    case DType::f16:
      return from_bytes<float16, std::uint16_t>(raw.spec(), bytes);
    case DType::i32:
      return from_bytes<std::int32_t, std::uint32_t>(raw.spec(), bytes);
    default:
      return from_bytes<std::uint32_t, std::uint32_t>(raw.spec(), bytes);
  }
}

Comparison compare(const HostArray& actual, const HostArray& expected, Tolerance tolerance) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Comparison c{.compared = static_cast<std::int64_t>(actual.values.size())};
  const bool exact = !is_float(actual.spec.dtype);
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    const double a = actual.values[i];
    const double b = expected.values[i];
    const bool same = a == b || (std::isnan(a) && std::isnan(b));
    const bool finite = std::isfinite(a) && std::isfinite(b);
    const double difference = same ? 0 : finite ? std::abs(a - b) : infinity;
    const double allowed =
        exact || !finite ? 0 : tolerance.absolute + tolerance.relative * std::abs(b);
    const double excess = same ? 0 : allowed > 0 ? difference / allowed : infinity;
    if (c.worst >= 0 && excess <= c.excess) continue;
    const double relative = same     ? 0
                            : finite ? difference / std::max(std::abs(a), std::abs(b))
                                     : infinity;
    c = {c.compared, static_cast<std::int64_t>(i), a, b, allowed, difference, relative, excess};
  }
  return c;
}

Tolerance grown(Tolerance tolerance, double terms) {
  const double by = std::sqrt(std::max(1.0, terms));
  return {tolerance.absolute * by, tolerance.relative * by};
}

}  // namespace kiln::check
