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
///     const Device chosen = default_device();     // the best GPU there is, else the host
///     const Device training = chosen.autodiff();  // the same, and tensors may require gradients
///     const Device host = cpu::device();
class Device {
 public:
  /// A device over a runtime that is open, with no settings.
  ///
  ///     Device(device.shared_runtime()).same_as(device);   // [true]
  explicit Device(std::shared_ptr<Runtime> runtime);

  /// The copy whose tensors may be marked with require_grad(). `strategy` says what is kept for
  /// the backward pass.
  ///
  ///     const Device training = device.autodiff(Checkpointing::balanced);
  ///     training.has_autodiff();   // [true]
  [[nodiscard]] Device autodiff(Checkpointing strategy = Checkpointing::keep) const;
  /// The copy without gradients.
  ///
  ///     device.autodiff().plain().has_autodiff();   // [false]
  [[nodiscard]] Device plain() const;
  /// The copy on which every operation runs, and throws, when it is called. On other devices
  /// operations are queued, fused, and run when somebody reads. The environment variable
  /// KILN_EAGER=1 makes every device eager.
  ///
  ///     device.eager().is_eager();   // [true]
  [[nodiscard]] Device eager() const;
  /// The copy that queues, whatever the environment says.
  ///
  ///     device.lazy().is_eager();   // [false]
  [[nodiscard]] Device lazy() const;

  /// The copy on which an operation that has no kernel for the device runs its reference instead.
  /// Without it such an operation throws UnsupportedError.
  ///
  ///     device.fallback().allows_fallback();   // [true]
  [[nodiscard]] Device fallback(Flag allowed = true) const;

  /// The settings.
  ///
  ///     const Device plain = device.plain();
  ///     plain.checkpointing() == Checkpointing::keep;   // [true]
  [[nodiscard]] bool has_autodiff() const { return autodiff_; }
  [[nodiscard]] bool is_eager() const { return eager_; }
  [[nodiscard]] bool allows_fallback() const { return fallback_; }
  [[nodiscard]] Checkpointing checkpointing() const { return checkpointing_; }

  /// The opened adapter, for counters and for launches by hand. Copies share it.
  ///
  ///     device.runtime().name() == "cpu" || device.runtime().name() == "webgpu";   // [true]
  ///     Client(device.shared_runtime(), "my_op").zeros({{2}, DType::f32}).shape();   // [2]
  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] const std::shared_ptr<Runtime>& shared_runtime() const { return runtime_; }
  /// The adapter as its driver calls it, and what it can do.
  ///
  ///     device.adapter().empty();   // [false]
  ///     device.limits().buffer_bytes > 0;   // [true]
  [[nodiscard]] std::string adapter() const { return runtime_->adapter(); }
  [[nodiscard]] Limits limits() const { return runtime_->limits(); }
  /// Starts all queued work without waiting. Call it each round in a loop that reads nothing. An
  /// error of the work is thrown to whoever reads the results.
  ///
  ///     for (int i = 0; i < 3; ++i) {
  ///       const AnyTensor step = ones({2}, device) * i;
  ///       device.flush();
  ///     }
  void flush() const { runtime_->flush_extensions(); }
  /// Waits until all work on the adapter is done, queued work included. Throws an error that the
  /// device reported meanwhile.
  ///
  ///     const AnyTensor x = ones({2}, device) + 1;
  ///     device.synchronize();  // x is computed
  void synchronize() const;

  /// Whether both use the same opened adapter, whatever their settings.
  ///
  ///     device.same_as(device.eager());   // [true]
  [[nodiscard]] bool same_as(const Device& other) const { return runtime_ == other.runtime_; }

 private:
  std::shared_ptr<Runtime> runtime_;
  bool autodiff_ = false;
  bool eager_ = false;
  bool fallback_ = false;
  Checkpointing checkpointing_ = Checkpointing::keep;
};

/// Runtime and adapter as text, such as "webgpu: llvmpipe (LLVM 15.0.6, 256 bits)".
///
///     to_string(cpu::device()).starts_with("cpu: ");   // [true]
std::string to_string(const Device& device);

}  // namespace kiln
