#include "kiln/kernel/wgsl_module.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/kernel/wgsl_evaluator.hpp"
#include "kiln/support/error.hpp"

namespace kiln {

/// Finds a module's declarations.
class WgslReader {
 public:
  explicit WgslReader(WgslModule& module) : module_(module), tokens_(module.tokens_) {}

  void run() {
    while (kind() != WgslToken::Kind::end) {
      if (is("@")) {
        read_attribute();
      } else if (is("const") || is("override")) {
        read_value();
      } else if (is("alias")) {
        read_alias();
      } else if (is("struct")) {
        read_struct();
      } else if (is("var")) {
        read_variable();
      } else if (is("fn")) {
        read_function();
      } else if (is("{") || is("(") || is("[")) {
        at_ = past_brackets(at_);
      } else {
        ++at_;
        attributes_.clear();
      }
    }
  }

 private:
  using Range = WgslModule::Range;

  [[nodiscard]] WgslToken::Kind kind() const { return tokens_[at_].kind; }
  [[nodiscard]] bool is(std::string_view text) const { return tokens_[at_].is(text); }
  [[nodiscard]] bool at_end() const { return kind() == WgslToken::Kind::end; }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  std::string_view take_word() {
    return kind() == WgslToken::Kind::word ? tokens_[at_++].text : std::string_view();
  }

  /// The token after the bracket that closes the one at `at`.
  [[nodiscard]] std::size_t past_brackets(std::size_t at) const {
    std::size_t open = 0;
    for (; tokens_[at].kind != WgslToken::Kind::end; ++at) {
      const std::string_view text = tokens_[at].text;
      if (text == "(" || text == "[" || text == "{") ++open;
      if ((text == ")" || text == "]" || text == "}") && --open == 0) return at + 1;
    }
    return at;
  }

  /// The tokens up to, and without, one of `ends` outside of brackets. For a type also outside of
  /// templates.
  Range take_until(std::string_view ends, bool type = false) {
    const std::size_t begin = at_;
    std::size_t templates = 0;
    while (!at_end()) {
      const std::string_view text = tokens_[at_].text;
      if (templates == 0 && text.size() == 1 && ends.find(text[0]) != std::string_view::npos) break;
      if (type && text == "<" && tokens_[at_ + 1].is("<") && tokens_[at_ + 1].joined) {
        at_ += 2;  // a shift
        continue;
      }
      if (type && text == "<") ++templates;
      if (type && text == ">" && templates > 0) --templates;
      at_ = text == "(" || text == "[" || text == "{" ? past_brackets(at_) : at_ + 1;
    }
    return {begin, at_};
  }

  void read_attribute() {
    ++at_;
    const std::string_view name = take_word();
    std::vector<Range>& arguments = attributes_[name];
    arguments.clear();
    if (!is("(")) return;
    const std::size_t end = past_brackets(at_++);
    while (at_ + 1 < end) {
      arguments.push_back(take_until(",)"));
      ++at_;
    }
    at_ = end;
  }
  [[nodiscard]] Range attribute(std::string_view name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() || found->second.empty() ? Range{} : found->second[0];
  }

  void read_value() {
    WgslModule::Value value;
    value.is_override = tokens_[at_++].is("override");
    if (const Range id = attribute("id"); !id.empty()) value.id = tokens_[id.begin].text;
    const std::string_view name = take_word();
    if (take(":")) value.type = take_until("=;", true);
    if (take("=")) value.expression = take_until(";");
    module_.values_[name] = value;
    attributes_.clear();
  }

  void read_alias() {
    ++at_;
    const std::string_view name = take_word();
    if (take("=")) module_.aliases_[name] = take_until(";", true);
    attributes_.clear();
  }

  void read_struct() {
    ++at_;
    std::vector<WgslModule::Member>& members = module_.structs_[take_word()];
    const std::size_t end = is("{") ? past_brackets(at_++) : at_;
    attributes_.clear();
    while (at_ + 1 < end) {
      if (is("@")) {
        read_attribute();
      } else if (is(":")) {
        ++at_;
        members.push_back({take_until(",}", true), attribute("align"), attribute("size")});
        attributes_.clear();
      } else {
        ++at_;
      }
    }
    at_ = std::max(at_, end);
    attributes_.clear();
  }

  void read_variable() {
    ++at_;
    bool workgroup = false;
    if (take("<")) {
      workgroup = is("workgroup");
      (void)take_until(">");
      (void)take(">");
    }
    const std::string_view name = take_word();
    if (take(":") && workgroup) module_.workgroup_variables_[name] = take_until("=;", true);
    (void)take_until(";");
    attributes_.clear();
  }

  void read_function() {
    ++at_;
    WgslModule::Function& function = module_.functions_[take_word()];
    if (const auto size = attributes_.find("workgroup_size"); size != attributes_.end())
      function.workgroup_size = size->second;
    const std::size_t begin = at_;
    (void)take_until("{");
    at_ = past_brackets(at_);
    for (std::size_t i = begin; i < at_; ++i) {
      if (tokens_[i].kind == WgslToken::Kind::word) function.names.insert(tokens_[i].text);
    }
    attributes_.clear();
  }

  WgslModule& module_;
  const std::vector<WgslToken>& tokens_;
  std::size_t at_ = 0;
  std::map<std::string_view, std::vector<Range>> attributes_;  // those of the next declaration
};

WgslModule::WgslModule(std::string_view source) : tokens_(wgsl_tokens(source)) {
  WgslReader(*this).run();
}

void WgslModule::check_constants(Constants constants) const {
  const WgslEvaluator evaluator(*this, constants);
  for (const auto& [name, value] : constants) {
    const auto wanted = [&](const auto& entry) {
      return entry.second.is_override &&
             (entry.second.id.empty() ? entry.first == name : entry.second.id == name);
    };
    const auto found = std::ranges::find_if(values_, wanted);
    if (found == values_.end()) {
      throw KernelError(
          fmt::format("constant '{}' is set, but the source has no such override", name));
    }
    const std::string_view type = evaluator.type_of(found->first);
    if (!holds(type, value)) {
      throw KernelError(fmt::format("constant '{}' is {}, which the override's type {} cannot hold",
                                    name, value, type));
    }
  }
}

std::optional<std::array<std::uint64_t, 3>> WgslModule::workgroup_size(std::string_view entry,
                                                                       Constants constants) const {
  const auto found = functions_.find(entry);
  if (found == functions_.end() || found->second.workgroup_size.empty()) return std::nullopt;
  const WgslEvaluator evaluator(*this, constants);
  std::array<std::uint64_t, 3> size{1, 1, 1};
  const auto& written = found->second.workgroup_size;
  for (std::size_t axis = 0; axis < std::min<std::size_t>(3, written.size()); ++axis)
    size[axis] = evaluator.count(written[axis], "@workgroup_size");
  return size;
}

std::uint64_t WgslModule::workgroup_bytes(std::string_view entry, Constants constants) const {
  if (workgroup_variables_.empty()) return 0;
  std::set<std::string_view> reached;
  std::vector<std::string_view> next{entry};
  while (!next.empty()) {
    const std::string_view name = next.back();
    next.pop_back();
    const auto function = functions_.find(name);
    if (function == functions_.end() || !reached.insert(name).second) continue;
    next.insert(next.end(), function->second.names.begin(), function->second.names.end());
  }
  const auto used = [&](std::string_view variable) {
    return std::ranges::any_of(reached, [&](std::string_view name) {
      return functions_.at(name).names.contains(variable);
    });
  };
  const WgslEvaluator evaluator(*this, constants);
  std::uint64_t bytes = 0;
  for (const auto& [name, type] : workgroup_variables_) {
    if (!used(name)) continue;
    const std::uint64_t size = evaluator.layout(type, name).size;
    bytes = saturating_add(bytes, round_up(size, 16));
  }
  return bytes;
}

}  // namespace kiln
