#include "kiln/runtime/webgpu/memory/mapping.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln::wgpu {

Mapping::Mapping(Gpu& gpu, WGPUBuffer buffer, std::uint64_t bytes)
    : gpu_(gpu), buffer_(buffer), bytes_(bytes) {
  WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = on_mapped;
  callback.userdata1 = new std::shared_ptr<Outcome>(outcome_);
  ErrorScope scope(gpu_);
  wgpuBufferMapAsync(buffer_, WGPUMapMode_Read, 0, bytes_, callback);
  gpu_.raise(scope.take(), "webgpu: cannot read back");
}

Mapping::~Mapping() {
  const LibrarySection section(std::nothrow);
  if (!section) return;
  ErrorScope scope(gpu_);  // it is no fault if the buffer was never mapped
  wgpuBufferUnmap(buffer_);
}

std::span<const std::byte> Mapping::wait() {
  gpu_.wait_until([this] { return outcome_->done.load(std::memory_order_acquire); });
  if (outcome_->status != WGPUMapAsyncStatus_Success) {
    gpu_.check();
    throw DeviceError(
        fmt::format("webgpu: cannot read back from \"{}\": {}", gpu_.adapter, outcome_->message));
  }
  gpu_.check_alive();
  const void* data = wgpuBufferGetConstMappedRange(buffer_, 0, bytes_);
  if (data == nullptr)
    throw DeviceError(fmt::format("webgpu: cannot read back from \"{}\"", gpu_.adapter));
  return {static_cast<const std::byte*>(data), bytes_};
}

void Mapping::on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void* outcome, void*) {
  const std::unique_ptr<std::shared_ptr<Outcome>> shared(
      static_cast<std::shared_ptr<Outcome>*>(outcome));
  (*shared)->status = status;
  (*shared)->message = text(message);
  (*shared)->done.store(true, std::memory_order_release);
}

}  // namespace kiln::wgpu
