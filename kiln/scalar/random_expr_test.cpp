// Random expressions: values against plain C++ and gradients against central differences.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/scalar/expr.hpp"

namespace kiln {
namespace {

constexpr double margin = 0.1;  // how far from kinks and poles every step stays

enum class Kind : std::uint8_t {
  number,
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  softplus,
  relu,
  erf,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  exp2,
  log2,
  log1p,
  expm1,
  atan2,
  add,
  sub,
  mul,
  div,
  pow,
  min,
  max,
  select_less,
  select_less_equal,
  select_unequal,
  select_and,
  select_or,
  count
};

struct Step {
  Kind kind = Kind::number;
  std::array<int, 4> operands{};
};
using Program = std::vector<Step>;

/// The value of one step in plain C++, or nothing too close to a kink or a pole, or too large.
std::optional<double> compute(Kind kind, double a, double b, double c, double d) {
  const auto value = [&]() -> std::optional<double> {
    const bool apart = std::abs(a - b) > margin;
    switch (kind) {
      case Kind::number:
        return std::round(a * 8) / 8 + 0.25;
      case Kind::neg:
        return -a;
      case Kind::abs:
        return std::abs(a) > margin ? std::optional(std::abs(a)) : std::nullopt;
      case Kind::exp:
        return std::exp(a);
      case Kind::log:
        return a > margin ? std::optional(std::log(a)) : std::nullopt;
      case Kind::sqrt:
        return a > margin ? std::optional(std::sqrt(a)) : std::nullopt;
      case Kind::rsqrt:
        return a > margin ? std::optional(1 / std::sqrt(a)) : std::nullopt;
      case Kind::tanh:
        return std::tanh(a);
      case Kind::sigmoid:
        return 1 / (1 + std::exp(-a));
      case Kind::softplus:
        return std::log(1 + std::exp(a));
      case Kind::relu:
        return std::abs(a) > margin ? std::optional(std::fmax(a, 0)) : std::nullopt;
      case Kind::erf:
        return std::erf(a);
      case Kind::sin:
        return std::sin(a);
      case Kind::cos:
        return std::cos(a);
      case Kind::tan:
        return std::abs(std::cos(a)) > margin ? std::optional(std::tan(a)) : std::nullopt;
      case Kind::asin:
        return std::abs(a) < 1 - margin ? std::optional(std::asin(a)) : std::nullopt;
      case Kind::acos:
        return std::abs(a) < 1 - margin ? std::optional(std::acos(a)) : std::nullopt;
      case Kind::atan:
        return std::atan(a);
      case Kind::sinh:
        return std::sinh(a);
      case Kind::cosh:
        return std::cosh(a);
      case Kind::asinh:
        return std::asinh(a);
      case Kind::acosh:
        return a > 1 + margin ? std::optional(std::acosh(a)) : std::nullopt;
      case Kind::atanh:
        return std::abs(a) < 1 - margin ? std::optional(std::atanh(a)) : std::nullopt;
      case Kind::exp2:
        return std::exp2(a);
      case Kind::log2:
        return a > margin ? std::optional(std::log2(a)) : std::nullopt;
      case Kind::log1p:
        return a > margin - 1 ? std::optional(std::log1p(a)) : std::nullopt;
      case Kind::expm1:
        return std::expm1(a);
      case Kind::atan2:
        return std::hypot(a, b) > margin && (b > 0 || std::abs(a) > margin)
                   ? std::optional(std::atan2(a, b))
                   : std::nullopt;
      case Kind::add:
        return a + b;
      case Kind::sub:
        return a - b;
      case Kind::mul:
        return a * b;
      case Kind::div:
        return std::abs(b) > margin ? std::optional(a / b) : std::nullopt;
      case Kind::pow:
        return a > margin ? std::optional(std::pow(a, b)) : std::nullopt;
      case Kind::min:
        return apart ? std::optional(std::fmin(a, b)) : std::nullopt;
      case Kind::max:
        return apart ? std::optional(std::fmax(a, b)) : std::nullopt;
      case Kind::select_less:
      case Kind::select_less_equal:
        return apart ? std::optional(a < b ? c : d) : std::nullopt;
      case Kind::select_unequal:
        return apart ? std::optional(c) : std::nullopt;
      case Kind::select_and:
        return apart && std::abs(a) > margin ? std::optional(a < b && a > 0 ? c : d) : std::nullopt;
      case Kind::select_or:
        return apart && std::abs(a) > margin ? std::optional(a < b || a > 0 ? c : d) : std::nullopt;
      case Kind::count:
        break;
    }
    return std::nullopt;
  }();
  if (value && std::abs(*value) > 8) return std::nullopt;
  return value;
}

Expr build(Kind kind, ExprGraph& graph, const Expr& a, const Expr& b, const Expr& c, const Expr& d,
           double number) {
  switch (kind) {
    case Kind::number:
      return graph.expr(graph.intern({.op = Opcode::constant, .value = number}));
    case Kind::neg:
      return -a;
    case Kind::abs:
      return abs(a);
    case Kind::exp:
      return exp(a);
    case Kind::log:
      return log(a);
    case Kind::sqrt:
      return sqrt(a);
    case Kind::rsqrt:
      return rsqrt(a);
    case Kind::tanh:
      return tanh(a);
    case Kind::sigmoid:
      return sigmoid(a);
    case Kind::softplus:
      return softplus(a);
    case Kind::relu:
      return relu(a);
    case Kind::erf:
      return erf(a);
    case Kind::sin:
      return sin(a);
    case Kind::cos:
      return cos(a);
    case Kind::tan:
      return tan(a);
    case Kind::asin:
      return asin(a);
    case Kind::acos:
      return acos(a);
    case Kind::atan:
      return atan(a);
    case Kind::sinh:
      return sinh(a);
    case Kind::cosh:
      return cosh(a);
    case Kind::asinh:
      return asinh(a);
    case Kind::acosh:
      return acosh(a);
    case Kind::atanh:
      return atanh(a);
    case Kind::exp2:
      return exp2(a);
    case Kind::log2:
      return log2(a);
    case Kind::log1p:
      return log1p(a);
    case Kind::expm1:
      return expm1(a);
    case Kind::atan2:
      return atan2(a, b);
    case Kind::add:
      return a + b;
    case Kind::sub:
      return a - b;
    case Kind::mul:
      return a * b;
    case Kind::div:
      return a / b;
    case Kind::pow:
      return pow(a, b);
    case Kind::min:
      return min(a, b);
    case Kind::max:
      return max(a, b);
    case Kind::select_less:
      return select(a < b, c, d);
    case Kind::select_less_equal:
      return select(b >= a, c, d);
    case Kind::select_unequal:
      return select(a != b, c, d);
    case Kind::select_and:
      return select(a < b && a > 0, c, d);
    case Kind::select_or:
      return select(!(a > b) || a > 0, c, d);
    case Kind::count:
      break;
  }
  return a;
}

/// Uniform over [low, high); RapidCheck's own range grows with the size of the case.
rc::Gen<int> uniform(int low, int high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

Program random_program() {
  const auto step = rc::gen::map(
      rc::gen::pair(uniform(0, static_cast<int>(Kind::count)),
                    rc::gen::container<std::array<int, 4>>(uniform(0, 1000))),
      [](const auto& drawn) { return Step{static_cast<Kind>(drawn.first), drawn.second}; });
  return *rc::gen::container<Program>(20, step);
}

std::vector<double> random_point() {
  const auto coordinate = rc::gen::map(uniform(-2000, 2000), [](int n) { return n / 1000.0; });
  return *rc::gen::container<std::vector<double>>(3, coordinate);
}

struct Built {
  BodyPtr body;
  double value = 0;
};

/// The program at a point; steps that come too close to a kink there are left out.
Built build(const Program& program, const std::vector<double>& at) {
  ExprGraph graph;
  std::vector<double> values = at;
  std::vector<Expr> exprs;
  for (int slot = 0; slot < 3; ++slot) exprs.push_back(graph.input(slot));
  for (const Step& step : program) {
    std::array<std::size_t, 4> arg{};
    for (std::size_t i = 0; i < 4; ++i) {
      // The latest values most often, so that expressions grow deep.
      const std::size_t among =
          step.operands[i] < 600 ? std::min(values.size(), 3UL) : values.size();
      arg[i] = values.size() - 1 - static_cast<std::size_t>(step.operands[i]) % among;
    }
    const auto value =
        compute(step.kind, values[arg[0]], values[arg[1]], values[arg[2]], values[arg[3]]);
    if (!value) continue;
    exprs.push_back(build(step.kind, graph, exprs[arg[0]], exprs[arg[1]], exprs[arg[2]],
                          exprs[arg[3]], *value));
    values.push_back(*value);
  }
  return {make_body(graph, 3, 0, std::array{exprs.back().id()}), values.back()};
}

RC_GTEST_PROP(RandomExpr, HasTheValueOfPlainCpp, ()) {
  const auto at = random_point();
  const auto built = build(random_program(), at);
  RC_ASSERT(std::abs(evaluate(*built.body, 0, at) - built.value) <=
            1e-12 * (1 + std::abs(built.value)));
}

RC_GTEST_PROP(RandomExpr, HasTheGradientOfCentralDifferences, ()) {
  const auto at = random_point();
  const auto body = build(random_program(), at).body;
  const auto back = adjoint(*body);
  const double g = 1.5;
  auto in = at;
  in.push_back(evaluate(*body, 0, at));
  in.push_back(g);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto slope = [&](double h) {
      auto up = at;
      auto down = at;
      up[i] += h;
      down[i] -= h;
      return (evaluate(*body, 0, up) - evaluate(*body, 0, down)) / (2 * h);
    };
    // Two step sizes: their difference bounds the error, and Richardson's rule removes most of it.
    const double coarse = slope(2e-5);
    const double fine = slope(1e-5);
    const double expected = g * (fine + (fine - coarse) / 3);
    const double tolerance = 1e-7 * (1 + std::abs(expected)) + std::abs(fine - coarse);
    RC_ASSERT(std::abs(evaluate(*back, i, in) - expected) <= tolerance);
  }
}

}  // namespace
}  // namespace kiln
