#pragma once
/// Float expressions that compilers simplify by the algebra of real numbers.
#include <vector>

#include "kiln/scalar/expr.hpp"

namespace kiln {

/// Of each node, whether algebra could cancel something that its operands have in common: x - x,
/// (x + a) - (x + b), (x * y) / y, sqrt(x) * sqrt(x), log(exp(x)). For NaN and infinity, and in
/// rounding, the simplified expression gives another result than the operations.
std::vector<char> may_cancel(const ExprGraph& graph);

}  // namespace kiln
