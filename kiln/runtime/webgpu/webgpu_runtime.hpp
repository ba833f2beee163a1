#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/runtime/runtime.hpp"
#include "kiln/runtime/webgpu/commands/launch_check.hpp"
#include "kiln/runtime/webgpu/commands/launch_timer.hpp"
#include "kiln/runtime/webgpu/commands/recorder.hpp"
#include "kiln/runtime/webgpu/device/gpu.hpp"
#include "kiln/runtime/webgpu/memory/memory.hpp"
#include "kiln/runtime/webgpu/pipelines/bind_groups.hpp"
#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"

namespace kiln::wgpu {

class WebGpuRuntime;

/// Memory that is in use. It goes back to the pool when this ends.
class WebGpuBuffer final : public Buffer {
 public:
  WebGpuBuffer(std::shared_ptr<WebGpuRuntime> runtime, GpuMemoryPtr memory);
  ~WebGpuBuffer() override;

  [[nodiscard]] const WebGpuRuntime* runtime() const { return runtime_.get(); }
  [[nodiscard]] GpuMemory& memory() const { return *memory_; }

 private:
  std::shared_ptr<WebGpuRuntime> runtime_;
  GpuMemoryPtr memory_;
};

/// The runtime over wgpu-native. One mutex guards what is recorded. The pools and the compiled
/// kernels have mutexes of their own: a buffer may end anywhere, and a slow compiler does not block
/// launches of other threads.
class WebGpuRuntime final : public Runtime {
 public:
  WebGpuRuntime(std::shared_ptr<Gpu> gpu, Language language);
  ~WebGpuRuntime() override;

  [[nodiscard]] std::string_view name() const override { return "webgpu"; }
  [[nodiscard]] const std::string& adapter() const override { return gpu_->adapter; }
  [[nodiscard]] std::span<const Language> languages() const override { return {&language_, 1}; }
  [[nodiscard]] const Limits& limits() const override;
  [[nodiscard]] std::chrono::milliseconds patience() const override { return gpu_->patience; }

  BufferPtr allocate(std::uint64_t bytes) override;
  void write(const BufferPtr& buffer, std::uint64_t offset,
             std::span<const std::byte> data) override;
  void fill(const BufferPtr& buffer, std::uint64_t offset, std::uint64_t bytes,
            std::uint32_t word) override;
  std::future<std::vector<std::byte>> read(const BufferPtr& buffer, std::uint64_t offset,
                                           std::uint64_t bytes) override;
  void synchronize() override;

  CompiledKernelPtr compile(const KernelId& id, std::string_view label) override;
  void launch(const CompiledKernelPtr& kernel, std::span<const Binding> bindings,
              std::span<const std::byte> metadata,
              const std::array<std::uint32_t, 3>& grid) override;

  [[nodiscard]] RuntimeCounters counters() const override;
  void time_launches(bool on) override;
  std::vector<LaunchTime> launch_times() override;
  void trim() override;

  // From here on for this runtime alone.
  /// For the end of the process: hands launches to the trace, and waits for submitted work.
  void finish() noexcept;
  [[nodiscard]] bool lost() const { return gpu_->reports.lost(); }
  [[nodiscard]] Gpu& gpu() { return *gpu_; }
  [[nodiscard]] GpuMemoryPool& pool() { return pool_; }
  [[nodiscard]] GpuMemoryPool& read_pool() { return read_pool_; }

 private:
  struct Patch;

  // GpuMemory
  GpuMemoryPtr obtain(GpuMemoryPool& pool, std::uint64_t bytes, std::uint64_t limit,
                      WGPUBufferUsage usage);
  GpuMemoryPtr create(std::uint64_t size, WGPUBufferUsage usage);
  void make_memory_free();
  void drop_garbage();
  GpuMemory& memory_of(std::string_view call, const BufferPtr& buffer, std::uint64_t offset,
                       std::uint64_t bytes) const;
  // Transfers
  void write_words(GpuMemory& memory, std::uint64_t offset, std::span<const std::byte> data);
  void write_part(const Pipeline* kernel, GpuMemory& memory, std::uint64_t offset,
                  std::span<const std::byte> data);
  void patch(const Pipeline& kernel, GpuMemory& memory, const Patch& patch);
  std::shared_ptr<const Pipeline> patch_kernel();
  void give_to_trace();
  // Launches
  const Pipeline& pipeline_of(const CompiledKernelPtr& kernel) const;
  void record(const Pipeline& kernel, std::span<const LaunchOperand> operands,
              std::span<const std::byte> metadata, const std::array<std::uint32_t, 3>& grid);
  const CachedGroup& bind(const Pipeline& kernel, const Pipeline::Group& group,
                          std::span<const LaunchOperand> operands);
  const CachedGroup& make_group(const Pipeline& kernel, const Pipeline::Group& group,
                                std::span<const LaunchOperand> operands,
                                std::span<const std::uint64_t> key);

  std::shared_ptr<Gpu> gpu_;  // first: released last
  mutable std::once_flag probed_;
  const Language language_;
  PipelineCache pipelines_;
  std::mutex patch_mutex_;
  std::shared_ptr<const Pipeline> patch_kernel_;
  GpuMemoryPool pool_;
  GpuMemoryPool read_pool_;
  std::atomic<std::uint64_t> next_id_ = 1;

  mutable std::mutex mutex_;  // guards what follows; never held while something is compiled
  std::uint64_t launches_ = 0;
  BindGroups bind_groups_;
  Recorder recorder_;
  LaunchTimer timer_;

  TraceDevice track_;  // last: a trace that stops may ask for launches until it is gone
};

}  // namespace kiln::wgpu
