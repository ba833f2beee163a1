#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "kiln/runtime/webgpu/device/gpu.hpp"
#include "kiln/runtime/webgpu/memory/memory.hpp"

namespace kiln::wgpu {

/// Bytes that are gathered on the host and sent in one write before the batch that uses them. One
/// device buffer serves all batches, since the queue works in order.
class Arena {
 public:
  Arena(Gpu& gpu, WGPUBufferUsage usage, std::uint64_t capacity)
      : gpu_(gpu), usage_(usage), capacity_(capacity) {}

  /// Where the bytes will lie in buffer(); nothing if the arena is full. They are padded to a
  /// multiple of 4.
  std::optional<std::uint64_t> append(std::span<const std::byte> data, std::uint64_t alignment);
  /// Queues the write, and empties the arena.
  void upload();
  void clear() { filled_ = 0; }
  /// The device buffer. The first call makes it.
  WGPUBuffer buffer();

 private:
  Gpu& gpu_;
  WGPUBufferUsage usage_;
  std::uint64_t capacity_;
  std::uint64_t filled_ = 0;
  std::unique_ptr<std::byte[]> host_;
  BufferHandle buffer_;
};

/// Records work and submits it in batches. A batch has two parts. The prologue copies into buffers
/// that the batch has not used before, so that uploads do not end the compute pass. The main part
/// has everything else, in order. Its owner locks: it is not safe to use from several threads.
class Recorder {
 public:
  explicit Recorder(Gpu& gpu);

  /// Queues a copy of `data`, at most `copy_in_limit` bytes. Offset and size are multiples of 4.
  static constexpr std::size_t copy_in_limit = 64 << 10;
  void copy_in(GpuMemory& to, std::uint64_t offset, std::span<const std::byte> data);
  /// The same for any size. wgpu-native keeps a copy of such data until the write is done. Beyond
  /// `most_staged` bytes of copies this waits for earlier writes.
  static constexpr std::uint64_t most_staged = 256 << 20;
  void copy_in_large(GpuMemory& to, std::uint64_t offset, std::span<const std::byte> data);
  void clear(GpuMemory& memory, std::uint64_t offset, std::uint64_t bytes);
  void copy_out(WGPUBuffer from, std::uint64_t offset, WGPUBuffer to, std::uint64_t bytes);
  void resolve(WGPUQuerySet queries, std::uint32_t count, WGPUBuffer to);
  /// Whether the open batch has used the buffer already.
  [[nodiscard]] bool used(const GpuMemory& memory) const { return memory.used_at == batch_; }

  /// Begins a launch. What follows up to dispatch() goes into one batch. Gives the place of
  /// `ring_data` in the ring.
  std::uint32_t begin_launch(std::span<const std::byte> ring_data);
  void set_pipeline(WGPUComputePipeline pipeline);
  /// Sets a bind group, whose number is `serial`. The launch's metadata lies at `offset` in the
  /// ring.
  void set_group(std::uint32_t index, WGPUBindGroup group, std::uint64_t serial,
                 const std::uint32_t* offset);
  void set_immediates(std::span<const std::byte> data);
  void use(GpuMemory& memory) { memory.used_at = batch_; }
  void dispatch(const std::array<std::uint32_t, 3>& grid);
  /// The next launch gets a compute pass of its own. Two queries receive the times of its begin and
  /// end.
  void time_next(WGPUQuerySet queries, std::uint32_t first);
  /// An empty compute pass, timed by two queries.
  void stamp(WGPUQuerySet queries, std::uint32_t first);

  [[nodiscard]] WGPUBuffer ring() { return ring_.buffer(); }
  /// Submits what was recorded.
  Submission flush();
  /// The same before a wait for it. The batches after it start small again.
  Submission flush_and_restart();
  [[nodiscard]] std::uint64_t submits() const { return submits_; }

 private:
  struct CurrentGroup {
    std::uint64_t serial = 0;
    std::uint32_t offset = 0;
  };

  WGPUComputePassEncoder pass();
  WGPUCommandEncoder main();
  WGPUCommandEncoder prologue();
  CommandEncoderHandle encoder();
  WGPUCommandEncoder encoder_for_copy(GpuMemory& to);
  void end_pass();
  void submit(std::optional<Fault> fault, std::span<const WGPUCommandBuffer> commands);
  void stage(std::uint64_t bytes);
  void bound_flight();
  void grow_batches();

  Gpu& gpu_;
  Arena staging_;
  Arena ring_;
  CommandEncoderHandle prologue_;
  CommandEncoderHandle main_;
  ComputePassHandle pass_;
  WGPUComputePipeline pipeline_ = nullptr;
  std::array<CurrentGroup, 4> groups_;
  WGPUQuerySet timed_ = nullptr;
  std::uint32_t timed_first_ = 0;

  std::uint64_t batch_ = 1;
  struct Staged {
    Submission submission = 0;
    std::uint64_t bytes = 0;
  };
  std::uint64_t queued_bytes_ = 0;  // of writes that are not submitted yet
  std::deque<Staged> staged_;       // submitted writes that may not be done
  std::uint64_t staged_bytes_ = 0;
  std::uint32_t recorded_ = 0;  // launches in the open batch
  std::uint32_t batch_limit_;
  std::uint64_t submits_ = 0;
  static constexpr std::size_t most_in_flight = 32;
  Submission last_ = 0;
};

}  // namespace kiln::wgpu
