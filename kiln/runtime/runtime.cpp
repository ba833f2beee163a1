#include "kiln/runtime/runtime.hpp"

#include "kiln/runtime/waiting.hpp"

namespace kiln {

std::chrono::milliseconds Runtime::patience() const { return patience_by_environment(); }

RuntimeExtension& Runtime::extension(const void* tag, MakeExtension make) {
  const std::lock_guard lock(extensions_mutex_);
  for (const auto& [key, extension] : extensions_) {
    if (key == tag) return *extension;
  }
  return *extensions_.emplace_back(tag, make(*this)).second;
}

void Runtime::flush_extensions(void (RuntimeExtension::*how)()) {
  std::vector<RuntimeExtension*> all;  // they last as long as the runtime
  {
    const std::lock_guard lock(extensions_mutex_);
    for (const auto& [key, extension] : extensions_) all.push_back(extension.get());
  }
  for (RuntimeExtension* extension : all) (extension->*how)();
}

}  // namespace kiln
