#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "kiln/dispatch/rows/rows.hpp"

namespace kiln::dispatch::host {

/// How rows are walked: in groups, stage by stage. If rows are short, a tile holds several.
struct RowWalk {
  std::int64_t count = 0;  ///< elements of a row
  std::int64_t rows = 0;
  std::int64_t group = 1;      ///< rows that pass a stage before the next one
  std::int64_t tile_rows = 1;  ///< of them, those in one tile

  /// Elements of a group.
  [[nodiscard]] std::int64_t size() const { return group * count; }
};

/// Nothing if elements of different rows lie closer together than those of one, in long rows of any
/// operand, or if there are fewer rows than threads could share.
std::optional<RowWalk> row_walk(const RowsCall& call, std::span<const RawTensor> inputs);

}  // namespace kiln::dispatch::host
