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

/// Elements that are being read from a device. `get()` waits and returns them. It can be called
/// once: the next call throws std::future_error.
template <class T>
class Reading {
 public:
  Reading(std::future<std::vector<std::byte>> bytes)
      : bytes_(std::move(bytes)) {}  // NOLINT(google-explicit-constructor)
  std::vector<T> get();

 private:
  std::future<std::vector<std::byte>> bytes_;
};

/// An immutable array on a device. It may be part of a gradient graph. Copies share the
/// elements.
template <>
class Tensor<any_rank> {
 public:
  /// An empty handle: everything except assignment and destruction throws.
  Tensor() = default;
  Tensor(Value value, Device device) : value_(std::move(value)), device_(std::move(device)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // Only to a variable: x[0] = y would not change x.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  ~Tensor() = default;

  // Of a temporary they are copies: for (auto n : (x + y).shape()) is right.
  [[nodiscard]] const Shape& shape() const& { return value().shape(); }
  [[nodiscard]] Shape shape() && { return value().shape(); }
  [[nodiscard]] int rank() const { return value().shape().rank(); }
  /// The size along `axis`; negative axes count from the end.
  [[nodiscard]] std::int64_t dim(Integer axis) const { return value().shape()[axis]; }
  [[nodiscard]] DType dtype() const { return value().dtype(); }
  [[nodiscard]] const TensorSpec& spec() const& { return value().spec(); }
  [[nodiscard]] TensorSpec spec() && { return value().spec(); }
  [[nodiscard]] const Device& device() const&;
  [[nodiscard]] Device device() &&;

  /// All elements in row-major order. Waits. T must be the element type: float, float16,
  /// std::int32_t, std::uint32_t or bool. Throws DTypeError if it is another.
  template <class T = float>
  [[nodiscard]] std::vector<T> to_vector() const {
    return read<T>().get();
  }
  /// The same without waiting. `get()` on the result gives the values as they are now.
  template <class T = float>
  [[nodiscard]] Reading<T> read() const {
    return Reading<T>(read_bytes(dtype_of<T>));
  }
  /// The one element. Throws ShapeError if there is not exactly one.
  template <class T = float>
  [[nodiscard]] T item() const {
    require_one_element();
    return to_vector<T>()[0];
  }

  /// Whether a gradient may flow to it.
  [[nodiscard]] bool tracked() const { return node_ != nullptr; }
  /// The same elements as a leaf, whose gradient can be asked for. Throws UnsupportedError on a
  /// device without autodiff, and for the result of an operation on tracked tensors. Throws
  /// DTypeError for a dtype that is not a float.
  [[nodiscard]] AnyTensor require_grad() const;
  /// The same elements outside of any gradient graph.
  [[nodiscard]] AnyTensor detach() const { return {value(), device()}; }
  /// The gradients of this tensor, which must have one element, in all leaves that it depends on.
  ///
  ///     AnyTensor w = random_normal({4, 4}, 1, device.autodiff()).require_grad();
  ///     Gradients g = sum(w * w).backward();
  ///     g.of(w);   // 2 w
  [[nodiscard]] Gradients backward() const;
  /// The same elements on another device, or on the same one with other settings. A tracked tensor
  /// stays tracked on the same adapter with autodiff, and is detached on one without. To move it to
  /// another adapter, detach it first (UnsupportedError).
  [[nodiscard]] AnyTensor to(const Device& device) const;

  /// A part of the tensor, one place an axis from the first on; axes beyond the last place are
  /// taken whole. Copies nothing. Differentiable.
  ///
  ///     x(0, all, -1)        // [2, 3, 4] gives [3]
  ///     x(slice(1, 3))       // rows 1 and 2
  ///     x(ellipsis, 0)       // the first element along the last axis
  ///
  /// Throws ShapeError for an index out of range, for more places than axes, for two ellipses, and
  /// what slice(x, axis, begin, end, step) throws.
  template <std::convertible_to<Index>... Place>
    requires(sizeof...(Place) > 0)
  [[nodiscard]] AnyTensor operator()(const Place&... places) const {
    return part({Index(places)...});
  }
  /// x[0] is x(0), and x[slice(1, 3)] is x(slice(1, 3)).
  [[nodiscard]] AnyTensor operator[](const Index& place) const { return part({place}); }

  // Common operations as members. Each calls the function of its name, which says what it does;
  // they are defined with those, in kiln/ops.
  [[nodiscard]] AnyTensor sum(const AxisList& axes = {}, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor mean(const AxisList& axes = {}, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor max(const AxisList& axes = {}, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor min(const AxisList& axes = {}, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor argmax(Integer axis, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor argmin(Integer axis, Flag keepdim = false) const;
  [[nodiscard]] AnyTensor reshape(std::initializer_list<Integer> shape) const;
  [[nodiscard]] AnyTensor reshape(const Shape& shape) const;
  [[nodiscard]] AnyTensor permute(std::initializer_list<Integer> axes) const;
  [[nodiscard]] AnyTensor transpose() const;
  [[nodiscard]] AnyTensor transpose(Integer axis_a, Integer axis_b) const;
  [[nodiscard]] AnyTensor squeeze(const AxisList& axes = {}) const;
  [[nodiscard]] AnyTensor unsqueeze(Integer axis) const;
  [[nodiscard]] AnyTensor broadcast_to(const Shape& shape) const;
  [[nodiscard]] AnyTensor cast(DType dtype) const;

  /// For rules: the value without its gradient.
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

[[noreturn]] void refuse_rank(int expected, const Shape& shape, const std::source_location& where);

/// A tensor whose rank is known at compile time. The rank is checked once, where an AnyTensor is
/// converted.
///
///     Tensor<2> logits = model(x);   // a ShapeError that names this line, unless the rank is 2
template <int Rank>
class Tensor : public AnyTensor {
 public:
  static_assert(Rank >= 0 && Rank <= max_rank, "kiln: a tensor's rank is 0 to 8");
  Tensor() = default;
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
