#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/scalar/element.hpp"

namespace kiln::detail {

/// What one read adds to the gradient of its operand. For each element of the result: the value, an
/// f32, and the number of the operand's element to which it is added, a u32, or `no_place`.
struct ElementScatter {
  ElementBody places;
  ElementBody values;
};

/// The number of no element.
inline constexpr std::uint32_t no_place = 0xffffffff;

/// The gradient of one operand of a rule `element`, as functions of the operands, then the incoming
/// gradient, all read at indices. `made` is computed over `shape`: axes that must be summed, then
/// the operand's. If `scattered` is not empty, the gradient is the sum of those instead. If both
/// are empty, it is zero.
struct ElementGradient {
  ElementBody made;
  Shape shape;
  std::vector<ElementScatter> scattered;
};

/// Derives it. Nothing is scattered if each read is at coordinates from which the result's follow:
/// one axis of the result for each of the operand's, times and plus numbers, or modulo the size of
/// both; or numbers alone. Axes of the result that a read does not name are summed. Throws
/// ShapeError that begins with `op` for an operand that is scattered to and has 2^32 elements.
/// `params`: how many the operation has itself.
ElementGradient element_gradient(std::string_view op, std::string_view name,
                                 const ElementBody& forward, int params,
                                 std::span<const TensorSpec> in, const TensorSpec& out,
                                 std::size_t operand);

}  // namespace kiln::detail
