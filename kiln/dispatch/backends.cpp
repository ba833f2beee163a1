#include <array>

#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/host/backend.hpp"
#include "kiln/dispatch/wgsl/backend.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"

namespace kiln::dispatch {

const Backend& backend_of(const Runtime& runtime) {
  return cpu::host(runtime) != nullptr ? host::backend : wgsl::backend;
}

std::span<const Backend* const> all_backends() {
  static constexpr std::array all{&wgsl::backend, &host::backend};
  return all;
}

}  // namespace kiln::dispatch
