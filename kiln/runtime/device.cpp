#include "kiln/runtime/device.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace kiln {
namespace {

bool eager_by_environment() {
  static const bool eager = [] {
    const char* text = std::getenv("KILN_EAGER");  // NOLINT(concurrency-mt-unsafe): read once
    return text != nullptr && !std::string_view(text).empty() && std::string_view(text) != "0";
  }();
  return eager;
}

}  // namespace

Device::Device(std::shared_ptr<Runtime> runtime)
    : runtime_(std::move(runtime)), eager_(eager_by_environment()) {}

Device Device::autodiff(Checkpointing strategy) const {
  Device copy = *this;
  copy.autodiff_ = true;
  copy.checkpointing_ = strategy;
  return copy;
}

Device Device::plain() const {
  Device copy = *this;
  copy.autodiff_ = false;
  copy.checkpointing_ = Checkpointing::keep;
  return copy;
}

Device Device::eager() const {
  Device copy = *this;
  copy.eager_ = true;
  return copy;
}

Device Device::lazy() const {
  Device copy = *this;
  copy.eager_ = false;
  return copy;
}

Device Device::fallback(Flag allowed) const {
  Device copy = *this;
  copy.fallback_ = allowed;
  return copy;
}

void Device::synchronize() const {
  runtime_->flush_extensions(&RuntimeExtension::finish);
  runtime_->synchronize();
}

std::string to_string(const Device& device) {
  return fmt::format("{}: {}", device.runtime().name(), device.adapter());
}

}  // namespace kiln
