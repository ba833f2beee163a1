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
///     std::vector<float> values = {1, 2, 3, 4};
///     const cpu::Strided<float> x(values.data(), Layout::dense({2, 2}));
///     x(1, 0);   // [3]
///     x.shape();   // [2, 2]
///     x.stride(0);   // [2]
///     *x.data();   // [1]
template <class T>
class Strided {
 public:
  /// The elements at `data`, which is the one at index 0 along every axis.
  Strided(T* data, const Layout& layout) : data_(data), layout_(layout) {}

  /// The sizes, and the step along `axis` in elements. Throws ShapeError for an axis out of range.
  [[nodiscard]] const Shape& shape() const { return layout_.shape; }
  [[nodiscard]] std::int64_t stride(Integer axis) const { return layout_.stride(axis); }
  /// The element at index 0 along every axis.
  [[nodiscard]] T* data() const { return data_; }
  /// The element at one index for each axis. Indices are not checked.
  template <WholeType... I>
  T& operator()(I... index) const {
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((offset += static_cast<std::int64_t>(index) * layout_.strides[axis++]), ...);
    return data_[offset];
  }
  /// The last two axes: the matrix that belongs to matrix number `batch` of a result of shape
  /// `out`. The axes before them broadcast to out's.
  ///
  ///     std::vector<float> values = {1, 2};
  ///     const cpu::Strided<float> x(values.data(), Layout::dense({2, 1, 1}));
  ///     x.matrix(3, {2, 2, 1, 1})(0, 0);   // [2]
  [[nodiscard]] Strided matrix(Integer batch, const Shape& out) const {
    return {data_ + detail::matrix_start(layout_, batch, out), detail::last_two(layout_)};
  }

 private:
  T* data_;
  Layout layout_;
};

/// A tensor as a `cpu_kernel` rule sees it.
///
///     const RawTensor raw = zeros({5, 2, 3}, cpu::device()).value().raw();
///     const cpu::Input x("my_op", "x", raw);
///     x.shape();   // [5, 2, 3]
///     x.rank();   // [3]
///     x.dim(-1);   // [3]
///     x.batch();   // [5]
///     x.dtype() == DType::f32;   // [true]
///     x.spec() == raw.spec();   // [true]
///     x.raw().layout == raw.layout;   // [true]
class Argument {
 public:
  /// Its dtype, its shape, both, and the number of axes.
  [[nodiscard]] DType dtype() const { return tensor_.dtype; }
  [[nodiscard]] const Shape& shape() const { return tensor_.shape(); }
  [[nodiscard]] TensorSpec spec() const { return tensor_.spec(); }
  [[nodiscard]] int rank() const { return shape().rank(); }
  /// The size along `axis`; negative axes count from the end. Throws ShapeError for an axis out of
  /// range.
  [[nodiscard]] std::int64_t dim(Integer axis) const { return shape()[axis]; }
  /// How many matrices it holds: the product of all sizes but the last two.
  [[nodiscard]] std::int64_t batch() const;
  /// The tensor itself, for kiln's own functions on it.
  [[nodiscard]] const RawTensor& raw() const { return tensor_; }

 protected:
  Argument() = default;
  Argument(std::string_view op, std::string_view name, RawTensor tensor);
  /// Where the elements of `t` begin, which is this tensor or a copy of it. Throws DTypeError if
  /// `dtype` is not the tensor's; for a bool it is u32.
  [[nodiscard]] void* elements(const RawTensor& t, DType dtype) const;
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(shape().elements()); }
  /// "op: output 'name'".
  [[nodiscard]] std::string title(std::string_view kind) const;

 private:
  std::string_view op_;
  std::string_view name_;
  RawTensor tensor_;
};

/// An input. Its elements must not be written.
///
///     const RawTensor raw = tensor({{1.0, 2.0}, {3.0, 4.0}}, cpu::device()).value().raw();
///     const cpu::Input x("my_op", "x", raw);
///     x.dense<float>()[3];   // [4]
///     x.strided<float>()(1, 0);   // [3]
///     x.floats()(0, 1);   // [2]
///     x.dense<std::int32_t>();   // throws DTypeError
class Input : public Argument {
 public:
  /// kiln makes it, for operation `op` and its input `name`, and gives it to the rule.
  Input(std::string_view op, std::string_view name, RawTensor tensor)
      : Argument(op, name, std::move(tensor)) {}

  /// The elements in order; copied first if they are not dense. T is the element type, and
  /// std::uint32_t for a bool, where 0 is false. Throws DTypeError for another type.
  template <class T>
  [[nodiscard]] std::span<const T> dense() const {
    return {static_cast<const T*>(elements(made_dense(), dtype_of<T>)), count()};
  }
  /// The elements where they lie; nothing is copied. T and errors are those of `dense`.
  template <class T>
  [[nodiscard]] Strided<const T> strided() const {
    return {static_cast<const T*>(elements(raw(), dtype_of<T>)), raw().layout};
  }
  /// The elements as `float`: those of an f32 tensor where they lie, those of an f16 tensor
  /// converted. Valid as long as this Input. Call it before `parallel_for`, not inside. Throws
  /// DTypeError for other dtypes.
  [[nodiscard]] Strided<const float> floats() const;

 private:
  [[nodiscard]] const RawTensor& made_dense() const;

  mutable RawTensor copy_;           ///< dense, after the first call that needs it
  mutable std::vector<float> wide_;  ///< of f16, after the first call of floats()
};

/// Applies the epilogue to what a kernel commits.
class Sink;

/// A result: dense memory to be written.
///
///     struct Twice {
///       static constexpr std::string_view name = "twice";
///       static constexpr std::array inputs = {"x"};
///       using layers = Layers<Cube, Fusion>;
///       static TensorSpec output(const TensorSpec& x) { return x; }
///       static void cpu_kernel(const cpu::Input& x, const cpu::Output& out) {
///         const auto from = x.floats();
///         const auto to = out.floats();
///         cpu::parallel_for(x.dim(0), [&](std::int64_t i) {
///           to(i) = 2 * from(i);
///           out.commit(i, 1);  // may be left out
///         });
///       }
///     };
///     apply(Twice{}, tensor({1.0, 2.0}, cpu::device()));   // [2, 4]
class Output : public Argument {
 public:
  Output() = default;
  /// kiln makes it, for operation `op` and its result `name`, and gives it to the rule.
  Output(std::string_view op, std::string_view name, RawTensor tensor, Sink* sink)
      : Argument(op, name, std::move(tensor)),
        sink_(sink),
        wide_(std::make_shared<std::vector<float>>()) {}

  /// Its elements, undefined at the start. Throws DTypeError if T is not its element type, which
  /// is std::uint32_t for a bool.
  ///
  ///     const RawTensor raw = zeros({2}, cpu::device()).value().raw();
  ///     cpu::Output("my_op", "out", raw, nullptr).dense<float>().size();   // [2]
  template <class T>
  [[nodiscard]] std::span<T> dense() const {
    return {static_cast<T*>(elements(raw(), dtype_of<T>)), count()};
  }

  /// The elements as `float`, to be written. Those of an f16 result are rounded when the kernel
  /// commits them, or else when it is done. Call it before `parallel_for`, not inside. Throws
  /// DTypeError for other dtypes.
  [[nodiscard]] Strided<float> floats() const;

  /// Says that elements [first, first + count) are final: the kernel neither writes nor reads them
  /// again. Operations that were fused into this one are applied to them now, while they are in a
  /// cache. What a kernel does not commit is finished when the kernel is done. An element is
  /// committed at most once. Several threads may commit.
  void commit(Integer first, Integer count) const;
  /// kiln calls it when the kernel is done.
  void close() const;

 private:
  void round(std::int64_t first, std::int64_t count) const;

  Sink* sink_ = nullptr;
  std::shared_ptr<std::vector<float>> wide_;  ///< of f16; empty until floats() is called
};

/// Sets all elements of a result to 0.
///
///     const RawTensor raw = ones({2}, cpu::device()).value().raw();
///     cpu::zero(cpu::Output("my_op", "out", raw, nullptr));
///     from_raw(raw);   // [0, 0]
void zero(const Output& out);
/// Copies the input into `to`, which has its shape and dtype and may be a strided part of a buffer
/// of the host's.
///
///     const RawTensor from = ones({2}, cpu::device()).value().raw();
///     const RawTensor to = zeros({2}, cpu::device()).value().raw();
///     cpu::copy(cpu::Input("my_op", "x", from), to);
///     from_raw(to);   // [1, 1]
void copy(const Input& from, const RawTensor& to);

/// Calls f with an element of the C++ type of a float dtype: float or float16.
///
///     std::size_t bytes = 0;
///     cpu::with_float(DType::f16, [&](auto element) { bytes = sizeof(element); });
///     bytes;   // [2]
template <class F>
void with_float(DType dtype, const F& f) {
  if (dtype == DType::f16) return f(float16());
  f(float());
}

}  // namespace kiln::cpu
