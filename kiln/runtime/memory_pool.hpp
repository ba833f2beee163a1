#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kiln {

/// The size to ask for: one of four sizes for each doubling, at least 256, a multiple of 16, at
/// most `limit`.
inline std::uint64_t size_class(std::uint64_t bytes, std::uint64_t limit) {
  const std::uint64_t wanted = std::max<std::uint64_t>(bytes, 256);
  const int step_bits =
      static_cast<int>(std::bit_width(wanted)) - 3;  // a quarter of the power of two below
  const std::uint64_t step = std::uint64_t{1} << step_bits;
  return std::min(((wanted + step - 1) >> step_bits) << step_bits, limit);
}

/// Unused buffers, by size. `Memory` has a member `size`, in bytes. The pool may be used from
/// several threads.
template <class Memory>
class MemoryPool {
 public:
  using MemoryPtr = std::unique_ptr<Memory>;

  /// Buffers in use and waiting have together at most `spare` bytes more than were ever in use at
  /// once.
  explicit MemoryPool(std::uint64_t spare) : spare_(spare) {}

  /// The buffer of exactly `size` that was returned last, or null. In both cases `size` counts as
  /// in use from now on. If it is null, waiting buffers may become garbage to make room.
  MemoryPtr take(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    counts_.bytes_in_use += size;
    peak_ = std::max(peak_, counts_.bytes_in_use);
    const auto found = waiting_.find(size);
    if (found == waiting_.end() || found->second.empty()) {
      ++counts_.allocated;
      bound();
      return nullptr;
    }
    MemoryPtr memory =
        std::move(found->second.back().memory);  // the one that is most likely in a cache
    found->second.pop_back();
    counts_.bytes_pooled -= size;
    ++counts_.reused;
    return memory;
  }

  /// Undoes the counting of a take() that gave null, if no buffer could be made.
  void forget(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    counts_.bytes_in_use -= size;
    --counts_.allocated;
    peak_ = counts_.bytes_in_use;
  }

  /// Takes a buffer back. Those that waited longest may become garbage.
  void give_back(MemoryPtr memory) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t size = memory->size;
    counts_.bytes_in_use -= size;
    counts_.bytes_pooled += size;
    waiting_[size].push_back({std::move(memory), clock_++});
    bound();
  }

  /// Makes everything that waits garbage, and forgets how much was in use.
  void trim() {
    const std::lock_guard lock(mutex_);
    evict(0);
    peak_ = counts_.bytes_in_use;
  }

  /// The buffers that became garbage. The caller drops them when nothing cached refers to them.
  std::vector<MemoryPtr> garbage() {
    const std::lock_guard lock(mutex_);
    return std::exchange(garbage_, {});
  }

  struct Counts {
    std::uint64_t allocated = 0;
    std::uint64_t reused = 0;
    std::uint64_t bytes_in_use = 0;
    std::uint64_t bytes_pooled = 0;
  };
  [[nodiscard]] Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  struct Waiting {
    MemoryPtr memory;
    std::uint64_t since = 0;
  };

  void bound() {
    const std::uint64_t held = counts_.bytes_in_use + counts_.bytes_pooled;
    if (held <= peak_ + spare_) return;
    // Down to three quarters of the spare bytes, so that buffers become garbage in batches.
    const std::uint64_t too_much = held - peak_ - spare_ / 4 * 3;
    evict(counts_.bytes_pooled - std::min(counts_.bytes_pooled, too_much));
  }

  void evict(std::uint64_t keep) {
    const auto since = [](const auto& queue) {
      return queue.second.empty() ? UINT64_MAX : queue.second.front().since;
    };
    while (counts_.bytes_pooled > keep) {
      auto& oldest = std::ranges::min_element(waiting_, {}, since)->second;
      counts_.bytes_pooled -= oldest.front().memory->size;
      garbage_.push_back(std::move(oldest.front().memory));
      oldest.pop_front();
    }
    std::erase_if(waiting_, [](const auto& queue) { return queue.second.empty(); });
  }

  const std::uint64_t spare_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::deque<Waiting>> waiting_;  // by size; longest waiting in front
  std::vector<MemoryPtr> garbage_;
  std::uint64_t clock_ = 0;
  std::uint64_t peak_ = 0;
  Counts counts_;
};

}  // namespace kiln
