#pragma once
#include <span>
#include <vector>

#include "kiln/dispatch/coalesced_axes.hpp"
#include "kiln/scalar/expr.hpp"

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

/// The places of results that a body knows, see Body::knows_place.
struct KnownPlaces {
  CoalescedAxes axes{0};      ///< those of the shape, each for itself
  std::size_t outermost = 0;  ///< the first axis whose coordinate is needed; the rank if none is
  std::uint32_t used = 0;     ///< bit a: the coordinate along axis a is
  bool position = false;

  KnownPlaces() = default;
  KnownPlaces(const Body& body, const Shape& shape);
  /// Whether four results from a multiple of four on differ in the last coordinate alone.
  [[nodiscard]] bool by_four() const;
};

}  // namespace kiln::dispatch
