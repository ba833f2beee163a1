#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kernel/kernel_id.hpp"
#include "kiln/runtime/buffer.hpp"

namespace kiln {

/// What an adapter can do, in the adapter's own numbers (not the defaults of an API).
struct Limits {
  std::uint64_t buffer_bytes = 0;           ///< largest buffer
  std::uint64_t binding_bytes = 0;          ///< largest part of a buffer that a kernel can see
  std::uint32_t storage_buffers = 0;        ///< buffers one kernel can bind
  std::uint32_t workgroup_bytes = 0;        ///< workgroup memory
  std::uint32_t workgroup_invocations = 0;  ///< threads of a workgroup
  std::array<std::uint32_t, 3> workgroup_size{};  ///< the same, per dimension
  std::uint32_t workgroups = 0;                   ///< workgroups in one dimension of a grid
  std::uint32_t immediate_bytes = 0;              ///< metadata that fits without a buffer
  std::uint32_t offset_alignment = 0;             ///< of a buffer binding's offset, in bytes
  bool f16 = false;                               ///< kernels may use f16
  bool timestamps = false;
  bool software_adapter = false;  ///< of a GPU's API, whose kernels the host's cores run
  /// Rounds that the loops of one thread may take, all of them together; 0: as many as they like.
  /// Mesa's llvmpipe ends every loop of a thread silently when it has had 65,535.
  std::uint32_t loop_rounds = 0;
  /// Threads of a subgroup on a software adapter whose kernels may use subgroup operations; else 0.
  std::uint32_t subgroup = 0;
};

/// A buffer as one launch sees it.
struct Binding {
  BufferPtr buffer;
  std::uint64_t offset = 0;  ///< bytes; a multiple of Limits::offset_alignment
  std::uint64_t size = 0;    ///< bytes, a multiple of 4; 0 means up to the end of the buffer
};

/// A kernel that a runtime has compiled; valid for that runtime alone.
class CompiledKernel {
 public:
  CompiledKernel() = default;
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;
  virtual ~CompiledKernel() = default;
};
using CompiledKernelPtr = std::shared_ptr<const CompiledKernel>;

/// Counts since the runtime was opened.
struct RuntimeCounters {
  std::uint64_t launches = 0;
  std::uint64_t submits = 0;
  std::uint64_t compiled = 0;      ///< kernels compiled
  std::uint64_t allocated = 0;     ///< buffers the driver was asked for
  std::uint64_t reused = 0;        ///< buffers served from the pool
  std::uint64_t bytes_in_use = 0;  ///< held by live buffers
  std::uint64_t bytes_pooled = 0;  ///< waiting in the pool
};

/// Time one launch took on the device.
struct LaunchTime {
  std::string label;
  std::uint64_t nanoseconds = 0;
  /// Nanoseconds of std::chrono::steady_clock. Never too early; late by as much as the host needed
  /// to notice that the work was done, and by the same for all that one call waited for.
  std::uint64_t begin = 0;
};

/// What a higher stage keeps with a runtime: its prepared kernels, its queued work.
class RuntimeExtension {
 public:
  RuntimeExtension() = default;
  RuntimeExtension(const RuntimeExtension&) = delete;
  RuntimeExtension& operator=(const RuntimeExtension&) = delete;
  virtual ~RuntimeExtension() = default;
  /// Hands what is queued to the runtime. It does not wait for other threads that do the same.
  virtual void flush() {}
  /// The same, and waits for what other threads hand over.
  virtual void finish() { flush(); }
};

/// One opened device. Work is done in the order of the calls. Only `read(...).get()`,
/// `synchronize()` and `launch_times()` wait. Safe to use from several threads. Errors that the
/// device reports late are thrown by the next call.
class Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  /// The name of the runtime, such as "webgpu".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// The adapter as its driver calls it.
  [[nodiscard]] virtual const std::string& adapter() const = 0;
  /// The languages of kernels that it accepts, and what it can do.
  [[nodiscard]] virtual std::span<const Language> languages() const = 0;
  [[nodiscard]] virtual const Limits& limits() const = 0;

  /// How long it may do nothing until nobody waits for it any more: KILN_DEVICE_TIMEOUT, unless the
  /// runtime says otherwise.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const;

  /// A buffer of undefined contents. Throws OutOfMemoryError with the bytes asked for and the
  /// adapter's limit. `bytes` may be 0.
  virtual BufferPtr allocate(std::uint64_t bytes) = 0;
  /// Copies `data` before it returns; lands between the launches before and after it.
  virtual void write(const BufferPtr& buffer, std::uint64_t offset,
                     std::span<const std::byte> data) = 0;
  /// Sets every 32-bit word of [offset, offset + bytes) to `word`, in order with the launches. Both
  /// multiples of 4.
  virtual void fill(const BufferPtr& buffer, std::uint64_t offset, std::uint64_t bytes,
                    std::uint32_t word) = 0;
  /// The bytes as they are after all work before this call. It does not wait; `get()` on the future
  /// does.
  virtual std::future<std::vector<std::byte>> read(const BufferPtr& buffer, std::uint64_t offset,
                                                   std::uint64_t bytes) = 0;
  /// Waits until all work is done.
  virtual void synchronize() = 0;

  /// Compiles, or finds what was compiled before. `label` is for traces and errors only.
  /// Throws KernelError with the compiler's message.
  virtual CompiledKernelPtr compile(const KernelId& id, std::string_view label) = 0;
  /// Queues one launch. `bindings` in the order of KernelId::bindings; `metadata` is
  /// KernelId::metadata_bytes long. Throws KernelError for what the device would not survive: a
  /// grid above the limit, an empty or misaligned binding, one buffer as read and as read_write or
  /// twice as read_write, metadata of another size. A grid with a zero does nothing.
  virtual void launch(const CompiledKernelPtr& kernel, std::span<const Binding> bindings,
                      std::span<const std::byte> metadata,
                      const std::array<std::uint32_t, 3>& grid) = 0;

  /// Counts since the runtime was opened.
  [[nodiscard]] virtual RuntimeCounters counters() const = 0;
  /// Turns timing of launches on or off. A timed launch gets a pass of its own, which costs time
  /// between launches. Throws UnsupportedError where the adapter has no timestamps.
  virtual void time_launches(bool on) = 0;
  /// Waits, then gives the times gathered since the last call, in order.
  virtual std::vector<LaunchTime> launch_times() = 0;
  /// Gives unused pooled memory back to the driver.
  virtual void trim() = 0;

  /// This runtime's extension of type T, made as T(runtime) by the first call.
  template <class T>
  T& extension() {
    static_assert(std::is_base_of_v<RuntimeExtension, T>);
    static constexpr char tag = 0;
    const auto make = [](Runtime& runtime) -> std::unique_ptr<RuntimeExtension> {
      return std::make_unique<T>(runtime);
    };
    return static_cast<T&>(extension(&tag, make));
  }
  /// Has every extension hand over what it has queued, by `flush` or `finish`.
  void flush_extensions(void (RuntimeExtension::*how)() = &RuntimeExtension::flush);

 protected:
  /// For destructors: compiled kernels must go before the device they were compiled on.
  void drop_extensions() { extensions_.clear(); }

 private:
  using MakeExtension = std::unique_ptr<RuntimeExtension> (*)(Runtime&);
  RuntimeExtension& extension(const void* tag, MakeExtension make);

  std::mutex extensions_mutex_;
  std::vector<std::pair<const void*, std::unique_ptr<RuntimeExtension>>> extensions_;
};

}  // namespace kiln
