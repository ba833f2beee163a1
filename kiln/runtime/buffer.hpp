#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

namespace kiln {

/// Device memory. A buffer goes back to its runtime's pool with its last owner. Work that is queued
/// on it is done before anything else uses it, since a device works in order.
class Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;

  /// The bytes that may be used: at least what was asked for, and a multiple of 16.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// A number that differs for every allocation of a runtime. It stays when the pool reuses the
  /// memory.
  [[nodiscard]] std::uint64_t id() const { return id_; }

  /// Whether another library owns or reads the memory. Then no result may overwrite it, even when
  /// nothing in kiln uses it any more.
  [[nodiscard]] bool frozen() const { return frozen_.load(std::memory_order_relaxed); }
  /// Makes it frozen, as long as the buffer lives.
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
