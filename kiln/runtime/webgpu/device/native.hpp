#pragma once
/// Owning handles for wgpu-native's objects. Internal: the only header that includes wgpu.h.
#include <wgpu.h>

#include <chrono>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::wgpu {

/// A stretch in which this thread may call wgpu-native.
///
/// The rule at the end of the process: when it begins to end, before the libraries do, no thread
/// comes in any more, those inside are waited for, and devices finish what was submitted. What is
/// left is never released: drivers may be gone by then, and the system takes it back. The thread
/// that ends the process gets a DeviceError; others sleep, since the process is about to be gone
/// and nobody may catch what they would throw. They get the error, too, where the process does not
/// go: it may be waiting for them.
class NativeSection {
 public:
  /// Throws DeviceError once the process ends.
  NativeSection();
  /// The same, but not open then; for destructors.
  explicit NativeSection(std::nothrow_t) noexcept;
  NativeSection(const NativeSection&) = delete;
  NativeSection& operator=(const NativeSection&) = delete;
  ~NativeSection();
  explicit operator bool() const { return open_; }

  /// Lets no other thread in from here on and waits until none is inside, at most for `longest`;
  /// says whether none is. The calling thread must be inside.
  static bool close(std::chrono::milliseconds longest);

 private:
  bool open_ = true;
};

/// What runs when the process begins to end. Where main returns or the main thread calls std::exit
/// that is before every handler at exit. Where another thread calls it, it is before the handlers
/// that were there at the last call of libraries_may_have_changed().
void at_process_end(void (*end)());
/// Call it where drivers may have loaded something, or made their first statics. Cheap.
void libraries_may_have_changed() noexcept;

/// Keeps what is never released where leak checkers see it.
void leave_to_system(const void* object) noexcept;

/// Owns one reference to an object of wgpu-native.
template <class T, void (*release)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) {}
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  [[nodiscard]] T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() {
    if (object_ == nullptr) return;
    const NativeSection section(std::nothrow);
    const T object = std::exchange(object_, nullptr);
    if (section) return release(object);
    leave_to_system(object);
  }
  /// Never releases it.
  void abandon() {
    if (object_ != nullptr) leave_to_system(std::exchange(object_, nullptr));
  }

 private:
  T object_ = nullptr;
};

using AdapterHandle = Handle<WGPUAdapter, wgpuAdapterRelease>;
using BindGroupHandle = Handle<WGPUBindGroup, wgpuBindGroupRelease>;
using BindGroupLayoutHandle = Handle<WGPUBindGroupLayout, wgpuBindGroupLayoutRelease>;
using BufferHandle = Handle<WGPUBuffer, wgpuBufferRelease>;
using CommandBufferHandle = Handle<WGPUCommandBuffer, wgpuCommandBufferRelease>;
using CommandEncoderHandle = Handle<WGPUCommandEncoder, wgpuCommandEncoderRelease>;
using ComputePassHandle = Handle<WGPUComputePassEncoder, wgpuComputePassEncoderRelease>;
using ComputePipelineHandle = Handle<WGPUComputePipeline, wgpuComputePipelineRelease>;
using DeviceHandle = Handle<WGPUDevice, wgpuDeviceRelease>;
using PipelineLayoutHandle = Handle<WGPUPipelineLayout, wgpuPipelineLayoutRelease>;
using QuerySetHandle = Handle<WGPUQuerySet, wgpuQuerySetRelease>;
using QueueHandle = Handle<WGPUQueue, wgpuQueueRelease>;
using ShaderModuleHandle = Handle<WGPUShaderModule, wgpuShaderModuleRelease>;

inline WGPUStringView view(std::string_view text) { return {text.data(), text.size()}; }

inline std::string text(WGPUStringView view) {
  if (view.data == nullptr) return {};
  return view.length == WGPU_STRLEN ? std::string(view.data) : std::string(view.data, view.length);
}

}  // namespace kiln::wgpu
