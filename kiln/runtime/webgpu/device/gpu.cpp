#include "kiln/runtime/webgpu/device/gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

// Metadata and operands of a launch are kept in arrays of fixed size.
constexpr std::uint32_t most_storage_buffers = 64;
// The standard promises so many bytes wherever there are immediates. Some compilers take no more.
constexpr std::uint32_t most_immediate_bytes = 64;

WGPUFeatureName native(WGPUNativeFeature feature) { return static_cast<WGPUFeatureName>(feature); }

void on_lost(WGPUDevice const*, WGPUDeviceLostReason reason, WGPUStringView message, void* gpu,
             void*) {
  // A device that nobody uses any more ends with Destroyed or CallbackCancelled.
  if (reason != WGPUDeviceLostReason_Unknown) return;
  static_cast<Gpu*>(gpu)->reports.add_loss(text(message));
}

void on_error(WGPUDevice const*, WGPUErrorType type, WGPUStringView message, void* data, void*) {
  auto& gpu = *static_cast<Gpu*>(data);
  std::string copy = text(message);
  if (!ErrorScope::offer(gpu, type, copy)) gpu.reports.add(type, std::move(copy));
}

struct Request {
  WGPUDevice device = nullptr;
  std::string message;
};

void on_device(WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message, void* request,
               void*) {
  *static_cast<Request*>(request) = {device, text(message)};
}

std::uint64_t round_down(std::uint64_t value, std::uint64_t multiple) {
  return value / multiple * multiple;
}

Limits describe_limits(const WGPULimits& raw) {
  Limits limits;
  limits.buffer_bytes = round_down(raw.maxBufferSize, 16);
  limits.binding_bytes =
      round_down(std::min(raw.maxStorageBufferBindingSize, raw.maxBufferSize), 16);
  limits.storage_buffers = std::min(raw.maxStorageBuffersPerShaderStage, most_storage_buffers);
  limits.workgroup_bytes = raw.maxComputeWorkgroupStorageSize;
  limits.workgroup_invocations = raw.maxComputeInvocationsPerWorkgroup;
  limits.workgroup_size = {raw.maxComputeWorkgroupSizeX, raw.maxComputeWorkgroupSizeY,
                           raw.maxComputeWorkgroupSizeZ};
  limits.workgroups = raw.maxComputeWorkgroupsPerDimension;
  limits.immediate_bytes = std::min(raw.maxImmediateSize, most_immediate_bytes);
  limits.offset_alignment = raw.minStorageBufferOffsetAlignment;
  return limits;
}

NativeLimits describe_native(const WGPULimits& raw) {
  return {.bind_groups = std::min(raw.maxBindGroups, 4U),
          .bindings_per_group = raw.maxBindingsPerBindGroup,
          .uniform_bytes = static_cast<std::uint32_t>(
              std::min<std::uint64_t>(raw.maxUniformBufferBindingSize, 1U << 16)),
          .uniform_alignment = raw.minUniformBufferOffsetAlignment};
}

std::vector<WGPUFeatureName> choose_features(WGPUAdapter adapter, const Opening& opening,
                                             bool software) {
  std::vector<WGPUFeatureName> features;
  const auto add = [&](WGPUFeatureName feature) {
    if (wgpuAdapterHasFeature(adapter, feature) != 0) features.push_back(feature);
  };
  if (opening.f16) add(WGPUFeatureName_ShaderF16);
  add(WGPUFeatureName_TimestampQuery);
  if (!opening.portable) add(native(WGPUNativeFeature_Immediates));
  if (!opening.portable && software) add(native(WGPUNativeFeature_Subgroup));
  return features;
}

WGPUDevice request_device(Gpu& gpu, WGPUAdapter adapter,
                          const std::vector<WGPUFeatureName>& features, const WGPULimits* limits) {
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = limits;
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.callback = on_lost;
  descriptor.deviceLostCallbackInfo.userdata1 = &gpu;
  descriptor.uncapturedErrorCallbackInfo.callback = on_error;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = &gpu;
  Request request;
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = on_device;  // called before the request returns
  callback.userdata1 = &request;
  wgpuAdapterRequestDevice(adapter, &descriptor, callback);
  if (request.device != nullptr) return request.device;
  throw DeviceError(
      fmt::format("webgpu: cannot open the adapter \"{}\": {}", gpu.adapter, request.message));
}

}  // namespace

bool is_loss(std::string_view message) {
  return message.find("device is lost") != std::string_view::npos;
}

void DeviceReports::add(WGPUErrorType type, std::string message) {
  if (is_loss(message)) return add_loss(std::move(message));
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = Fault{type, std::move(message)};
  any_.store(true, std::memory_order_release);
}

void DeviceReports::add_loss(std::string message) {
  const std::lock_guard lock(mutex_);
  if (!lost_.load(std::memory_order_relaxed)) loss_ = std::move(message);
  lost_.store(true, std::memory_order_release);
  any_.store(true, std::memory_order_release);
}

void DeviceReports::raise(const std::string& adapter) {
  const std::lock_guard lock(mutex_);
  if (lost()) {
    throw DeviceError(
        fmt::format("webgpu: the device \"{}\" was lost, with all that it held; open a new one "
                    "with webgpu::device(). It reported: {}",
                    adapter, loss_));
  }
  any_.store(false, std::memory_order_release);
  if (!error_) return;
  const Fault fault = *std::exchange(error_, std::nullopt);
  const std::string message =
      fmt::format("webgpu: the device \"{}\" reported: {}", adapter, fault.message);
  if (fault.type == WGPUErrorType_OutOfMemory) throw OutOfMemoryError(message);
  throw Error(message);
}

void Gpu::throw_fault(const Fault& fault, const std::string& doing) {
  if (is_loss(fault.message)) {
    reports.add_loss(fault.message);
    check();
  }
  const std::string message = fmt::format("{}: {}", doing, fault.message);
  if (fault.type == WGPUErrorType_OutOfMemory) throw OutOfMemoryError(message);
  throw Error(message);
}

void Gpu::check_alive() {
  ErrorScope scope(*this);
  const WGPUBindGroupLayoutDescriptor nothing = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  const BindGroupLayoutHandle asked(wgpuDeviceCreateBindGroupLayout(device.get(), &nothing));
  raise(scope.take(), "webgpu: the device does not answer");
}

std::shared_ptr<Gpu> open_gpu(const Adapter& adapter, const Opening& opening) {
  WGPULimits raw = WGPU_LIMITS_INIT;
  const auto require_limits = [&](WGPUStatus status) {
    if (status == WGPUStatus_Success) return;
    throw DeviceError(
        fmt::format("webgpu: the adapter \"{}\" does not state its limits", adapter.info.name));
  };
  require_limits(wgpuAdapterGetLimits(adapter.handle.get(), &raw));
  auto gpu = std::make_shared<Gpu>();
  gpu->adapter = adapter.info.name;
  gpu->patience = opening.patience;
  const bool software = adapter.info.kind == AdapterKind::cpu;
  const std::vector<WGPUFeatureName> features =
      choose_features(adapter.handle.get(), opening, software);
  const auto has = [&](WGPUFeatureName feature) {
    return std::ranges::find(features, feature) != features.end();
  };
  if (!has(native(WGPUNativeFeature_Immediates))) raw.maxImmediateSize = 0;
  // Without required limits the device has the small defaults of the standard.
  gpu->device = DeviceHandle(
      request_device(*gpu, adapter.handle.get(), features, opening.portable ? nullptr : &raw));
  gpu->queue = QueueHandle(wgpuDeviceGetQueue(gpu->device.get()));
  require_limits(wgpuDeviceGetLimits(gpu->device.get(), &raw));
  gpu->limits = describe_limits(raw);
  gpu->limits.f16 = has(WGPUFeatureName_ShaderF16);
  gpu->limits.timestamps = has(WGPUFeatureName_TimestampQuery);
  gpu->limits.software_adapter = software;
  if (software) gpu->limits.loop_rounds = 65535;  // until the probe has run
  gpu->native = describe_native(raw);
  if (gpu->limits.timestamps)
    gpu->nanoseconds_per_tick = wgpuQueueGetTimestampPeriod(gpu->queue.get());
  return gpu;
}

}  // namespace kiln::wgpu
