#include "kiln/runtime/webgpu/device/native.hpp"

#include <mutex>
#include <vector>

namespace kiln::wgpu {

void leave_to_system(const void* object) noexcept {
  try {
    static std::mutex& mutex = *new std::mutex;
    static std::vector<const void*>& kept = *new std::vector<const void*>;
    const std::lock_guard lock(mutex);
    kept.push_back(object);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory to remember it with: it is left all the same.
  }
}

}  // namespace kiln::wgpu
