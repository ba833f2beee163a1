#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "kiln/runtime/webgpu/device/gpu.hpp"

namespace kiln::wgpu {

/// One entry of a bind group layout.
struct LayoutEntry {
  std::uint32_t binding = 0;
  WGPUBufferBindingType type = WGPUBufferBindingType_Storage;
  bool in_ring = false;         ///< the metadata block, whose offset changes with each launch
  std::uint64_t min_bytes = 0;  ///< the least that the kernel needs
  auto operator<=>(const LayoutEntry&) const = default;
};

/// A bind group layout. Equal entries share one layout, so that kernels can share bind groups.
struct GroupLayout {
  BindGroupLayoutHandle handle;
  std::uint64_t id = 0;
  std::vector<LayoutEntry> entries;
};

/// The layouts of a device. Safe to use from several threads.
class GroupLayouts {
 public:
  std::shared_ptr<const GroupLayout> get(Gpu& gpu, const std::vector<LayoutEntry>& entries);

 private:
  std::mutex mutex_;
  std::map<std::vector<LayoutEntry>, std::weak_ptr<const GroupLayout>> layouts_;
  std::size_t room_ = 64;  // from this number on, layouts without a kernel are dropped
};

/// A bind group and its number. No two groups have one number, not even if one takes the address of
/// another.
struct CachedGroup {
  BindGroupHandle handle;
  std::uint64_t serial = 0;
};

/// Bind groups by key: the layout's id, then id, offset and size of each buffer.
class BindGroups {
 public:
  [[nodiscard]] const CachedGroup* find(std::span<const std::uint64_t> key) const;
  const CachedGroup& insert(std::span<const std::uint64_t> key, BindGroupHandle group);
  /// Drops all groups if there are too many. What find() and insert() gave is valid until then.
  void make_room();
  /// Drops the groups that bind one of these buffers, because a group keeps its buffers' memory.
  void forget(std::span<const std::uint64_t> buffer_ids);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::span<const std::uint64_t> key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) const;
  };
  static constexpr std::size_t most = 4096;

  std::unordered_map<std::vector<std::uint64_t>, CachedGroup, Hash, Equal> groups_;
  std::uint64_t next_serial_ = 1;
};

}  // namespace kiln::wgpu
