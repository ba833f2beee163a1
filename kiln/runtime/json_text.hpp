#pragma once
#include <string>
#include <string_view>

namespace kiln {

/// The text as a JSON string, quotes included. What is no UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

}  // namespace kiln
