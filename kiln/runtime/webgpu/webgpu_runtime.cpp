#include "kiln/runtime/webgpu/webgpu_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <typeinfo>

#include "kiln/runtime/queue_run.hpp"
#include "kiln/runtime/webgpu/device/probe.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

constexpr std::uint64_t spare_bytes = 256 << 20;
constexpr std::uint64_t spare_read_bytes = 64 << 20;

}  // namespace

WebGpuBuffer::WebGpuBuffer(std::shared_ptr<WebGpuRuntime> runtime, GpuMemoryPtr memory)
    : Buffer(memory->size, memory->id), runtime_(std::move(runtime)), memory_(std::move(memory)) {}

WebGpuBuffer::~WebGpuBuffer() { runtime_->pool().give_back(std::move(memory_)); }

WebGpuRuntime::WebGpuRuntime(std::shared_ptr<Gpu> gpu, Language language)
    : gpu_(std::move(gpu)),
      language_(language),
      pipelines_(gpu_),
      pool_(spare_bytes),
      read_pool_(spare_read_bytes),
      recorder_(*gpu_),
      timer_(*gpu_, recorder_, track_),
      track_(fmt::format("webgpu: {}", gpu_->adapter), [this] { give_to_trace(); }) {}

const Limits& WebGpuRuntime::limits() const {
  if (gpu_->limits.software_adapter) std::call_once(probed_, [this] { probe(gpu_); });
  return gpu_->limits;
}

WebGpuRuntime::~WebGpuRuntime() { track_.gather(); }

void WebGpuRuntime::finish() noexcept {
  track_.gather();
  gpu_->finish();
}

BufferPtr WebGpuRuntime::allocate(std::uint64_t bytes) {
  const LibrarySection section;
  gpu_->check();
  const Limits& limits = gpu_->limits;
  const std::uint64_t limit = std::min(limits.buffer_bytes, limits.binding_bytes);
  if (bytes > limit) {
    throw OutOfMemoryError(
        fmt::format("webgpu: {} bytes in one buffer were asked for; \"{}\" takes {}", bytes,
                    gpu_->adapter, limit));
  }
  const auto usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
  GpuMemoryPtr memory = obtain(pool_, bytes, limit, usage);
  QueueRun::count_allocation();
  return std::make_shared<WebGpuBuffer>(std::static_pointer_cast<WebGpuRuntime>(shared_from_this()),
                                        std::move(memory));
}

GpuMemoryPtr WebGpuRuntime::obtain(GpuMemoryPool& pool, std::uint64_t bytes, std::uint64_t limit,
                                   WGPUBufferUsage usage) {
  const std::uint64_t size = size_class(bytes, limit);
  if (GpuMemoryPtr pooled = pool.take(size)) return pooled;
  try {
    {
      const std::lock_guard lock(mutex_);
      drop_garbage();
    }
    if (GpuMemoryPtr fresh = create(size, usage)) return fresh;
    make_memory_free();
    if (GpuMemoryPtr fresh = create(size, usage)) return fresh;
  } catch (...) {
    pool.forget(size);
    throw;
  }
  pool.forget(size);
  throw OutOfMemoryError(
      fmt::format("webgpu: \"{}\" has no {} bytes left; this program holds {} there (the limit of "
                  "one buffer is {})",
                  gpu_->adapter, size, pool_.counts().bytes_in_use, limit));
}

GpuMemoryPtr WebGpuRuntime::create(std::uint64_t size, WGPUBufferUsage usage) {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.size = size;
  descriptor.usage = usage;
  ErrorScope scope(*gpu_);
  auto memory = std::make_unique<GpuMemory>();
  if (gpu_->limits.software_adapter) {
    auto claim = HostClaim::take(size);
    if (!claim) return nullptr;
    memory->claim = std::move(*claim);
  }
  memory->buffer = BufferHandle(wgpuDeviceCreateBuffer(gpu_->device.get(), &descriptor));
  memory->size = size;
  memory->id = next_id_.fetch_add(1, std::memory_order_relaxed);
  auto fault = scope.take();
  if (fault && fault->type == WGPUErrorType_OutOfMemory) return nullptr;
  gpu_->raise(std::move(fault), fmt::format("webgpu: cannot allocate {} bytes", size));
  return memory;
}

void WebGpuRuntime::make_memory_free() {
  pool_.trim();
  read_pool_.trim();
  {
    const std::lock_guard lock(mutex_);
    recorder_.flush();  // recorded work keeps its buffers
    drop_garbage();
  }
  gpu_->wait();
}

void WebGpuRuntime::drop_garbage() {
  std::vector<std::uint64_t> ids;
  for (GpuMemoryPool* pool : {&pool_, &read_pool_}) {
    for (const GpuMemoryPtr& memory : pool->garbage()) ids.push_back(memory->id);
  }
  bind_groups_.forget(ids);
}

void WebGpuRuntime::trim() {
  const LibrarySection section;
  gpu_->check();
  make_memory_free();
}

void WebGpuRuntime::synchronize() {
  const LibrarySection section;
  const TraceSpan span("synchronize");
  {
    const std::lock_guard lock(mutex_);
    gpu_->check();
    recorder_.flush_and_restart();
    drop_garbage();
  }
  gpu_->wait();
  gpu_->check();
}

GpuMemory& WebGpuRuntime::memory_of(std::string_view call, const BufferPtr& buffer,
                                    std::uint64_t offset, std::uint64_t bytes) const {
  const Buffer* raw = buffer.get();
  if (raw == nullptr) throw Error(fmt::format("webgpu: {}: no buffer was given", call));
  const bool own = typeid(*raw) == typeid(WebGpuBuffer) &&
                   static_cast<const WebGpuBuffer*>(raw)->runtime() == this;
  if (!own)
    throw DeviceError(fmt::format("webgpu: {}: the buffer belongs to another device", call));
  if (offset > raw->size() || bytes > raw->size() - offset) {
    throw Error(fmt::format("webgpu: {}: {} bytes at {} lie outside a buffer of {}", call, bytes,
                            offset, raw->size()));
  }
  return static_cast<const WebGpuBuffer*>(raw)->memory();
}

RuntimeCounters WebGpuRuntime::counters() const {
  const GpuMemoryPool::Counts memory = pool_.counts();
  RuntimeCounters counters{.compiled = pipelines_.compiled(),
                           .allocated = memory.allocated,
                           .reused = memory.reused,
                           .bytes_in_use = memory.bytes_in_use,
                           .bytes_pooled = memory.bytes_pooled};
  const std::lock_guard lock(mutex_);
  counters.launches = launches_;
  counters.submits = recorder_.submits();
  return counters;
}

void WebGpuRuntime::time_launches(bool on) {
  const LibrarySection section;
  if (on && !gpu_->limits.timestamps) {
    throw UnsupportedError(
        fmt::format("webgpu: the adapter \"{}\" has no timestamps", gpu_->adapter));
  }
  const std::lock_guard lock(mutex_);
  gpu_->check();
  timer_.turn(on);
}

void WebGpuRuntime::give_to_trace() {
  const LibrarySection section(std::nothrow);
  if (!section) return;  // they were handed over when the process began to end
  const std::lock_guard lock(mutex_);
  timer_.give_to_trace();
}

std::vector<LaunchTime> WebGpuRuntime::launch_times() {
  const LibrarySection section;
  const std::lock_guard lock(mutex_);
  gpu_->check();
  return timer_.take();
}

}  // namespace kiln::wgpu
