#include "kiln/ops/softmax/softmax.hpp"

#include <fmt/format.h>

#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/reduce/reduce.hpp"
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

/// x less its largest element, which changes neither result nor gradient. Nothing to move where
/// there is nothing.
AnyTensor moved(const AnyTensor& x, int axis) {
  return x.dim(axis) == 0 ? x : x - max(x.detach(), axis, true);
}

struct Softmax {
  static constexpr std::string_view name = "softmax";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;
  int axis;

  TensorSpec output(const TensorSpec& x) const { return same_float(name, x, axis); }
  AnyTensor reference(const AnyTensor& x) const {
    const AnyTensor e = exp(moved(x, axis));
    return e / sum(e, axis, true);
  }

  struct Saved {
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor&, const AnyTensor& out) {
    return {saver.keep(out)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    const AnyTensor out = saved.out.get();
    grads[0].set(out * (grad - sum(grad * out, axis, true)));
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
    return m - log(sum(exp(m), axis, true));
  }

  struct Saved {
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor&, const AnyTensor& out) {
    return {saver.keep(out)};
  }
  void backward(const Saved& saved, const AnyTensor& grad, Grads<1>& grads) const {
    grads[0].set(grad - exp(saved.out.get()) * sum(grad, axis, true));
  }
};
static_assert(Extension<Softmax> && Extension<LogSoftmax>);

}  // namespace

AnyTensor softmax(const AnyTensor& x, int axis) { return apply(Softmax{axis}, x); }
AnyTensor log_softmax(const AnyTensor& x, int axis) { return apply(LogSoftmax{axis}, x); }

}  // namespace kiln
