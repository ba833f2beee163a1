#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/kernel/kernel_id.hpp"
#include "kiln/runtime/runtime.hpp"
#include "kiln/runtime/webgpu/device/gpu.hpp"
#include "kiln/runtime/webgpu/pipelines/bind_groups.hpp"

namespace kiln::wgpu {

/// A kernel compiled for one device.
class Pipeline final : public CompiledKernel {
 public:
  /// One bind group of the kernel.
  struct Group {
    std::shared_ptr<const GroupLayout> layout;
    std::vector<std::uint32_t>
        operands;  ///< numbers of the launch's bindings, in the order of the layout's entries
    bool has_ring = false;  ///< the last entry is the metadata block
  };

  std::shared_ptr<Gpu> gpu;  // first: released last
  std::string label;
  ComputePipelineHandle handle;
  std::vector<Group> groups;
  std::vector<BindingSlot> slots;
  std::vector<std::uint64_t> min_bytes;  ///< by slot
  std::uint32_t metadata_bytes = 0;
  bool metadata_immediate = false;
};

/// Compiles a kernel anew. Throws KernelError that begins with `label`.
std::shared_ptr<const Pipeline> compile_pipeline(const std::shared_ptr<Gpu>& gpu,
                                                 const std::shared_ptr<GroupLayouts>& layouts,
                                                 const KernelId& id, std::string_view label);

/// Compiles each kernel once, and keeps those that were asked for last. Safe to use from several
/// threads. A thread that compiles holds up only threads that want the same kernel.
class PipelineCache {
 public:
  using Compile =
      std::function<std::shared_ptr<const Pipeline>(const KernelId&, std::string_view label)>;

  explicit PipelineCache(const std::shared_ptr<Gpu>& gpu);
  explicit PipelineCache(Compile compile) : compile_(std::move(compile)) {}

  std::shared_ptr<const Pipeline> get(const KernelId& id, std::string_view label);
  [[nodiscard]] std::uint64_t compiled() const { return compiled_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t kept() const;

  /// How many kernels are kept. Beyond that the one that was asked for longest ago is dropped; who
  /// holds it can still use it. On a software adapter a small kernel takes some 130 KB.
  static constexpr std::size_t most = 1024;

 private:
  struct Entry {
    std::mutex compiling;
    std::shared_ptr<const Pipeline> pipeline;
    std::uint64_t asked = 0;
  };
  struct Hash {
    std::size_t operator()(const KernelId& id) const { return hash_value(id); }
  };
  struct Same {
    bool operator()(const KernelId& a, const KernelId& b) const;
  };

  std::shared_ptr<Entry> entry_of(const KernelId& id);
  void make_room();

  Compile compile_;
  std::atomic<std::uint64_t> compiled_ = 0;
  mutable std::mutex mutex_;  // never held while something is compiled
  std::unordered_map<KernelId, std::shared_ptr<Entry>, Hash, Same> entries_;
  std::uint64_t clock_ = 0;
};

/// Throws KernelError for a kernel that needs more than the adapter has.
void check_kernel(const KernelId& id, std::string_view label, const Limits& limits,
                  const NativeLimits& native);

/// Writes the source to the folder that the environment variable KILN_DUMP_KERNELS names, if it is
/// set. Follows no link, changes no file that exists, and throws nothing.
void dump_kernel(const KernelId& id, std::string_view label);
/// Writes beside it, as JSON, what else the pipeline was made of. Call it for kernels that the
/// adapter's compiler has taken.
void dump_layout(const KernelId& id, std::string_view label);

/// A binding that needs more bytes than its layout grants.
struct NeededBytes {
  std::uint32_t group = 0;
  std::uint32_t binding = 0;
  std::uint64_t bytes = 0;
};
/// Reads it from wgpu-native's message; nothing if the message is about something else.
std::optional<NeededBytes> parse_needed_bytes(std::string_view message);

}  // namespace kiln::wgpu
