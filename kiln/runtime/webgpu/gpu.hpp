#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "kiln/runtime/runtime.hpp"
#include "kiln/runtime/webgpu/adapters.hpp"
#include "kiln/runtime/webgpu/error_scope.hpp"
#include "kiln/runtime/webgpu/native.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"

namespace kiln::wgpu {

/// Limits that only the runtime itself looks at.
struct NativeLimits {
  std::uint32_t bind_groups = 0;
  std::uint32_t bindings_per_group = 0;
  std::uint32_t uniform_bytes = 0;      ///< largest metadata block that fits a uniform binding
  std::uint32_t uniform_alignment = 0;  ///< of a block's offset
};

/// Errors that a device reports when it likes, kept until somebody asks. Its functions may be
/// called from callbacks.
class DeviceReports {
 public:
  void add(WGPUErrorType type, std::string message);
  void add_loss(std::string message);
  /// Throws what was reported: an error once, a loss for ever. `adapter` is for the message.
  void check(const std::string& adapter) {
    if (any_.load(std::memory_order_acquire)) raise(adapter);
  }
  [[nodiscard]] bool lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  void raise(const std::string& adapter);

  std::atomic<bool> any_ = false;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::string loss_;
  std::optional<Fault> error_;
};

/// Whether the message tells of a lost device. wgpu-native says so in passing; it does not call the
/// callback for it.
bool is_loss(std::string_view message);

/// One opened device with its queue. Outlives everything made on it: whatever wgpu-native may still
/// call refers to it.
struct Gpu {
  DeviceReports reports;
  std::string adapter;
  Limits limits;
  NativeLimits native;
  double nanoseconds_per_tick = 1;
  DeviceHandle device;
  QueueHandle queue;  // after the device: released before it

  /// Throws what the device reported on its own.
  void check() { reports.check(adapter); }
  /// Throws the fault as a kiln error that begins with `doing`.
  void raise(std::optional<Fault> fault, const std::string& doing) {
    if (fault) throw_fault(*fault, doing);
  }
  [[noreturn]] void throw_fault(const Fault& fault, const std::string& doing);
  /// Throws if the device was lost. It says so only when asked for something; some calls end the
  /// process instead.
  void check_alive();
  /// Waits until `submission` is done, or all of them.
  void wait(const WGPUSubmissionIndex* submission = nullptr) const;
};

/// How a device is opened.
struct Opening {
  bool f16 = true;        ///< with f16 where the adapter has it
  bool portable = false;  ///< with no more than the standard's default limits, and no extension
};

/// Opens `adapter` with its own limits and the features kiln uses, unless told otherwise. Throws
/// DeviceError.
std::shared_ptr<Gpu> open_gpu(const Adapter& adapter, const Opening& opening);

}  // namespace kiln::wgpu
