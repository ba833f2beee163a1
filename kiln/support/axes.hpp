#pragma once
#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "kiln/support/shape.hpp"

namespace kiln {

/// A set of axes, counted from the first. A lone number is no set: it could be meant as an axis or
/// as bits.
///
///     const Reduction all = {.combine = Combine::sum, .axes = {0, 1}};
///     all.axes.count();   // [2]
class Axes : public std::bitset<max_rank> {
 public:
  Axes() = default;
  /// Throws ShapeError for an axis outside of [0, 8).
  ///
  ///     Axes{8};   // throws ShapeError
  Axes(std::initializer_list<Integer> axes);
  /// Bit i is axis i.
  ///
  ///     Axes::of_bits(0b101) == Axes{0, 2};   // [true]
  static Axes of_bits(std::uint32_t bits);
};

/// The axes an operation takes: one, several, or (given none) all. Negative axes count from the
/// end.
///
///     const AnyTensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
///     sum(x, 1);   // [3, 7]
///     sum(x, {0, -1});   // [10]
class AxisList {
 public:
  AxisList() = default;
  /// One axis, or several in braces.
  ///
  ///     AxisList({0, -1}).all();   // [false]
  template <WholeType T>
  AxisList(T axis)  // NOLINT(google-explicit-constructor): sum(x, 1)
      : AxisList({Integer(axis)}) {}
  AxisList(std::initializer_list<Integer> axes) : axes_(axes.begin(), axes.end()), all_(false) {}

  /// The axes of a tensor of that shape. Throws ShapeError that begins with `op` for one out of
  /// range or named twice.
  ///
  ///     AxisList(-1).of("my_op", {2, 3}) == Axes{1};   // [true]
  [[nodiscard]] Axes of(std::string_view op, const Shape& shape) const;
  /// Whether none was given.
  ///
  ///     AxisList().all();   // [true]
  [[nodiscard]] bool all() const { return all_; }

 private:
  std::vector<std::int64_t> axes_;
  bool all_ = true;
};

}  // namespace kiln
