#pragma once
/// Owning handles for wgpu-native's objects. Internal: the only header that includes wgpu.h.
#include <wgpu.h>

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "kiln/runtime/process_end.hpp"

namespace kiln::wgpu {

/// wgpu-native and what it loads.
inline constinit Library drivers;

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
    const LibrarySection section(std::nothrow);
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
