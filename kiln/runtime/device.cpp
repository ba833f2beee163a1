#include "kiln/runtime/device.hpp"

#include <fmt/format.h>

namespace kiln {

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

std::string to_string(const Device& device) {
  return fmt::format("{}: {}", device.runtime().name(), device.adapter());
}

}  // namespace kiln
