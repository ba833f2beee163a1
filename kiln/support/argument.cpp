#include "kiln/support/argument.hpp"

#include <fmt/format.h>

#include "kiln/support/error.hpp"

namespace kiln {

void Integer::refuse(std::uint64_t value) {
  throw ShapeError(fmt::format("axes, sizes and indices are below 2^63, got {}", value));
}

}  // namespace kiln
