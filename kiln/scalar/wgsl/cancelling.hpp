#pragma once
/// What compilers may take out of a float expression, as on paper.
#include "kiln/scalar/expr.hpp"

namespace kiln {

/// Whether the operands of the node, one of the graph's over floats, have something in common that
/// algebra could take out of both: x - x and (x + a) - (x + b), (x * y) / y, sqrt(x) * sqrt(x),
/// log(exp(x)). There the result on paper is not that of the operations: not where x is NaN or
/// infinite, nor in its rounding.
bool may_cancel(const ExprGraph& graph, const ExprGraph::Node& node);

}  // namespace kiln
