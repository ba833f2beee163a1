#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kiln/runtime/runtime.hpp"
#include "kiln/runtime/webgpu/device/adapters.hpp"
#include "kiln/runtime/webgpu/device/error_scope.hpp"
#include "kiln/runtime/webgpu/device/native.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"

namespace kiln::wgpu {

/// Limits that only this runtime needs.
struct NativeLimits {
  std::uint32_t bind_groups = 0;
  std::uint32_t bindings_per_group = 0;
  std::uint32_t uniform_bytes = 0;      ///< largest metadata block that fits a uniform binding
  std::uint32_t uniform_alignment = 0;  ///< of a block's offset
};

/// Errors that a device reports outside of any call. They are kept until somebody asks. Callbacks
/// may call these functions.
class DeviceReports {
 public:
  void add(WGPUErrorType type, std::string message);
  void add_loss(std::string message);
  /// Throws what was reported: an error once, the loss of the device each time. `adapter` is for
  /// the message.
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

/// Whether the message says that the device is lost. wgpu-native mentions it in the error of some
/// call; it does not call the callback.
bool is_loss(std::string_view message);

/// The number of a submission to a device's queue. They count from 1.
using Submission = std::uint64_t;

/// One opened device with its queue. It outlives everything that is made on it, because callbacks
/// of wgpu-native refer to it.
struct Gpu {
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  /// Waits for submitted work. A device that does not answer is never released, because wgpu-native
  /// would end the process.
  ~Gpu();

  DeviceReports reports;
  std::string adapter;
  Limits limits;
  NativeLimits native;
  double nanoseconds_per_tick = 1;
  std::chrono::milliseconds patience{0};
  DeviceHandle device;
  QueueHandle queue;  // after the device: released before it

  /// Throws what the device reported outside of any call.
  void check() { reports.check(adapter); }
  /// Throws the fault as a kiln error that begins with `doing`.
  void raise(std::optional<Fault> fault, const std::string& doing) {
    if (fault) throw_fault(*fault, doing);
  }
  [[noreturn]] void throw_fault(const Fault& fault, const std::string& doing);
  /// Asks whether the device is lost, and throws if so. A device does not say so by itself, and
  /// some calls on a lost device end the process.
  void check_alive();

  /// Submits to the queue.
  Submission submit(std::span<const WGPUCommandBuffer> commands);
  [[nodiscard]] Submission submitted() const { return submitted_.load(std::memory_order_acquire); }
  [[nodiscard]] Submission done() const { return done_.load(std::memory_order_acquire); }
  /// Waits until `submission` is done. Throws DeviceError if the device is lost. A device that
  /// finishes nothing within `patience` counts as lost.
  void wait(Submission submission);
  /// Waits until all that was submitted is done.
  void wait() { wait(submitted()); }
  /// Waits until `ready()` is true, in the same way. A submission must make it so.
  void wait_until(const std::function<bool()>& ready);
  /// Throws DeviceError: `what` did not end within `patience`. The device counts as lost from now
  /// on.
  [[noreturn]] void give_up(std::string_view what);
  /// Waits until all is done, at most for `patience`. Gives whether it is. It is for the end of the
  /// device or of the process.
  bool finish() noexcept;

 private:
  static void on_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void* gpu,
                      void* submission);

  std::atomic<Submission> submitted_ = 0;
  std::atomic<Submission> done_ = 0;
  std::atomic<bool> stuck_ = false;
};

/// How a device is opened.
struct Opening {
  bool f16 = true;        ///< with f16 where the adapter has it
  bool portable = false;  ///< with no more than the standard's default limits, and no extension
  std::chrono::milliseconds patience{120'000};
};

/// Opens `adapter` with all its limits and the features that kiln uses, or with less if `opening`
/// says so. Throws DeviceError if the adapter refuses.
std::shared_ptr<Gpu> open_gpu(const Adapter& adapter, const Opening& opening);

}  // namespace kiln::wgpu
