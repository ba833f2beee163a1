#include "kiln/kernel/wgsl_tokens.hpp"

#include <algorithm>
#include <cctype>

namespace kiln {
namespace {

bool begins_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalpha(u) != 0 || c == '_' || u >= 0x80;
}
bool goes_on(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Where the comment or space at `at` ends; `at` itself if there is none.
std::size_t skip(std::string_view source, std::size_t at) {
  if (std::isspace(static_cast<unsigned char>(source[at])) != 0) return at + 1;
  if (source.substr(at).starts_with("//")) return std::min(source.find('\n', at), source.size());
  if (!source.substr(at).starts_with("/*")) return at;
  int open = 0;  // block comments nest
  while (at < source.size()) {
    const std::string_view rest = source.substr(at);
    const int step = rest.starts_with("/*") ? 1 : rest.starts_with("*/") ? -1 : 0;
    at += step == 0 ? 1 : 2;
    open += step;
    if (open == 0) break;
  }
  return at;
}

/// Where the number at `at` ends.
std::size_t number_end(std::string_view source, std::size_t at) {
  const bool hex = source.substr(at).starts_with("0x") || source.substr(at).starts_with("0X");
  std::size_t end = at + 1;
  for (; end < source.size(); ++end) {
    const char c = source[end];
    const char before =
        static_cast<char>(std::tolower(static_cast<unsigned char>(source[end - 1])));
    const bool exponent = (c == '+' || c == '-') && before == (hex ? 'p' : 'e');
    if (!goes_on(c) && c != '.' && !exponent) break;
  }
  return end;
}

/// The text between two brackets, or the whole text.
struct Context {
  bool block = false;         ///< statements or declarations, not a part of an expression
  std::uint64_t signs = 0;    ///< in the present part
  std::uint64_t deepest = 0;  ///< brackets within the present part
  std::uint64_t most = 0;     ///< of all parts

  void end_part() {
    most = std::max(most, signs + deepest);
    signs = 0;
    deepest = 0;
  }
};

}  // namespace

std::vector<WgslToken> wgsl_tokens(std::string_view source) {
  std::vector<WgslToken> tokens;
  std::size_t last_end = std::string_view::npos;
  for (std::size_t at = 0; at < source.size();) {
    if (const std::size_t next = skip(source, at); next != at) {
      at = next;
      continue;
    }
    std::size_t end = at + 1;
    auto kind = WgslToken::Kind::sign;
    const auto digit = [&](std::size_t i) {
      return i < source.size() && std::isdigit(static_cast<unsigned char>(source[i])) != 0;
    };
    if (begins_word(source[at])) {
      kind = WgslToken::Kind::word;
      while (end < source.size() && goes_on(source[end])) ++end;
    } else if (digit(at) || (source[at] == '.' && digit(at + 1))) {
      kind = WgslToken::Kind::number;
      end = number_end(source, at);
    }
    tokens.push_back({kind, source.substr(at, end - at), at == last_end});
    last_end = at = end;
  }
  tokens.push_back({});
  return tokens;
}

std::uint64_t wgsl_depth(const std::vector<WgslToken>& tokens) {
  constexpr std::string_view operators = "+-*/%&|^!~<=.@";
  std::vector<Context> open(1, Context{.block = true});
  std::uint64_t declarations = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const char sign = tokens[i].kind == WgslToken::Kind::sign ? tokens[i].text[0] : ' ';
    const bool opens = sign == '(' || sign == '[' || sign == '{';
    const bool closes = sign == ')' || sign == ']' || sign == '}';
    if (opens) {
      open.push_back({.block = sign == '{'});
    } else if (closes && open.size() > 1) {
      open.back().end_part();
      const std::uint64_t depth = open.back().most + 1;
      open.pop_back();
      Context& around = open.back();
      around.deepest = std::max(around.deepest, depth);
      ++around.signs;  // `a[0][0]` and `f()()` nest as deep as they are long
      if (sign == '}' && around.block && !tokens[i + 1].is("else")) around.end_part();
    } else if (sign == ',' || sign == ';') {
      open.back().end_part();
    } else if (operators.find(sign) != std::string_view::npos || tokens[i].is("else")) {
      ++open.back().signs;
    }
    if (open.size() == 1 && (sign == ';' || sign == '}')) ++declarations;
  }
  std::uint64_t deepest = 0;
  while (!open.empty()) {  // one entry, unless brackets are left open
    open.back().end_part();
    deepest += open.back().most + 1;
    open.pop_back();
  }
  return std::max(deepest, declarations);
}

}  // namespace kiln
