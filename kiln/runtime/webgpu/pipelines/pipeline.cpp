#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kiln/runtime/trace.hpp"
#include "kiln/runtime/webgpu/pipelines/compile_thread.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

[[noreturn]] void refuse(Gpu& gpu, const KernelId& id, std::string_view label, const Fault& fault) {
  if (is_loss(fault.message)) gpu.throw_fault(fault, std::string(label));
  std::string hint;
  if (!gpu.limits.f16 && id.source.find("f16") != std::string::npos) {
    hint = fmt::format("the kernel uses f16, which the device \"{}\" was opened without or lacks. ",
                       gpu.adapter);
  }
  if (id.language == Language::spirv &&
      fault.message.find("doesn't match the shader Storage") != std::string::npos) {
    hint = "inputs must be readonly, and the module made for Vulkan 1.0. ";
  }
  throw KernelError(fmt::format("{}: {}{}", label, hint, fault.message));
}

ShaderModuleHandle make_module(Gpu& gpu, const KernelId& id, std::string_view label) {
  WGPUShaderSourceWGSL wgsl = WGPU_SHADER_SOURCE_WGSL_INIT;
  wgsl.code = view(id.source);
  WGPUShaderSourceSPIRV spirv = WGPU_SHADER_SOURCE_SPIRV_INIT;
  spirv.code = id.words.data();
  spirv.codeSize = static_cast<std::uint32_t>(id.words.size());
  WGPUShaderModuleDescriptor descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  descriptor.nextInChain = id.language == Language::spirv ? &spirv.chain : &wgsl.chain;
  descriptor.label = view(label);
  ErrorScope scope(gpu);
  ShaderModuleHandle module(id.trusted
                                ? wgpuDeviceCreateShaderModuleTrusted(gpu.device.get(), &descriptor,
                                                                      WGPUShaderRuntimeChecks_None)
                                : wgpuDeviceCreateShaderModule(gpu.device.get(), &descriptor));
  if (auto fault = scope.take()) refuse(gpu, id, label, *fault);
  return module;
}

// The kernel's groups, from 0 to the highest that it names. Those that it does not name are empty.
std::vector<Pipeline::Group> make_groups(Gpu& gpu, GroupLayouts& layouts, const KernelId& id,
                                         const std::vector<std::uint64_t>& min_bytes) {
  const bool ring = id.metadata_bytes != 0 && !id.metadata_immediate;
  std::uint32_t count = ring ? id.metadata_group + 1 : 0;
  for (const BindingSlot& slot : id.bindings) count = std::max(count, slot.group + 1);
  std::vector<Pipeline::Group> groups(count);
  std::vector<std::vector<LayoutEntry>> entries(count);
  for (std::uint32_t i = 0; i < id.bindings.size(); ++i) {
    const BindingSlot& slot = id.bindings[i];
    const auto type = slot.access == Access::read ? WGPUBufferBindingType_ReadOnlyStorage
                                                  : WGPUBufferBindingType_Storage;
    entries[slot.group].push_back({slot.binding, type, false, min_bytes[i]});
    groups[slot.group].operands.push_back(i);
  }
  if (ring) {
    entries[id.metadata_group].push_back(
        {id.metadata_binding, WGPUBufferBindingType_Uniform, true, id.metadata_bytes});
    groups[id.metadata_group].has_ring = true;
  }
  for (std::uint32_t i = 0; i < count; ++i) groups[i].layout = layouts.get(gpu, entries[i]);
  return groups;
}

ComputePipelineHandle make_handle(Gpu& gpu, const KernelId& id, std::string_view label,
                                  WGPUShaderModule module,
                                  const std::vector<Pipeline::Group>& groups) {
  std::vector<WGPUBindGroupLayout> layouts;
  layouts.reserve(groups.size());
  for (const Pipeline::Group& group : groups) layouts.push_back(group.layout->handle.get());
  WGPUPipelineLayoutDescriptor layout_descriptor = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  layout_descriptor.bindGroupLayoutCount = layouts.size();
  layout_descriptor.bindGroupLayouts = layouts.data();
  layout_descriptor.immediateSize = id.metadata_immediate ? id.metadata_bytes : 0;
  const PipelineLayoutHandle layout(
      wgpuDeviceCreatePipelineLayout(gpu.device.get(), &layout_descriptor));

  std::vector<WGPUConstantEntry> constants;
  for (const auto& [name, value] : id.constants) {
    WGPUConstantEntry entry = WGPU_CONSTANT_ENTRY_INIT;
    entry.key = view(name);
    entry.value = value;
    constants.push_back(entry);
  }
  WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  descriptor.label = view(label);
  descriptor.layout = layout.get();
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = view(id.entry);
  descriptor.compute.constantCount = constants.size();
  descriptor.compute.constants = constants.data();
  return ComputePipelineHandle(wgpuDeviceCreateComputePipeline(gpu.device.get(), &descriptor));
}

// Raises the size of the slot that the fault is about. False if the fault is another.
bool learn_size(const Fault& fault, const KernelId& id, std::vector<std::uint64_t>& min_bytes) {
  const auto needed = parse_needed_bytes(fault.message);
  if (!needed) return false;
  for (std::size_t i = 0; i < id.bindings.size(); ++i) {
    const BindingSlot& slot = id.bindings[i];
    if (slot.group != needed->group || slot.binding != needed->binding) continue;
    const std::uint64_t bytes = (needed->bytes + 3) / 4 * 4;
    if (bytes <= min_bytes[i]) return false;
    min_bytes[i] = bytes;
    return true;
  }
  return false;
}

void compile_into(Pipeline& pipeline, GroupLayouts& layouts, const KernelId& id) {
  Gpu& gpu = *pipeline.gpu;
  const ShaderModuleHandle module = make_module(gpu, id, pipeline.label);
  // wgpu-native says how many bytes a binding needs only in its error about a layout that grants
  // less. With the sizes a launch can refuse a buffer that is too small. Without them the whole
  // batch would fail. The error comes before the driver's compiler runs, so it costs little.
  pipeline.min_bytes.assign(id.bindings.size(), 4);
  while (true) {
    pipeline.groups = make_groups(gpu, layouts, id, pipeline.min_bytes);
    ErrorScope scope(gpu);
    pipeline.handle = make_handle(gpu, id, pipeline.label, module.get(), pipeline.groups);
    auto fault = scope.take();
    if (!fault) return;
    if (!learn_size(*fault, id, pipeline.min_bytes)) refuse(gpu, id, pipeline.label, *fault);
  }
}

}  // namespace

std::shared_ptr<const Pipeline> compile_pipeline(const std::shared_ptr<Gpu>& gpu,
                                                 const std::shared_ptr<GroupLayouts>& layouts,
                                                 const KernelId& id, std::string_view label) {
  auto pipeline = std::make_shared<Pipeline>();
  pipeline->gpu = gpu;
  pipeline->label = label;
  pipeline->slots = id.bindings;
  pipeline->metadata_bytes = id.metadata_bytes;
  pipeline->metadata_immediate = id.metadata_immediate;
  on_compile_thread(*gpu, pipeline->label,
                    [pipeline, layouts, id] { compile_into(*pipeline, *layouts, id); });
  return pipeline;
}

PipelineCache::PipelineCache(const std::shared_ptr<Gpu>& gpu)
    : compile_([gpu, layouts = std::make_shared<GroupLayouts>()](const KernelId& id,
                                                                 std::string_view label) {
        check_kernel(id, label, gpu->limits, gpu->native);
        dump_kernel(id, label);
        auto pipeline = compile_pipeline(gpu, layouts, id, label);
        dump_layout(id, label);
        return pipeline;
      }) {}

std::shared_ptr<const Pipeline> PipelineCache::get(const KernelId& id, std::string_view label) {
  const std::shared_ptr<Entry> entry = entry_of(id);
  const std::lock_guard lock(entry->compiling);
  if (entry->pipeline) return entry->pipeline;
  const TraceSpan span("compile", label);
  entry->pipeline = compile_(id, label);
  drivers.may_have_changed();
  compiled_.fetch_add(1, std::memory_order_relaxed);
  return entry->pipeline;
}

std::shared_ptr<PipelineCache::Entry> PipelineCache::entry_of(const KernelId& id) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(id);
  if (found == entries_.end()) {
    make_room();
    found = entries_.emplace(id, std::make_shared<Entry>()).first;
  }
  found->second->asked = ++clock_;
  return found->second;
}

void PipelineCache::make_room() {
  if (entries_.size() < most) return;
  const auto asked = [](const auto& entry) { return entry.second->asked; };
  entries_.erase(std::ranges::min_element(entries_, {}, asked));
}

std::size_t PipelineCache::kept() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

bool PipelineCache::Same::operator()(const KernelId& a, const KernelId& b) const {
  // Constants are compared by their bits: 0 and -0 are equal numbers but give different kernels.
  const auto bits = [](const auto& constant) {
    return std::bit_cast<std::uint64_t>(constant.second);
  };
  return a == b && std::ranges::equal(a.constants, b.constants, {}, bits, bits);
}

}  // namespace kiln::wgpu
