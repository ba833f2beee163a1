#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "kiln/runtime/device.hpp"

namespace kiln {

/// The kinds of adapter a machine may have.
enum class AdapterKind : std::uint8_t { any, discrete_gpu, integrated_gpu, cpu };

/// "discrete GPU", "integrated GPU", "CPU", "any".
std::string_view to_string(AdapterKind kind);

/// One adapter of this machine.
struct AdapterInfo {
  std::string name;  ///< as the driver calls it
  AdapterKind kind = AdapterKind::any;
  std::string driver;   ///< driver and version
  std::string backend;  ///< "Vulkan", "Metal", "D3D12"
};

namespace webgpu {

/// Which adapter to open, and how.
struct Options {
  std::string
      adapter;  ///< a part of its name, any case; empty: the first GPU, else the first of all
  AdapterKind kind = AdapterKind::any;  ///< only adapters of this kind
  bool f16 = true;                      ///< ask for f16 where the adapter has it
  /// WGSL or SPIR-V: what kernels the device takes, and no others. Operations that kiln itself
  /// generates kernels for (elementwise, reductions) are WGSL.
  Language language = Language::wgsl;
  /// How long the device may take for a batch of work, or the driver to compile a kernel, before it
  /// counts as lost. 0: what the environment variable KILN_DEVICE_TIMEOUT says in seconds, else 120
  /// s.
  std::chrono::milliseconds timeout{0};
};

/// The adapters of this machine, in the order they are tried.
std::vector<AdapterInfo> adapters();

/// Opens an adapter with its own limits and features. Opening one again with equal options gives
/// the same opened adapter until it is lost. KILN_ADAPTER in the environment stands for an empty
/// `adapter`; with KILN_PORTABLE=1 a device has no more than every WebGPU adapter has.
///
///     Device gpu = webgpu::device();
///     Device software = webgpu::device({.adapter = "llvmpipe"});
///     Device compiled = webgpu::device({.language = Language::spirv});
///
/// Throws DeviceError with the list of adapters where none fits, and for a language that no adapter
/// takes.
Device device(const Options& options = {});

}  // namespace webgpu

}  // namespace kiln
