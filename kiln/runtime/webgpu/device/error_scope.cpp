#include "kiln/runtime/webgpu/device/error_scope.hpp"

#include <algorithm>

namespace kiln::wgpu {
namespace {

thread_local ErrorScope* innermost = nullptr;

}  // namespace

ErrorScope::ErrorScope(const Gpu& gpu) : gpu_(gpu), outer_(std::exchange(innermost, this)) {}

ErrorScope::~ErrorScope() { innermost = outer_; }

bool ErrorScope::offer(const Gpu& gpu, WGPUErrorType type, std::string_view message) {
  for (ErrorScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (&scope->gpu_ != &gpu) continue;
    const std::size_t end = std::min(message.size(), message.find_last_not_of(" \n\t") + 1);
    if (!scope->fault_) scope->fault_ = Fault{type, std::string(message.substr(0, end))};
    return true;
  }
  return false;
}

}  // namespace kiln::wgpu
