#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kiln/runtime/webgpu/device/gpu.hpp"

namespace kiln::wgpu {

/// A buffer that is being mapped into host memory.
class Mapping {
 public:
  /// Asks for the first `bytes` of `buffer` as they are after all submitted work. The buffer must
  /// outlive the mapping.
  Mapping(Gpu& gpu, WGPUBuffer buffer, std::uint64_t bytes);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  /// Unmaps, even if nobody has waited.
  ~Mapping();

  /// Waits, and gives the bytes, which live as long as the mapping. Throws DeviceError if the
  /// buffer could not be mapped.
  std::span<const std::byte> wait();

 private:
  // Shared with the callback, which may run on another thread, and after the mapping has ended.
  struct Outcome {
    std::atomic<bool> done = false;
    WGPUMapAsyncStatus status = WGPUMapAsyncStatus_Error;
    std::string message;
  };
  static void on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void* outcome, void*);

  Gpu& gpu_;
  WGPUBuffer buffer_;
  std::uint64_t bytes_;
  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
};

}  // namespace kiln::wgpu
