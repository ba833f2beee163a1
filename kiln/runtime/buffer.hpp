#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

namespace kiln {

/// Device memory. A buffer goes back to its runtime's pool when its last owner lets go; work
/// already queued on it is done first, since a device works in order.
class Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;

  /// Bytes that may be used; at least what was asked for, a multiple of 16.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Distinct for every allocation of a runtime's memory; kept while the pool reuses it.
  [[nodiscard]] std::uint64_t id() const { return id_; }

  /// Whether another library owns or reads the memory. Then no result may overwrite it, even when
  /// nothing in kiln uses it any more.
  [[nodiscard]] bool frozen() const { return frozen_.load(std::memory_order_relaxed); }
  /// From here on, as long as the buffer lives.
  void freeze() { frozen_.store(true, std::memory_order_relaxed); }

 protected:
  Buffer(std::uint64_t size, std::uint64_t id) : size_(size), id_(id) {}

 private:
  std::uint64_t size_;
  std::uint64_t id_;
  std::atomic<bool> frozen_ = false;
};

using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace kiln
