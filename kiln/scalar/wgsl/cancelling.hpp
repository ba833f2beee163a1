#pragma once
/// Float expressions that compilers simplify by the algebra of real numbers.
#include "kiln/scalar/expr.hpp"

namespace kiln {

/// Whether algebra could cancel something that the node's operands have in common: x - x,
/// (x + a) - (x + b), (x * y) / y, sqrt(x) * sqrt(x), log(exp(x)). For NaN and infinity, and in
/// rounding, the simplified expression gives another result than the operations.
bool may_cancel(const ExprGraph& graph, const ExprGraph::Node& node);

}  // namespace kiln
