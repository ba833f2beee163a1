#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln {

/// The text of a kernel and the name its errors use, usually embedded by the build from a file:
/// `kiln_embed_wgsl(target matmul.wgsl)` makes `matmul_wgsl` in the header "matmul_wgsl.hpp".
struct SourceText {
  std::string_view name;  ///< such as "matmul.wgsl"
  std::string_view text;
};

/// The words of a SPIR-V module, usually embedded by the build from GLSL:
/// `kiln_embed_spirv(target matmul.comp)` makes `matmul_spirv` in the header "matmul_spirv.hpp".
struct SourceWords {
  std::string_view name;  ///< such as "matmul.comp"
  std::span<const std::uint32_t> words;
};

}  // namespace kiln
