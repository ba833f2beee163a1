#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kiln/runtime/host_memory.hpp"
#include "kiln/runtime/memory_pool.hpp"
#include "kiln/runtime/queue_run.hpp"
#include "kiln/runtime/runtime.hpp"
#include "kiln/runtime/trace_log.hpp"

namespace kiln::cpu {

/// Host memory, aligned for any vector.
struct HostMemory {
  HostMemory(std::uint64_t bytes, HostClaim promised);
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();

  std::byte* data = nullptr;  ///< null if there was not so much
  std::uint64_t size = 0;
  HostClaim claim;
};

/// Memory that a kernel on the host may touch.
class HostBuffer : public Buffer {
 public:
  [[nodiscard]] std::byte* data() const { return data_; }

 protected:
  HostBuffer(std::byte* data, std::uint64_t size, std::uint64_t id)
      : Buffer(size, id), data_(data) {}

 private:
  std::byte* data_;
};

/// The runtime of the host. Every call does its work before it returns, so work is done in the
/// order of the calls.
class CpuRuntime final : public Runtime {
 public:
  CpuRuntime();
  ~CpuRuntime() override;

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] const std::string& adapter() const override { return adapter_; }
  [[nodiscard]] std::span<const Language> languages() const override;
  [[nodiscard]] const Limits& limits() const override { return limits_; }

  BufferPtr allocate(std::uint64_t bytes) override;
  void write(const BufferPtr& buffer, std::uint64_t offset,
             std::span<const std::byte> data) override;
  void fill(const BufferPtr& buffer, std::uint64_t offset, std::uint64_t bytes,
            std::uint32_t word) override;
  std::future<std::vector<std::byte>> read(const BufferPtr& buffer, std::uint64_t offset,
                                           std::uint64_t bytes) override;
  void synchronize() override {}

  /// Throws UnsupportedError: kernels of the host are compiled with the program.
  CompiledKernelPtr compile(const KernelId& id, std::string_view label) override;
  void launch(const CompiledKernelPtr& kernel, std::span<const Binding> bindings,
              std::span<const std::byte> metadata,
              const std::array<std::uint32_t, 3>& grid) override;

  [[nodiscard]] RuntimeCounters counters() const override;
  void time_launches(bool on) override { timed_ = on; }
  std::vector<LaunchTime> launch_times() override;
  void trim() override;

  /// Runs `f()`, the work of one launch. It is counted, and timed if that was asked for.
  template <class F>
  void run(std::string_view label, const F& f) {
    launches_.fetch_add(1, std::memory_order_relaxed);
    QueueRun::count_launch();
    if (!timed_ && !Trace::recording()) return f();
    const std::uint64_t begin = host_nanoseconds();
    f();
    timed(label, begin);
  }

  /// A frozen buffer over memory of another library, which `owner` keeps alive.
  BufferPtr adopt(std::byte* data, std::uint64_t bytes, std::shared_ptr<void> owner);

  /// The elements of a buffer. Throws DeviceError for one of another device.
  std::byte* data_of(std::string_view call, const BufferPtr& buffer) const;

 private:
  friend class PooledBuffer;
  std::unique_ptr<HostMemory> obtain(std::uint64_t size);
  static std::unique_ptr<HostMemory> create(std::uint64_t size);
  void timed(std::string_view label, std::uint64_t begin);
  std::byte* part_of(std::string_view call, const BufferPtr& buffer, std::uint64_t offset,
                     std::uint64_t bytes) const;

  std::string adapter_;
  Limits limits_;
  MemoryPool<HostMemory> pool_;
  std::atomic<std::uint64_t> next_id_ = 1;
  std::atomic<std::uint64_t> launches_ = 0;
  std::atomic<bool> timed_ = false;
  std::mutex times_mutex_;
  std::vector<LaunchTime> times_;
  TraceDevice track_;
};

/// The runtime as that of the host; null if it is another.
inline CpuRuntime* host(Runtime& runtime) { return dynamic_cast<CpuRuntime*>(&runtime); }
inline const CpuRuntime* host(const Runtime& runtime) {
  return dynamic_cast<const CpuRuntime*>(&runtime);
}

}  // namespace kiln::cpu
