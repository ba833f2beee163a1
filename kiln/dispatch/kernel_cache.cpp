#include "kiln/dispatch/kernel_cache.hpp"

namespace kiln::dispatch {

KernelCache& KernelCache::of(Runtime& runtime) {
  const auto make = []() -> std::unique_ptr<RuntimeExtension> {
    return std::make_unique<KernelCache>();
  };
  return static_cast<KernelCache&>(runtime.extension(make));
}

}  // namespace kiln::dispatch
