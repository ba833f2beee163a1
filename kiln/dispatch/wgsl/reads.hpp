#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "kiln/dispatch/access.hpp"
#include "kiln/dispatch/wgsl/coordinates.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {

/// How a store or a load finds elements of operands that broadcast to one shape. It starts from the
/// number `index` of the element in a dense tensor of that shape. Sizes, strides and offsets are
/// numbers of the launch, so the text depends only on what append_key adds.
class Reads {
 public:
  /// Names in the text begin with `prefix`. Throws ShapeError if a layout does not broadcast to
  /// `shape`.
  Reads(std::string_view prefix, const Shape& shape, std::span<const Layout> operands);
  /// For operands that have the result's shape, and a body that knows `places`.
  Reads(std::string_view prefix, const Shape& shape, std::span<const Layout> operands,
        const KnownPlaces& places);

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
  /// Statements that compute the coordinates which positions and places use, from the number
  /// `index`. They divide only if an operand is neither as dense as the result nor a single
  /// element, or if a place is known.
  [[nodiscard]] std::string coordinates(std::string_view index = "index") const;
  /// A u32 expression: where operand i's element for result `index + lane` is. `lane` may be above
  /// 0 only if by_four. The index is that of coordinates(), unless no position uses those.
  [[nodiscard]] std::string position(std::size_t i, int lane = 0,
                                     std::string_view index = "index") const;
  /// Calls f(name, type, value) for what the body knows of the place of result `index + lane`.
  template <class F>
  void each_place(int lane, std::string_view index, F f) const;

 private:
  Reads(std::string_view prefix, CoalescedView view, const KnownPlaces& places);
  /// Whether the position of operand i's element depends on the coordinate along `axis`.
  [[nodiscard]] bool steps(std::size_t i, std::size_t axis) const;

  std::string prefix_;
  CoalescedView view_;
  std::size_t outermost_ = 0;  ///< the first axis whose coordinate is needed; the rank if none is
  KnownPlaces places_;
  std::string places_prefix_;
};

template <class F>
void Reads::each_place(int lane, std::string_view index, F f) const {
  // Both are multiples of four where there are lanes. Compilers see in "|", and not in "+", what
  // lanes have in common.
  const auto moved = [&](std::string_view value, bool moves) {
    return moves && lane > 0 ? fmt::format("({} | {}u)", value, lane) : std::string(value);
  };
  places_.each_used([&](int body_axis, std::size_t axis) {
    f(fmt::format("{}{}", wgsl_coordinate, body_axis), "i32",
      fmt::format("i32({})", moved(fmt::format("{}c{}", places_prefix_, axis),
                                   axis + 1 == places_.axes.rank)));
  });
  if (places_.position) f(std::string(wgsl_position), "u32", moved(index, true));
}

template <class Sink>
void Reads::each_number(Sink sink) const {
  for (std::size_t i = 0; i < view_.offsets.size(); ++i)
    sink([this, i] { return fmt::format("{}o{}", prefix_, i); }, view_.offsets[i]);
  each_size(prefix_, view_, outermost_, sink);
  for (std::size_t i = 0; i < view_.access.size(); ++i)
    each_step(prefix_, view_, i, [&](std::size_t axis) { return steps(i, axis); }, sink);
  if (places_.used != 0) each_size(places_prefix_, places_.axes, places_.outermost, sink);
}

}  // namespace kiln::dispatch::wgsl
