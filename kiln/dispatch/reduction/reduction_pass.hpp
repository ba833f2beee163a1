#pragma once
/// A reduction as launches of kernels with many threads.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/access.hpp"
#include "kiln/dispatch/coalesced_axes.hpp"
#include "kiln/dispatch/reduction/reduction.hpp"

namespace kiln::dispatch {

/// How a kernel finds an operand's elements along the reduced axes.
enum class Reach : std::uint8_t {
  fixed,    ///< one element serves all: read once
  strided,  ///< by coordinates
  repeat,   ///< by coordinates; four neighbours share one element
  quad,     ///< by coordinates; four neighbours are one aligned vec4
};

/// Which threads combine what.
enum class Variant : std::uint8_t {
  rows,     ///< a team of lanes combines one part of one output's elements
  columns,  ///< each thread does, alone
};

/// One launch of a reduction, without its text and the epilogue of its store.
struct ReductionPass {
  std::string_view op;
  Combine combine = Combine::sum;
  DType element = DType::f32;  ///< what is combined
  DType value = DType::f32;    ///< of a result, before it is finished
  Variant variant = Variant::rows;
  int width = 1;  ///< neighbours one step takes
  double scale = 1;
  BodyPtr before;
  std::span<const double> params;
  std::vector<RawTensor> inputs;
  std::vector<RawTensor> outputs;
  CoalescedAxes kept;
  CoalescedAxes reduced;
  KnownPlaces kept_places;  ///< what `before` knows of the places that it is computed at
  KnownPlaces reduced_places;
  std::vector<Reach> reach;  ///< one for each input
  std::int64_t splits = 1;   ///< parts that an output's elements are combined in
  std::int64_t chunk = 0;    ///< elements of one part
  std::uint32_t workgroup = 256;
  std::uint32_t lanes = 256;  ///< of a team; divides `workgroup`

  /// Whether `before` reads the input at positions.
  [[nodiscard]] bool is_indexed(std::size_t input) const {
    return before != nullptr && before->indexed[input];
  }
};

/// Whether the reduced elements of the largest operand lie closer together than the kept ones.
bool lies_in_rows(const CoalescedAxes& kept, const CoalescedAxes& reduced);
/// How an operand, which begins at `offset`, is reached with steps of `width` elements. Nothing if
/// it cannot be.
std::optional<Reach> reach_of(const CoalescedAxes& kept, const CoalescedAxes& reduced,
                              std::size_t operand, std::int64_t offset, int width);

/// The pass over all inputs; `outputs` are still missing. If `splits` is more than
/// 1, it leaves parts, and a second pass follows. Throws UnsupportedError if the
/// adapter would cut its loops short.
ReductionPass first_pass(const ReductionCall& call, std::span<const RawTensor> inputs,
                         const Limits& limits);
/// The parts that such a first pass leaves.
TensorSpec parts_of(const ReductionPass& pass);
/// The pass over the parts that `first` left in its one output.
ReductionPass second_pass(const ReductionPass& first, double scale, const Limits& limits);

}  // namespace kiln::dispatch
