#include "kiln/runtime/default_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

bool has_gpu() {
  static const bool found = std::ranges::any_of(
      webgpu::adapters(), [](const AdapterInfo& info) { return info.kind != AdapterKind::cpu; });
  return found;
}

Device named_device(std::string_view name) {
  constexpr std::string_view gpu = "webgpu";
  if (name == "cpu") return cpu::device();
  if (name == gpu) return webgpu::device();
  if (name.starts_with(gpu) && name.substr(gpu.size()).starts_with(':'))
    return webgpu::device({.adapter = std::string(name.substr(gpu.size() + 1))});
  throw DeviceError(fmt::format(
      "KILN_DEVICE is \"{}\"; it must be \"cpu\", \"webgpu\" or \"webgpu:ADAPTER\"", name));
}

}  // namespace

Device default_device() {
  const char* chosen = std::getenv("KILN_DEVICE");  // NOLINT(concurrency-mt-unsafe): only read
  if (chosen != nullptr && *chosen != 0) return named_device(chosen);
  return has_gpu() ? webgpu::device() : cpu::device();
}

}  // namespace kiln
