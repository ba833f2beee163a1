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

/// @file
/// Tensors that are made of numbers. The device comes last; without one it is the default device.

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

/// A tensor of the given values in row-major order, copied to the device. T is float, float16,
/// std::int32_t, std::uint32_t or bool. Throws ShapeError unless `shape` has as many elements as
/// there are values.
///
///     const std::vector<float> values = {1, 2, 3, 4};
///     tensor(values, {2, 2}).shape();   // [2, 2]
template <class T>
AnyTensor tensor(std::span<const T> values, const Shape& shape,
                 const Device& device = default_device()) {
  return detail::upload(values.data(), values.size(), {shape, dtype_of<T>}, device);
}
template <class T>
AnyTensor tensor(const std::vector<T>& values, const Shape& shape,
                 const Device& device = default_device()) {
  if constexpr (std::same_as<T, bool>) {  // it has no array of bools
    const std::vector<unsigned char> bools(values.begin(), values.end());
    return detail::upload(bools.data(), bools.size(), {shape, DType::boolean}, device);
  } else {
    return tensor(std::span<const T>(values), shape, device);
  }
}
template <class T, std::size_t N>
AnyTensor tensor(const std::array<T, N>& values, const Shape& shape,
                 const Device& device = default_device()) {
  return tensor(std::span<const T>(values), shape, device);
}
/// The same with values in braces. 1.0 and 1.F are f32; 1 is i32.
///
///     tensor({1.0, 2.0, 3.0, 4.0}, {2, 2}).shape();   // [2, 2]
template <class T>
AnyTensor tensor(std::initializer_list<T> values, const Shape& shape,
                 const Device& device = default_device()) {
  const std::vector<detail::Listed<T>> listed(values.begin(), values.end());
  return detail::upload(listed.data(), listed.size(), {shape, detail::dtype_listed<T>}, device);
}

/// A tensor with the shape of its braces, up to four deep. Throws ShapeError if lists at one depth
/// differ in length.
///
///     tensor({1.0, 2.0, 3.0}).shape();   // [3]
///     tensor({{1, 2}, {3, 4}}).shape();   // [2, 2]
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
// D is deduced, so that {0} after a list is a shape and not a device.
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

/// A tensor of elements that are on a device already. Throws Error for an empty handle, DeviceError
/// if `device` has another runtime than the elements, ShapeError for elements outside of the
/// buffer.
///
///     from_raw(tensor({1.0, 2.0}).value().raw());   // [1, 2]
AnyTensor from_raw(const RawTensor& raw);
AnyTensor from_raw(const RawTensor& raw, const Device& device);

/// A tensor whose elements are all `value`. Throws DTypeError for a number that the dtype does not
/// have: a fraction in an integer dtype, or one beyond the finite numbers of f32 or f16. Floats are
/// rounded.
///
///     full({3}, 7, DType::i32);   // [7, 7, 7]
///     full({3}, 70000, DType::f16);   // throws DTypeError
AnyTensor full(const Shape& shape, Number value, DType dtype = DType::f32,
               const Device& device = default_device());
inline AnyTensor full(const Shape& shape, Number value, const Device& device) {
  return full(shape, value, DType::f32, device);
}
/// A tensor of zeros, of any dtype.
///
///     zeros({3});   // [0, 0, 0]
inline AnyTensor zeros(const Shape& shape, DType dtype = DType::f32,
                       const Device& device = default_device()) {
  return full(shape, 0, dtype, device);
}
inline AnyTensor zeros(const Shape& shape, const Device& device) { return full(shape, 0, device); }
/// A tensor of ones, of any dtype.
///
///     ones({3});   // [1, 1, 1]
inline AnyTensor ones(const Shape& shape, DType dtype = DType::f32,
                      const Device& device = default_device()) {
  return full(shape, 1, dtype, device);
}
inline AnyTensor ones(const Shape& shape, const Device& device) { return full(shape, 1, device); }

/// A tensor of `value`, of zeros or of ones, with the shape, dtype and device of x. `value` is as
/// in `full`.
///
///     ones_like(tensor({5, 6}));   // [1, 1]
AnyTensor full_like(const AnyTensor& x, Number value);
inline AnyTensor zeros_like(const AnyTensor& x) { return full_like(x, 0); }
inline AnyTensor ones_like(const AnyTensor& x) { return full_like(x, 1); }

/// The first number of `arange`, and the difference between two.
struct Steps {
  Number start = 0;
  Number step = 1;
};

/// `count` numbers: start, start + step, ... f32, f16, i32 and u32 (DTypeError). Integers are
/// exact. The dtype must have start and step, as in `full` (DTypeError). Throws ShapeError for a
/// negative count.
///
///     arange(4);   // [0, 1, 2, 3]
///     arange(3, {.start = 1, .step = 0.5});   // [1, 1.5, 2]
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

/// Which random numbers are drawn: an integer of any type; -1 is 2^64 - 1. A float, a bool or a
/// character does not compile.
///
///     Seed(7).value();   // [7]
class Seed {
 public:
  /// From an integer, and as one.
  template <WholeType T>
  constexpr Seed(T value)  // NOLINT(google-explicit-constructor): random_normal(shape, 7)
      : value_(static_cast<std::uint64_t>(value)) {}
  constexpr operator std::uint64_t() const {  // NOLINT(google-explicit-constructor): it is one
    return value_;
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

/// The numbers from `low` up to `high`, without `high`.
struct Interval {
  Number low = 0;
  Number high = 1;
};

/// Numbers drawn evenly from [low, high), in f32 or f16. Element i depends on `seed` and i alone,
/// on every adapter: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy
/// as 1, 2, 3", 2011). `high` is never drawn, even if results are rounded. Throws DTypeError for
/// other dtypes, if the dtype has no number in the interval, and for a bound beyond its largest
/// number.
///
///     random_uniform({2, 3}, 7).shape();   // [2, 3]
///     max(random_uniform({100}, 7, {.low = -1, .high = 0})) < 0;   // [1]
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

/// Numbers of a normal distribution, in f32 or f16 (DTypeError), by the Box-Muller transform of the
/// generator of `random_uniform`.
///
///     random_normal({2, 3}, 7, {.deviation = 0.1}).shape();   // [2, 3]
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
