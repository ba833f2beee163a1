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

/// While it lives, it catches what this thread's calls on a device report.
///
/// wgpu-native has error scopes of its own, but one stack for each device: threads would see each
/// other's faults. So kiln uses the callback for uncaught errors. It runs within the call that
/// failed, and hands the error to the thread's scope.
class ErrorScope {
 public:
  explicit ErrorScope(const Gpu& gpu);
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;
  ~ErrorScope();

  /// The first fault since the last call of this function, if there was one.
  std::optional<Fault> take() { return std::exchange(fault_, std::nullopt); }

  /// For the callback. False if this thread has no scope for the device.
  static bool offer(const Gpu& gpu, WGPUErrorType type, std::string_view message);

 private:
  const Gpu& gpu_;
  ErrorScope* outer_;
  std::optional<Fault> fault_;
};

}  // namespace kiln::wgpu
