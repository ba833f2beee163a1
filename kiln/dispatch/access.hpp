#pragma once
#include <span>
#include <vector>

#include "kiln/dispatch/coalesced_axes.hpp"

namespace kiln::dispatch {

/// How a kernel finds an operand's elements for four adjacent results, or for one result if it does
/// not make four at once.
enum class Access4 : std::uint8_t {
  single,       ///< one element serves all results
  linear,       ///< as dense as the result, at an offset
  strided,      ///< by coordinates
  repeat,       ///< by coordinates; the four results share one element
  quad,         ///< by coordinates; the four elements are one aligned vec4
  linear_quad,  ///< as dense as the result; the four elements are one aligned vec4
};

/// Whether such an operand's elements are found by coordinates.
inline bool has_coordinates(Access4 access) {
  return access == Access4::strided || access == Access4::repeat || access == Access4::quad;
}
/// Whether four elements are one aligned vec4.
inline bool is_quad(Access4 access) {
  return access == Access4::quad || access == Access4::linear_quad;
}

/// A result and its operands seen with as few axes as their strides allow. There are no axes if no
/// operand needs coordinates.
struct CoalescedView : CoalescedAxes {
  std::vector<std::int64_t> offsets{};  ///< one for each operand
  std::vector<Access4> access{};        ///< one for each operand
  int width = 1;  ///< results that a thread makes: 4 if the innermost axis divides by it
};

/// `operands` have the result's shape; those that are written have each position only once.
CoalescedView coalesce(const Shape& shape, std::span<const Layout> operands);

}  // namespace kiln::dispatch
