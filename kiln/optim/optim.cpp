#include "kiln/optim/optim.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/create/create.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

// Each part of a step is one elementwise operation. What changes from step to step is a Param:
// nothing compiles twice.
struct AdamMean {
  static constexpr std::string_view name = "adam_mean";
  Param beta;
  Param rest;
  Expr body(Expr mean, Expr gradient) const {
    return mean * beta + cast(gradient, DType::f32) * rest;
  }
};
struct AdamSquare {
  static constexpr std::string_view name = "adam_square";
  Param beta;
  Param rest;
  Expr body(Expr square, Expr gradient) const {
    const Expr g = cast(gradient, DType::f32);
    return square * beta + g * g * rest;
  }
};
struct AdamUpdate {
  static constexpr std::string_view name = "adam_update";
  Param rate;        // learning rate over 1 - beta1^t
  Param correction;  // 1 over 1 - beta2^t
  Param epsilon;
  Expr body(Expr parameter, Expr mean, Expr square) const {
    return parameter - mean * rate / (sqrt(square * correction) + epsilon);
  }
};

/// The master copy. Where the parameter is not the rounded copy any more, the parameter.
struct AdamMaster {
  static constexpr std::string_view name = "adam_master";
  static Expr body(Expr master, Expr parameter) {
    return select(cast(master, DType::f16) == parameter, master, cast(parameter, DType::f32));
  }
};
struct SgdUpdate {
  static constexpr std::string_view name = "sgd_update";
  Param rate;
  Expr body(Expr parameter, Expr gradient) const { return parameter - gradient * rate; }
};

/// A step's result as a new leaf, so that the step is not part of the next graph.
AnyTensor as_leaf(const AnyTensor& updated, const AnyTensor& like) {
  return like.tracked() ? updated.detach().to(like.device()).require_grad() : updated.detach();
}

}  // namespace

std::vector<AnyTensor> Adam::step(const std::vector<AnyTensor>& parameters,
                                  const Gradients& gradients) {
  if (moments_.empty()) {
    for (const AnyTensor& p : parameters) {
      const AnyTensor zero = zeros(p.shape(), p.device().plain());
      moments_.push_back({zero, zero, zero});
    }
  }
  if (moments_.size() != parameters.size()) {
    throw ShapeError(fmt::format("adam: the first step had {} parameters, this one has {}",
                                 moments_.size(), parameters.size()));
  }
  ++steps_;
  const double t = static_cast<double>(steps_);
  const double rate = options_.learning_rate / (1 - std::pow(options_.beta1, t));
  const double correction = 1 / (1 - std::pow(options_.beta2, t));
  std::vector<AnyTensor> out;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const AnyTensor& p = parameters[i];
    Moments& moments = moments_[i];
    if (moments.mean.shape() != p.shape()) {
      throw ShapeError(fmt::format("adam: parameter {} was {} at the first step, now it is {}", i,
                                   to_string(moments.mean.shape()), to_string(p.shape())));
    }
    if (!gradients.contains(p)) {
      out.push_back(p);
      continue;
    }
    const AnyTensor g = gradients.of(p);
    moments.mean = apply(AdamMean{{options_.beta1}, {1 - options_.beta1}}, moments.mean, g);
    moments.square = apply(AdamSquare{{options_.beta2}, {1 - options_.beta2}}, moments.square, g);
    const AdamUpdate update{{rate}, {correction}, {options_.epsilon}};
    const bool half = p.dtype() == DType::f16;
    const AnyTensor from = half ? apply(AdamMaster{}, moments.master, p.detach()) : p.detach();
    const AnyTensor updated = apply(update, from, moments.mean, moments.square);
    if (half) moments.master = updated;
    out.push_back(as_leaf(cast(updated, p.dtype()), p));
  }
  return out;
}

std::vector<AnyTensor> sgd_step(const std::vector<AnyTensor>& parameters,
                                const Gradients& gradients, Number learning_rate) {
  std::vector<AnyTensor> out;
  for (const AnyTensor& p : parameters) {
    const auto updated = [&] {
      return apply(SgdUpdate{{learning_rate}}, p.detach(), gradients.of(p));
    };
    out.push_back(gradients.contains(p) ? as_leaf(updated(), p) : p);
  }
  return out;
}

}  // namespace kiln
