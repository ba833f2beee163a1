#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/runtime/cpu/parallel.hpp"

namespace kiln::cpu {

namespace detail {
std::int64_t matrix_start(const Layout& layout, std::int64_t batch, const Shape& out);
Layout last_two(const Layout& layout);
}  // namespace detail

/// Elements with a step along each axis; 0 along a broadcast one.
///
///     Strided<const float> x = lhs.strided<float>();
///     x(b, i, k)
///     x.matrix(batch, out.shape())(i, k)   // broadcast batches included
template <class T>
class Strided {
 public:
  Strided(T* data, const Layout& layout) : data_(data), layout_(layout) {}

  [[nodiscard]] const Shape& shape() const { return layout_.shape; }
  [[nodiscard]] std::int64_t stride(Integer axis) const { return layout_.stride(axis); }
  /// The element at index 0 along every axis.
  [[nodiscard]] T* data() const { return data_; }
  /// One index an axis, from the first on; not checked.
  template <WholeType... I>
  T& operator()(I... index) const {
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((offset += static_cast<std::int64_t>(index) * layout_.strides[axis++]), ...);
    return data_[offset];
  }
  /// The last two axes: the matrix that batch number `batch` of a result of shape `out` is made of.
  /// The axes before them broadcast to out's.
  [[nodiscard]] Strided matrix(Integer batch, const Shape& out) const {
    return {data_ + detail::matrix_start(layout_, batch, out), detail::last_two(layout_)};
  }

 private:
  T* data_;
  Layout layout_;
};

/// A tensor as a `cpu_kernel` rule sees it.
class Argument {
 public:
  [[nodiscard]] DType dtype() const { return tensor_.dtype; }
  [[nodiscard]] const Shape& shape() const { return tensor_.shape(); }
  [[nodiscard]] TensorSpec spec() const { return tensor_.spec(); }
  [[nodiscard]] int rank() const { return shape().rank(); }
  /// The size along `axis`; negative axes count from the end.
  [[nodiscard]] std::int64_t dim(Integer axis) const { return shape()[axis]; }
  /// How many matrices it holds: the product of all sizes but the last two.
  [[nodiscard]] std::int64_t batch() const;
  /// The tensor itself, for kiln's own functions on it.
  [[nodiscard]] const RawTensor& raw() const { return tensor_; }

 protected:
  Argument() = default;
  Argument(std::string_view op, std::string_view name, RawTensor tensor);
  /// Where the elements of `t`, which is this tensor or a copy of it, begin. Throws DTypeError for
  /// another dtype than its own, but for u32 of a bool.
  [[nodiscard]] void* elements(const RawTensor& t, DType dtype) const;
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(shape().elements()); }
  /// "op: output 'name'".
  [[nodiscard]] std::string title(std::string_view kind) const;

 private:
  std::string_view op_;
  std::string_view name_;
  RawTensor tensor_;
};

/// An input.
class Input : public Argument {
 public:
  Input(std::string_view op, std::string_view name, RawTensor tensor)
      : Argument(op, name, std::move(tensor)) {}

  /// The elements in order; copied first if they are not dense. T is the element type, and
  /// std::uint32_t for a bool, where 0 is false. Throws DTypeError for another type.
  template <class T>
  [[nodiscard]] std::span<const T> dense() const {
    return {static_cast<const T*>(elements(made_dense(), dtype_of<T>)), count()};
  }
  /// The elements where they lie; nothing is copied.
  template <class T>
  [[nodiscard]] Strided<const T> strided() const {
    return {static_cast<const T*>(elements(raw(), dtype_of<T>)), raw().layout};
  }
  /// The elements as `float`: those of an f32 tensor where they lie, those of an f16 tensor
  /// converted. Valid as long as this Input. Call it before `parallel_for`, not inside. Throws
  /// DTypeError for other dtypes.
  ///
  ///     const auto x = lhs.floats();
  ///     float first = x(0, 0);
  [[nodiscard]] Strided<const float> floats() const;

 private:
  [[nodiscard]] const RawTensor& made_dense() const;

  mutable RawTensor copy_;           ///< dense, once somebody wanted it so
  mutable std::vector<float> wide_;  ///< of f16, once somebody wanted floats
};

/// Applies the epilogue to what a kernel commits.
class Sink;

/// A result: dense memory to be written.
class Output : public Argument {
 public:
  Output() = default;
  Output(std::string_view op, std::string_view name, RawTensor tensor, Sink* sink)
      : Argument(op, name, std::move(tensor)),
        sink_(sink),
        wide_(std::make_shared<std::vector<float>>()) {}

  /// Its elements, undefined at the start. Throws DTypeError if T is not its element type, which
  /// is std::uint32_t for a bool.
  template <class T>
  [[nodiscard]] std::span<T> dense() const {
    return {static_cast<T*>(elements(raw(), dtype_of<T>)), count()};
  }

  /// The elements as `float`, to be written. Those of an f16 result are rounded when the kernel
  /// commits them, or else when it is done. Call it before `parallel_for`, not inside. Throws
  /// DTypeError for other dtypes.
  ///
  ///     const auto y = out.floats();
  ///     y(row, column) = 0;
  [[nodiscard]] Strided<float> floats() const;

  /// Says that elements [first, first + count) are final: the kernel neither writes nor reads them
  /// again. Operations that were fused into this one are applied to them now, while they are in a
  /// cache. What a kernel does not commit is finished when the kernel is done. Each element at most
  /// once; several threads may commit.
  void commit(Integer first, Integer count) const;
  /// kiln calls it when the kernel is done.
  void close() const;

 private:
  void round(std::int64_t first, std::int64_t count) const;

  Sink* sink_ = nullptr;
  std::shared_ptr<std::vector<float>> wide_;  ///< of f16; empty until somebody wanted floats
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
