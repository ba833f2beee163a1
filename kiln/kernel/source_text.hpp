#pragma once
#include <string_view>

namespace kiln {

/// The text of a kernel and the name its errors use, usually embedded by the build from a file:
/// `kiln_embed_wgsl(target matmul.wgsl)` makes `matmul_wgsl` in the header "matmul_wgsl.hpp".
struct SourceText {
  std::string_view name;  ///< such as "matmul.wgsl"
  std::string_view text;
};

}  // namespace kiln
