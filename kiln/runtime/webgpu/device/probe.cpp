#include "kiln/runtime/webgpu/device/probe.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "kiln/runtime/webgpu/memory/mapping.hpp"
#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

constexpr std::uint32_t rounds = 1 << 18;  // several times the limit that is known

/// What the kernel gets (the number one) and what it finds.
struct Found {
  std::uint32_t one = 1;
  std::uint32_t rounds = 0;
  std::uint32_t subgroup = 0;
  std::uint32_t padding = 0;
};

// The kernel loads what it adds in each round, so that no compiler can know the sum.
KernelId counting_kernel(bool subgroups) {
  KernelId id;
  id.source = fmt::format(
      "@group(0) @binding(0) var<storage, read_write> found: array<u32, 4>;\n"
      "@compute @workgroup_size(1)\n"
      "fn main({}) {{\n"
      "  var count = 0u;\n"
      "  for (var i = 0u; i < {}u; i++) {{ count += found[0]; }}\n"
      "  found[1] = count;\n"
      "  found[2] = {};\n}}\n",
      subgroups ? "@builtin(subgroup_size) size: u32" : "", rounds, subgroups ? "size" : "0u");
  id.workgroup = {1, 1, 1};
  id.bindings = {{0, 0, Access::read_write}};
  id.trusted = true;
  return id;
}

BufferHandle make_buffer(Gpu& gpu, WGPUBufferUsage usage) {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.size = sizeof(Found);
  descriptor.usage = usage;
  return BufferHandle(wgpuDeviceCreateBuffer(gpu.device.get(), &descriptor));
}

Found count(const std::shared_ptr<Gpu>& gpu, bool subgroups) {
  const auto pipeline =
      compile_pipeline(gpu, std::make_shared<GroupLayouts>(), counting_kernel(subgroups),
                       "webgpu: probe of the adapter");
  ErrorScope scope(*gpu);
  const BufferHandle words = make_buffer(
      *gpu, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  const BufferHandle back = make_buffer(*gpu, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  gpu->raise(scope.take(), "webgpu: cannot probe the adapter");
  Found found;
  wgpuQueueWriteBuffer(gpu->queue.get(), words.get(), 0, &found, sizeof found);

  WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
  entry.buffer = words.get();
  entry.size = sizeof found;
  WGPUBindGroupDescriptor group = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  group.layout = pipeline->groups[0].layout->handle.get();
  group.entryCount = 1;
  group.entries = &entry;
  const BindGroupHandle bound(wgpuDeviceCreateBindGroup(gpu->device.get(), &group));
  const CommandEncoderHandle encoder(wgpuDeviceCreateCommandEncoder(gpu->device.get(), nullptr));
  {
    const ComputePassHandle pass(wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
    wgpuComputePassEncoderSetPipeline(pass.get(), pipeline->handle.get());
    wgpuComputePassEncoderSetBindGroup(pass.get(), 0, bound.get(), 0, nullptr);
    wgpuComputePassEncoderDispatchWorkgroups(pass.get(), 1, 1, 1);
    wgpuComputePassEncoderEnd(pass.get());
  }
  wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), words.get(), 0, back.get(), 0, sizeof found);
  const CommandBufferHandle commands(wgpuCommandEncoderFinish(encoder.get(), nullptr));
  const WGPUCommandBuffer submitted = commands.get();
  gpu->submit({&submitted, 1});
  Mapping mapping(*gpu, back.get(), sizeof found);
  std::memcpy(&found, mapping.wait().data(), sizeof found);
  return found;
}

}  // namespace

void probe(const std::shared_ptr<Gpu>& gpu) {
  const auto feature = static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup);
  const LibrarySection section(std::nothrow);
  if (!section) return;  // the process ends
  try {
    const Found found = count(gpu, wgpuDeviceHasFeature(gpu->device.get(), feature) != 0);
    gpu->limits.loop_rounds = found.rounds == rounds ? 0 : found.rounds;
    gpu->limits.subgroup = found.subgroup;
  } catch (const Error&) {
    return;  // The limits stay unknown. The next call on the device says what is wrong with it.
  }
}

}  // namespace kiln::wgpu
