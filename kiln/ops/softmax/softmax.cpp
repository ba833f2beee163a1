#include "kiln/ops/softmax/softmax.hpp"

#include <fmt/format.h>

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/wide.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

TensorSpec same_float(std::string_view op, const TensorSpec& x, int axis) {
  if (!is_float(x.dtype))
    throw DTypeError(fmt::format("{}: takes f32 or f16, got {}", op, to_string(x)));
  (void)normalize_axis(op, axis, x.shape);
  return x;
}

/// x in f32, minus its largest element, which changes neither result nor gradient. An empty x stays
/// as it is.
AnyTensor moved(const AnyTensor& x, int axis) {
  const AnyTensor wider = wide(x);
  return x.dim(axis) == 0 ? wider : wider - max(wider.detach(), axis, true);
}

struct Softmax {
  static constexpr std::string_view name = "softmax";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  int axis;

  TensorSpec output(const TensorSpec& x) const { return same_float(name, x, axis); }
  AnyTensor reference(const AnyTensor& x) const {
    const AnyTensor e = exp(moved(x, axis));
    return cast(e / sum(e, axis, true), x.dtype());
  }

  struct Saved {
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor&, const AnyTensor& out) {
    return {saver.keep(out)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    const AnyTensor out = wide(saved.out.get());
    const AnyTensor g = wide(grad);
    const AnyTensor rest = g - sum(scale_gradient(g, out), axis, true);
    grads[0].set(cast(scale_gradient(rest, out), grad.dtype()));
  }
};

struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  int axis;

  TensorSpec output(const TensorSpec& x) const { return same_float(name, x, axis); }
  AnyTensor reference(const AnyTensor& x) const {
    const AnyTensor m = moved(x, axis);
    return cast(m - log(sum(exp(m), axis, true)), x.dtype());
  }

  struct Saved {
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor&, const AnyTensor& out) {
    return {saver.keep(out)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    const AnyTensor g = wide(grad);
    const AnyTensor share = scale_gradient(sum(g, axis, true), exp(wide(saved.out.get())));
    grads[0].set(cast(g - share, grad.dtype()));
  }
};
static_assert(Extension<Softmax> && Extension<LogSoftmax>);

}  // namespace

AnyTensor softmax(const AnyTensor& x, Integer axis) {
  return apply(Softmax{normalize_axis(Softmax::name, axis, x.shape())}, x);
}
AnyTensor log_softmax(const AnyTensor& x, Integer axis) {
  return apply(LogSoftmax{normalize_axis(LogSoftmax::name, axis, x.shape())}, x);
}

}  // namespace kiln
