#include "kiln/kernel/wgsl_constant.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace kiln::wgsl {

Constant make_whole(std::string_view type, Wide value) {
  const auto fits = [&](Wide low, Wide high) { return value >= low && value <= high; };
  if (type == "u32") return {type, static_cast<std::int64_t>(value & 0xFFFFFFFF)};
  if (type == "i32" && !fits(INT32_MIN, INT32_MAX)) throw Unclear{};
  if (!fits(INT64_MIN, INT64_MAX)) throw Unclear{};
  return {type, static_cast<std::int64_t>(value)};
}
Constant make_real(std::string_view type, double value) {
  if (!std::isfinite(value)) throw Unclear{};
  return {type, 0, type == "f32" ? static_cast<double>(static_cast<float>(value)) : value};
}
Constant make_bool(bool value) { return {"bool", value ? 1 : 0}; }

namespace {

Constant convert(const Constant& from, std::string_view type) {
  if (from.type == type) return from;
  if (type == "bool") return make_bool(from.is_real() ? from.real != 0 : from.whole != 0);
  if (type != "i32" && type != "u32") return make_real(type, from.as_real());
  if (!from.is_real()) {
    const bool wraps = type == "i32" && from.type == "u32";
    return make_whole(type, wraps ? static_cast<std::int32_t>(from.whole) : from.whole);
  }
  const double low = type == "i32" ? static_cast<double>(INT32_MIN) : 0;
  const double high =
      type == "i32" ? static_cast<double>(INT32_MAX) : static_cast<double>(UINT32_MAX);
  return make_whole(type, static_cast<std::int64_t>(std::clamp(std::trunc(from.real), low, high)));
}

}  // namespace

void unify(Constant& a, Constant& b) {
  if (a.type == b.type) return;
  constexpr std::string_view order[] = {"int", "float"};
  const auto rank = [&](const Constant& n) { return std::ranges::find(order, n.type) - order; };
  Constant& weaker = rank(a) <= rank(b) ? a : b;
  const std::string_view type = rank(a) <= rank(b) ? b.type : a.type;
  if (rank(weaker) > 1 || type == "bool") throw Unclear{};
  if (type == "i32" || type == "u32") {
    if (weaker.is_real()) throw Unclear{};
    weaker = make_whole(type, weaker.whole);
  } else {
    weaker = make_real(type, weaker.as_real());
  }
}

Constant literal(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hex ? text.substr(2) : text;
  std::int64_t whole = 0;
  const char* end = digits.data() + digits.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): with its end
  const auto [rest, error] = std::from_chars(digits.data(), end, whole, hex ? 16 : 10);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  if (error == std::errc() && suffix.empty()) return {"int", whole};
  if (error == std::errc() && suffix == "u") return make_whole("u32", whole);
  if (error == std::errc() && suffix == "i") return make_whole("i32", whole);
  std::string copy(text);
  std::string_view type = "float";
  if (!hex || copy.find_first_of("pP") != std::string::npos) {
    if (copy.back() == 'f') type = "f32";
    if (copy.back() == 'h') type = "f16";
  }
  if (type != "float") copy.pop_back();
  char* stop = nullptr;
  const double real = std::strtod(copy.c_str(), &stop);
  if (*stop != '\0') throw Unclear{};
  return make_real(type, real);
}

namespace {

Constant compare(std::string_view op, const Constant& a, const Constant& b) {
  const auto decide = [&](auto x, auto y) {
    if (op == "==") return x == y;
    if (op == "!=") return x != y;
    if (op == "<") return x < y;
    if (op == "<=") return x <= y;
    return op == ">" ? x > y : x >= y;
  };
  return make_bool(a.is_real() ? decide(a.real, b.real) : decide(a.whole, b.whole));
}

Constant shift(bool left, const Constant& a, const Constant& b) {
  const std::int64_t width = a.type == "int" ? 64 : 32;
  if (a.is_real() || b.is_real() || b.whole < 0 || b.whole >= width) throw Unclear{};
  return make_whole(a.type, left ? static_cast<Wide>(a.whole) << b.whole : a.whole >> b.whole);
}

Constant combine_whole(char op, const Constant& a, const Constant& b) {
  const Wide x = a.whole;
  const Wide y = b.whole;
  switch (op) {
    case '+':
      return make_whole(a.type, x + y);
    case '-':
      return make_whole(a.type, x - y);
    case '*':
      return make_whole(a.type, x * y);
    case '&':
      return make_whole(a.type, x & y);
    case '|':
      return make_whole(a.type, x | y);
    case '^':
      return make_whole(a.type, x ^ y);
    default:
      if (y == 0) throw Unclear{};
      return make_whole(a.type, op == '/' ? x / y : x % y);
  }
}

Constant combine_real(char op, const Constant& a, const Constant& b) {
  switch (op) {
    case '+':
      return make_real(a.type, a.real + b.real);
    case '-':
      return make_real(a.type, a.real - b.real);
    case '*':
      return make_real(a.type, a.real * b.real);
    case '/':
      return make_real(a.type, a.real / b.real);
    case '%':
      return make_real(a.type, std::fmod(a.real, b.real));
    default:
      throw Unclear{};
  }
}

}  // namespace

Constant combine(std::string_view op, Constant a, Constant b) {
  if (op == "<<" || op == ">>") return shift(op == "<<", a, b);
  unify(a, b);
  if (op == "||" || op == "&&") {
    if (a.type != "bool") throw Unclear{};
    return make_bool(op == "||" ? (a.whole | b.whole) != 0 : (a.whole & b.whole) != 0);
  }
  const bool compares = op.size() == 2 || op == "<" || op == ">";
  if (compares) return compare(op, a, b);
  if (a.type == "bool" && op != "&" && op != "|") throw Unclear{};
  return a.is_real() ? combine_real(op[0], a, b) : combine_whole(op[0], a, b);
}

Constant call(std::string_view name, std::vector<Constant> in) {
  const bool casts =
      name == "u32" || name == "i32" || name == "f32" || name == "f16" || name == "bool";
  if (casts && in.size() == 1) return convert(in[0], name);
  if (name == "select" && in.size() == 3) {
    unify(in[0], in[1]);
    return in[2].whole != 0 ? in[1] : in[0];
  }
  for (std::size_t i = 1; i < in.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) unify(in[i], in[j]);
  }
  const auto less = [](const Constant& a, const Constant& b) {
    return a.is_real() ? a.real < b.real : a.whole < b.whole;
  };
  if (name == "min" && in.size() == 2) return less(in[1], in[0]) ? in[1] : in[0];
  if (name == "max" && in.size() == 2) return less(in[0], in[1]) ? in[1] : in[0];
  if (name == "clamp" && in.size() == 3) {
    const Constant& low = less(in[0], in[1]) ? in[1] : in[0];
    return less(in[2], low) ? in[2] : low;
  }
  if (in.size() != 1) throw Unclear{};
  const Constant& x = in[0];
  if (name == "abs")
    return x.is_real() ? make_real(x.type, std::fabs(x.real))
                       : make_whole(x.type, x.whole < 0 ? -static_cast<Wide>(x.whole) : x.whole);
  const std::string_view real = x.type == "int" ? "float" : x.type;
  if (x.type == "i32" || x.type == "u32" || x.type == "bool") throw Unclear{};
  if (name == "ceil") return make_real(real, std::ceil(x.as_real()));
  if (name == "floor") return make_real(real, std::floor(x.as_real()));
  if (name == "trunc") return make_real(real, std::trunc(x.as_real()));
  throw Unclear{};
}

}  // namespace kiln::wgsl
