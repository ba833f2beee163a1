#include "kiln/runtime/webgpu/webgpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kiln/runtime/waiting.hpp"
#include "kiln/runtime/webgpu/testing.hpp"
#include "kiln/runtime/webgpu/webgpu_runtime.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using Key = std::tuple<std::string, AdapterKind, bool, bool, std::chrono::milliseconds, Language>;

struct OpenDevices {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<wgpu::WebGpuRuntime>> by_options;
};

// Never destroyed: devices may be opened while statics end.
OpenDevices& open_devices() {
  static OpenDevices& shared = *new OpenDevices;
  return shared;
}

bool portable_by_environment() {
  const char* text = std::getenv("KILN_PORTABLE");  // NOLINT(concurrency-mt-unsafe): only read
  return text != nullptr && *text != '\0' && std::string_view(text) != "0";
}

/// Has the devices that are open finish what was submitted, when the process begins to end.
void end_devices() {
  OpenDevices& open = open_devices();
  std::vector<std::shared_ptr<wgpu::WebGpuRuntime>> runtimes;
  {
    const std::lock_guard lock(open.mutex);
    for (const auto& [key, runtime] : open.by_options) runtimes.push_back(runtime.lock());
  }
  for (const auto& runtime : runtimes) {
    if (runtime != nullptr) runtime->finish();
  }
}

}  // namespace

Device webgpu::device(const webgpu::Options& options) {
  const Language language = options.language;
  if (language != Language::wgsl && language != Language::spirv) {
    throw DeviceError(fmt::format("webgpu: an adapter takes kernels in {} or {}, never in {}",
                                  to_string(Language::wgsl), to_string(Language::spirv),
                                  to_string(language)));
  }
  std::string name = options.adapter;
  if (name.empty()) {
    if (const char* chosen = std::getenv("KILN_ADAPTER")) name = chosen;
  }
  const wgpu::Opening opening{.f16 = options.f16,
                              .portable = portable_by_environment(),
                              .patience = options.timeout.count() > 0
                                              ? std::min(options.timeout, longest_patience)
                                              : patience_by_environment()};
  const LibrarySection section;
  OpenDevices& open = open_devices();
  const std::lock_guard lock(open.mutex);
  std::weak_ptr<wgpu::WebGpuRuntime>& slot = open.by_options[Key(
      name, options.kind, opening.f16, opening.portable, opening.patience, language)];
  if (auto runtime = slot.lock(); runtime && !runtime->lost()) return Device(std::move(runtime));
  const wgpu::Adapter adapter = wgpu::choose_adapter(name, options.kind);
  auto gpu = wgpu::open_gpu(adapter, opening);
  at_process_end(end_devices, opening.patience);
  trace_by_environment();
  auto runtime = std::make_shared<wgpu::WebGpuRuntime>(std::move(gpu), language);
  slot = runtime;
  return Device(std::move(runtime));
}

void wgpu::lose_device(const Device& device) {
  auto* runtime = dynamic_cast<WebGpuRuntime*>(&device.runtime());
  if (runtime == nullptr) throw DeviceError("lose_device: not a webgpu device");
  wgpuDeviceDestroy(runtime->gpu().device.get());
}

}  // namespace kiln
