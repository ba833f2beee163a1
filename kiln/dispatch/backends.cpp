#include "kiln/dispatch/backend.hpp"
#include "kiln/dispatch/host/backend.hpp"
#include "kiln/dispatch/wgsl/backend.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"

namespace kiln::dispatch {

const Backend& backend_of(const Runtime& runtime) {
  return cpu::host(runtime) != nullptr ? host::backend : wgsl::backend;
}

}  // namespace kiln::dispatch
