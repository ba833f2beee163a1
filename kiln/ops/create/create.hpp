#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "kiln/autodiff/any_tensor.hpp"
#include "kiln/runtime/default_device.hpp"

namespace kiln {

// Every creator takes the device last, and the default device where none is named.

namespace detail {
/// `count` elements at `elements`; those of DType::boolean are C++ bools.
AnyTensor upload(const void* elements, std::size_t count, const TensorSpec& spec,
                 const Device& device);

/// How an element written in braces is kept until it is uploaded. 1.0 means an f32: kiln has no
/// f64.
template <class T>
using Listed = std::conditional_t<std::is_same_v<T, double>, float,
                                  std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;
template <class T>
inline constexpr DType dtype_listed =
    dtype_of<std::conditional_t<std::is_same_v<T, double>, float, T>>;

[[noreturn]] void refuse_ragged(std::size_t expected, std::size_t got);

/// The elements of nested lists, and their shape.
template <class T>
struct Nested {
  std::vector<Listed<T>> elements;
  Shape shape;

  void add(const T& element) { elements.push_back(static_cast<Listed<T>>(element)); }
  template <class Inner>
  void add(std::initializer_list<Inner> list, int at = 0) {
    if (at == shape.rank()) shape.push_back(list.size());
    if (shape[at] != static_cast<std::int64_t>(list.size()))
      refuse_ragged(static_cast<std::size_t>(shape[at]), list.size());
    for (const Inner& inner : list) {
      if constexpr (std::is_same_v<Inner, T>) {
        add(inner);
      } else {
        add(inner, at + 1);
      }
    }
  }
};

template <class T, class List>
AnyTensor from_nested(const List& list, const Device& device) {
  Nested<T> nested;
  nested.add(list);
  return upload(nested.elements.data(), nested.elements.size(), {nested.shape, dtype_listed<T>},
                device);
}
}  // namespace detail

/// A tensor of the given values, in row-major order, copied to the device. T is float, float16,
/// std::int32_t, std::uint32_t or bool. Throws ShapeError unless there are as many values as
/// `shape` has elements.
///
///     AnyTensor x = tensor(values, {2, 2});   // a std::vector<float> of four
template <class T>
AnyTensor tensor(std::span<const T> values, const Shape& shape,
                 const Device& device = default_device()) {
  return detail::upload(values.data(), values.size(), {shape, dtype_of<T>}, device);
}
template <class T>
AnyTensor tensor(const std::vector<T>& values, const Shape& shape,
                 const Device& device = default_device()) {
  return tensor(std::span<const T>(values), shape, device);
}
AnyTensor tensor(const std::vector<bool>& values, const Shape& shape,
                 const Device& device = default_device());
template <class T, std::size_t N>
AnyTensor tensor(const std::array<T, N>& values, const Shape& shape,
                 const Device& device = default_device()) {
  return tensor(std::span<const T>(values), shape, device);
}
/// The same of values in braces. 1.0 is an f32, as 1.F is; 1 is an i32.
///
///     AnyTensor x = tensor({1.0, 2.0, 3.0, 4.0}, {2, 2});
template <class T>
AnyTensor tensor(std::initializer_list<T> values, const Shape& shape,
                 const Device& device = default_device()) {
  const std::vector<detail::Listed<T>> listed(values.begin(), values.end());
  return detail::upload(listed.data(), listed.size(), {shape, detail::dtype_listed<T>}, device);
}

/// A tensor whose shape is that of its braces, up to four deep. Throws ShapeError where lists at
/// one depth differ in length.
///
///     tensor({1.0, 2.0, 3.0})      // f32 [3]
///     tensor({{1, 2}, {3, 4}})     // i32 [2, 2]
template <class T>
AnyTensor tensor(std::initializer_list<T> values) {
  return detail::from_nested<T>(values, default_device());
}
template <class T>
AnyTensor tensor(std::initializer_list<std::initializer_list<T>> values) {
  return detail::from_nested<T>(values, default_device());
}
template <class T>
AnyTensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values) {
  return detail::from_nested<T>(values, default_device());
}
template <class T>
AnyTensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
        values) {
  return detail::from_nested<T>(values, default_device());
}
// The device is a deduced Device: {0} after a list is a shape, and not a device made of nothing.
template <class T, std::same_as<Device> D>
AnyTensor tensor(std::initializer_list<T> values, const D& device) {
  return detail::from_nested<T>(values, device);
}
template <class T, std::same_as<Device> D>
AnyTensor tensor(std::initializer_list<std::initializer_list<T>> values, const D& device) {
  return detail::from_nested<T>(values, device);
}
template <class T, std::same_as<Device> D>
AnyTensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
                 const D& device) {
  return detail::from_nested<T>(values, device);
}
template <class T, std::same_as<Device> D>
AnyTensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
        values,
    const D& device) {
  return detail::from_nested<T>(values, device);
}

/// A tensor of elements that are on a device already. `device`, if given, must have their runtime.
/// Throws Error for an empty handle, DeviceError, and ShapeError for elements outside of the
/// buffer.
AnyTensor from_raw(const RawTensor& raw);
AnyTensor from_raw(const RawTensor& raw, const Device& device);

/// `value` everywhere. Throws DTypeError for a number that the dtype has not.
///
///     full({2, 2}, 7, DType::i32)
AnyTensor full(const Shape& shape, Number value, DType dtype = DType::f32,
               const Device& device = default_device());
inline AnyTensor full(const Shape& shape, Number value, const Device& device) {
  return full(shape, value, DType::f32, device);
}
/// 0 everywhere.
inline AnyTensor zeros(const Shape& shape, DType dtype = DType::f32,
                       const Device& device = default_device()) {
  return full(shape, 0, dtype, device);
}
inline AnyTensor zeros(const Shape& shape, const Device& device) { return full(shape, 0, device); }
/// 1 everywhere.
inline AnyTensor ones(const Shape& shape, DType dtype = DType::f32,
                      const Device& device = default_device()) {
  return full(shape, 1, dtype, device);
}
inline AnyTensor ones(const Shape& shape, const Device& device) { return full(shape, 1, device); }

/// `value`, 0 or 1 everywhere: of the shape, the dtype and the device of x.
AnyTensor full_like(const AnyTensor& x, Number value);
inline AnyTensor zeros_like(const AnyTensor& x) { return full_like(x, 0); }
inline AnyTensor ones_like(const AnyTensor& x) { return full_like(x, 1); }

/// Where `arange` starts, and by what it goes on.
struct Steps {
  Number start = 0;
  Number step = 1;
};

/// start, start + step, ...: `count` numbers. Integers are exact; their start and step must be
/// numbers that dtype has (DTypeError). Throws ShapeError for a negative count.
///
///     arange(4)                              // 0, 1, 2, 3
///     arange(3, {.start = 1, .step = 0.5})   // 1, 1.5, 2
AnyTensor arange(Integer count, const Steps& steps, DType dtype = DType::f32,
                 const Device& device = default_device());
inline AnyTensor arange(Integer count, const Steps& steps, const Device& device) {
  return arange(count, steps, DType::f32, device);
}
inline AnyTensor arange(Integer count, DType dtype = DType::f32,
                        const Device& device = default_device()) {
  return arange(count, Steps{}, dtype, device);
}
inline AnyTensor arange(Integer count, const Device& device) {
  return arange(count, Steps{}, DType::f32, device);
}

/// Which random numbers: an integer of any type, -1 being 2^64 - 1. A float, a bool or a character
/// in its place does not compile.
class Seed {
 public:
  template <WholeType T>
  constexpr Seed(T value)  // NOLINT(google-explicit-constructor): random_normal(shape, 7)
      : value_(static_cast<std::uint64_t>(value)) {}
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

/// The numbers from `low` up to, and without, `high`.
struct Interval {
  Number low = 0;
  Number high = 1;
};

/// Numbers drawn evenly from [low, high). Element i depends on `seed` and i alone, on every
/// adapter: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2,
/// 3", 2011). f32 or f16; `high` is never drawn, though a result be rounded. Throws DTypeError
/// where the dtype has no number in the interval, or a bound is beyond its largest.
///
///     random_uniform({2, 3}, 7)
///     random_uniform({2, 3}, 7, {.low = -1, .high = 1}, DType::f16, device)
AnyTensor random_uniform(const Shape& shape, Seed seed, const Interval& interval = {},
                         DType dtype = DType::f32, const Device& device = default_device());
inline AnyTensor random_uniform(const Shape& shape, Seed seed, const Interval& interval,
                                const Device& device) {
  return random_uniform(shape, seed, interval, DType::f32, device);
}
inline AnyTensor random_uniform(const Shape& shape, Seed seed, const Device& device) {
  return random_uniform(shape, seed, {}, DType::f32, device);
}

/// A normal distribution: its mean, and its standard deviation.
struct Normal {
  Number mean = 0;
  Number deviation = 1;
};

/// Numbers of the normal distribution, by the Box-Muller transform of the generator of
/// random_uniform. f32 or f16 (DTypeError).
///
///     random_normal({2, 3}, 7, {.deviation = 0.1}, device)
AnyTensor random_normal(const Shape& shape, Seed seed, const Normal& normal = {},
                        DType dtype = DType::f32, const Device& device = default_device());
inline AnyTensor random_normal(const Shape& shape, Seed seed, const Normal& normal,
                               const Device& device) {
  return random_normal(shape, seed, normal, DType::f32, device);
}
inline AnyTensor random_normal(const Shape& shape, Seed seed, const Device& device) {
  return random_normal(shape, seed, {}, DType::f32, device);
}

}  // namespace kiln
