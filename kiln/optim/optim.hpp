#pragma once
#include <vector>

#include "kiln/autodiff/gradients.hpp"

namespace kiln {

/// The numbers of Adam (Kingma and Ba, "Adam: a method for stochastic optimization", 2015,
/// algorithm 1).
struct AdamOptions {
  Number learning_rate = 1e-3;
  Number beta1 = 0.9;     ///< decay of the mean gradient
  Number beta2 = 0.999;   ///< decay of the mean squared gradient
  Number epsilon = 1e-8;  ///< keeps the step finite where gradients vanish
};

/// Adam with its state. Parameters are values: a step returns new ones, which are marked leaves
/// like the old ones. They are f32 or f16, of any shape. The moments are f32 for every dtype. For
/// an f16 parameter the state has a master copy in f32, where steps that are too small for f16 add
/// up; the parameter is that copy, rounded. Elements of a parameter that differ from the last
/// step's result replace those of the copy.
///
///     Adam adam({.learning_rate = 0.5});
///     std::vector<AnyTensor> parameters = {tensor({1.0}, device.autodiff()).require_grad()};
///     const AnyTensor loss = sum(parameters[0] * parameters[0]);
///     parameters = adam.step(parameters, loss.backward());
///     parameters[0];   // [0.5]
class Adam {
 public:
  /// Adam before its first step.
  ///
  ///     Adam({.learning_rate = 0.1, .beta1 = 0.8}).steps();   // [0]
  explicit Adam(const AdamOptions& options = {}) : options_(options) {}

  /// The parameters after one step. A parameter that the loss does not depend on stays as it is.
  /// Throws ShapeError if parameters change in number or shape between steps.
  [[nodiscard]] std::vector<AnyTensor> step(const std::vector<AnyTensor>& parameters,
                                            const Gradients& gradients);

  /// How many steps were made.
  ///
  ///     Adam().steps();   // [0]
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Changes the learning rate from the next step on. It compiles nothing.
  ///
  ///     Adam adam;
  ///     adam.set_learning_rate(1e-4);
  void set_learning_rate(Number rate) { options_.learning_rate = rate; }

 private:
  struct Moments {
    AnyTensor mean;
    AnyTensor square;
    AnyTensor master;  ///< of an f16 parameter: what is rounded to it
  };
  AdamOptions options_;
  std::int64_t steps_ = 0;
  std::vector<Moments> moments_;
};

/// Plain gradient descent: each parameter minus `learning_rate` times its gradient, computed in
/// f32. It has no state, so a step that is too small for an f16 parameter is lost. A parameter that
/// the loss does not depend on stays as it is.
///
///     const AnyTensor x = tensor({1.0, 2.0}, device.autodiff()).require_grad();
///     sgd_step({x}, sum(x * x).backward(), 0.25)[0];   // [0.5, 1]
std::vector<AnyTensor> sgd_step(const std::vector<AnyTensor>& parameters,
                                const Gradients& gradients, Number learning_rate);

}  // namespace kiln
