#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln {

/// A word, a number or one other character of a WGSL text. Comments are left out.
struct WgslToken {
  enum class Kind : std::uint8_t { word, number, sign, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< of the source, which must outlive it
  bool joined = false;    ///< it follows the token before without a space: `<` `<` is a shift

  [[nodiscard]] bool is(std::string_view wanted) const { return text == wanted; }
};

/// The tokens of a text, in order. The last one is of kind `end`.
std::vector<WgslToken> wgsl_tokens(std::string_view source);

/// An upper bound of how deep a compiler recurses: nested brackets, blocks and types, operators in
/// a row, `else if`s in a row, or declarations that may name each other. Takes time linear in the
/// text.
std::uint64_t wgsl_depth(const std::vector<WgslToken>& tokens);

}  // namespace kiln
