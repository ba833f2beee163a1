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

/// Number of a submission to a device's queue, from 1 on, in order.
using Submission = std::uint64_t;

/// One opened device with its queue. Outlives everything made on it: whatever wgpu-native may still
/// call refers to it.
struct Gpu {
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  /// Waits for what was submitted. A device that does not answer is never released: wgpu-native
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

  /// Submits to the queue.
  Submission submit(std::span<const WGPUCommandBuffer> commands);
  [[nodiscard]] Submission submitted() const { return submitted_.load(std::memory_order_acquire); }
  [[nodiscard]] Submission done() const { return done_.load(std::memory_order_acquire); }
  /// Waits until `submission` is done. Throws DeviceError where the device was lost, or finished
  /// nothing for as long as `patience`: it counts as lost then.
  void wait(Submission submission);
  /// Waits until all that was submitted is done.
  void wait() { wait(submitted()); }
  /// Waits until `ready()`, in the same way. What it waits for must come with a submission.
  void wait_until(const std::function<bool()>& ready);
  /// The device counts as lost from here on: `what` did not end within `patience`. Throws.
  [[noreturn]] void give_up(std::string_view what);
  /// Waits until all is done, `patience` at most in all; for the end of the device or the process.
  /// Says whether it is.
  bool finish() noexcept;

 private:
  static void on_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void* gpu,
                      void* submission);

  std::atomic<Submission> submitted_ = 0;
  std::atomic<Submission> done_ = 0;
  std::atomic<bool> stuck_ = false;
};

/// How long a device may take for one submission before it counts as lost: the environment variable
/// KILN_DEVICE_TIMEOUT in seconds, else 120. Throws DeviceError where that is no number above 0.
std::chrono::milliseconds patience_by_environment();

/// How a device is opened.
struct Opening {
  bool f16 = true;        ///< with f16 where the adapter has it
  bool portable = false;  ///< with no more than the standard's default limits, and no extension
  std::chrono::milliseconds patience{120'000};
};

/// Opens `adapter` with its own limits and the features kiln uses, unless told otherwise. Throws
/// DeviceError.
std::shared_ptr<Gpu> open_gpu(const Adapter& adapter, const Opening& opening);

}  // namespace kiln::wgpu
