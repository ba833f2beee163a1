#pragma once
#include <array>
#include <span>
#include <vector>

#include "kiln/support/layout.hpp"

namespace kiln::dispatch {

/// How a kernel finds an operand's elements for four adjacent results, or for one if it does not
/// make results in fours.
enum class Access4 : std::uint8_t {
  single,       ///< one element serves all results
  linear,       ///< as dense as the result, at an offset
  strided,      ///< by coordinates
  repeat,       ///< by coordinates; the four results share one element
  quad,         ///< by coordinates; the four elements are one aligned vec4
  linear_quad,  ///< as dense as the result; the four elements are one aligned vec4
};

/// A result and its operands with as few axes as their strides allow.
struct CoalescedView {
  int rank = 0;  ///< axes that coordinates are needed for; 0 if nobody needs them
  std::array<std::int64_t, max_rank> sizes{};
  std::vector<Strides> strides;       ///< one an operand
  std::vector<std::int64_t> offsets;  ///< one an operand
  std::vector<Access4> access;        ///< one an operand
  int width = 1;  ///< results a thread makes: 4 where the innermost axis divides by it
};

/// `operands` have the result's shape. The last `outputs` of them are written, each position only
/// once.
CoalescedView coalesce(const Shape& shape, std::span<const Layout> operands);

}  // namespace kiln::dispatch
