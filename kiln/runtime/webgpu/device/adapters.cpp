#include "kiln/runtime/webgpu/device/adapters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <mutex>

#include "kiln/support/error.hpp"

namespace kiln {

std::string_view to_string(AdapterKind kind) {
  switch (kind) {
    case AdapterKind::any:
      return "any";
    case AdapterKind::discrete_gpu:
      return "discrete GPU";
    case AdapterKind::integrated_gpu:
      return "integrated GPU";
    case AdapterKind::cpu:
      return "CPU";
  }
  return "unknown";
}

namespace wgpu {
namespace {

// The backends that wgpu-native supports fully. On Linux that is Vulkan: the others only report
// errors there.
#ifdef __linux__
constexpr WGPUInstanceBackend backends = WGPUInstanceBackend_Vulkan;
#else
constexpr WGPUInstanceBackend backends = WGPUInstanceBackend_Primary;
#endif

WGPUInstance create_instance() {
  wgpuSetLogLevel(WGPULogLevel_Off);  // errors are thrown, never printed
  WGPUInstanceExtras extras{};
  extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
  extras.backends = backends;
#ifdef NDEBUG
  extras.flags = WGPUInstanceFlag_DiscardHalLabels;
#endif
  WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &extras.chain;
  return wgpuCreateInstance(&descriptor);
}

// Never released: devices in static storage may outlive any static made here.
WGPUInstance instance() {
  static const WGPUInstance shared = create_instance();
  if (shared == nullptr) throw DeviceError("webgpu: cannot start wgpu-native");
  return shared;
}

AdapterKind kind_of(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU:
      return AdapterKind::discrete_gpu;
    case WGPUAdapterType_IntegratedGPU:
      return AdapterKind::integrated_gpu;
    case WGPUAdapterType_CPU:
      return AdapterKind::cpu;
    default:
      return AdapterKind::any;  // virtual, or the driver does not say
  }
}

std::string backend_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Vulkan:
      return "Vulkan";
    case WGPUBackendType_Metal:
      return "Metal";
    case WGPUBackendType_D3D12:
      return "D3D12";
    case WGPUBackendType_OpenGL:
    case WGPUBackendType_OpenGLES:
      return "OpenGL";
    default:
      return "WebGPU";
  }
}

AdapterInfo describe(WGPUAdapter adapter) {
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  if (wgpuAdapterGetInfo(adapter, &info) != WGPUStatus_Success) return {};
  AdapterInfo described{.name = text(info.device),
                        .kind = kind_of(info.adapterType),
                        .driver = text(info.description),
                        .backend = backend_name(info.backendType)};
  wgpuAdapterInfoFreeMembers(info);
  return described;
}

std::size_t rank(AdapterKind kind) {
  switch (kind) {
    case AdapterKind::discrete_gpu:
      return 0;
    case AdapterKind::integrated_gpu:
      return 1;
    case AdapterKind::any:
      return 2;
    case AdapterKind::cpu:
      return 3;
  }
  return 2;
}

bool contains(std::string_view name, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return part.empty() ||
         std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end();
}

std::string list(std::span<const AdapterInfo> adapters) {
  if (adapters.empty()) return "there is none: no driver was found";
  std::string all = "there are: ";
  for (const AdapterInfo& info : adapters) {
    if (&info != adapters.data()) all += ", ";
    all += fmt::format("\"{}\" ({}, {})", info.name, to_string(info.kind), info.backend);
  }
  return all;
}

}  // namespace

std::vector<Adapter> find_adapters() {
  const LibrarySection section;
  // One thread at a time: this loads drivers, and not every loader may be called by several
  // threads.
  static std::mutex loading;
  const std::lock_guard lock(loading);
  WGPUInstanceEnumerateAdapterOptions options{};
  options.backends = backends;
  std::vector<WGPUAdapter> raw(wgpuInstanceEnumerateAdapters(instance(), &options, nullptr));
  raw.resize(wgpuInstanceEnumerateAdapters(instance(), &options, raw.data()));
  std::array<std::vector<Adapter>, 4> by_rank;
  for (const WGPUAdapter adapter : raw) {
    AdapterInfo info = describe(adapter);
    const std::size_t at = rank(info.kind);
    by_rank[at].push_back({AdapterHandle(adapter), std::move(info)});
  }
  std::vector<Adapter> adapters;
  for (auto& same : by_rank) std::ranges::move(same, std::back_inserter(adapters));
  return adapters;
}

std::optional<std::size_t> pick_adapter(std::span<const AdapterInfo> adapters,
                                        std::string_view name, AdapterKind kind) {
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    if (!contains(adapters[i].name, name)) continue;
    if (kind == AdapterKind::any || adapters[i].kind == kind) return i;
  }
  return std::nullopt;
}

Adapter choose_adapter(std::string_view name, AdapterKind kind) {
  std::vector<Adapter> adapters = find_adapters();
  std::vector<AdapterInfo> infos;
  infos.reserve(adapters.size());
  for (const Adapter& adapter : adapters) infos.push_back(adapter.info);
  if (const auto at = pick_adapter(infos, name, kind)) return std::move(adapters[*at]);
  std::string wanted = "webgpu: no adapter";
  if (!name.empty()) wanted += fmt::format(" whose name contains \"{}\"", name);
  if (kind != AdapterKind::any) wanted += fmt::format(" of kind {}", to_string(kind));
  throw DeviceError(fmt::format("{}; {}", wanted, list(infos)));
}

}  // namespace wgpu

std::vector<AdapterInfo> webgpu::adapters() {
  std::vector<AdapterInfo> infos;
  for (wgpu::Adapter& adapter : wgpu::find_adapters()) infos.push_back(std::move(adapter.info));
  return infos;
}

}  // namespace kiln
