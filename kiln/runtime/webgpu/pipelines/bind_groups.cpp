#include "kiln/runtime/webgpu/pipelines/bind_groups.hpp"

#include <algorithm>
#include <atomic>

namespace kiln::wgpu {

namespace {

// One counter for all devices and caches: the key of a bind group must not fit a later layout.
std::atomic<std::uint64_t> next_id = 1;

}  // namespace

std::shared_ptr<const GroupLayout> GroupLayouts::get(Gpu& gpu,
                                                     const std::vector<LayoutEntry>& entries) {
  const std::lock_guard lock(mutex_);
  if (const auto found = layouts_.find(entries); found != layouts_.end()) {
    if (auto known = found->second.lock()) return known;
  }
  std::vector<WGPUBindGroupLayoutEntry> native(entries.size(), WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    native[i].binding = entries[i].binding;
    native[i].visibility = WGPUShaderStage_Compute;
    native[i].buffer.type = entries[i].type;
    native[i].buffer.hasDynamicOffset = entries[i].in_ring ? 1 : 0;
    native[i].buffer.minBindingSize = entries[i].min_bytes;
  }
  WGPUBindGroupLayoutDescriptor descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  descriptor.entryCount = native.size();
  descriptor.entries = native.data();
  auto layout = std::make_shared<GroupLayout>();
  ErrorScope scope(gpu);
  layout->handle =
      BindGroupLayoutHandle(wgpuDeviceCreateBindGroupLayout(gpu.device.get(), &descriptor));
  gpu.raise(scope.take(), "webgpu: cannot lay out bindings");
  layout->id = next_id.fetch_add(1, std::memory_order_relaxed);
  layout->entries = entries;
  if (layouts_.size() >= room_) {
    std::erase_if(layouts_, [](const auto& entry) { return entry.second.expired(); });
    room_ = 64 + layouts_.size() * 2;
  }
  layouts_[entries] = layout;
  return layout;
}

const CachedGroup* BindGroups::find(std::span<const std::uint64_t> key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : &found->second;
}

const CachedGroup& BindGroups::insert(std::span<const std::uint64_t> key, BindGroupHandle group) {
  return groups_
      .insert_or_assign(std::vector(key.begin(), key.end()),
                        CachedGroup{std::move(group), next_serial_++})
      .first->second;
}

void BindGroups::make_room() {
  if (groups_.size() >= most) groups_.clear();  // rare; those in use are made again at once
}

void BindGroups::forget(std::span<const std::uint64_t> buffer_ids) {
  if (buffer_ids.empty()) return;
  std::erase_if(groups_, [&](const auto& entry) {
    for (std::size_t i = 1; i < entry.first.size(); i += 3) {
      if (std::ranges::find(buffer_ids, entry.first[i]) != buffer_ids.end()) return true;
    }
    return false;
  });
}

std::size_t BindGroups::Hash::operator()(std::span<const std::uint64_t> key) const {
  std::uint64_t hash = key.size();
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  }
  return hash;
}

bool BindGroups::Equal::operator()(std::span<const std::uint64_t> a,
                                   std::span<const std::uint64_t> b) const {
  return std::ranges::equal(a, b);
}

}  // namespace kiln::wgpu
