#include "kiln/kernel/wgsl_evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/kernel/wgsl_constant.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using Range = WgslModule::Range;
using wgsl::Constant;
using wgsl::Unclear;

// Names may refer to each other in a circle. The compiler refuses that.
constexpr int deepest = 64;

struct Operator {
  std::string_view text;
  int binds = 0;  ///< precedence: the larger, the tighter it binds
};
// Longer operators come first, because a token is a single character.
constexpr Operator operators[] = {{"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7},
                                  {"<<", 8}, {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
                                  {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

}  // namespace

/// Computes one expression.
class WgslExpression {
 public:
  WgslExpression(const WgslEvaluator& around, Range range, int depth)
      : around_(around), at_(range.begin), end_(range.end), depth_(depth) {
    if (depth_ > deepest) throw Unclear{};
  }

  Constant run() {
    const Constant value = binary(0);
    if (at_ != end_) throw Unclear{};
    return value;
  }

  /// The value of a constant or an override.
  static Constant value_of(const WgslEvaluator& around, std::string_view name, int depth) {
    const auto found = around.module_.values_.find(name);
    if (found == around.module_.values_.end()) throw Unclear{};
    const WgslModule::Value& value = found->second;
    const std::string_view type = written_type(around, value.type, depth);
    if (value.is_override) {
      const std::string_view key = value.id.empty() ? name : std::string_view(value.id);
      const auto given =
          std::ranges::find(around.constants_, key, [](const auto& c) { return c.first; });
      if (given != around.constants_.end()) {
        const std::string_view held = type.empty() ? type_of(around, name, depth) : type;
        if (held == "f32" || held == "f16") return wgsl::make_real(held, given->second);
        if (!holds(held, given->second)) throw Unclear{};
        return {held, static_cast<std::int64_t>(given->second)};
      }
    }
    Constant number = WgslExpression(around, value.expression, depth + 1).run();
    std::string_view wanted = type;
    if (wanted.empty() && value.is_override) wanted = concrete(number.type);
    if (wanted.empty() || wanted == number.type) return number;
    Constant sample{wanted, 0, 0};
    wgsl::unify(number, sample);
    return number;
  }

  static std::string_view type_of(const WgslEvaluator& around, std::string_view name, int depth) {
    const WgslModule::Value& value = around.module_.values_.at(name);
    if (const auto type = written_type(around, value.type, depth); !type.empty()) return type;
    return concrete(WgslExpression(around, value.expression, depth + 1).run().type);
  }

 private:
  static std::string_view concrete(std::string_view type) {
    return type == "int" ? "i32" : type == "float" ? "f32" : type;
  }
  /// A scalar type, through aliases. Empty if no type is written.
  static std::string_view written_type(const WgslEvaluator& around, Range type, int depth) {
    if (type.empty()) return {};
    if (type.end - type.begin != 1 || depth > deepest) throw Unclear{};
    const std::string_view word = around.module_.tokens_[type.begin].text;
    const auto alias = around.module_.aliases_.find(word);
    return alias == around.module_.aliases_.end() ? word
                                                  : written_type(around, alias->second, depth + 1);
  }

  [[nodiscard]] const WgslToken& token() const {
    static constexpr WgslToken nothing;
    return at_ < end_ ? around_.module_.tokens_[at_] : nothing;
  }
  bool take(std::string_view sign) {
    if (!token().is(sign)) return false;
    ++at_;
    return true;
  }

  [[nodiscard]] const Operator* next_operator() const {
    for (const Operator& op : operators) {
      if (token().kind != WgslToken::Kind::sign || token().text[0] != op.text[0]) continue;
      if (op.text.size() == 1) return &op;
      if (at_ + 1 >= end_) continue;
      const WgslToken& second = around_.module_.tokens_[at_ + 1];
      if (second.joined && second.is(op.text.substr(1))) return &op;
    }
    return nullptr;
  }

  Constant binary(int weakest) {
    Constant left = unary();
    while (const Operator* op = next_operator()) {
      if (op->binds <= weakest) break;
      at_ += op->text.size();
      left = wgsl::combine(op->text, left, binary(op->binds));
    }
    return left;
  }

  Constant unary() {
    if (++nested_ > 1000) throw Unclear{};
    const Constant value = unary_inside();
    --nested_;
    return value;
  }
  Constant unary_inside() {
    if (take("-")) {
      const Constant x = unary();
      return x.is_real() ? wgsl::make_real(x.type, -x.real) : wgsl::combine("-", {x.type, 0}, x);
    }
    if (take("!")) {
      const Constant x = unary();
      if (x.type != "bool") throw Unclear{};
      return wgsl::make_bool(x.whole == 0);
    }
    if (take("~")) {
      const Constant x = unary();
      if (x.is_real()) throw Unclear{};
      return wgsl::make_whole(x.type, ~x.whole);
    }
    return primary();
  }

  Constant primary() {
    if (take("(")) {
      const Constant inner = binary(0);
      if (!take(")")) throw Unclear{};
      return inner;
    }
    const WgslToken first = token();
    ++at_;
    if (first.kind == WgslToken::Kind::number) return wgsl::literal(first.text);
    if (first.kind != WgslToken::Kind::word) throw Unclear{};
    if (first.is("true") || first.is("false")) return wgsl::make_bool(first.is("true"));
    if (!take("(")) return value_of(around_, first.text, depth_ + 1);
    std::vector<Constant> arguments;
    while (!take(")")) {
      arguments.push_back(binary(0));
      if (!take(",") && !token().is(")")) throw Unclear{};
    }
    return wgsl::call(first.text, std::move(arguments));
  }

  const WgslEvaluator& around_;
  std::size_t at_;
  std::size_t end_;
  int depth_;
  int nested_ = 0;
};

/// Reads one type.
class WgslType {
 public:
  using Size = WgslEvaluator::Size;

  WgslType(const WgslEvaluator& around, Range range, int depth)
      : around_(around),
        tokens_(around.module_.tokens_),
        at_(range.begin),
        end_(range.end),
        depth_(depth) {
    if (depth_ > deepest) throw Unclear{};
  }

  Size run() {
    const std::string_view word = at_ < end_ ? tokens_[at_++].text : std::string_view();
    if (const auto alias = around_.module_.aliases_.find(word);
        alias != around_.module_.aliases_.end())
      return WgslType(around_, alias->second, depth_ + 1).run();
    if (const auto found = around_.module_.structs_.find(word);
        found != around_.module_.structs_.end())
      return structure(found->second);
    if (word == "bool" || word == "i32" || word == "u32" || word == "f32") return {4, 4};
    if (word == "f16") return {2, 2};
    if (word == "atomic") return inner();
    if (word == "array") return array();
    const auto digit = [&](std::size_t i) {
      return i < word.size() && word[i] >= '2' && word[i] <= '4'
                 ? static_cast<std::uint64_t>(word[i] - '0')
                 : 0;
    };
    if (word.starts_with("vec") && digit(3) != 0) return vector(digit(3), scalar(word.substr(4)));
    if (word.starts_with("mat") && digit(3) != 0 && word.size() > 5 && digit(5) != 0) {
      const Size column = vector(digit(5), scalar(word.substr(6)));
      return {digit(3) * round_up(column.size, column.align), column.align};
    }
    throw Unclear{};
  }

 private:
  static Size vector(std::uint64_t count, Size scalar) {
    return {count * scalar.size, (count == 3 ? 4 : count) * scalar.size};
  }
  /// The element type of `vec4<T>` or `vec4f`, where `suffix` follows "vec4".
  Size scalar(std::string_view suffix) {
    if (suffix.empty()) return inner();
    if (suffix == "h") return {2, 2};
    if (suffix != "f" && suffix != "i" && suffix != "u") throw Unclear{};
    return {4, 4};
  }

  /// The tokens up to the end of the template's argument.
  Range argument() {
    const std::size_t begin = at_;
    std::size_t templates = 0;
    std::size_t brackets = 0;
    for (; at_ < end_; ++at_) {
      const std::string_view text = tokens_[at_].text;
      if (text == "(" || text == "[") ++brackets;
      if (text == ")" || text == "]") --brackets;
      if (brackets != 0) continue;
      const bool shifts =
          text == "<" && at_ + 1 < end_ && tokens_[at_ + 1].joined && tokens_[at_ + 1].is("<");
      if (shifts) {
        ++at_;
      } else if (text == "<") {
        ++templates;
      } else if (text == ">" && templates > 0) {
        --templates;
      } else if (templates == 0 && (text == "," || text == ">")) {
        break;
      }
    }
    return {begin, at_};
  }
  bool take(std::string_view sign) {
    if (at_ >= end_ || !tokens_[at_].is(sign)) return false;
    ++at_;
    return true;
  }

  Size inner() {
    if (!take("<")) throw Unclear{};
    return WgslType(around_, argument(), depth_ + 1).run();
  }

  Size array() {
    const Size element = inner();
    if (!take(",")) throw Unclear{};
    const Range range = argument();
    const Constant count = WgslExpression(around_, range, depth_ + 1).run();
    if (count.is_real() || count.type == "bool" || count.whole < 0) throw Unclear{};
    const std::uint64_t stride = round_up(element.size, element.align);
    return {saturating_multiply(stride, static_cast<std::uint64_t>(count.whole)), element.align};
  }

  Size structure(const std::vector<WgslModule::Member>& members) {
    Size all{0, 1};
    const auto number = [&](Range range) {
      const Constant value = WgslExpression(around_, range, depth_ + 1).run();
      if (value.is_real() || value.whole <= 0) throw Unclear{};
      return static_cast<std::uint64_t>(value.whole);
    };
    for (const WgslModule::Member& member : members) {
      Size own = WgslType(around_, member.type, depth_ + 1).run();
      if (!member.align.empty()) own.align = number(member.align);
      if (!member.size.empty()) own.size = number(member.size);
      all.size = saturating_add(round_up(all.size, own.align), own.size);
      all.align = std::max(all.align, own.align);
    }
    all.size = round_up(all.size, all.align);
    return all;
  }

  const WgslEvaluator& around_;
  const std::vector<WgslToken>& tokens_;
  std::size_t at_;
  std::size_t end_;
  int depth_;
};

bool holds(std::string_view type, double value) {
  if (type == "f32") return std::fabs(value) <= std::numeric_limits<float>::max();
  if (type == "f16") return std::fabs(value) <= 65504;
  if (value != std::trunc(value)) return false;  // NaN, too
  if (type == "bool") return value == 0 || value == 1;
  if (type == "i32") return value >= INT32_MIN && value <= INT32_MAX;
  return type == "u32" && value >= 0 && value <= UINT32_MAX;
}

WgslEvaluator::Size WgslEvaluator::layout(Range type, std::string_view what) const {
  try {
    return WgslType(*this, type, 0).run();
  } catch (const Unclear&) {
    throw KernelError(
        fmt::format("the size of '{}' is not known before it is compiled; write its counts with "
                    "numbers, `const`s and `override`s",
                    what));
  }
}

std::uint64_t WgslEvaluator::count(Range expression, std::string_view what) const {
  try {
    const Constant value = WgslExpression(*this, expression, 0).run();
    if (value.is_real() || value.type == "bool" || value.whole < 0) throw Unclear{};
    return static_cast<std::uint64_t>(value.whole);
  } catch (const Unclear&) {
    throw KernelError(
        fmt::format("{} is not known before it is compiled; write it with numbers, `const`s and "
                    "`override`s",
                    what));
  }
}

std::string_view WgslEvaluator::type_of(std::string_view name) const {
  try {
    return WgslExpression::type_of(*this, name, 0);
  } catch (const Unclear&) {
    throw KernelError(fmt::format("the type of '{}' is not known; write it", name));
  }
}

}  // namespace kiln
