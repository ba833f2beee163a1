#pragma once
/// Which names are valid in a kernel's text beside what kiln generates there.
#include <algorithm>
#include <array>
#include <string_view>

namespace kiln {
namespace detail {

/// Keywords and reserved words of WGSL (sections 15.1 and 15.2 of its specification).
inline constexpr std::array<std::string_view, 172> wgsl_reserved{"NULL",
                                                                 "Self",
                                                                 "abstract",
                                                                 "active",
                                                                 "alias",
                                                                 "alignas",
                                                                 "alignof",
                                                                 "as",
                                                                 "asm",
                                                                 "asm_fragment",
                                                                 "async",
                                                                 "attribute",
                                                                 "auto",
                                                                 "await",
                                                                 "become",
                                                                 "break",
                                                                 "case",
                                                                 "cast",
                                                                 "catch",
                                                                 "class",
                                                                 "co_await",
                                                                 "co_return",
                                                                 "co_yield",
                                                                 "coherent",
                                                                 "column_major",
                                                                 "common",
                                                                 "compile",
                                                                 "compile_fragment",
                                                                 "concept",
                                                                 "const",
                                                                 "const_assert",
                                                                 "const_cast",
                                                                 "consteval",
                                                                 "constexpr",
                                                                 "constinit",
                                                                 "continue",
                                                                 "continuing",
                                                                 "crate",
                                                                 "debugger",
                                                                 "decltype",
                                                                 "default",
                                                                 "delete",
                                                                 "demote",
                                                                 "demote_to_helper",
                                                                 "diagnostic",
                                                                 "discard",
                                                                 "do",
                                                                 "dynamic_cast",
                                                                 "else",
                                                                 "enable",
                                                                 "enum",
                                                                 "explicit",
                                                                 "export",
                                                                 "extends",
                                                                 "extern",
                                                                 "external",
                                                                 "fallthrough",
                                                                 "false",
                                                                 "filter",
                                                                 "final",
                                                                 "finally",
                                                                 "fn",
                                                                 "for",
                                                                 "friend",
                                                                 "from",
                                                                 "fxgroup",
                                                                 "get",
                                                                 "goto",
                                                                 "groupshared",
                                                                 "highp",
                                                                 "if",
                                                                 "impl",
                                                                 "implements",
                                                                 "import",
                                                                 "inline",
                                                                 "instanceof",
                                                                 "interface",
                                                                 "layout",
                                                                 "let",
                                                                 "loop",
                                                                 "lowp",
                                                                 "macro",
                                                                 "macro_rules",
                                                                 "match",
                                                                 "mediump",
                                                                 "meta",
                                                                 "mod",
                                                                 "module",
                                                                 "move",
                                                                 "mut",
                                                                 "mutable",
                                                                 "namespace",
                                                                 "new",
                                                                 "nil",
                                                                 "noexcept",
                                                                 "noinline",
                                                                 "nointerpolation",
                                                                 "non_coherent",
                                                                 "noncoherent",
                                                                 "noperspective",
                                                                 "null",
                                                                 "nullptr",
                                                                 "of",
                                                                 "operator",
                                                                 "override",
                                                                 "package",
                                                                 "packoffset",
                                                                 "partition",
                                                                 "pass",
                                                                 "patch",
                                                                 "pixelfragment",
                                                                 "precise",
                                                                 "precision",
                                                                 "premerge",
                                                                 "priv",
                                                                 "protected",
                                                                 "pub",
                                                                 "public",
                                                                 "readonly",
                                                                 "ref",
                                                                 "regardless",
                                                                 "register",
                                                                 "reinterpret_cast",
                                                                 "require",
                                                                 "requires",
                                                                 "resource",
                                                                 "restrict",
                                                                 "return",
                                                                 "self",
                                                                 "set",
                                                                 "shared",
                                                                 "sizeof",
                                                                 "smooth",
                                                                 "snorm",
                                                                 "static",
                                                                 "static_assert",
                                                                 "static_cast",
                                                                 "std",
                                                                 "struct",
                                                                 "subroutine",
                                                                 "super",
                                                                 "switch",
                                                                 "target",
                                                                 "template",
                                                                 "this",
                                                                 "thread_local",
                                                                 "throw",
                                                                 "trait",
                                                                 "true",
                                                                 "try",
                                                                 "type",
                                                                 "typedef",
                                                                 "typeid",
                                                                 "typename",
                                                                 "typeof",
                                                                 "union",
                                                                 "unless",
                                                                 "unorm",
                                                                 "unsafe",
                                                                 "unsized",
                                                                 "use",
                                                                 "using",
                                                                 "var",
                                                                 "varying",
                                                                 "virtual",
                                                                 "volatile",
                                                                 "wgsl",
                                                                 "where",
                                                                 "while",
                                                                 "with",
                                                                 "writeonly",
                                                                 "yield"};

/// What kiln declares, or may declare, in a kernel.
inline constexpr std::array<std::string_view, 12> kiln_names{
    "Acc",    "Elem", "KilnParams", "KilnResults", "erf",     "gelu",
    "is_nan", "main", "params",     "relu",        "sigmoid", "silu"};

/// What generated text takes from WGSL; an operand of that name would hide it.
inline constexpr std::array<std::string_view, 27> wgsl_predeclared{
    "abs",    "array", "bitcast", "bool",        "ceil",  "clamp", "cos",  "exp",  "f16",
    "f32",    "floor", "i32",     "inverseSqrt", "log",   "max",   "min",  "pow",  "round",
    "select", "sign",  "sqrt",    "tanh",        "trunc", "u32",   "vec2", "vec3", "vec4"};

constexpr bool is_wgsl_identifier(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) && name != "_" && !name.starts_with("__") &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || digit(c); });
}

}  // namespace detail

/// Why a member of a kernel's `params` cannot have this name; empty where it can.
constexpr std::string_view why_no_param_name(std::string_view name) {
  if (!detail::is_wgsl_identifier(name))
    return "is no identifier: letters, digits and _, beginning with a letter";
  if (std::ranges::binary_search(detail::wgsl_reserved, name)) return "is a reserved word of WGSL";
  if (name == "in") return "is a keyword of the languages that WGSL is turned into";
  if (name.starts_with("kiln_")) return "begins with kiln_: such names are the library's";
  return {};
}

/// Why an operand of a kernel in WGSL cannot have this name; empty where it can.
constexpr std::string_view why_no_operand_name(std::string_view name) {
  if (const std::string_view why = why_no_param_name(name); !why.empty()) return why;
  if (name.starts_with("store_")) return "begins with store_, as the generated stores do";
  if (std::ranges::binary_search(detail::kiln_names, name))
    return "is what kiln declares in every kernel that needs it";
  if (std::ranges::binary_search(detail::wgsl_predeclared, name))
    return "is WGSL's own, and generated text uses it";
  return {};
}

}  // namespace kiln
