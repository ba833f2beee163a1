#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kiln/autodiff/any_tensor.hpp"

namespace kiln {

/// A tensor of the given values, in row-major order, copied to the device. T is float, float16,
/// std::int32_t, std::uint32_t or bool. Throws ShapeError unless there are as many values as
/// `shape` has elements.
///
///     AnyTensor x = tensor({1.F, 2.F, 3.F, 4.F}, {2, 2}, webgpu::device());
template <class T>
AnyTensor tensor(std::span<const T> values, const Shape& shape, const Device& device);
template <class T>
AnyTensor tensor(std::initializer_list<T> values, const Shape& shape, const Device& device) {
  return tensor(std::span<const T>(values.begin(), values.size()), shape, device);
}
template <class T>
AnyTensor tensor(const std::vector<T>& values, const Shape& shape, const Device& device) {
  return tensor(std::span<const T>(values), shape, device);
}
template <class T, std::size_t N>
AnyTensor tensor(const std::array<T, N>& values, const Shape& shape, const Device& device) {
  return tensor(std::span<const T>(values), shape, device);
}
template <>
AnyTensor tensor(const std::vector<bool>& values, const Shape& shape, const Device& device);
/// A tensor of elements that are on a device already; its runtime must be the device's.
AnyTensor from_raw(const RawTensor& raw, const Device& device);

AnyTensor full(const Shape& shape, double value, const Device& device, DType dtype = DType::f32);
AnyTensor zeros(const Shape& shape, const Device& device, DType dtype = DType::f32);
AnyTensor ones(const Shape& shape, const Device& device, DType dtype = DType::f32);
/// start, start + step, ...: `count` numbers. Integers are exact; their start and step must be
/// numbers that dtype has (DTypeError). Throws ShapeError for a negative count.
AnyTensor arange(Integer count, const Device& device, DType dtype = DType::f32, Number start = 0,
                 Number step = 1);

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

/// Numbers drawn evenly from [low, high). Element i depends on `seed` and i alone, on every
/// adapter: Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2,
/// 3", 2011). f32 or f16; `high` is never drawn, though a result be rounded. Throws DTypeError
/// where the dtype has no number in the interval, or a bound is beyond its largest.
AnyTensor random_uniform(const Shape& shape, Seed seed, const Device& device, Number low = 0,
                         Number high = 1, DType dtype = DType::f32);
/// Numbers of the normal distribution, by the Box-Muller transform of the same generator. f32 or
/// f16.
AnyTensor random_normal(const Shape& shape, Seed seed, const Device& device, Number mean = 0,
                        Number deviation = 1, DType dtype = DType::f32);

}  // namespace kiln
