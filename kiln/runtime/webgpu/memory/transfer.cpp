#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "kiln/runtime/trace.hpp"
#include "kiln/runtime/webgpu/memory/mapping.hpp"
#include "kiln/runtime/webgpu/webgpu_runtime.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

constexpr std::uint64_t large_clear = 1
                                      << 20;  // from this size on a clear is worth ending the pass

std::uint64_t word_floor(std::uint64_t bytes) { return bytes / 4 * 4; }
std::uint64_t word_ceil(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

constexpr std::string_view patch_body = R"(
@group(0) @binding(0) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  for (var i = group.x * 256u + local; i < info.count; i += groups.x * 256u) {
    let at = info.first + i;
    words[at] = (words[at] & ~info.mask) | (info.word & info.mask);
  }
}
)";

KernelId patch_id(bool immediate) {
  KernelId id;
  id.source = "struct Info { first: u32, count: u32, word: u32, mask: u32 }\n";
  id.source +=
      immediate ? "var<immediate> info: Info;" : "@group(0) @binding(1) var<uniform> info: Info;";
  id.source += patch_body;
  id.workgroup = {256, 1, 1};
  id.bindings = {{0, 0, Access::read_write}};
  id.metadata_bytes = 16;
  id.metadata_immediate = immediate;
  id.metadata_binding = 1;
  id.trusted = true;
  return id;
}

}  // namespace

/// Which bits of which words to set. The kernel's struct is called Info.
struct WebGpuRuntime::Patch {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t word = 0;
  std::uint32_t mask = 0xFFFFFFFF;
};

void WebGpuRuntime::write(const BufferPtr& buffer, std::uint64_t offset,
                          std::span<const std::byte> data) {
  const LibrarySection section;
  gpu_->check();
  GpuMemory& memory = memory_of("write", buffer, offset, data.size());
  if (data.empty()) return;
  // wgpu-native copies whole words. A part of a word, at either end, is merged with what is there.
  const std::uint64_t end = offset + data.size();
  const std::uint64_t words_begin = std::min(word_ceil(offset), end);
  const std::uint64_t words_end = std::max(word_floor(end), words_begin);
  const bool whole = words_begin == offset && words_end == end;
  const std::shared_ptr<const Pipeline> kernel = whole ? nullptr : patch_kernel();
  const std::lock_guard lock(mutex_);
  gpu_->check();
  write_part(kernel.get(), memory, offset, data.first(words_begin - offset));
  write_words(memory, words_begin, data.subspan(words_begin - offset, words_end - words_begin));
  write_part(kernel.get(), memory, words_end, data.subspan(words_end - offset));
}

void WebGpuRuntime::write_words(GpuMemory& memory, std::uint64_t offset,
                                std::span<const std::byte> data) {
  if (data.empty()) return;
  if (data.size() <= Recorder::copy_in_limit) {
    recorder_.copy_in(memory, offset, data);
  } else {
    recorder_.copy_in_large(memory, offset, data);
  }
}

void WebGpuRuntime::write_part(const Pipeline* kernel, GpuMemory& memory, std::uint64_t offset,
                               std::span<const std::byte> data) {
  if (data.empty()) return;
  std::array<std::byte, 4> word{};
  std::array<std::byte, 4> mask{};
  const std::size_t at = offset % 4;
  std::memcpy(word.data() + at, data.data(), data.size());
  std::memset(mask.data() + at, 0xFF, data.size());
  Patch part{.first = static_cast<std::uint32_t>(offset / 4), .count = 1};
  std::memcpy(&part.word, word.data(), 4);
  std::memcpy(&part.mask, mask.data(), 4);
  patch(*kernel, memory, part);
}

void WebGpuRuntime::fill(const BufferPtr& buffer, std::uint64_t offset, std::uint64_t bytes,
                         std::uint32_t word) {
  const LibrarySection section;
  gpu_->check();
  GpuMemory& memory = memory_of("fill", buffer, offset, bytes);
  if (offset % 4 != 0 || bytes % 4 != 0) {
    throw Error(
        fmt::format("webgpu: fill: offset {} and size {} must be multiples of 4", offset, bytes));
  }
  if (bytes == 0) return;
  const bool never_patched = word == 0 && bytes >= large_clear;
  const std::shared_ptr<const Pipeline> kernel = never_patched ? nullptr : patch_kernel();
  const std::lock_guard lock(mutex_);
  gpu_->check();
  if (never_patched || (word == 0 && !recorder_.used(memory))) {
    recorder_.clear(memory, offset, bytes);
  } else {
    patch(*kernel, memory,
          {.first = static_cast<std::uint32_t>(offset / 4),
           .count = static_cast<std::uint32_t>(bytes / 4),
           .word = word});
  }
}

void WebGpuRuntime::patch(const Pipeline& kernel, GpuMemory& memory, const Patch& patch) {
  const LaunchOperand operand{.memory = &memory, .id = memory.id, .offset = 0, .size = memory.size};
  const std::uint32_t groups =
      std::min((patch.count - 1) / 256 + 1, std::min(4096U, gpu_->limits.workgroups));
  record(kernel, {&operand, 1}, std::as_bytes(std::span(&patch, 1)), {groups, 1, 1});
}

std::shared_ptr<const Pipeline> WebGpuRuntime::patch_kernel() {
  const std::lock_guard lock(patch_mutex_);  // always taken before mutex_
  if (!patch_kernel_) {
    const KernelId id = patch_id(gpu_->limits.immediate_bytes >= sizeof(Patch));
    patch_kernel_ = compile_pipeline(gpu_, std::make_shared<GroupLayouts>(), id, "kiln::fill");
  }
  return patch_kernel_;
}

namespace {

/// A read for which somebody may wait, or which is dropped. It keeps the runtime alive, and gives
/// the staging buffer back when it ends.
struct PendingRead {
  std::shared_ptr<WebGpuRuntime> runtime;
  GpuMemoryPtr staging;
  std::uint64_t skip = 0;
  std::uint64_t bytes = 0;
  std::optional<Mapping> mapping;

  PendingRead(std::shared_ptr<WebGpuRuntime> owner, GpuMemoryPtr memory)
      : runtime(std::move(owner)), staging(std::move(memory)) {}
  PendingRead(const PendingRead&) = delete;
  PendingRead& operator=(const PendingRead&) = delete;
  ~PendingRead() {
    mapping.reset();
    runtime->read_pool().give_back(std::move(staging));
  }

  std::vector<std::byte> get() {
    const LibrarySection section;
    const TraceSpan span("wait for a read-back");
    const std::span<const std::byte> all = mapping->wait();
    const auto wanted = all.subspan(skip, bytes);
    std::vector<std::byte> data(wanted.begin(), wanted.end());
    mapping.reset();
    return data;
  }
};

}  // namespace

std::future<std::vector<std::byte>> WebGpuRuntime::read(const BufferPtr& buffer,
                                                        std::uint64_t offset, std::uint64_t bytes) {
  const LibrarySection section;
  gpu_->check();
  const GpuMemory& memory = memory_of("read", buffer, offset, bytes);
  // Deferred: get() itself polls the device. No thread waits until then.
  if (bytes == 0) return std::async(std::launch::deferred, [] { return std::vector<std::byte>(); });
  const std::uint64_t begin = word_floor(offset);
  const std::uint64_t size = word_ceil(offset + bytes) - begin;
  const auto usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
  auto pending =
      std::make_unique<PendingRead>(std::static_pointer_cast<WebGpuRuntime>(shared_from_this()),
                                    obtain(read_pool_, size, gpu_->limits.buffer_bytes, usage));
  pending->skip = offset - begin;
  pending->bytes = bytes;
  {
    const std::lock_guard lock(mutex_);
    gpu_->check();
    recorder_.copy_out(memory.buffer.get(), begin, pending->staging->buffer.get(), size);
    recorder_.flush_and_restart();
    drop_garbage();
    pending->mapping.emplace(*gpu_, pending->staging->buffer.get(), size);
  }
  return std::async(std::launch::deferred,
                    [pending = std::move(pending)] { return pending->get(); });
}

}  // namespace kiln::wgpu
