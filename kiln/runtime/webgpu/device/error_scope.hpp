#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "kiln/runtime/webgpu/device/native.hpp"

namespace kiln::wgpu {

struct Gpu;

/// What a call to wgpu-native reported.
struct Fault {
  WGPUErrorType type = WGPUErrorType_NoError;
  std::string message;
};

/// Catches what this thread's calls on a device report while it lives.
///
/// Not made of wgpu-native's own error scopes: those are one stack a device, so that threads would
/// see each other's faults. The callback for uncaught errors runs within the call that failed; it
/// hands the error to the thread's scope.
class ErrorScope {
 public:
  explicit ErrorScope(const Gpu& gpu);
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;
  ~ErrorScope();

  /// The first fault since the last call, if there was one.
  std::optional<Fault> take() { return std::exchange(fault_, std::nullopt); }

  /// For the callback: false where this thread has no scope for the device.
  static bool offer(const Gpu& gpu, WGPUErrorType type, std::string_view message);

 private:
  const Gpu& gpu_;
  ErrorScope* outer_;
  std::optional<Fault> fault_;
};

}  // namespace kiln::wgpu
