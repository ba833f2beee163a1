#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "kiln/dispatch/access.hpp"
#include "kiln/dispatch/wgsl/coordinates.hpp"

namespace kiln::dispatch::wgsl {

/// How a store or a load finds elements of operands that broadcast to one shape. It starts from the
/// number `index` of the element in a dense tensor of that shape. Sizes, strides and offsets are
/// numbers of the launch, so the text depends only on what append_key adds.
class Reads {
 public:
  /// Names in the text begin with `prefix`. Throws ShapeError if a layout does not broadcast to
  /// `shape`.
  Reads(std::string_view prefix, const Shape& shape, std::span<const Layout> operands);
  /// For operands that have the result's shape.
  Reads(std::string_view prefix, CoalescedView view);

  /// How many operands there are.
  [[nodiscard]] std::size_t size() const { return view_.access.size(); }
  /// Appends how each operand is read.
  void append_key(std::string& key) const;

  /// Calls sink(name, number) for every number of the launch, always in one order. `name` is a
  /// function, so that a prepared launch makes no strings.
  template <class Sink>
  void each_number(Sink sink) const;

  /// Whether any four results that begin at a multiple of four lie in one row of every operand.
  [[nodiscard]] bool by_four() const { return view_.width == 4; }
  /// How operand i is read.
  [[nodiscard]] Access4 access(std::size_t i) const { return view_.access[i]; }
  /// Whether operand i's elements for four such results are one aligned vec4.
  [[nodiscard]] bool is_quad(std::size_t i) const { return dispatch::is_quad(view_.access[i]); }
  /// Statements that compute the coordinates which positions use. They divide only if an operand is
  /// neither as dense as the result nor a single element.
  [[nodiscard]] std::string coordinates() const;
  /// A u32 expression: where operand i's element for result `index + lane` is. `lane` may be above
  /// 0 only if by_four. The name may differ from "index" only if no position uses coordinates.
  [[nodiscard]] std::string position(std::size_t i, int lane = 0,
                                     std::string_view index = "index") const;

 private:
  /// Whether the position of operand i's element depends on the coordinate along `axis`.
  [[nodiscard]] bool steps(std::size_t i, std::size_t axis) const;

  std::string prefix_;
  CoalescedView view_;
  std::size_t outermost_ = 0;  ///< the first axis whose coordinate is needed; the rank if none is
};

template <class Sink>
void Reads::each_number(Sink sink) const {
  for (std::size_t i = 0; i < view_.offsets.size(); ++i)
    sink([this, i] { return fmt::format("{}o{}", prefix_, i); }, view_.offsets[i]);
  each_size(prefix_, view_, outermost_, sink);
  for (std::size_t i = 0; i < view_.access.size(); ++i)
    each_step(prefix_, view_, i, [&](std::size_t axis) { return steps(i, axis); }, sink);
}

}  // namespace kiln::dispatch::wgsl
