#pragma once

#include <string_view>

namespace kiln {

/// The version of the library. The build reads it from this line.
inline constexpr std::string_view version = "0.1.0";

}  // namespace kiln
