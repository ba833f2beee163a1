#include "kiln/runtime/webgpu/commands/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kiln/runtime/trace.hpp"

namespace kiln::wgpu {
namespace {

constexpr std::uint64_t staging_bytes = 4 << 20;
constexpr std::uint64_t ring_bytes = 1 << 20;
// After a wait batches are small, so that the device starts early. Later ones are large, which
// saves submits.
constexpr std::uint32_t largest_batch = 512;

// A device counts as lost if one batch does not end in time. So a batch must not hold too much
// work: a software adapter may need seconds for one launch.
std::uint32_t first_batch(const Limits& limits) { return limits.software_adapter ? 8 : 32; }
constexpr std::uint64_t large_write_step = 64 << 20;

}  // namespace

std::optional<std::uint64_t> Arena::append(std::span<const std::byte> data,
                                           std::uint64_t alignment) {
  const std::uint64_t start = (filled_ + alignment - 1) / alignment * alignment;
  const std::uint64_t padded = (data.size() + 3) / 4 * 4;
  if (start + padded > capacity_) return std::nullopt;
  if (!host_) host_.reset(new std::byte[capacity_]);  // not zeroed: pages are used as they fill
  std::memcpy(host_.get() + start, data.data(), data.size());
  std::memset(host_.get() + start + data.size(), 0, padded - data.size());
  filled_ = start + padded;
  return start;
}

void Arena::upload() {
  if (filled_ != 0) wgpuQueueWriteBuffer(gpu_.queue.get(), buffer(), 0, host_.get(), filled_);
  filled_ = 0;
}

WGPUBuffer Arena::buffer() {
  if (!buffer_) {
    WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
    descriptor.usage = usage_ | WGPUBufferUsage_CopyDst;
    descriptor.size = capacity_;
    ErrorScope scope(gpu_);
    BufferHandle made(wgpuDeviceCreateBuffer(gpu_.device.get(), &descriptor));
    gpu_.raise(scope.take(), "webgpu: cannot allocate the buffer for uploads");
    buffer_ = std::move(made);
  }
  return buffer_.get();
}

Recorder::Recorder(Gpu& gpu)
    : gpu_(gpu),
      staging_(gpu, WGPUBufferUsage_CopySrc, staging_bytes),
      ring_(gpu, WGPUBufferUsage_Uniform, ring_bytes),
      batch_limit_(first_batch(gpu.limits)) {}

void Recorder::copy_in(GpuMemory& to, std::uint64_t offset, std::span<const std::byte> data) {
  auto at = staging_.append(data, 4);
  if (!at) {
    flush();
    at = staging_.append(data, 4);
  }
  wgpuCommandEncoderCopyBufferToBuffer(encoder_for_copy(to), staging_.buffer(), *at,
                                       to.buffer.get(), offset, data.size());
}

void Recorder::copy_in_large(GpuMemory& to, std::uint64_t offset, std::span<const std::byte> data) {
  // A queued write runs before the batch that is being recorded. That is right only if the batch
  // has not used the buffer yet.
  if (used(to) || to.written_at == batch_) flush();
  ErrorScope scope(gpu_);
  for (std::uint64_t done = 0; done < data.size(); done += large_write_step) {
    const auto part =
        data.subspan(done, std::min<std::uint64_t>(large_write_step, data.size() - done));
    stage(part.size());
    wgpuQueueWriteBuffer(gpu_.queue.get(), to.buffer.get(), offset + done, part.data(),
                         part.size());
  }
  gpu_.raise(scope.take(), "webgpu: cannot upload");
}

void Recorder::stage(std::uint64_t bytes) {
  if (queued_bytes_ + bytes > large_write_step) flush();
  while (!staged_.empty() && (gpu_.done() >= staged_.front().submission ||
                              staged_bytes_ + queued_bytes_ + bytes > most_staged)) {
    gpu_.wait(staged_.front().submission);
    staged_bytes_ -= staged_.front().bytes;
    staged_.pop_front();
  }
  queued_bytes_ += bytes;
}

void Recorder::clear(GpuMemory& memory, std::uint64_t offset, std::uint64_t bytes) {
  wgpuCommandEncoderClearBuffer(encoder_for_copy(memory), memory.buffer.get(), offset, bytes);
}

void Recorder::copy_out(WGPUBuffer from, std::uint64_t offset, WGPUBuffer to, std::uint64_t bytes) {
  end_pass();
  wgpuCommandEncoderCopyBufferToBuffer(main(), from, offset, to, 0, bytes);
}

void Recorder::resolve(WGPUQuerySet queries, std::uint32_t count, WGPUBuffer to) {
  end_pass();
  wgpuCommandEncoderResolveQuerySet(main(), queries, 0, count, to, 0);
}

std::uint32_t Recorder::begin_launch(std::span<const std::byte> ring_data) {
  if (recorded_ >= batch_limit_) {
    flush();
    grow_batches();
  }
  if (ring_data.empty()) return 0;
  auto at = ring_.append(ring_data, gpu_.native.uniform_alignment);
  if (!at) {
    flush();
    at = ring_.append(ring_data, gpu_.native.uniform_alignment);
  }
  return static_cast<std::uint32_t>(*at);
}

void Recorder::set_pipeline(WGPUComputePipeline pipeline) {
  const WGPUComputePassEncoder encoder = pass();
  if (pipeline_ == pipeline) return;
  wgpuComputePassEncoderSetPipeline(encoder, pipeline);
  pipeline_ = pipeline;
}

void Recorder::set_group(std::uint32_t index, WGPUBindGroup group, std::uint64_t serial,
                         const std::uint32_t* offset) {
  CurrentGroup& current = groups_[index];
  const CurrentGroup wanted{serial, offset == nullptr ? 0 : *offset};
  if (current.serial == wanted.serial && current.offset == wanted.offset) return;
  wgpuComputePassEncoderSetBindGroup(pass(), index, group, offset == nullptr ? 0 : 1, offset);
  current = wanted;
}

void Recorder::set_immediates(std::span<const std::byte> data) {
  wgpuComputePassEncoderSetImmediates(pass(), 0, data.data(), data.size());
}

void Recorder::dispatch(const std::array<std::uint32_t, 3>& grid) {
  wgpuComputePassEncoderDispatchWorkgroups(pass(), grid[0], grid[1], grid[2]);
  ++recorded_;
  if (timed_ != nullptr) end_pass();
  timed_ = nullptr;
}

void Recorder::time_next(WGPUQuerySet queries, std::uint32_t first) {
  end_pass();
  timed_ = queries;
  timed_first_ = first;
}

void Recorder::stamp(WGPUQuerySet queries, std::uint32_t first) {
  time_next(queries, first);
  pass();
  end_pass();
  timed_ = nullptr;
}

WGPUComputePassEncoder Recorder::pass() {
  if (pass_) return pass_.get();
  WGPUPassTimestampWrites writes = WGPU_PASS_TIMESTAMP_WRITES_INIT;
  writes.querySet = timed_;
  writes.beginningOfPassWriteIndex = timed_first_;
  writes.endOfPassWriteIndex = timed_first_ + 1;
  WGPUComputePassDescriptor descriptor = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
  descriptor.timestampWrites = timed_ == nullptr ? nullptr : &writes;
  pass_ = ComputePassHandle(wgpuCommandEncoderBeginComputePass(main(), &descriptor));
  pipeline_ = nullptr;
  groups_.fill({});
  return pass_.get();
}

WGPUCommandEncoder Recorder::main() {
  if (!main_) main_ = encoder();
  return main_.get();
}

WGPUCommandEncoder Recorder::prologue() {
  if (!prologue_) prologue_ = encoder();
  return prologue_.get();
}

CommandEncoderHandle Recorder::encoder() {
  ErrorScope scope(gpu_);
  CommandEncoderHandle made(wgpuDeviceCreateCommandEncoder(gpu_.device.get(), nullptr));
  gpu_.raise(scope.take(), "webgpu: cannot record work");
  return made;
}

WGPUCommandEncoder Recorder::encoder_for_copy(GpuMemory& to) {
  if (!used(to)) {
    to.written_at = batch_;
    return prologue();
  }
  end_pass();
  return main();
}

void Recorder::end_pass() {
  if (!pass_) return;
  wgpuComputePassEncoderEnd(pass_.get());
  pass_.reset();
}

Submission Recorder::flush() {
  if (!main_ && !prologue_ && queued_bytes_ == 0) return last_;
  const TraceSpan span("submit");
  if (!main_ && !prologue_) gpu_.check_alive();
  // A fault of what was recorded, or a lost device, must be found before the submit: wgpu-native
  // would end the process.
  ErrorScope scope(gpu_);
  end_pass();
  std::array<CommandBufferHandle, 2> finished;
  std::array<WGPUCommandBuffer, 2> commands{};
  std::size_t count = 0;
  for (CommandEncoderHandle* encoder : {&prologue_, &main_}) {
    if (!*encoder) continue;
    finished[count] = CommandBufferHandle(wgpuCommandEncoderFinish(encoder->get(), nullptr));
    commands[count] = finished[count].get();
    ++count;
    encoder->reset();
  }
  staging_.upload();
  ring_.upload();
  submit(scope.take(), std::span(commands).first(count));
  return last_;
}

Submission Recorder::flush_and_restart() {
  batch_limit_ = first_batch(gpu_.limits);
  return flush();
}

void Recorder::submit(std::optional<Fault> fault, std::span<const WGPUCommandBuffer> commands) {
  ++batch_;
  recorded_ = 0;
  timed_ = nullptr;
  gpu_.raise(std::move(fault),
             "webgpu: the device refused work that was recorded, and all that came with it");
  last_ = gpu_.submit(commands);
  if (queued_bytes_ != 0) staged_.push_back({last_, queued_bytes_});
  staged_bytes_ += std::exchange(queued_bytes_, 0);
  ++submits_;
  bound_flight();
}

void Recorder::bound_flight() {
  // A program that never reads must not queue an unlimited amount of work.
  if (last_ <= most_in_flight || gpu_.done() >= last_ - most_in_flight) return;
  const TraceSpan span("wait for room in the queue");
  gpu_.wait(last_ - most_in_flight);
}

// Batches grow only while the device waits for the host. A device that is behind has enough to do.
void Recorder::grow_batches() {
  constexpr Submission behind = 2;
  if (gpu_.done() + behind >= last_) batch_limit_ = std::min(batch_limit_ * 2, largest_batch);
}

}  // namespace kiln::wgpu
