#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "kiln/runtime/device.hpp"

namespace kiln {

/// The kinds of adapter a machine may have.
enum class AdapterKind : std::uint8_t { any, discrete_gpu, integrated_gpu, cpu };

/// The kind as text: "discrete GPU", "integrated GPU", "CPU", "any".
///
///     to_string(AdapterKind::cpu);   // "CPU"
std::string_view to_string(AdapterKind kind);

/// One adapter of this machine.
struct AdapterInfo {
  std::string name;  ///< as the driver calls it
  AdapterKind kind = AdapterKind::any;
  std::string driver;   ///< driver and version
  std::string backend;  ///< as wgpu-native calls it: "Vulkan"
};

namespace webgpu {

/// Which adapter to open, and how.
struct Options {
  std::string
      adapter;  ///< a part of its name, any case; empty: the first GPU, else the first of all
  AdapterKind kind = AdapterKind::any;  ///< only adapters of this kind
  Flag f16 = true;                      ///< ask for f16 where the adapter has it
  /// The one language of kernels that the device takes: WGSL or SPIR-V. The kernels that kiln
  /// generates (elementwise, reductions) are WGSL.
  Language language = Language::wgsl;
  /// How long a batch of work on the device, or compiling a kernel, may take before the device
  /// counts as lost. 0: the environment variable KILN_DEVICE_TIMEOUT, in seconds; without it, 120
  /// s.
  std::chrono::milliseconds timeout{0};
};

/// The adapters of this machine, in the order in which they are tried. Empty without a driver.
///
///     for (const AdapterInfo& adapter : webgpu::adapters()) std::cout << adapter.name << "\n";
std::vector<AdapterInfo> adapters();

/// Opens an adapter with its own limits and features. Opening one again with equal options gives
/// the same opened adapter until it is lost. The environment variable KILN_ADAPTER replaces an
/// empty `adapter`. With KILN_PORTABLE=1 a device has no more than every WebGPU adapter has.
///
///     const Device gpu = webgpu::device();
///     const Device without_f16 = webgpu::device({.f16 = false});
///     const Device compiled = webgpu::device({.language = Language::spirv});
///     webgpu::device({.adapter = "no such adapter"});   // throws DeviceError
///
/// Throws DeviceError with the list of adapters where none fits, and for a language that no adapter
/// takes.
Device device(const Options& options = {});

}  // namespace webgpu

}  // namespace kiln
