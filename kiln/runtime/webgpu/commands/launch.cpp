#include <fmt/format.h>

#include <typeinfo>

#include "kiln/runtime/queue_run.hpp"
#include "kiln/runtime/webgpu/webgpu_runtime.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {

CompiledKernelPtr WebGpuRuntime::compile(const KernelId& id, std::string_view label) {
  const LibrarySection section;
  gpu_->check();
  if (id.language != language_) {
    throw UnsupportedError(
        fmt::format("{}: its kernel is written in {}; this device ({}: {}) takes kernels in {} "
                    "alone",
                    label, to_string(id.language), name(), adapter(), to_string(language_)));
  }
  return pipelines_.get(id, label);
}

const Pipeline& WebGpuRuntime::pipeline_of(const CompiledKernelPtr& kernel) const {
  const CompiledKernel* raw = kernel.get();
  if (raw == nullptr) throw KernelError("webgpu: launch: no kernel was given");
  const bool own =
      typeid(*raw) == typeid(Pipeline) && static_cast<const Pipeline*>(raw)->gpu == gpu_;
  if (!own) throw KernelError("webgpu: launch: the kernel was compiled for another device");
  return *static_cast<const Pipeline*>(raw);
}

void WebGpuRuntime::launch(const CompiledKernelPtr& kernel, std::span<const Binding> bindings,
                           std::span<const std::byte> metadata,
                           const std::array<std::uint32_t, 3>& grid) {
  const LibrarySection section;
  gpu_->check();
  const Pipeline& pipeline = pipeline_of(kernel);
  if (bindings.size() != pipeline.slots.size()) {
    throw KernelError(fmt::format("{}: {} buffers were given; the kernel binds {}", pipeline.label,
                                  bindings.size(), pipeline.slots.size()));
  }
  LaunchOperands storage;
  const std::span operands = std::span(storage).first(bindings.size());
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const Buffer* raw = bindings[i].buffer.get();
    if (raw == nullptr) throw KernelError(binding_name(pipeline, i) + ": no buffer was given");
    const bool own = typeid(*raw) == typeid(WebGpuBuffer) &&
                     static_cast<const WebGpuBuffer*>(raw)->runtime() == this;
    if (!own)
      throw KernelError(binding_name(pipeline, i) + ": the buffer belongs to another device");
    operands[i].memory = &static_cast<const WebGpuBuffer*>(raw)->memory();
    operands[i].id = raw->id();
  }
  check_launch(pipeline, operands, bindings, metadata, grid, gpu_->limits);
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  const std::lock_guard lock(mutex_);
  gpu_->check();
  record(pipeline, operands, metadata, grid);
  ++launches_;
  QueueRun::count_launch();
}

void WebGpuRuntime::record(const Pipeline& kernel, std::span<const LaunchOperand> operands,
                           std::span<const std::byte> metadata,
                           const std::array<std::uint32_t, 3>& grid) {
  // Everything that may fail or submit comes first. From begin_launch() on nothing interrupts the
  // recording of the launch.
  bind_groups_.make_room();
  std::array<const CachedGroup*, 4> groups{};
  for (std::size_t i = 0; i < kernel.groups.size(); ++i)
    groups[i] = &bind(kernel, kernel.groups[i], operands);
  const bool timed = timer_.reserve();
  const bool immediate = kernel.metadata_immediate;
  const std::uint32_t ring_offset =
      recorder_.begin_launch(immediate ? std::span<const std::byte>() : metadata);
  if (timed) timer_.begin(kernel.label);
  recorder_.set_pipeline(kernel.handle.get());
  for (std::uint32_t i = 0; i < kernel.groups.size(); ++i) {
    recorder_.set_group(i, groups[i]->handle.get(), groups[i]->serial,
                        kernel.groups[i].has_ring ? &ring_offset : nullptr);
  }
  if (immediate && !metadata.empty()) recorder_.set_immediates(metadata);
  for (const LaunchOperand& operand : operands) recorder_.use(*operand.memory);
  recorder_.dispatch(grid);
}

const CachedGroup& WebGpuRuntime::bind(const Pipeline& kernel, const Pipeline::Group& group,
                                       std::span<const LaunchOperand> operands) {
  std::array<std::uint64_t, 1 + 3 * std::tuple_size_v<LaunchOperands>> words;
  std::size_t count = 0;
  words[count++] = group.layout->id;
  for (const std::uint32_t index : group.operands) {
    words[count++] = operands[index].id;
    words[count++] = operands[index].offset;
    words[count++] = operands[index].size;
  }
  const auto key = std::span<const std::uint64_t>(words).first(count);
  if (const CachedGroup* cached = bind_groups_.find(key)) return *cached;
  return make_group(kernel, group, operands, key);
}

const CachedGroup& WebGpuRuntime::make_group(const Pipeline& kernel, const Pipeline::Group& group,
                                             std::span<const LaunchOperand> operands,
                                             std::span<const std::uint64_t> key) {
  std::vector<WGPUBindGroupEntry> entries;
  for (const std::uint32_t index : group.operands) {
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = kernel.slots[index].binding;
    entry.buffer = operands[index].memory->buffer.get();
    entry.offset = operands[index].offset;
    entry.size = operands[index].size;
    entries.push_back(entry);
  }
  if (group.has_ring) {
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = group.layout->entries.back().binding;
    entry.buffer = recorder_.ring();
    entry.size = kernel.metadata_bytes;
    entries.push_back(entry);
  }
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.layout = group.layout->handle.get();
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  ErrorScope scope(*gpu_);
  BindGroupHandle made(wgpuDeviceCreateBindGroup(gpu_->device.get(), &descriptor));
  gpu_->raise(scope.take(), kernel.label + ": cannot bind its buffers");
  return bind_groups_.insert(key, std::move(made));
}

}  // namespace kiln::wgpu
