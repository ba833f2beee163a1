#include "kiln/ops/reduce/reduce.hpp"

#include <fmt/format.h>

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/ops/wide.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {

namespace {

/// The attributes that all reductions share. The axes are bits, so that they are part of the key.
struct Over {
  std::uint32_t axes;
  bool keepdim;

  [[nodiscard]] bool has(int axis) const { return (axes >> axis & 1U) != 0; }
  [[nodiscard]] Shape shape(const Shape& x, bool keep) const {
    Shape out;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (!has(axis)) out.push_back(x[axis]);
      if (has(axis) && keep) out.push_back(1);
    }
    return out;
  }
  [[nodiscard]] std::int64_t count(const Shape& x) const {
    std::int64_t n = 1;
    for (int axis = 0; axis < x.rank(); ++axis) n *= has(axis) ? x[axis] : 1;
    return n;
  }
  /// A result or its gradient, with sizes of 1 in place of the reduced axes.
  [[nodiscard]] AnyTensor kept(const AnyTensor& t, const Shape& x) const {
    return reshape(t, shape(x, true));
  }
};

void require(std::string_view op, const TensorSpec& x, bool accepted, std::string_view what) {
  if (!accepted) throw DTypeError(fmt::format("{}: takes {}, got {}", op, what, to_string(x)));
}

struct Sum {
  static constexpr std::string_view name = "sum";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Over over;

  TensorSpec output(const TensorSpec& x) const {
    require(name, x, x.dtype != DType::boolean, "f32, f16, i32 or u32");
    return {over.shape(x.shape, over.keepdim), x.dtype};
  }
  Reduction reduction(const TensorSpec&) const {
    return {.combine = Combine::sum, .axes = Axes::of_bits(over.axes)};
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Shape shape;
  };
  static Saved save(const Saver&, const AnyTensor& x, const AnyTensor&) { return {x.shape()}; }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    grads[0].set(broadcast_to(over.kept(grad, saved.shape), saved.shape));
  }
};

struct Mean {
  static constexpr std::string_view name = "mean";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Over over;

  TensorSpec output(const TensorSpec& x) const {
    require(name, x, is_float(x.dtype), "f32 or f16");
    return {over.shape(x.shape, over.keepdim), x.dtype};
  }
  Reduction reduction(const TensorSpec& x) const {
    return {.combine = Combine::sum,
            .axes = Axes::of_bits(over.axes),
            .scale = 1.0 / static_cast<double>(over.count(x.shape))};
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Shape shape;
  };
  static Saved save(const Saver&, const AnyTensor& x, const AnyTensor&) { return {x.shape()}; }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    const AnyTensor share =
        over.kept(grad, saved.shape) / static_cast<double>(over.count(saved.shape));
    grads[0].set(broadcast_to(share, saved.shape));
  }
};

/// Whether an element is the extreme; a NaN equals a NaN here.
struct IsExtreme {
  static constexpr std::string_view name = "is_extreme";
  static Expr body(Expr x, Expr extreme) { return x == extreme || (is_nan(x) && is_nan(extreme)); }
};

/// The gradient: each extreme gets an equal part, the other elements 0, whatever the gradient is.
struct ShareOfExtreme {
  static constexpr std::string_view name = "share_of_extreme";
  static Expr body(Expr chosen, Expr gradient, Expr count) {
    return select(chosen, gradient / count, 0);
  }
};

std::string_view name_of(Combine combine) {
  switch (combine) {
    case Combine::max:
      return "max";
    case Combine::min:
      return "min";
    case Combine::argmax:
      return "argmax";
    case Combine::argmin:
      return "argmin";
    case Combine::sum:
      return "sum";
    case Combine::norm:
      return "norm";
  }
  return "";
}

void require_choice(Combine combine, const Over& over, const TensorSpec& x) {
  require(name_of(combine), x, x.dtype != DType::boolean, "f32, f16, i32 or u32");
  if (over.count(x.shape) == 0) {
    throw ShapeError(fmt::format("{}: needs at least one element along the axes, got {}",
                                 name_of(combine), to_string(x.shape)));
  }
}

template <Combine Which>
struct Extreme {
  static constexpr std::string_view name = Which == Combine::max ? "max" : "min";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  Over over;

  TensorSpec output(const TensorSpec& x) const {
    require_choice(Which, over, x);
    return {over.shape(x.shape, over.keepdim), x.dtype};
  }
  Reduction reduction(const TensorSpec&) const {
    return {.combine = Which, .axes = Axes::of_bits(over.axes)};
  }

  static constexpr Bound bound = Bound::memory;
  struct Saved {
    Checkpoint x;
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor& x, const AnyTensor& out) {
    return {saver.keep(x), saver.keep(out)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    const AnyTensor x = saved.x.get();
    const AnyTensor chosen = apply(IsExtreme{}, x, over.kept(saved.out.get(), x.shape()));
    const AnyTensor count = over.kept(apply(Sum{over}, cast(chosen, DType::f32)), x.shape());
    const AnyTensor g = wide(over.kept(grad, x.shape()));
    grads[0].set(cast(apply(ShareOfExtreme{}, chosen, g, count), x.dtype()));
  }
};

template <Combine Which>
struct ArgExtreme {
  static constexpr std::string_view name = Which == Combine::argmax ? "argmax" : "argmin";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  Over over;

  TensorSpec output(const TensorSpec& x) const {
    require_choice(Which, over, x);
    return {over.shape(x.shape, over.keepdim), DType::i32};
  }
  Reduction reduction(const TensorSpec&) const {
    return {.combine = Which, .axes = Axes::of_bits(over.axes)};
  }
};

static_assert(Extension<Sum> && Extension<Mean> && Extension<Extreme<Combine::max>> &&
              Extension<ArgExtreme<Combine::argmax>>);

Over over(std::string_view op, const AnyTensor& x, const AxisList& axes, bool keepdim) {
  return {static_cast<std::uint32_t>(axes.of(op, x.shape()).to_ulong()), keepdim};
}

}  // namespace

AnyTensor sum(const AnyTensor& x, const AxisList& axes, Flag keepdim) {
  return apply(Sum{over("sum", x, axes, keepdim)}, x);
}
AnyTensor mean(const AnyTensor& x, const AxisList& axes, Flag keepdim) {
  return apply(Mean{over("mean", x, axes, keepdim)}, x);
}
AnyTensor max(const AnyTensor& x, const AxisList& axes, Flag keepdim) {
  return apply(Extreme<Combine::max>{over("max", x, axes, keepdim)}, x);
}
AnyTensor min(const AnyTensor& x, const AxisList& axes, Flag keepdim) {
  return apply(Extreme<Combine::min>{over("min", x, axes, keepdim)}, x);
}
AnyTensor argmax(const AnyTensor& x, Integer axis, Flag keepdim) {
  return apply(ArgExtreme<Combine::argmax>{over("argmax", x, {axis}, keepdim)}, x);
}
AnyTensor argmin(const AnyTensor& x, Integer axis, Flag keepdim) {
  return apply(ArgExtreme<Combine::argmin>{over("argmin", x, {axis}, keepdim)}, x);
}

}  // namespace kiln
