#pragma once
#include <vector>

#include "kiln/autodiff/gradients.hpp"

namespace kiln {

/// How Adam moves; see Kingma and Ba, "Adam: a method for stochastic optimization", 2015,
/// algorithm 1.
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;     ///< decay of the mean gradient
  double beta2 = 0.999;   ///< decay of the mean squared gradient
  double epsilon = 1e-8;  ///< keeps the step finite where gradients vanish
};

/// Adam, with its state. Parameters are values: a step gives new ones, marked leaves as the old.
/// The moments are f32 whatever the parameters are. Of an f16 parameter the state has a master copy
/// in f32, to which steps too small for f16 add up; the parameter is that copy, rounded. A
/// parameter that came from elsewhere than the last step takes the place of its copy, element by
/// element.
///
///     Adam adam({.learning_rate = 3e-3});
///     for (...) parameters = adam.step(parameters, loss(parameters).backward());
class Adam {
 public:
  explicit Adam(const AdamOptions& options = {}) : options_(options) {}

  /// The parameters after one step. A parameter that the loss does not depend on stays as it is.
  /// Throws ShapeError where parameters change in number or shape between steps.
  [[nodiscard]] std::vector<AnyTensor> step(const std::vector<AnyTensor>& parameters,
                                            const Gradients& gradients);

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Takes effect with the next step; compiles nothing.
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

/// Plain gradient descent: the parameters less `learning_rate` times their gradients, computed in
/// f32. It keeps nothing: a step too small for an f16 parameter leaves it as it is.
std::vector<AnyTensor> sgd_step(const std::vector<AnyTensor>& parameters,
                                const Gradients& gradients, Number learning_rate);

}  // namespace kiln
