#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/runtime/runtime.hpp"
#include "kiln/support/argument.hpp"

namespace kiln {

/// What is kept of memory-bound operations for the backward pass: their results (`keep`), or for
/// most of them only how to compute them again (`balanced`).
enum class Checkpointing : std::uint8_t { keep, balanced };

/// An opened device, and how to use it. It is a value: functions that change a setting return a
/// changed copy. Copies share the opened adapter.
///
///     Device device = default_device();      // the best GPU there is, else the host
///     Device training = device.autodiff();   // the same; tensors made here may require gradients
///     Device host = cpu::device();
class Device {
 public:
  explicit Device(std::shared_ptr<Runtime> runtime);

  /// The copy whose tensors may be marked with require_grad().
  [[nodiscard]] Device autodiff(Checkpointing strategy = Checkpointing::keep) const;
  /// The copy without gradients.
  [[nodiscard]] Device plain() const;
  /// The copy on which every operation runs, and throws, when it is called. On other devices
  /// operations are queued, fused, and run when somebody reads. The environment variable
  /// KILN_EAGER=1 makes every device eager.
  [[nodiscard]] Device eager() const;
  /// The copy that queues, whatever the environment says.
  [[nodiscard]] Device lazy() const;

  /// The copy on which an operation that has no kernel for the device runs its reference instead.
  /// Otherwise it is refused.
  [[nodiscard]] Device fallback(Flag allowed = true) const;

  [[nodiscard]] bool has_autodiff() const { return autodiff_; }
  [[nodiscard]] bool is_eager() const { return eager_; }
  [[nodiscard]] bool allows_fallback() const { return fallback_; }
  [[nodiscard]] Checkpointing checkpointing() const { return checkpointing_; }

  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] const std::shared_ptr<Runtime>& shared_runtime() const { return runtime_; }
  /// The adapter as its driver calls it.
  [[nodiscard]] std::string adapter() const { return runtime_->adapter(); }
  [[nodiscard]] Limits limits() const { return runtime_->limits(); }
  /// Starts all queued work without waiting. Call it each round in a loop that reads nothing.
  void flush() const { runtime_->flush_extensions(); }
  /// Waits until all work on the adapter is done, queued work included. Throws an error that the
  /// device reported meanwhile.
  void synchronize() const;

  /// Whether both use the same opened adapter, whatever their settings.
  [[nodiscard]] bool same_as(const Device& other) const { return runtime_ == other.runtime_; }

 private:
  std::shared_ptr<Runtime> runtime_;
  bool autodiff_ = false;
  bool eager_ = false;
  bool fallback_ = false;
  Checkpointing checkpointing_ = Checkpointing::keep;
};

/// "webgpu: llvmpipe (LLVM 15.0.6, 256 bits)".
std::string to_string(const Device& device);

}  // namespace kiln
