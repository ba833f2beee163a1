#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kiln/runtime/webgpu/native.hpp"

namespace kiln::wgpu {

/// One buffer of wgpu-native. Never a slice of one: slices would meet as input and output of a
/// launch.
struct Memory {
  BufferHandle buffer;
  std::uint64_t size = 0;
  std::uint64_t id = 0;
  std::uint64_t written_at =
      0;  ///< the last batch that copies into it before its launches; see Recorder
  std::uint64_t used_at = 0;  ///< the last batch whose main part uses it
};
using MemoryPtr = std::unique_ptr<Memory>;

/// The size to ask the driver for: four steps a doubling, at least 256, a multiple of 16, at most
/// `limit`.
std::uint64_t size_class(std::uint64_t bytes, std::uint64_t limit);

/// Buffers that nobody uses at the moment, by size. Safe to use from several threads.
class MemoryPool {
 public:
  /// Keeps `spare` bytes beyond the most that was ever in use at once.
  explicit MemoryPool(std::uint64_t spare) : spare_(spare) {}

  /// A buffer of exactly `size`, the last one that came back, or null. Either way it counts as in
  /// use from now on.
  MemoryPtr take(std::uint64_t size);
  /// Undoes the counting where take() gave null and no buffer could be made.
  void forget(std::uint64_t size);
  /// Takes a buffer back. Those that waited longest may become garbage.
  void give_back(MemoryPtr memory);
  /// Makes everything that waits garbage, and forgets how much was in use.
  void trim();
  /// What became garbage: for the caller to drop once nothing cached refers to it.
  std::vector<MemoryPtr> garbage();

  struct Counts {
    std::uint64_t allocated = 0;
    std::uint64_t reused = 0;
    std::uint64_t bytes_in_use = 0;
    std::uint64_t bytes_pooled = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Waiting {
    MemoryPtr memory;
    std::uint64_t since = 0;
  };
  void evict(std::uint64_t keep);

  const std::uint64_t spare_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::deque<Waiting>> waiting_;  // by size; longest waiting in front
  std::vector<MemoryPtr> garbage_;
  std::uint64_t clock_ = 0;
  std::uint64_t peak_ = 0;
  Counts counts_;
};

}  // namespace kiln::wgpu
