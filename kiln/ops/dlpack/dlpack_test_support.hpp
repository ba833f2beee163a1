#pragma once
/// Arrays of another library, as DLPack hands them over.
#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kiln/ops/dlpack/dlpack.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln::test {

template <class T>
inline constexpr DLDataType type_of{kDLFloat, 8 * sizeof(T), 1};
template <>
inline constexpr DLDataType type_of<std::int32_t>{kDLInt, 32, 1};
template <>
inline constexpr DLDataType type_of<std::uint32_t>{kDLUInt, 32, 1};

/// Another library's array. It counts how often it was given back, and is not freed by that, so
/// that a test may look at it afterwards.
template <class T>
struct Array {
  Array(std::vector<T> of, std::vector<std::int64_t> sizes, std::vector<std::int64_t> steps = {})
      : elements(std::move(of)), shape(std::move(sizes)), strides(std::move(steps)) {
    tensor().data = elements.data();
    tensor().device = {kDLCPU, 0};
    tensor().ndim = static_cast<int>(shape.size());
    tensor().dtype = type_of<T>;
    tensor().shape = shape.data();
    tensor().strides = strides.empty() ? nullptr : strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      static_cast<Array*>(self->manager_ctx)->given_back.fetch_add(1);
    };
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() = default;

  DLTensor& tensor() { return managed.dl_tensor; }

  std::vector<T> elements;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::atomic<int> given_back = 0;
  DLManagedTensor managed{};
};

inline std::vector<float> counted_to(int count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0.F);
  return out;
}

inline void give_back(DLManagedTensor* given) { given->deleter(given); }

/// The exported elements in row-major order, read as another library would.
template <class T = float>
std::vector<T> elements_of(const DLManagedTensor& given) {
  const DLTensor& t = given.dl_tensor;
  std::int64_t count = 1;
  for (int axis = 0; axis < t.ndim; ++axis) count *= t.shape[axis];
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    for (int axis = t.ndim; axis-- > 0; rest /= t.shape[axis])
      at += rest % t.shape[axis] * t.strides[axis];
    out.push_back(
        reinterpret_cast<const T*>(static_cast<const std::byte*>(t.data) + t.byte_offset)[at]);
  }
  return out;
}

inline Device lazy() { return cpu::device().lazy(); }

/// What an import of the array says, if it throws E; and that it was not taken.
template <class E, class T>
std::string refusal(Array<T>& array, const Device& device = cpu::device()) {
  std::string message = message_of<E>([&] { (void)from_dlpack(&array.managed, device); });
  EXPECT_EQ(array.given_back, 0) << message;
  return message;
}

}  // namespace kiln::test
