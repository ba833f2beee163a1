#pragma once
#include <concepts>
#include <cstring>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "kiln/fusion/record.hpp"
#include "kiln/runtime/device.hpp"
#include "kiln/support/axes.hpp"
#include "kiln/support/index.hpp"

namespace kiln {

inline constexpr int any_rank = -1;
template <int Rank = any_rank>
class Tensor;
/// The tensor. Tensor<Rank> is the same with its rank checked, for signatures.
using AnyTensor = Tensor<any_rank>;

struct Node;
class Gradients;

/// Elements that are being read from a device: what x.read() gives.
///
///     Reading<float> reading = tensor({1.0, 2.0}).read();
///     reading.get();   // [1, 2]
template <class T>
class Reading {
 public:
  /// From the bytes that a runtime reads.
  Reading(std::future<std::vector<std::byte>> bytes)
      : bytes_(std::move(bytes)) {}  // NOLINT(google-explicit-constructor)
  /// Waits, and gives the elements in row-major order. It can be called once: the next call throws
  /// std::future_error. Throws the error of the device, if there is one.
  std::vector<T> get();

 private:
  std::future<std::vector<std::byte>> bytes_;
};

/// An immutable array on a device. It may be part of a gradient graph. Copies share the elements.
/// Functions of kiln/ops make tensors and compute with them. All members except assignment and
/// destruction throw Error for an empty handle.
template <>
class Tensor<any_rank> {
 public:
  /// An empty handle.
  Tensor() = default;
  /// For rules: a value as a tensor of `device`, which must have the value's runtime.
  ///
  ///     AnyTensor(tensor({1.0, 2.0}, device).value(), device);   // [1, 2]
  Tensor(Value value, Device device) : value_(std::move(value)), device_(std::move(device)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // Only to a variable: x[0] = y would not change x.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  ~Tensor() = default;

  // Of a temporary they are copies: for (auto n : (x + y).shape()) is right.
  /// The sizes of all axes, and their number.
  ///
  ///     const AnyTensor x = zeros({2, 3});
  ///     x.shape();   // [2, 3]
  ///     x.rank();   // [2]
  [[nodiscard]] const Shape& shape() const& { return value().shape(); }
  [[nodiscard]] Shape shape() && { return value().shape(); }
  [[nodiscard]] int rank() const { return value().shape().rank(); }
  /// The size along `axis`. Negative axes count from the end. Throws ShapeError for an axis out of
  /// range.
  ///
  ///     zeros({2, 3}).dim(-1);   // [3]
  [[nodiscard]] std::int64_t dim(Integer axis) const { return value().shape()[axis]; }
  /// The dtype; shape and dtype; and the device.
  ///
  ///     const AnyTensor x = tensor({1, 2}, device);
  ///     x.dtype() == DType::i32;   // [true]
  ///     to_string(x.spec());   // "i32 [2]"
  ///     x.device().same_as(device);   // [true]
  [[nodiscard]] DType dtype() const { return value().dtype(); }
  [[nodiscard]] const TensorSpec& spec() const& { return value().spec(); }
  [[nodiscard]] TensorSpec spec() && { return value().spec(); }
  [[nodiscard]] const Device& device() const&;
  [[nodiscard]] Device device() &&;

  /// All elements in row-major order. Waits. T must be the element type: float, float16,
  /// std::int32_t, std::uint32_t or bool. Throws DTypeError if it is another, and the error of
  /// computing the elements, if there is one.
  ///
  ///     tensor({1.0, 2.0}).to_vector();   // [1, 2]
  ///     tensor({1, 2}).to_vector<std::int32_t>();   // [1, 2]
  ///     tensor({1, 2}).to_vector();   // throws DTypeError
  template <class T = float>
  [[nodiscard]] std::vector<T> to_vector() const {
    return read<T>().get();
  }
  /// The same without waiting. `get()` on the result waits.
  ///
  ///     Reading<float> reading = tensor({1.0, 2.0}).read();
  ///     reading.get();   // [1, 2]
  template <class T = float>
  [[nodiscard]] Reading<T> read() const {
    return Reading<T>(read_bytes(dtype_of<T>));
  }
  /// The one element. Waits. Throws ShapeError if there is not exactly one, and what to_vector
  /// throws.
  ///
  ///     sum(tensor({1.0, 2.0})).item();   // [3]
  template <class T = float>
  [[nodiscard]] T item() const {
    require_one_element();
    return to_vector<T>()[0];
  }

  /// Whether it is part of a gradient graph: a leaf, or computed from one.
  ///
  ///     const AnyTensor x = ones({2}, device.autodiff());
  ///     x.tracked();   // [false]
  ///     (x.require_grad() * 2).tracked();   // [true]
  [[nodiscard]] bool tracked() const { return node_ != nullptr; }
  /// The same elements as a leaf, whose gradient can be asked for. Throws UnsupportedError on a
  /// device without autodiff, and for the result of an operation on tracked tensors. Throws
  /// DTypeError for a dtype that is not a float.
  ///
  ///     const AnyTensor w = ones({2}, device.autodiff()).require_grad();
  ///     sum(w * w).backward().of(w);   // [2, 2]
  [[nodiscard]] AnyTensor require_grad() const;
  /// The same elements outside of any gradient graph.
  ///
  ///     ones({2}, device.autodiff()).require_grad().detach().tracked();   // [false]
  [[nodiscard]] AnyTensor detach() const { return {value(), device()}; }
  /// The gradients of this tensor, which must have one element (ShapeError), in all leaves that it
  /// depends on. Throws UnsupportedError for a tensor that is not tracked, and for an operation
  /// without a gradient.
  ///
  ///     const AnyTensor w = tensor({1.0, 3.0}, device.autodiff()).require_grad();
  ///     const Gradients g = sum(w * w).backward();
  ///     g.of(w);   // [2, 6]
  [[nodiscard]] Gradients backward() const;
  /// The same elements on another device, or on the same one with other settings. A tracked tensor
  /// stays tracked on the same adapter with autodiff, and is detached on one without. To move it to
  /// another adapter, detach it first (UnsupportedError).
  ///
  ///     tensor({1.0, 2.0}, device).to(cpu::device());   // [1, 2]
  [[nodiscard]] AnyTensor to(const Device& device) const;

  /// A part of the tensor, one place an axis from the first on; axes beyond the last place are
  /// taken whole. Copies nothing. Differentiable.
  ///
  ///     const AnyTensor x = zeros({2, 3, 4});
  ///     x(0, all, -1).shape();   // [3]
  ///     x(all, slice(1, 3)).shape();   // [2, 2, 4]
  ///     x(ellipsis, 0).shape();   // [2, 3]
  ///
  /// Throws ShapeError for an index out of range, for more places than axes, for two ellipses, and
  /// what slice(x, axis, begin, end, step) throws.
  template <std::convertible_to<Index>... Place>
    requires(sizeof...(Place) > 0)
  [[nodiscard]] AnyTensor operator()(const Place&... places) const {
    return part({Index(places)...});
  }
  /// A part along the first axis: x[0] is x(0), and x[slice(1, 3)] is x(slice(1, 3)).
  ///
  ///     tensor({{1, 2}, {3, 4}})[-1];   // [3, 4]
  [[nodiscard]] AnyTensor operator[](const Index& place) const { return part({place}); }

  // Common operations as members. Each calls the function of its name, which says what it takes and
  // throws. They are defined with those, in kiln/ops.
  /// Reductions along `axes`; see sum, mean, max and min.
  ///
  ///     const AnyTensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  ///     x.sum(1);   // [3, 7]
  ///     x.mean();   // [2.5]
  ///     x.max({0, 1});   // [4]
  ///     x.min(0, true).shape();   // [1, 2]
  [[nodiscard]] AnyTensor sum(const AxisList& axes = {}, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor mean(const AxisList& axes = {}, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor max(const AxisList& axes = {}, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor min(const AxisList& axes = {}, Flag keepdim = false) const;
  /// The index, as i32, of the largest or smallest element along `axis`; see argmax and argmin.
  ///
  ///     tensor({5, 9, 7}).argmax(0);   // [1]
  ///     tensor({5, 9, 7}).argmin(0);   // [0]
  [[nodiscard]] AnyTensor argmax(Integer axis, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor argmin(Integer axis, Flag keepdim = false) const;
  /// Views; see reshape, permute, transpose, squeeze, unsqueeze and broadcast_to.
  ///
  ///     const AnyTensor x = zeros({2, 1, 4});
  ///     x.reshape({4, -1}).shape();   // [4, 2]
  ///     x.permute({2, 0, 1}).shape();   // [4, 2, 1]
  ///     x.transpose().shape();   // [2, 4, 1]
  ///     x.squeeze().shape();   // [2, 4]
  ///     x.unsqueeze(0).shape();   // [1, 2, 1, 4]
  ///     x.broadcast_to({2, 3, 4}).shape();   // [2, 3, 4]
  [[nodiscard]] AnyTensor reshape(std::initializer_list<Integer> shape) const;
  [[nodiscard]] AnyTensor reshape(const Shape& shape) const;
  [[nodiscard]] AnyTensor permute(std::initializer_list<Integer> axes) const;
  [[nodiscard]] AnyTensor transpose() const;
  [[nodiscard]] AnyTensor transpose(Integer axis_a, Integer axis_b) const;
  [[nodiscard]] AnyTensor squeeze(const AxisList& axes = {}) const;
  [[nodiscard]] AnyTensor unsqueeze(Integer axis) const;
  [[nodiscard]] AnyTensor broadcast_to(const Shape& shape) const;
  /// The same numbers in another dtype; see the function cast.
  ///
  ///     tensor({-1.5, 2.7}).cast(DType::i32);   // [-1, 2]
  [[nodiscard]] AnyTensor cast(DType dtype) const;

  /// For rules: the value without its gradient.
  ///
  ///     tensor({1.0, 2.0}).value().shape();   // [2]
  [[nodiscard]] const Value& value() const;

 private:
  friend struct NodeAccess;
  [[nodiscard]] std::future<std::vector<std::byte>> read_bytes(DType dtype) const;
  void require_one_element() const;
  [[nodiscard]] AnyTensor part(std::initializer_list<Index> places) const;

  Value value_;
  std::optional<Device> device_;
  std::shared_ptr<Node> node_;
  std::size_t slot_ = 0;
};

/// Throws ShapeError: a Tensor<expected> was made of a tensor of `shape`, at `where`.
[[noreturn]] void refuse_rank(int expected, const Shape& shape, const std::source_location& where);

/// A tensor whose rank is known at compile time. The rank is checked once, where an AnyTensor is
/// converted.
///
///     const Tensor<2> logits = zeros({4, 10});
///     Tensor<2>(zeros({40}));   // throws ShapeError
template <int Rank>
class Tensor : public AnyTensor {
 public:
  static_assert(Rank >= 0 && Rank <= max_rank, "kiln: a tensor's rank is 0 to 8");
  Tensor() = default;
  /// From a tensor of that rank. Throws ShapeError with the place of the call if it has another.
  Tensor(const AnyTensor&
             tensor,  // NOLINT(google-explicit-constructor): crossing over is one plain conversion
         const std::source_location& where = std::source_location::current())
      : AnyTensor(tensor) {
    if (tensor.rank() != Rank) refuse_rank(Rank, tensor.shape(), where);
  }
  /// Two ranks that differ: a compile error, not a failing conversion.
  template <int Other>
    requires(Other != any_rank && Other != Rank)
  Tensor(const Tensor<Other>&) = delete;
};

template <class T>
std::vector<T> Reading<T>::get() {
  const std::vector<std::byte> bytes = bytes_.get();
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<bool> out(bytes.size() / 4);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = bytes[4 * i] != std::byte{0};
    return out;
  } else {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
}

}  // namespace kiln
