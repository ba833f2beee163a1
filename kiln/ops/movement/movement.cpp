#include "kiln/ops/movement/movement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

struct Reshape {
  static constexpr std::string_view name = "reshape";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Shape shape;

  TensorSpec output(const TensorSpec& x) const {
    if (x.shape.elements() != shape.elements()) {
      throw ShapeError(fmt::format("reshape: the number of elements must stay ({} to {})",
                                   to_string(x.shape), to_string(shape)));
    }
    return {shape, x.dtype};
  }
  std::optional<Layout> view(const Layout& in) const { return in.reshape(shape); }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Shape shape;
  };
  static Saved save(const Saver&, const AnyTensor& x, const AnyTensor&) { return {x.shape()}; }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(reshape(grad, saved.shape));
  }
};

struct Permute {
  static constexpr std::string_view name = "permute";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  std::vector<int> axes;

  TensorSpec output(const TensorSpec& x) const {
    std::vector<int> sorted = axes;
    std::ranges::sort(sorted);
    bool each_once = static_cast<int>(sorted.size()) == x.shape.rank();
    for (std::size_t i = 0; each_once && i < sorted.size(); ++i)
      each_once = sorted[i] == static_cast<int>(i);
    if (!each_once) {
      throw ShapeError(fmt::format("permute: axes must name each axis of {} once, got [{}]",
                                   to_string(x.shape), fmt::join(axes, ", ")));
    }
    TensorSpec out{{}, x.dtype};
    for (const int axis : axes) out.shape.push_back(x.shape[axis]);
    return out;
  }
  std::optional<Layout> view(const Layout& in) const {
    Layout out{.offset = in.offset};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      out.shape.push_back(in.shape[axes[i]]);
      out.strides[i] = in.stride(axes[i]);
    }
    return out;
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    std::vector<int> inverse;
  };
  Saved save(const Saver&, const AnyTensor&, const AnyTensor&) const {
    Saved saved{std::vector<int>(axes.size())};
    for (std::size_t i = 0; i < axes.size(); ++i) saved.inverse[at(axes[i])] = static_cast<int>(i);
    return saved;
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(permute(grad, saved.inverse));
  }
};

struct BroadcastTo {
  static constexpr std::string_view name = "broadcast_to";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Shape shape;

  TensorSpec output(const TensorSpec& x) const {
    return {Layout::dense(x.shape).broadcast_to(shape).shape, x.dtype};
  }
  std::optional<Layout> view(const Layout& in) const { return in.broadcast_to(shape); }

  static constexpr Bound bound = Bound::memory;
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set_reduced(grad);
  }
};

/// The gradient of a slice: the elements in their old places, with zeros around.
struct SliceBackward {
  static constexpr std::string_view name = "slice_backward";
  static constexpr std::array inputs = {"grad"};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  int axis;
  std::int64_t begin;
  std::int64_t step;

  TensorSpec output(const TensorSpec& grad) const { return {shape, grad.dtype}; }
  Expr element(const At& at, const Elements& grad) const {
    const Expr from = at[axis] - at.number(begin);
    if (step == 1) return grad(at.with(axis, from));
    const Expr taken = grad(at.with(axis, floor_div(from, at.number(step))));
    return select(mod(from, at.number(step)) == 0, taken, 0);
  }
};
static_assert(Extension<SliceBackward>);

/// A begin or end counted from the start, and limited to the size.
struct Slice {
  static constexpr std::string_view name = "slice";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  int axis;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t step;

  TensorSpec output(const TensorSpec& x) const {
    TensorSpec out = x;
    out.shape[axis] = ceil_div(end - begin, step);
    return out;
  }
  std::optional<Layout> view(const Layout& in) const {
    Layout out = in;
    out.shape[axis] = ceil_div(end - begin, step);
    // An empty slice keeps an offset inside the buffer.
    if (out.shape[axis] > 0) out.offset += begin * in.stride(axis);
    if (out.shape[axis] > 1) out.strides[at(axis)] *= step;  // else it may be past 2^63
    return out;
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Shape shape;
  };
  static Saved save(const Saver&, const AnyTensor& x, const AnyTensor&) { return {x.shape()}; }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    // A longer step than the axis takes one element, as one of the axis' size does.
    const std::int64_t within = std::min(step, std::max<std::int64_t>(saved.shape[axis], 1));
    grads[0].set(apply(SliceBackward{saved.shape, axis, begin, within}, grad));
  }
};

struct Concat {
  static constexpr std::string_view name = "concat";
  static constexpr std::array inputs = {"first", "second"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  int axis;

  TensorSpec output(const TensorSpec& a, const TensorSpec& b) const {
    if (a.dtype != b.dtype) {
      throw DTypeError(fmt::format("concat: tensors must have one dtype, got {} and {}",
                                   to_string(a.dtype), to_string(b.dtype)));
    }
    bool fits = a.shape.rank() == b.shape.rank();
    for (int i = 0; fits && i < a.shape.rank(); ++i) fits = i == axis || a.shape[i] == b.shape[i];
    if (!fits) {
      throw ShapeError(fmt::format("concat: sizes other than along axis {} must be equal ({}, {})",
                                   axis, to_string(a.shape), to_string(b.shape)));
    }
    TensorSpec out = a;
    if (__builtin_add_overflow(a.shape[axis], b.shape[axis], &out.shape[axis])) {
      throw ShapeError(fmt::format("concat: the size along axis {} is past 2^63 ({}, {})", axis,
                                   to_string(a.shape), to_string(b.shape)));
    }
    return out;
  }
  Expr element(const At& at, const Elements& a, const Elements& b) const {
    const Expr rest = at[axis] - a.size(axis);
    return select(rest < 0, a(at), b(at.with(axis, rest)));
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    std::int64_t first;
  };
  Saved save(const Saver&, const AnyTensor& a, const AnyTensor&, const AnyTensor&) const {
    return {a.dim(axis)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) const {
    auto& [a, b] = grads;
    if (a) a.set(slice(grad, axis, 0, saved.first));
    if (b) b.set(slice(grad, axis, saved.first));
  }
};
static_assert(Extension<Reshape> && Extension<Permute> && Extension<BroadcastTo> &&
              Extension<Slice> && Extension<Concat>);

}  // namespace

AnyTensor reshape(const AnyTensor& x, const Shape& shape) { return apply(Reshape{shape}, x); }

AnyTensor reshape(const AnyTensor& x, std::initializer_list<Integer> shape) {
  Shape known;
  int open = -1;
  const std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  for (const std::int64_t size : sizes) {
    if (size == -1 && open < 0) {
      open = known.rank();
      known.push_back(1);
      continue;
    }
    known.push_back(size);
  }
  if (open >= 0) {
    const std::int64_t product = known.elements();
    if (product == 0 || x.shape().elements() % product != 0) {
      throw ShapeError(
          fmt::format("reshape: no size for -1 keeps the number of elements ({} to [{}])",
                      to_string(x.shape()), fmt::join(sizes, ", ")));
    }
    known[open] = x.shape().elements() / product;
  }
  return reshape(x, known);
}

namespace {
template <class List>
AnyTensor permuted(const AnyTensor& x, const List& axes) {
  Permute op;
  for (const Integer axis : axes) op.axes.push_back(normalize_axis("permute", axis, x.shape()));
  return apply(op, x);
}
}  // namespace

AnyTensor permute(const AnyTensor& x, std::span<const int> axes) { return permuted(x, axes); }

AnyTensor permute(const AnyTensor& x, std::initializer_list<Integer> axes) {
  return permuted(x, axes);
}

AnyTensor transpose(const AnyTensor& x) {
  if (x.rank() < 2)
    throw ShapeError(fmt::format("transpose: needs rank 2 or more, got {}", to_string(x.shape())));
  return transpose(x, -1, -2);
}

AnyTensor transpose(const AnyTensor& x, Integer axis_a, Integer axis_b) {
  Permute op;
  for (int axis = 0; axis < x.rank(); ++axis) op.axes.push_back(axis);
  std::swap(op.axes[at(normalize_axis("transpose", axis_a, x.shape()))],
            op.axes[at(normalize_axis("transpose", axis_b, x.shape()))]);
  return apply(op, x);
}

AnyTensor slice(const AnyTensor& x, Integer axis, Integer begin, std::optional<Integer> end,
                Integer step) {
  const int along = normalize_axis("slice", axis, x.shape());
  const std::int64_t size = x.dim(along);
  const auto from_start = [&](std::int64_t at) { return at < 0 ? at + size : at; };
  const std::int64_t first = from_start(begin);
  const std::int64_t last = end ? std::min(from_start(*end), size) : size;
  if (first < 0 || first > size || last < first || step < 1) {
    throw ShapeError(fmt::format(
        "slice: along an axis of size {0} begin must be in [-{0}, {0}], the end not before it, and "
        "the step at least 1, got begin {1}, {2}, step {3} ({4})",
        size, std::int64_t{begin}, end ? fmt::format("end {}", std::int64_t{*end}) : "no end",
        std::int64_t{step}, to_string(x.shape())));
  }
  return apply(Slice{along, first, last, step}, x);
}

AnyTensor broadcast_to(const AnyTensor& x, const Shape& shape) {
  return apply(BroadcastTo{shape}, x);
}

namespace {
/// x with an axis of size 1 at `axis`; errors begin with `op`.
AnyTensor with_axis(std::string_view op, const AnyTensor& x, std::int64_t axis) {
  const int rank = x.rank() + 1;
  if (axis < -rank || axis >= rank) {
    throw ShapeError(
        fmt::format("{}: axis {} is out of range for {}", op, axis, to_string(x.shape())));
  }
  Shape shape;
  for (int i = 0, from = 0; i < rank; ++i)
    shape.push_back(i == (axis < 0 ? axis + rank : axis) ? 1 : x.dim(from++));
  return reshape(x, shape);
}
}  // namespace

AnyTensor unsqueeze(const AnyTensor& x, Integer axis) { return with_axis("unsqueeze", x, axis); }

AnyTensor squeeze(const AnyTensor& x, const AxisList& axes) {
  const Axes named = axes.of("squeeze", x.shape());
  Shape shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool dropped = named[at(axis)] && (x.dim(axis) == 1 || !axes.all());
    if (dropped && x.dim(axis) != 1) {
      throw ShapeError(
          fmt::format("squeeze: axis {} must have size 1 ({})", axis, to_string(x.shape())));
    }
    if (!dropped) shape.push_back(x.dim(axis));
  }
  return reshape(x, shape);
}

AnyTensor concat(std::span<const AnyTensor> tensors, Integer axis) {
  if (tensors.empty()) throw ShapeError("concat: needs at least one tensor");
  const int along = normalize_axis("concat", axis, tensors[0].shape());
  if (tensors.size() == 1) return tensors[0];
  // By halves, so that no element is copied more than log2(n) times.
  const std::size_t half = tensors.size() / 2;
  return apply(Concat{along}, concat(tensors.first(half), axis),
               concat(tensors.subspan(half), axis));
}

AnyTensor concat(std::initializer_list<AnyTensor> tensors, Integer axis) {
  return concat(std::span(tensors.begin(), tensors.size()), axis);
}

AnyTensor stack(std::span<const AnyTensor> tensors, Integer axis) {
  if (tensors.empty()) throw ShapeError("stack: needs at least one tensor");
  std::vector<AnyTensor> wider;
  for (const AnyTensor& t : tensors) {
    if (t.shape() != tensors[0].shape()) {
      throw ShapeError(fmt::format("stack: tensors must have one shape, got {} and {}",
                                   to_string(tensors[0].shape()), to_string(t.shape())));
    }
    if (t.dtype() != tensors[0].dtype()) {
      throw DTypeError(fmt::format("stack: tensors must have one dtype, got {} and {}",
                                   to_string(tensors[0].dtype()), to_string(t.dtype())));
    }
    wider.push_back(with_axis("stack", t, axis));
  }
  return concat(wider, axis);
}

AnyTensor stack(std::initializer_list<AnyTensor> tensors, Integer axis) {
  return stack(std::span(tensors.begin(), tensors.size()), axis);
}

}  // namespace kiln
