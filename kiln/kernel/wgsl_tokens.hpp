#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln {

/// A word, a number or one sign of a WGSL text; comments are left out.
struct WgslToken {
  enum class Kind : std::uint8_t { word, number, sign, end };
  Kind kind = Kind::end;
  std::string_view text;  ///< of the source, which must outlive it
  bool joined = false;    ///< nothing lies between it and the token before: `<` `<` is a shift

  [[nodiscard]] bool is(std::string_view wanted) const { return text == wanted; }
};

/// The tokens of a text, in order. Ends with one of kind `end`.
std::vector<WgslToken> wgsl_tokens(std::string_view source);

/// A bound of how deep a compiler's recursion goes: nested brackets, blocks and types, operators in
/// a row, `else if`s in a row, or declarations that may name each other. Linear in the text.
std::uint64_t wgsl_depth(const std::vector<WgslToken>& tokens);

}  // namespace kiln
