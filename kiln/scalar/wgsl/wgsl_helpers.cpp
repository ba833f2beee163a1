#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "kiln/scalar/wgsl/helper_table.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view white = " \t\r\n";

/// Functions for which WGSL's own promise too little: they keep a NaN, do not overflow inside, and
/// take negative bases.
const std::map<std::string, WgslHelper>& helpers() {
  static const auto& table = *new const std::map<std::string, WgslHelper>([] {
    std::map<std::string, WgslHelper> t{
        {"kiln_is_nan",
         {"fn kiln_is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; "
          "}\n",
          {}}},
        // To the nearest f16, ties to even, by its bits: subnormals are multiples of 2^-24, and
        // from half a step past the largest on it is an infinity.
        {"kiln_round_f16",
         {"fn kiln_round_f16(x: f32) -> f32 {\n"
          "  let bits = bitcast<u32>(x);\n"
          "  let size = bits & 0x7fffffffu;\n"
          "  if (size > 0x7f800000u) { return x; }\n"
          "  if (size >= 0x477ff000u) { return bitcast<f32>((bits & 0x80000000u) | 0x7f800000u); "
          "}\n"
          "  if (size < 0x38800000u) {\n"
          "    let near = round(abs(x) * 16777216.0f) * 5.9604644775390625e-8f;\n"
          "    return bitcast<f32>((bits & 0x80000000u) | bitcast<u32>(near));\n"
          "  }\n"
          "  return bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);\n"
          "}\n",
          {}}},
        // The whole part, or the nearest number that there is; of a NaN 0. Compilers limit it to
        // the last f32 below the integer's bound, not to the bound, and leave a NaN to the adapter.
        {"kiln_i32",
         {"fn kiln_i32(x: f32) -> i32 {\n"
          "  let part = i32(clamp(x, -2147483648.0f, 2147483520.0f));\n"
          "  return select(select(part, 2147483647i, x >= 2147483648.0f), 0i, kiln_is_nan(x));\n"
          "}\n",
          {"kiln_is_nan"}}},
        {"kiln_u32",
         {"fn kiln_u32(x: f32) -> u32 {\n"
          "  let part = u32(clamp(x, 0.0f, 4294967040.0f));\n"
          "  return select(select(part, 4294967295u, x >= 4294967296.0f), 0u, kiln_is_nan(x));\n"
          "}\n",
          {"kiln_is_nan"}}},
        // By its bits. Often x is gate * y, and compilers take 0 * y for 0: they would drop a
        // comparison of floats.
        {"kiln_unless_zero",
         {"fn kiln_unless_zero(gate: f32, x: f32) -> f32 {\n"
          "  return select(x, 0.0f, (bitcast<u32>(gate) & 0x7fffffffu) == 0u);\n"
          "}\n",
          {}}},
        // The same number, hidden from compilers: their algebra of floats does not see through a
        // number of the launch.
        {std::string(wgsl_hide),
         {"fn kiln_hide(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ params.kiln_zero); "
          "}\n",
          {}}},
        // Of |x|, with the sign put back: a polynomial near 0 and exp elsewhere; single precision
        // coefficients from the Cephes library's tanhf.
        {"kiln_tanh",
         {"fn kiln_tanh(x: f32) -> f32 {\n"
          "  let a = abs(x);\n"
          "  let s = a * a;\n"
          "  let near = ((((-5.70498872745e-3f * s + 2.06390887954e-2f) * s - 5.37397155531e-2f) * "
          "s\n"
          "             + 1.33314422036e-1f) * s - 3.33332819422e-1f) * s * a + a;\n"
          "  let far = 1.0f - 2.0f / (exp(2.0f * select(a, 20.0f, a > 20.0f)) + 1.0f);\n"
          "  let size = bitcast<u32>(select(far, near, a < 0.625f));\n"
          "  return select(bitcast<f32>((bitcast<u32>(x) & 0x80000000u) | size), x, "
          "kiln_is_nan(x));\n"
          "}\n",
          {"kiln_is_nan"}}},
        {"kiln_sigmoid",
         {"fn kiln_sigmoid(x: f32) -> f32 {\n"
          "  let e = exp(-abs(x));\n"
          "  return select(1.0f, e, x < 0.0f) / (1.0f + e);\n"
          "}\n",
          {}}},
        // max(x, 0) + log(1 + e), the logarithm as 2 atanh(s) by its series: s is at most 1/3.
        {"kiln_softplus",
         {"fn kiln_softplus(x: f32) -> f32 {\n"
          "  let e = exp(-abs(x));\n"
          "  let s = e / (2.0f + e);\n"
          "  let q = s * s;\n"
          "  let p = ((((((q / 7.5f + 0.15384616f) * q + 0.18181819f) * q + 0.22222222f) * q + "
          "0.2857143f) * q\n"
          "             + 0.4f) * q + 0.6666667f) * q + 2.0f;\n"
          "  return kiln_relu_f32(x) + p * s;\n"
          "}\n",
          {"kiln_relu_f32"}}},
        // |x| < 1: the Cephes library's erff; beyond: Abramowitz and Stegun 7.1.26, error
        // below 1.5e-7.
        {"kiln_erf",
         {"fn kiln_erf(x: f32) -> f32 {\n"
          "  let s = x * x;\n"
          "  let near = x * ((((((7.853861353153693e-5f * s - 8.010193625184903e-4f) * s + "
          "5.188327685732524e-3f) * s\n"
          "             - 2.685381193529856e-2f) * s + 1.128358514861418e-1f) * s - "
          "3.761262582423300e-1f) * s\n"
          "             + 1.128379165726710f);\n"
          "  let a = abs(x);\n"
          "  let t = 1.0f / (1.0f + 0.3275911f * a);\n"
          "  let p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) "
          "* t + 0.254829592f) * t;\n"
          "  let b = select(a, 10.0f, a > 10.0f);\n"
          "  let far = 1.0f - p * exp(-b * b);\n"
          "  return select(select(select(far, -far, x < 0.0f), near, a < 1.0f), x, "
          "kiln_is_nan(x));\n"
          "}\n",
          {"kiln_is_nan"}}},
        {"kiln_pow",
         {"fn kiln_pow(x: f32, y: f32) -> f32 {\n"
          "  if (kiln_is_nan(x) || kiln_is_nan(y)) { return select(x + y, 1.0f, y == 0.0f || x == "
          "1.0f); }\n"
          "  if (y == 0.0f || x == 1.0f) { return 1.0f; }\n"
          "  if (y == 1.0f) { return x; }\n"
          "  if (y == 2.0f) { return x * x; }\n"
          "  if (y == 0.5f && x > 0.0f) { return sqrt(x); }\n"
          "  let whole = trunc(y) == y;\n"
          "  let odd = whole && abs(y) < 16777216.0f && (i32(y) & 1) != 0;\n"
          "  if (x == 0.0f) {\n"
          "    let at_zero = select(1.0f / abs(x), 0.0f, y > 0.0f);\n"
          "    return select(at_zero, -at_zero, odd && bitcast<u32>(x) != 0u);\n"
          "  }\n"
          "  if (x < 0.0f && !whole && abs(x) <= 3.4028234e38f) { return sqrt(x); }\n"
          "  let r = pow(abs(x), y);\n"
          "  return select(r, -r, x < 0.0f && odd);\n"
          "}\n",
          {"kiln_is_nan"}}},
    };
    for (const std::string type : {"f32", "i32", "u32"}) {
      const bool f = type == "f32";
      const std::string zero = type + "(0)";
      // NaN and the sign of a zero are found by their bits: GPU compilers turn comparisons into
      // fmin and fmax, which lose a NaN and keep either zero.
      t["kiln_relu_" + type] = {
          f ? std::string("fn kiln_relu_f32(x: f32) -> f32 {\n"
                          "  let bits = bitcast<u32>(x);\n"
                          "  return select(x, 0.0f, bits >= 0x80000000u && bits <= 0xff800000u);\n"
                          "}\n")
            : fmt::format("fn kiln_relu_{0}(x: {0}) -> {0} {{ return max(x, {1}); }}\n", type,
                          zero),
          {}};
      for (const std::string name : {"min", "max"}) {
        t[fmt::format("kiln_{}_{}", name, type)] = {
            f ? fmt::format(
                    "fn kiln_{0}_f32(a: f32, b: f32) -> f32 {{\n"
                    "  let both = bitcast<f32>(bitcast<u32>(a) {1} bitcast<u32>(b));\n"
                    "  return select(select({0}(a, b), both, a == b), a + b, kiln_is_nan(a) || "
                    "kiln_is_nan(b));\n}}\n",
                    name, name == "min" ? '|' : '&')
              : fmt::format("fn kiln_{0}_{1}(a: {1}, b: {1}) -> {1} {{ return {0}(a, b); }}\n",
                            name, type),
            f ? std::vector<std::string>{"kiln_is_nan"} : std::vector<std::string>{}};
      }
    }
    add_wgsl_functions(t);
    // The names that a kernel's author calls, over the kernel's element type.
    t["is_nan"] = {"fn is_nan(x: Elem) -> bool { return kiln_is_nan(f32(x)); }\n", {"kiln_is_nan"}};
    t["relu"] = {"fn relu(x: Elem) -> Elem { return Elem(kiln_relu_f32(f32(x))); }\n",
                 {"kiln_relu_f32"}};
    t["sigmoid"] = {"fn sigmoid(x: Elem) -> Elem { return Elem(kiln_sigmoid(f32(x))); }\n",
                    {"kiln_sigmoid"}};
    t["silu"] = {"fn silu(x: Elem) -> Elem { return Elem(f32(x) * kiln_sigmoid(f32(x))); }\n",
                 {"kiln_sigmoid"}};
    t["erf"] = {"fn erf(x: Elem) -> Elem { return Elem(kiln_erf(f32(x))); }\n", {"kiln_erf"}};
    t["gelu"] = {
        "fn gelu(x: Elem) -> Elem { return Elem(f32(x) * 0.5f * (1.0f + kiln_erf(f32(x) * "
        "0.70710678f))); }\n",
        {"kiln_erf"}};
    return t;
  }());
  return table;
}

void add_helper(const std::string& name, std::set<std::string>& done, std::string& out) {
  if (!done.insert(name).second) return;
  const auto at = helpers().find(name);
  if (at == helpers().end())
    throw KernelError(fmt::format("wgsl: no helper function is called {}", name));
  for (const std::string& called : at->second.calls) add_helper(called, done, out);
  out += at->second.text;
}

/// Whether the helper, or one that it calls, has the number of the launch in it.
bool hides_inside(const std::string& name) {
  const auto at = helpers().find(name);
  return name == wgsl_hide ||
         (at != helpers().end() && std::ranges::any_of(at->second.calls, hides_inside));
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Whether `accept` is true for the text before one of the places where `name` is a whole
/// identifier followed by "(".
bool any_call(std::string_view source, std::string_view name,
              bool (*accept)(std::string_view before)) {
  for (std::size_t at = source.find(name); at != std::string_view::npos;
       at = source.find(name, at + 1)) {
    const std::size_t end = source.find_first_not_of(white, at + name.size());
    const bool whole = at == 0 || !is_word(source[at - 1]);
    const bool call = whole && end != std::string_view::npos && source[end] == '(';
    if (call && accept(source.substr(0, at))) return true;
  }
  return false;
}

/// Whether the text ends with the keyword of a definition.
bool ends_with_fn(std::string_view text) {
  const std::string_view word = text.substr(0, text.find_last_not_of(white) + 1);
  return word != text && word.ends_with("fn") &&
         (word.size() == 2 || !is_word(word[word.size() - 3]));
}

}  // namespace

std::string wgsl_helpers(const std::set<std::string>& names) {
  std::set<std::string> done;
  std::string out;
  for (const std::string& name : names) add_helper(name, done, out);
  return out;
}

void add_wgsl_helper(const std::string& name, std::set<std::string>& names) {
  names.insert(name);
  if (hides_inside(name)) names.emplace(wgsl_hide);
}

bool calls(std::string_view source, std::string_view name) {
  return any_call(source, name, [](std::string_view) { return true; });
}

bool mentions(std::string_view source, std::string_view name) {
  for (std::size_t at = source.find(name); at != std::string_view::npos;
       at = source.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_word(source[at - 1])) && (end == source.size() || !is_word(source[end])))
      return true;
  }
  return false;
}

std::set<std::string> used_helpers(std::string_view source) {
  std::set<std::string> used;
  for (const auto& [name, helper] : helpers()) {
    if (name.starts_with("kiln_") || !calls(source, name)) continue;
    if (!any_call(source, name, ends_with_fn)) used.insert(name);
  }
  return used;
}

}  // namespace kiln
