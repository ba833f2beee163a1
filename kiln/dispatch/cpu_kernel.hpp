#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/runtime/cpu/parallel.hpp"

namespace kiln::cpu {

/// Elements with a step along each axis; 0 along a broadcast one.
///
///     Strided<const float> x = lhs.strided<float>();
///     x(i, k)           // of a matrix
///     x.at({b, i, k})   // of any rank
template <class T>
class Strided {
 public:
  Strided(T* data, const Layout& layout) : data_(data), layout_(layout) {}

  [[nodiscard]] const Shape& shape() const { return layout_.shape; }
  [[nodiscard]] std::int64_t stride(int axis) const { return layout_.stride(axis); }
  /// The element at index 0 along every axis.
  [[nodiscard]] T* data() const { return data_; }
  /// One index an axis; not checked.
  template <std::integral... I>
  T& operator()(I... index) const {
    return at({static_cast<std::int64_t>(index)...});
  }
  [[nodiscard]] T& at(std::initializer_list<std::int64_t> index) const {
    std::int64_t offset = 0;
    std::size_t axis = 0;
    for (const std::int64_t i : index) offset += i * layout_.strides[axis++];
    return data_[offset];
  }

 private:
  T* data_;
  Layout layout_;
};

/// An input as a `cpu_kernel` rule sees it.
class Input {
 public:
  Input(std::string_view op, std::string_view name, RawTensor tensor);

  [[nodiscard]] DType dtype() const { return tensor_.dtype; }
  [[nodiscard]] const Shape& shape() const { return tensor_.shape(); }
  [[nodiscard]] int rank() const { return shape().rank(); }
  /// The size along `axis`; negative axes count from the end.
  [[nodiscard]] std::int64_t dim(int axis) const { return shape()[axis]; }
  /// How many matrices it holds: the product of all sizes but the last two.
  [[nodiscard]] std::int64_t batch() const;

  /// The elements in order; copied first unless they lie so. T is the element type, and
  /// std::uint32_t for a bool: 0 is false. Throws DTypeError for another one.
  template <class T>
  [[nodiscard]] std::span<const T> dense() const {
    return {static_cast<const T*>(dense_elements(dtype_of<T>)), count()};
  }
  /// The elements where they lie: nothing is copied.
  template <class T>
  [[nodiscard]] Strided<const T> strided() const {
    return {static_cast<const T*>(elements(dtype_of<T>)), tensor_.layout};
  }
  /// The tensor itself, for kiln's own functions on it.
  [[nodiscard]] const RawTensor& raw() const { return tensor_; }

 private:
  [[nodiscard]] const void* dense_elements(DType dtype) const;
  [[nodiscard]] const void* elements(DType dtype) const;
  [[nodiscard]] std::size_t count() const;

  std::string_view op_;
  std::string_view name_;
  RawTensor tensor_;
  mutable RawTensor copy_;  ///< dense, once somebody wanted it so
};

/// What a kernel's results go through on their way to memory.
class Sink;

/// A result as a `cpu_kernel` rule sees it: dense memory to be written.
class Output {
 public:
  Output(std::string_view op, std::string_view name, RawTensor tensor, Sink* sink);

  [[nodiscard]] DType dtype() const { return tensor_.dtype; }
  [[nodiscard]] const Shape& shape() const { return tensor_.shape(); }
  [[nodiscard]] int rank() const { return shape().rank(); }
  [[nodiscard]] std::int64_t dim(int axis) const { return shape()[axis]; }
  [[nodiscard]] std::int64_t batch() const;

  /// Its elements, undefined at the start. Throws DTypeError where T is not its element type
  /// (std::uint32_t for a bool).
  template <class T>
  [[nodiscard]] std::span<T> dense() const {
    return {static_cast<T*>(elements(dtype_of<T>)), static_cast<std::size_t>(count())};
  }
  [[nodiscard]] const RawTensor& raw() const { return tensor_; }

  /// Says that elements [first, first + count) are as they shall be and will neither be written nor
  /// read again. Neighbours that were fused into the operation are applied to them now, while they
  /// are in a cache; to what a kernel does not commit they are applied when it is done. Each
  /// element at most once; several threads may commit.
  void commit(std::int64_t first, std::int64_t count) const;

 private:
  [[nodiscard]] void* elements(DType dtype) const;
  [[nodiscard]] std::int64_t count() const { return shape().elements(); }

  std::string_view op_;
  std::string_view name_;
  RawTensor tensor_;
  Sink* sink_;
};

/// Sets all elements of a result to 0.
void zero(const Output& out);
/// Copies the input into `to`, which has its shape and dtype and may be a strided part of a buffer
/// of the host's.
void copy(const Input& from, const RawTensor& to);

/// Calls f with an element of the C++ type of a float dtype: float or float16.
///
///     cpu::with_float(out.dtype(), [&](auto element) {
///       using T = decltype(element);
///       ...
///     });
template <class F>
void with_float(DType dtype, const F& f) {
  if (dtype == DType::f16) return f(float16());
  f(float());
}

}  // namespace kiln::cpu
