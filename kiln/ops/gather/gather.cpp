#include "kiln/ops/gather/gather.hpp"

#include <fmt/format.h>

#include <limits>

#include "kiln/ops/create/create.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"
#include "kiln/tensor/scatter.hpp"

namespace kiln {
namespace {

/// Throws unless `index` picks elements of `x` along `axis`.
void require_index(std::string_view op, const TensorSpec& x, const TensorSpec& index, int axis) {
  if (index.dtype != DType::i32 && index.dtype != DType::u32)
    throw DTypeError(fmt::format("{}: index must be i32 or u32, got {}", op, to_string(index)));
  bool fits = x.shape.rank() == index.shape.rank();
  for (int i = 0; fits && i < x.shape.rank(); ++i) fits = i == axis || index.shape[i] <= x.shape[i];
  if (!fits) {
    throw ShapeError(
        fmt::format("{}: index must have x's rank, and sizes within x's other than along axis {} "
                    "(x {}, index {})",
                    op, axis, to_string(x.shape), to_string(index.shape)));
  }
}

/// The number in x, of `shape`, of the element that each index names; `no_place` for none.
struct ScatterPlaces {
  static constexpr std::string_view name = "scatter_places";
  static constexpr std::array inputs = {"index"};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  int axis;

  static TensorSpec output(const TensorSpec& index) { return {index.shape, DType::u32}; }
  Expr element(const At& at, const Elements& index) const {
    const Expr picked = cast(index(at), DType::i32);
    Expr place = cast(at.number(0), DType::u32);
    std::int64_t step = shape.elements();
    for (int d = 0; d < shape.rank(); ++d) {
      step /= shape[d];
      if (shape[d] == 1) continue;  // its step may be beyond an i32
      const Expr c = d == axis ? picked : at[d];
      place = place + cast(c, DType::u32) * cast(at.number(step), DType::u32);
    }
    const Expr inside = picked >= 0 && picked < at.number(shape[axis]);
    return select(inside, place, static_cast<double>(detail::no_place));
  }
};
static_assert(Extension<ScatterPlaces>);

/// The sums of the values whose index names an element of `shape`. Errors begin with `op`.
AnyTensor scattered(std::string_view op, const Shape& shape, int axis, const AnyTensor& index,
                    const AnyTensor& values) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (shape.elements() > std::int64_t{detail::no_place} || shape[axis] > most) {
    throw ShapeError(
        fmt::format("{}: sums by index are made of up to {} elements, and up to {} along axis {}; "
                    "x is {}",
                    op, detail::no_place, most, axis, to_string(shape)));
  }
  if (shape.elements() == 0 || values.shape().elements() == 0)
    return full(shape, 0, values.dtype(), values.device());
  const detail::Scattered part{apply(ScatterPlaces{shape, axis}, index), values};
  return detail::scatter_sums({&part, 1}, {shape, values.dtype()});
}

constexpr std::int64_t few = 8;

/// The sums of a few gradients along the axis: each element looks at all of them.
struct GatherBackward {
  static constexpr std::string_view name = "gather_backward";
  static constexpr std::array inputs = {"grad", "index"};
  using layers = Layers<Cube, Fusion>;
  Shape shape;
  int axis;
  std::int64_t picks;

  TensorSpec output(const TensorSpec& grad, const TensorSpec&) const { return {shape, grad.dtype}; }
  Expr element(const At& at, const Elements& grad, const Elements& index) const {
    Expr sum = cast(at.number(0), DType::f32);
    for (std::int64_t k = 0; k < picks; ++k) {
      const At from = at.with(axis, at.number(k));
      const Element g = grad(from);
      const Expr picked = g.inside() && cast(index(from), DType::i32) == at[axis];
      sum = sum + select(picked, cast(g, DType::f32), 0);
    }
    return cast(sum, grad.dtype());
  }
};
static_assert(Extension<GatherBackward>);

struct Gather {
  static constexpr std::string_view name = "gather";
  static constexpr std::array inputs = {"x", "index"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  int axis;
  Param outside;  // the element for an index outside of x

  TensorSpec output(const TensorSpec& x, const TensorSpec& index) const {
    require_index(name, x, index, axis);
    return {index.shape, x.dtype};
  }
  Expr element(const At& at, const Elements& x, const Elements& index) const {
    return x(at.with(axis, cast(index(at), DType::i32))).or_else(outside);
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Shape shape;
    Checkpoint index;
  };
  static Saved save(const Saver& saver, const AnyTensor& x, const AnyTensor& index,
                    const AnyTensor&) {
    return {x.shape(), saver.keep(index)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) const {
    if (!grads[0]) return;
    const AnyTensor index = saved.index.get();
    const std::int64_t picks = index.dim(axis);
    grads[0].set(picks <= few ? apply(GatherBackward{saved.shape, axis, picks}, grad, index)
                              : scattered("gather_backward", saved.shape, axis, index, grad));
  }
};
static_assert(Extension<Gather>);

struct ScatterAdd {
  static constexpr std::string_view name = "scatter_add";
  static constexpr std::array inputs = {"x", "index", "values"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  int axis;

  TensorSpec output(const TensorSpec& x, const TensorSpec& index, const TensorSpec& values) const {
    require_index(name, x, index, axis);
    if (values.shape != index.shape) {
      throw ShapeError(
          fmt::format("scatter_add: values must have index's shape (index {}, values {})",
                      to_string(index.shape), to_string(values.shape)));
    }
    if (values.dtype != x.dtype || x.dtype == DType::boolean) {
      throw DTypeError(
          fmt::format("scatter_add: x and values must have one dtype, and no bool (x {}, "
                      "values {})",
                      to_string(x), to_string(values)));
    }
    return x;
  }
  AnyTensor reference(const AnyTensor& x, const AnyTensor& index, const AnyTensor& values) const {
    return x + scattered(name, x.shape(), axis, index, values);
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Checkpoint index;
  };
  static Saved save(const Saver& saver, const AnyTensor&, const AnyTensor& index,
                    const AnyTensor& values, const AnyTensor&) {
    return {saver.keep_if(values.tracked(), index)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) const {
    auto& [x, index, values] = grads;
    if (x) x.set(grad);
    if (values) values.set(apply(Gather{axis, {0}}, grad, saved.index.get()));
  }
};
static_assert(Extension<ScatterAdd>);

}  // namespace

AnyTensor gather(const AnyTensor& x, Integer axis, const AnyTensor& index) {
  const double outside = is_float(x.dtype()) ? std::numeric_limits<double>::quiet_NaN() : 0;
  return apply(Gather{normalize_axis("gather", axis, x.shape()), {outside}}, x, index);
}

AnyTensor scatter_add(const AnyTensor& x, Integer axis, const AnyTensor& index,
                      const AnyTensor& values) {
  return apply(ScatterAdd{normalize_axis("scatter_add", axis, x.shape())}, x, index, values);
}

}  // namespace kiln
