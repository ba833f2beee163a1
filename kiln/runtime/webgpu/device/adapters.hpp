#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/runtime/webgpu/device/native.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"

namespace kiln::wgpu {

struct Adapter {
  AdapterHandle handle;
  AdapterInfo info;
};

/// The adapters of this machine: discrete GPUs, integrated ones, others, software.
std::vector<Adapter> find_adapters();

/// The number of the first adapter of `kind` whose name contains `name`, in any case.
std::optional<std::size_t> pick_adapter(std::span<const AdapterInfo> adapters,
                                        std::string_view name, AdapterKind kind);

/// Picks among the adapters of this machine. Throws DeviceError with their list if none fits.
Adapter choose_adapter(std::string_view name, AdapterKind kind);

}  // namespace kiln::wgpu
