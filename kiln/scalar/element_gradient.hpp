#pragma once
#include <span>
#include <string_view>

#include "kiln/scalar/element.hpp"

namespace kiln::detail {

/// The gradient of one operand of a rule `element`, as a function of the operands, then the
/// incoming gradient, all read at indices. It is computed over `shape`: axes that must be summed,
/// then the operand's. A null body stands for zeros.
struct ElementGradient {
  ElementBody made;
  Shape shape;
};

/// Derives it. Each read must be at coordinates from which the result's follow: one axis of the
/// result for each of the operand's, times and plus numbers, or modulo the size of both; or numbers
/// alone. Axes of the result that a read does not name are summed. Throws UnsupportedError that
/// begins with `op` for other reads. `params`: how many the operation has itself.
ElementGradient element_gradient(std::string_view op, std::string_view name,
                                 const ElementBody& forward, int params,
                                 std::span<const TensorSpec> in, const TensorSpec& out,
                                 std::size_t operand);

}  // namespace kiln::detail
