#include "kiln/runtime/webgpu/memory.hpp"

#include <algorithm>
#include <bit>

namespace kiln::wgpu {

std::uint64_t size_class(std::uint64_t bytes, std::uint64_t limit) {
  const std::uint64_t wanted = std::max<std::uint64_t>(bytes, 256);
  const int step_bits =
      static_cast<int>(std::bit_width(wanted)) - 3;  // a quarter of the power of two below
  const std::uint64_t step = std::uint64_t{1} << step_bits;
  return std::min(((wanted + step - 1) >> step_bits) << step_bits, limit);
}

MemoryPtr MemoryPool::take(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  counts_.bytes_in_use += size;
  peak_ = std::max(peak_, counts_.bytes_in_use);
  const auto found = waiting_.find(size);
  if (found == waiting_.end() || found->second.empty()) {
    ++counts_.allocated;
    return nullptr;
  }
  MemoryPtr memory = std::move(found->second.back().memory);  // the one most likely in a cache
  found->second.pop_back();
  counts_.bytes_pooled -= size;
  ++counts_.reused;
  return memory;
}

void MemoryPool::forget(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  counts_.bytes_in_use -= size;
  --counts_.allocated;
  peak_ = counts_.bytes_in_use;
}

void MemoryPool::give_back(MemoryPtr memory) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = memory->size;
  counts_.bytes_in_use -= size;
  counts_.bytes_pooled += size;
  waiting_[size].push_back({std::move(memory), clock_++});
  const std::uint64_t held = counts_.bytes_in_use + counts_.bytes_pooled;
  // Down to three quarters of what is spare, so that evictions come in batches.
  if (held > peak_ + spare_) evict(counts_.bytes_pooled - (held - peak_ - spare_ / 4 * 3));
}

void MemoryPool::trim() {
  const std::lock_guard lock(mutex_);
  evict(0);
  peak_ = counts_.bytes_in_use;
}

std::vector<MemoryPtr> MemoryPool::garbage() {
  const std::lock_guard lock(mutex_);
  return std::exchange(garbage_, {});
}

MemoryPool::Counts MemoryPool::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void MemoryPool::evict(std::uint64_t keep) {
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

}  // namespace kiln::wgpu
