#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/runtime/runtime.hpp"

namespace kiln {

/// What the engine keeps for the backward pass of memory-bound operations: their results, or only
/// how to make them again.
enum class Checkpointing : std::uint8_t { keep, balanced };

/// A device and how to use it. A value: the adjusting functions return copies, and copies share the
/// opened adapter.
///
///     Device device = default_device();      // the best GPU there is, else the host
///     Device training = device.autodiff();   // the same; tensors made here may require gradients
///     Device host = cpu::device();
class Device {
 public:
  explicit Device(std::shared_ptr<Runtime> runtime);

  /// Tensors made on the copy may be marked with require_grad().
  [[nodiscard]] Device autodiff(Checkpointing strategy = Checkpointing::keep) const;
  /// The copy without gradients.
  [[nodiscard]] Device plain() const;
  /// The copy on which every operation runs when it is called, and throws there. Otherwise
  /// operations are queued and run when somebody reads, fused with each other. KILN_EAGER=1 in the
  /// environment makes every device eager.
  [[nodiscard]] Device eager() const;
  /// The copy that queues, whatever the environment says.
  [[nodiscard]] Device lazy() const;

  /// The copy on which an operation that has no kernel for the device runs its reference instead.
  /// Otherwise it is refused.
  [[nodiscard]] Device fallback(bool allowed = true) const;

  [[nodiscard]] bool has_autodiff() const { return autodiff_; }
  [[nodiscard]] bool is_eager() const { return eager_; }
  [[nodiscard]] bool allows_fallback() const { return fallback_; }
  [[nodiscard]] Checkpointing checkpointing() const { return checkpointing_; }

  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] const std::shared_ptr<Runtime>& shared_runtime() const { return runtime_; }
  /// The adapter as its driver calls it.
  [[nodiscard]] std::string adapter() const { return runtime_->adapter(); }
  [[nodiscard]] Limits limits() const { return runtime_->limits(); }
  /// Starts all queued work and does not wait: for loops that read nothing, at the end of a round.
  void flush() const { runtime_->flush_extensions(); }
  /// Waits until all work on the adapter is done, the queued included. Throws what the device
  /// reported meanwhile.
  void synchronize() const;

  /// Whether both use the same opened adapter, however each is adjusted.
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
