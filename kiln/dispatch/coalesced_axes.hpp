#pragma once
#include <array>
#include <span>
#include <vector>

#include "kiln/support/layout.hpp"

namespace kiln::dispatch {

/// Axes of several operands, outermost first. Adjacent axes are joined where every operand's
/// strides allow it, and axes of size 1 are dropped.
struct CoalescedAxes {
  std::size_t rank = 0;
  std::array<std::int64_t, max_rank> sizes{};
  std::vector<Strides> strides;  ///< one an operand

  /// No axes of that many operands.
  explicit CoalescedAxes(std::size_t operands = 0) : strides(operands) {}

  /// Appends axis `axis` of the operands, which have that shape, as a new innermost one.
  void push(const Shape& shape, int axis, std::span<const Layout> operands);
  [[nodiscard]] std::int64_t count() const;
  /// The operand's strides, outermost first.
  [[nodiscard]] std::span<const std::int64_t> of(std::size_t operand) const {
    return std::span(strides[operand]).first(rank);
  }
  /// Whether one element of the operand serves the whole space.
  [[nodiscard]] bool is_single(std::size_t operand) const;
  /// Whether the operand is as dense as the space.
  [[nodiscard]] bool is_linear(std::size_t operand) const;
};

}  // namespace kiln::dispatch
