#pragma once
/// For tests: bodies and adjoints from functions of expressions.
#include <array>
#include <type_traits>
#include <vector>

#include "kiln/scalar/expr.hpp"

namespace kiln {

/// The body of a function of one to three expressions.
template <class F>
BodyPtr body_of(F f) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  if constexpr (std::is_invocable_v<F, Expr>) {
    return make_body(graph, 1, 0, std::array{graph.place(f(x))});
  } else if constexpr (std::is_invocable_v<F, Expr, Expr>) {
    const Expr y = graph.input(1);
    return make_body(graph, 2, 0, std::array{graph.place(f(x, y))});
  } else {
    const Expr y = graph.input(1);
    const Expr z = graph.input(2);
    return make_body(graph, 3, 0, std::array{graph.place(f(x, y, z))});
  }
}

/// All gradients of a body at a point, for the incoming gradient g.
inline std::vector<double> gradients(const Body& body, std::vector<double> at, double g = 1) {
  const BodyPtr back = adjoint(body);
  at.push_back(evaluate(body, 0, at));
  at.push_back(g);
  std::vector<double> out;
  for (std::size_t i = 0; i < back->roots.size(); ++i) out.push_back(evaluate(*back, i, at));
  return out;
}

}  // namespace kiln
