#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/runtime/device.hpp"

namespace kiln {

/// One block of a drain: operations that run as one.
struct BlockReport {
  enum class Kind : std::uint8_t { elementwise, reduction, kernel };
  Kind kind = Kind::elementwise;
  std::vector<std::string> ops;  ///< in the order they were called
  std::uint64_t launches = 0;
  std::uint64_t bytes_read = 0;     ///< of distinct elements, if each is read once
  std::uint64_t bytes_written = 0;  ///< of results that are stored
  std::vector<std::size_t> after;   ///< the blocks whose results it reads
  std::string fault;                ///< why its operations run one by one; empty if they run as one
};

/// What the last drain of a device's queue did.
struct DrainReport {
  std::vector<BlockReport> blocks;
  std::uint64_t launches = 0;
  std::uint64_t queued = 0;       ///< operations that were queued
  std::uint64_t dead = 0;         ///< of those, whose results nobody could read any more
  std::uint64_t allocations = 0;  ///< buffers taken
  std::uint64_t in_place = 0;     ///< results that took the buffer of an input
  bool plan_hit = false;        ///< the work had the form of an earlier drain, and was not planned
  std::uint64_t plan_hits = 0;  ///< since the device was opened
  std::uint64_t plan_misses = 0;
};

/// What the device's last drain did. Runs the queue first, so the report is about what was queued,
/// if anything was.
///
///     const AnyTensor x = ones({2, 2}, device.lazy());
///     device.flush();
///     const AnyTensor y = relu(x + 1);
///     inspect(device).blocks.size();   // [1]
DrainReport inspect(const Device& device);

/// The report as a table of text: a line for each block with its launches, bytes and operations.
///
///     std::cout << to_table(inspect(device));
std::string to_table(const DrainReport& report);
/// The blocks and what they pass to each other, for Graphviz.
///
///     std::cout << to_dot(inspect(device));
std::string to_dot(const DrainReport& report);

}  // namespace kiln
