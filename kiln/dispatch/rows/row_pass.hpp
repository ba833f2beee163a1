#pragma once
/// Rows as a launch of a kernel with many threads.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kiln/dispatch/access.hpp"
#include "kiln/dispatch/coalesced_axes.hpp"
#include "kiln/dispatch/reduction/reduction_pass.hpp"
#include "kiln/dispatch/rows/prepared_stages.hpp"

namespace kiln::dispatch {

/// One launch, without its text. A team of `lanes` threads computes a row: adjacent threads take
/// adjacent steps of `width` elements, and each thread `steps` of them.
struct RowPass {
  const RowsCall& call;
  std::vector<Layout> layouts;  ///< of the inputs, then of the results with an element for each
  CoalescedAxes kept{0};
  CoalescedAxes reduced{0};
  std::vector<Reach> reach;   ///< one for each layout
  KnownPlaces kept_places{};  ///< the rows' coordinates that the body knows
  std::shared_ptr<const PreparedStages> prepared{};
  int width = 1;
  std::uint32_t steps = 1;
  std::uint32_t lanes = 8;
  std::uint32_t rows = 1;  ///< of a workgroup
  bool exact = false;      ///< whether the threads' steps are just a row
  /// Whether adjacent threads work on adjacent rows, because those lie closer together than the
  /// elements of a row.
  bool adjacent = false;
  /// Whether rows are too long to be kept: each stage walks the row again, in rounds of `steps`.
  bool looped = false;

  [[nodiscard]] const RowStages& stages() const { return prepared->stages; }
  [[nodiscard]] std::int64_t count() const { return reduced.count(); }
  [[nodiscard]] std::uint32_t workgroup() const { return lanes * rows; }
};

/// The launch. Nothing if the rows are of several axes whose coordinates the body knows, do not lie
/// along one axis, are too long, or are so few that one workgroup for each would leave the adapter
/// idle.
std::optional<RowPass> row_pass(Runtime& runtime, const RowsCall& call,
                                std::span<const RawTensor> inputs);

}  // namespace kiln::dispatch
