#pragma once
#include <array>
#include <span>
#include <vector>

#include "kiln/dispatch/coalesced_axes.hpp"
#include "kiln/scalar/expr.hpp"
#include "kiln/support/axes.hpp"

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
/// `by_four` may be false where a thread must not make four results.
CoalescedView coalesce(const Shape& shape, std::span<const Layout> operands, bool by_four = true);

/// How a body finds input `slot` of layout `layout` over `shape`: its own element for each result,
/// or, if it is read at positions, its buffer. Throws ShapeError if it does not broadcast.
Layout seen_by(const Body& body, std::size_t slot, const Layout& layout, const Shape& shape);
/// The same of a body that may be null, which stands for its one input.
Layout seen_by(const BodyPtr& body, std::size_t slot, const Layout& layout, const Shape& shape);

/// The places that a body knows, see Body::knows_place, along some axes of a shape.
struct KnownPlaces {
  CoalescedAxes axes{0};                  ///< those axes, each for itself
  std::array<int, max_rank> body_axis{};  ///< which axis of the shape each is
  std::size_t outermost = 0;  ///< the first axis whose coordinate is needed; the rank if none is
  std::uint32_t used = 0;     ///< bit a: the coordinate along axis a is
  bool position = false;

  KnownPlaces() = default;
  /// Along all axes.
  KnownPlaces(const Body& body, const Shape& shape);
  /// Along those that are in `among`, or, if `taken` is false, not in it. There is no position.
  KnownPlaces(const Body& body, const Shape& shape, const Axes& among, bool taken);
  /// Whether four places from a multiple of four on differ in the last coordinate alone.
  [[nodiscard]] bool by_four() const;
  /// Calls f(the axis of the body, the number of the axis here) for each that is used.
  template <class F>
  void each_used(F f) const {
    for (std::size_t axis = outermost; axis < axes.rank; ++axis) {
      if ((used >> axis & 1U) != 0) f(body_axis[axis], axis);
    }
  }
};

}  // namespace kiln::dispatch
