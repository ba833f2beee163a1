#include "kiln/ops/loss/loss.hpp"

#include <fmt/format.h>

#include <limits>

#include "kiln/ops/create/create.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/softmax/softmax.hpp"
#include "kiln/ops/wide.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

/// `right` at the label's class and `wrong` at the others. NaN at all classes if the label is none
/// of them.
Expr at_label(const Expr& index, const Expr& label, const Param& classes, const Param& nan,
              const Expr& right, const Expr& wrong) {
  return select(label < 0 || classes <= label, nan, select(index == label, right, wrong));
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Each element's part of the loss, which is 0 except at the label.
struct LossAtLabel {
  static constexpr std::string_view name = "cross_entropy";
  Param classes;
  Param nan{not_a_number};
  Expr body(Expr log_probability, Expr index, Expr label) const {
    return at_label(index, label, classes, nan, -log_probability, 0);
  }
};

struct LossGradient {
  static constexpr std::string_view name = "cross_entropy_backward";
  Param classes;
  Param part;  // 1 / N
  Param nan{not_a_number};
  Expr body(Expr log_probability, Expr index, Expr label, Expr gradient) const {
    const Expr slope = exp(log_probability) - at_label(index, label, classes, nan, 1, 0);
    return unless_zero(gradient, slope * (gradient * part));
  }
};

/// The sum of all elements of [N], divided by N.
struct MeanOverRows {
  static constexpr std::string_view name = "mean";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {Shape{}, x.dtype}; }
  static Reduction reduction(const TensorSpec& x) {
    return {.combine = Combine::sum, .axes = {0}, .scale = 1 / static_cast<double>(x.shape[0])};
  }
};
static_assert(Extension<MeanOverRows>);

struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  static constexpr std::array inputs = {"logits", "labels"};
  using layers = Layers<Autodiff, Default<Cube>, Fusion>;

  static TensorSpec output(const TensorSpec& logits, const TensorSpec& labels);

  /// It compares labels with the numbers of classes instead of gathering, so that everything fuses:
  /// what it computes of a row is one launch with the row's gradient.
  static AnyTensor reference(const AnyTensor& logits, const AnyTensor& labels) {
    const LossAtLabel at_labels{{static_cast<double>(logits.dim(1))}};
    const AnyTensor each = apply(at_labels, log_softmax(wide(logits), 1),
                                 classes_of(logits, labels), unsqueeze(labels, 1));
    return cast(apply(MeanOverRows{}, sum(each, 1)), logits.dtype());
  }

  static AnyTensor classes_of(const AnyTensor& logits, const AnyTensor& labels) {
    return arange(logits.dim(1), labels.dtype(), labels.device());
  }

  struct Saved {
    Checkpoint logits;
    Checkpoint labels;
  };
  static Saved save(const Saver& saver, const AnyTensor& logits, const AnyTensor& labels,
                    const AnyTensor&) {
    return {saver.keep(logits), saver.keep(labels)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) {
    const AnyTensor logits = saved.logits.get().detach();
    const AnyTensor labels = saved.labels.get().detach();
    const LossGradient gradient{{static_cast<double>(logits.dim(1))},
                                {1 / static_cast<double>(logits.dim(0))}};
    const AnyTensor wider = apply(gradient, log_softmax(wide(logits), 1),
                                  classes_of(logits, labels), unsqueeze(labels, 1), wide(grad));
    grads[0].set(cast(wider, logits.dtype()));
  }
};

TensorSpec CrossEntropy::output(const TensorSpec& logits, const TensorSpec& labels) {
  const Shape& n_c = logits.shape;
  if (n_c.rank() != 2 || labels.shape.rank() != 1 || n_c[0] != labels.shape[0]) {
    throw ShapeError(fmt::format("cross_entropy: takes logits [N, C] and labels [N], got {} and {}",
                                 to_string(n_c), to_string(labels.shape)));
  }
  if (!is_float(logits.dtype) || (labels.dtype != DType::i32 && labels.dtype != DType::u32)) {
    throw DTypeError(fmt::format(
        "cross_entropy: takes logits of f32 or f16 and labels of i32 or u32, got {} and {}",
        to_string(logits.dtype), to_string(labels.dtype)));
  }
  return {Shape{}, logits.dtype};
}
static_assert(Extension<CrossEntropy>);

}  // namespace

AnyTensor cross_entropy(const AnyTensor& logits, const AnyTensor& labels) {
  return apply(CrossEntropy{}, logits, labels);
}

AnyTensor mse(const AnyTensor& prediction, const AnyTensor& target) {
  if (prediction.shape() != target.shape()) {
    throw ShapeError(fmt::format("mse: prediction and target must have one shape, got {} and {}",
                                 to_string(prediction.shape()), to_string(target.shape())));
  }
  if (prediction.dtype() != target.dtype()) {
    throw DTypeError(fmt::format("mse: prediction and target must have one dtype, got {} and {}",
                                 to_string(prediction.dtype()), to_string(target.dtype())));
  }
  const AnyTensor difference = wide(prediction) - wide(target);
  return cast(mean(difference * difference), prediction.dtype());
}

}  // namespace kiln
