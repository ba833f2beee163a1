#include "kiln/runtime/cpu/cpu_runtime.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/runtime/cpu/parallel.hpp"
#include "kiln/support/error.hpp"

namespace kiln::cpu {
namespace {

constexpr std::uint64_t spare_bytes = 256 << 20;
constexpr std::array accepted = {Language::cpp};

std::uint64_t memory_of_the_machine() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0
             ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size)
             : std::uint64_t{1} << 40;
}

/// The processor's name, as the system gives it.
std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t at = line.find(": ");
    if (at != std::string::npos) return line.substr(at + 2);
  }
  return "host";
}

Limits limits_of_the_host() {
  const std::uint64_t bytes = memory_of_the_machine();
  return {.buffer_bytes = bytes,
          .binding_bytes = bytes,
          .storage_buffers = 64,
          .offset_alignment = 4,
          .f16 = true,
          .timestamps = true};
}

}  // namespace

HostMemory::HostMemory(std::uint64_t bytes, HostClaim promised)
    : size(bytes), claim(std::move(promised)) {
  constexpr std::uint64_t line = 64;
  constexpr std::uint64_t huge = 2 << 20;
  const std::uint64_t alignment = bytes >= huge ? huge : line;
  const std::uint64_t whole = (bytes + alignment - 1) / alignment * alignment;
  data = static_cast<std::byte*>(std::aligned_alloc(alignment, whole));
#ifdef MADV_HUGEPAGE
  // Large pages, because the first write to each page of 4 KiB would cost a page fault.
  if (data != nullptr && bytes >= huge) (void)madvise(data, whole, MADV_HUGEPAGE);
#endif
}

HostMemory::~HostMemory() {
  std::free(data);
}  // NOLINT(cppcoreguidelines-no-malloc): aligned_alloc's

/// Memory that is in use. It goes back to the pool when this ends.
class PooledBuffer final : public HostBuffer {
 public:
  PooledBuffer(std::shared_ptr<CpuRuntime> runtime, std::unique_ptr<HostMemory> memory,
               std::uint64_t id)
      : HostBuffer(memory->data, memory->size, id),
        runtime_(std::move(runtime)),
        memory_(std::move(memory)) {}
  PooledBuffer(const PooledBuffer&) = delete;
  PooledBuffer& operator=(const PooledBuffer&) = delete;
  ~PooledBuffer() override {
    runtime_->pool_.give_back(std::move(memory_));
    runtime_->pool_.garbage();  // nothing else refers to it
  }

 private:
  std::shared_ptr<CpuRuntime> runtime_;
  std::unique_ptr<HostMemory> memory_;
};

namespace {

class AdoptedBuffer final : public HostBuffer {
 public:
  AdoptedBuffer(std::byte* data, std::uint64_t size, std::uint64_t id, std::shared_ptr<void> owner)
      : HostBuffer(data, size, id), owner_(std::move(owner)) {
    freeze();
  }
  AdoptedBuffer(const AdoptedBuffer&) = delete;
  AdoptedBuffer& operator=(const AdoptedBuffer&) = delete;
  /// The owner's destructor is code of another library: it must not run while the queue does.
  ~AdoptedBuffer() override {
    if (QueueRun* run = QueueRun::current()) run->leave(std::move(owner_));
  }

 private:
  std::shared_ptr<void> owner_;
};

}  // namespace

CpuRuntime::CpuRuntime()
    : adapter_(fmt::format("{}, {} threads", processor(), threads())),
      limits_(limits_of_the_host()),
      pool_(spare_bytes),
      track_("cpu: " + adapter_, [] {}) {}

CpuRuntime::~CpuRuntime() { drop_extensions(); }

std::span<const Language> CpuRuntime::languages() const { return accepted; }

BufferPtr CpuRuntime::allocate(std::uint64_t bytes) {
  if (bytes > limits_.buffer_bytes) {
    throw OutOfMemoryError(fmt::format("cpu: {} bytes in one buffer were asked for; \"{}\" has {}",
                                       bytes, adapter_, limits_.buffer_bytes));
  }
  auto memory = obtain(size_class(bytes, limits_.buffer_bytes));
  QueueRun::count_allocation();
  return std::make_shared<PooledBuffer>(std::static_pointer_cast<CpuRuntime>(shared_from_this()),
                                        std::move(memory),
                                        next_id_.fetch_add(1, std::memory_order_relaxed));
}

std::unique_ptr<HostMemory> CpuRuntime::obtain(std::uint64_t size) {
  if (auto pooled = pool_.take(size)) return pooled;
  try {
    pool_.garbage();
    if (auto memory = create(size)) return memory;
    trim();
    if (auto memory = create(size)) return memory;
  } catch (...) {
    pool_.forget(size);
    throw;
  }
  pool_.forget(size);
  throw OutOfMemoryError(
      fmt::format("cpu: no {} bytes are left; this program holds {}, and the machine has {} more",
                  size, pool_.counts().bytes_in_use, host_memory_left()));
}

/// Null if the machine does not have so much.
std::unique_ptr<HostMemory> CpuRuntime::create(std::uint64_t size) {
  auto claim = HostClaim::take(size);
  if (!claim) return nullptr;
  auto memory = std::make_unique<HostMemory>(size, std::move(*claim));
  return memory->data == nullptr ? nullptr : std::move(memory);
}

BufferPtr CpuRuntime::adopt(std::byte* data, std::uint64_t bytes, std::shared_ptr<void> owner) {
  return std::make_shared<AdoptedBuffer>(
      data, bytes, next_id_.fetch_add(1, std::memory_order_relaxed), std::move(owner));
}

std::byte* CpuRuntime::data_of(std::string_view call, const BufferPtr& buffer) const {
  if (buffer == nullptr) throw Error(fmt::format("{}: no buffer was given", call));
  const auto* own = dynamic_cast<const HostBuffer*>(buffer.get());
  if (own == nullptr)
    throw DeviceError(fmt::format("{}: the buffer belongs to another device than cpu", call));
  return own->data();
}

std::byte* CpuRuntime::part_of(std::string_view call, const BufferPtr& buffer, std::uint64_t offset,
                               std::uint64_t bytes) const {
  std::byte* data = data_of(call, buffer);
  if (offset > buffer->size() || bytes > buffer->size() - offset) {
    throw Error(fmt::format("{}: {} bytes at {} lie outside a buffer of {}", call, bytes, offset,
                            buffer->size()));
  }
  return data + offset;
}

void CpuRuntime::write(const BufferPtr& buffer, std::uint64_t offset,
                       std::span<const std::byte> data) {
  std::byte* to = part_of("cpu: write", buffer, offset, data.size());
  if (!data.empty()) std::memcpy(to, data.data(), data.size());
}

void CpuRuntime::fill(const BufferPtr& buffer, std::uint64_t offset, std::uint64_t bytes,
                      std::uint32_t word) {
  if (offset % 4 != 0 || bytes % 4 != 0) {
    throw Error(
        fmt::format("cpu: fill: {} bytes at {}: both must be multiples of 4", bytes, offset));
  }
  std::byte* to = part_of("cpu: fill", buffer, offset, bytes);
  for (std::uint64_t at = 0; at < bytes; at += 4) std::memcpy(to + at, &word, 4);
}

std::future<std::vector<std::byte>> CpuRuntime::read(const BufferPtr& buffer, std::uint64_t offset,
                                                     std::uint64_t bytes) {
  const std::byte* from = part_of("cpu: read", buffer, offset, bytes);
  std::promise<std::vector<std::byte>> promise;
  promise.set_value({from, from + bytes});
  return promise.get_future();
}

CompiledKernelPtr CpuRuntime::compile(const KernelId& id, std::string_view label) {
  throw UnsupportedError(fmt::format("{}: the kernel is {}; \"cpu: {}\" takes C++ functions", label,
                                     to_string(id.language), adapter_));
}

void CpuRuntime::launch(const CompiledKernelPtr&, std::span<const Binding>,
                        std::span<const std::byte>, const std::array<std::uint32_t, 3>&) {
  throw KernelError("cpu: the kernel was compiled for another device");
}

RuntimeCounters CpuRuntime::counters() const {
  const auto memory = pool_.counts();
  return {.launches = launches_,
          .allocated = memory.allocated,
          .reused = memory.reused,
          .bytes_in_use = memory.bytes_in_use,
          .bytes_pooled = memory.bytes_pooled};
}

void CpuRuntime::timed(std::string_view label, std::uint64_t begin) {
  const std::uint64_t nanoseconds = host_nanoseconds() - begin;
  if (Trace::recording()) {
    const std::string_view span = current_trace_span();
    track_.launch({.name = std::string(span.empty() ? label : span),
                   .begin = begin,
                   .duration = nanoseconds,
                   .kernel = std::string(label)});
  }
  if (!timed_) return;
  const std::lock_guard lock(times_mutex_);
  times_.push_back({std::string(label), nanoseconds, begin});
}

std::vector<LaunchTime> CpuRuntime::launch_times() {
  const std::lock_guard lock(times_mutex_);
  return std::exchange(times_, {});
}

void CpuRuntime::trim() {
  pool_.trim();
  pool_.garbage();
}

Device device() {
  // Never destroyed: tensors may end while statics end, and threads need it.
  static const auto& shared = *new std::shared_ptr<CpuRuntime>(std::make_shared<CpuRuntime>());
  trace_by_environment();
  return Device(shared);
}

}  // namespace kiln::cpu
