#include "kiln/dispatch/wgsl/kernel/loads.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/dispatch/key.hpp"
#include "kiln/dispatch/wgsl/kernel/launch_epilogue.hpp"
#include "kiln/kernel/wgsl_tokens.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// Which names stand for local variables and parameters where a text is.
class Locals {
 public:
  /// Goes on past token i.
  void pass(const std::vector<WgslToken>& tokens, std::size_t i) {
    const WgslToken& token = tokens[i];
    if (token.is("(")) ++parens_;
    if (token.is(")")) --parens_;
    if (token.is("{")) ++depth_;
    if (token.is("}")) close();
    if (token.is(";")) {
      for (Local& local : locals_) local.known = local.known || local.parens == parens_;
    }
    if (declares(tokens, i)) {
      // What is declared between parentheses lives as long as the block behind them.
      const bool parameter = depth_ == 0;
      locals_.push_back({token.text, parens_, parens_ > 0 ? depth_ : depth_ - 1, parameter});
    }
  }
  /// Whether token i declares one: `let x`, `var x`, or the parameter `x:`.
  [[nodiscard]] bool declares(const std::vector<WgslToken>& tokens, std::size_t i) const {
    if (tokens[i].kind != WgslToken::Kind::word || i == 0 || depth_ + parens_ == 0) return false;
    const WgslToken& before = tokens[i - 1];
    return before.is("let") || before.is("var") || before.is("const") ||
           (depth_ == 0 && parens_ > 0 && tokens[i + 1].is(":"));
  }
  [[nodiscard]] bool has(std::string_view name) const {
    return std::ranges::any_of(
        locals_, [&](const Local& local) { return local.known && local.name == name; });
  }
  /// Whether all blocks that began have ended. Else the text is a part of one, and its scopes are
  /// not known.
  [[nodiscard]] bool whole() const { return depth_ == 0 && parens_ == 0 && !broken_; }

 private:
  struct Local {
    std::string_view name;
    int parens;
    int end;     ///< it ends where a block ends inside this many others
    bool known;  ///< false until its declaration ends: its first value may name what it hides
  };

  void close() {
    --depth_;
    broken_ = broken_ || depth_ < 0;
    std::erase_if(locals_, [&](const Local& local) { return local.end >= depth_; });
  }

  std::vector<Local> locals_;
  int parens_ = 0;
  int depth_ = 0;
  bool broken_ = false;
};

/// What texts say about names, in one pass over each.
class Mentions {
 public:
  void add(std::string_view text) {
    const std::vector<WgslToken> tokens = wgsl_tokens(text);
    Locals locals;
    std::set<std::string_view> local;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i].kind == WgslToken::Kind::word) add(tokens, i, locals, local);
      locals.pass(tokens, i);
    }
    if (!locals.whole()) named_.merge(local);
  }

  [[nodiscard]] bool names(std::string_view variable) const { return named_.contains(variable); }
  [[nodiscard]] bool calls(std::string_view function) const { return called_.contains(function); }
  [[nodiscard]] bool defines(std::string_view name) const { return defined_.contains(name); }

 private:
  void add(const std::vector<WgslToken>& tokens, std::size_t i, const Locals& locals,
           std::set<std::string_view>& local) {
    const std::string_view word = tokens[i].text;
    const std::string_view before = i == 0 ? std::string_view() : tokens[i - 1].text;
    if (before == ".") return;  // a member of that name is none
    const bool is_local = locals.has(word) || locals.declares(tokens, i);
    if (!tokens[i + 1].is(":")) (is_local ? local : named_).insert(word);
    if (before == "fn" || before == "struct" || before == "alias") {
      defined_.insert(word);
    } else if (tokens[i + 1].is("(")) {
      called_.insert(word);
    }
  }

  std::set<std::string_view> named_;
  std::set<std::string_view> called_;
  std::set<std::string_view> defined_;
};

}  // namespace

std::vector<OperandReads> operand_reads(const webgpu::Launch& launch,
                                        std::span<const std::string_view> names) {
  std::vector<std::string_view> sources{launch.source.text().text};
  for (const auto& [name, value] : launch.source.variables()) sources.emplace_back(value);
  const auto may_load = [](std::string_view text) {
    return text.find("load_") != std::string_view::npos;
  };
  // Most kernels have no such function, and every plan asks.
  if (std::ranges::none_of(sources, may_load))
    return std::vector<OperandReads>(names.size(), OperandReads{.array = true});
  Mentions texts;
  for (const std::string_view source : sources) texts.add(source);
  std::vector<OperandReads> out;
  for (const std::string_view name : names) {
    // load_NAME with that end, unless it is the load of another operand.
    const auto loads = [&](std::string_view end) {
      const std::string function = fmt::format("load_{}{}", name, end);
      const bool other =
          !end.empty() && std::ranges::find(names, fmt::format("{}{}", name, end)) != names.end();
      return !other && texts.calls(function) && !texts.defines(function);
    };
    const auto calls = [&](std::string_view what) {
      return texts.calls(fmt::format("{}_{}", name, what));
    };
    const bool in_store =
        launch.store && std::ranges::find(launch.store->inputs, name) != launch.store->inputs.end();
    out.push_back(
        {.array = in_store || texts.names(name),
         .layout = calls("stride") || calls("offset") || (calls("batch") && launch.strided),
         .load = loads(""),
         .load_four = loads("4"),
         .at = loads("_at"),
         .at_four = loads("_at4"),
         .down_four = loads("_down4"),
         .matrix =
             (calls("matrix") || calls("move")) && !texts.defines(fmt::format("{}_Matrix", name))});
  }
  return out;
}

Loads loads_of(const webgpu::Launch& launch, std::string_view name, const OperandReads& reads) {
  if (!reads.loads_alone()) return {};
  Loads loads{.times = 1, .by_coordinates = !reads.by_number()};
  const auto repeated = std::ranges::find(launch.repeated, name, &Repeated::name);
  if (repeated == launch.repeated.end()) return loads;
  const std::int64_t times = repeated->times;
  loads.times = times > 0 ? times : Loads::many;
  return loads;
}

void append_key(std::string& key, std::span<const FusedProducer> producers) {
  append_bytes(key, producers.size());
  for (const FusedProducer& p : producers) {
    append_bytes(key, p.operand);
    append_bytes(key, p.body.get());
    append_bytes(key, p.inputs.size());
    for (const RawTensor& t : p.inputs) {
      append_bytes(key, t.dtype);
      append_layout(key, t.layout);
    }
  }
}

OperandLoad::OperandLoad(std::string_view op, std::size_t number, const Operand& operand,
                         const OperandReads& reads, const FusedProducer* producer, bool vec4,
                         const Shape& out)
    : op_(op),
      number_(number),
      operand_(operand.name),
      dtype_(operand.dtype),
      wanted_(reads),
      producer_(producer) {
  std::vector<Layout> layouts;
  std::vector<DType> dtypes;
  if (producer == nullptr) {
    arrays_.push_back({operand_, dtype_, vec4});
    layouts.push_back(operand.layout);
  } else {
    for (std::size_t i = 0; i < producer->inputs.size(); ++i) {
      const RawTensor& t = producer->inputs[i];
      arrays_.push_back({name(fmt::format("a{}", i)), t.dtype});
      dtypes.push_back(t.dtype);
      layouts.push_back(t.layout);
    }
    types_ = infer(op, *producer->body, dtypes, dtype_);
  }
  if (wanted_.by_coordinates()) {
    std::vector<Layout> seen;
    for (const Layout& layout : layouts) seen.push_back(layout.broadcast_to(operand.shape()));
    places_.emplace(op, name("p"), operand_, std::move(seen), operand.shape(),
                    wanted_.matrix ? &out : nullptr,
                    LoadPlaces::Fours{wanted_.at_four, wanted_.down_four});
    for (std::size_t i = 0; i < arrays_.size() && !wanted_.array; ++i)
      arrays_[i].vec4 = arrays_[i].vec4 || places_->is_quad(i, -1) || places_->is_quad(i, -2);
  }
  if (!wanted_.by_number()) return;
  const bool in_place =
      producer == nullptr && operand.layout.is_dense() && operand.layout.offset == 0;
  if (in_place) {
    if (wanted_.loads_alone() && wanted_.load_four && operand.shape().elements() % 4 == 0)
      arrays_[0].vec4 = true;
    return;
  }
  reads_.emplace(name(""), operand.shape(), layouts);
  if (!wanted_.load_four || !reads_->by_four() || wanted_.array) return;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    arrays_[i].vec4 = arrays_[i].vec4 || reads_->is_quad(i);
}

std::string OperandLoad::name(std::string_view rest) const {
  return fmt::format("kiln_l{}_{}", number_, rest);
}

std::string OperandLoad::declare(KernelId& id, std::uint32_t group, std::uint32_t& next) const {
  std::string text;
  for (const StoredArray& array : arrays_)
    text += declare_array(id, group, next++, Access::read, array);
  return text;
}

std::size_t OperandLoad::add_numbers(Metadata& metadata) const {
  const std::size_t first = metadata.named();
  if (producer_ != nullptr) {
    each_param(op_, name("p"), producer_->params, types_,
               [&](auto param, std::string_view type, std::uint32_t word) {
                 metadata.add(param(), type, word);
               });
  }
  if (reads_) {
    reads_->each_number([&](auto number, std::int64_t size) {
      metadata.add(number(), "u32", word_of_size(op_, size));
    });
  }
  if (places_) {
    places_->each_number([&](const std::string& number, std::int64_t size) {
      metadata.add(number, "u32", word_of_size(op_, size));
    });
  }
  return first;
}

/// Whether four elements of array i, from a multiple of four on, are one of its vec4s.
bool OperandLoad::is_quad(std::size_t i) const {
  return arrays_[i].vec4 && (!reads_ || reads_->is_quad(i));
}

/// Element `kiln_index + lane` of array i. With `four`, whole vec4s were read.
std::string OperandLoad::element(std::size_t i, int lane, bool four) const {
  if (four && is_quad(i)) return fmt::format("kiln_q{}[{}]", i, lane);
  const std::string plain = lane == 0 ? "kiln_index" : fmt::format("kiln_index + {}u", lane);
  return element_of(arrays_[i], reads_ ? reads_->position(i, lane, "kiln_index") : plain);
}

/// What a load gives, from `element(i)` of each array i.
template <class Element>
std::string OperandLoad::result(const Element& element) const {
  if (producer_ == nullptr) return element(0);
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    arguments.push_back(wgsl_load(arrays_[i].dtype, element(i)));
  return fmt::format("{}({})", name("compute"), fmt::join(arguments, ", "));
}

/// The body of load_NAME4.
std::string OperandLoad::four_elements() const {
  const std::string_view type = wgsl_storage_type(dtype_);
  std::vector<std::string> lanes;
  if (reads_ && !reads_->by_four()) {
    for (int lane = 0; lane < 4; ++lane)
      lanes.push_back(fmt::format("{}(kiln_index + {}u)", name("one"), lane));
    return fmt::format("  return vec4<{}>({});\n", type, fmt::join(lanes, ", "));
  }
  std::string text = reads_ ? reads_->coordinates("kiln_index") : "";
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (!is_quad(i)) continue;
    text += fmt::format("  let kiln_q{} = {}[({}) / 4u];\n", i, arrays_[i].name,
                        reads_ ? reads_->position(i, 0, "kiln_index") : "kiln_index");
  }
  if (producer_ == nullptr && is_quad(0)) return text + "  return kiln_q0;\n";
  for (int lane = 0; lane < 4; ++lane)
    lanes.push_back(result([&](std::size_t i) { return element(i, lane, true); }));
  return fmt::format("{}  return vec4<{}>({});\n", text, type, fmt::join(lanes, ", "));
}

/// The body of load_NAME_at4 (axis -1) or load_NAME_down4 (axis -2).
std::string OperandLoad::four_along(int axis) const {
  std::string text;
  const auto quad = [&](std::size_t i) { return arrays_[i].vec4 && places_->is_quad(i, axis); };
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const std::string at = places_->position(i);
    if (quad(i)) {
      text += fmt::format("  let kiln_q{} = {}[({}) / 4u];\n", i, arrays_[i].name, at);
    } else if (places_->repeats(i, axis)) {
      text += fmt::format("  let kiln_q{} = {};\n", i, element_of(arrays_[i], at));
    }
  }
  if (producer_ == nullptr && quad(0)) return text + "  return kiln_q0;\n";
  std::vector<std::string> lanes;
  for (int lane = 0; lane < 4; ++lane) {
    lanes.push_back(result([&](std::size_t i) {
      if (quad(i)) return fmt::format("kiln_q{}[{}]", i, lane);
      if (places_->repeats(i, axis)) return fmt::format("kiln_q{}", i);
      return element_of(arrays_[i], places_->position(i, axis, lane));
    }));
  }
  return fmt::format("{}  return vec4<{}>({});\n", text, wgsl_storage_type(dtype_),
                     fmt::join(lanes, ", "));
}

/// The producer's body as a function of elements.
std::string OperandLoad::compute(std::set<std::string>& helpers) const {
  std::vector<std::string> values;
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    values.push_back(fmt::format("v{}", i));
    parameters.push_back(fmt::format("v{}: {}", i, wgsl_compute_type(arrays_[i].dtype)));
  }
  const WgslBody printed =
      print_wgsl(op_, *producer_->body, types_, values, "params." + name("p"), "t");
  helpers.insert(printed.helpers.begin(), printed.helpers.end());
  // Rounded by its bits: the kernel may go on in f32, and compilers take f32(f16(x)) for x.
  const std::string value =
      dtype_ == DType::f16
          ? wgsl_store(DType::f32, dtype_,
                       wgsl_rounded(dtype_, fmt::format("f32({})", printed.results[0]), helpers))
          : wgsl_store(types_.roots[0], dtype_, printed.results[0]);
  return fmt::format("fn {}({}) -> {} {{\n{}  return {};\n}}\n", name("compute"),
                     fmt::join(parameters, ", "), wgsl_storage_type(dtype_), printed.statements,
                     value);
}

std::string OperandLoad::by_number() const {
  const std::string_view type = wgsl_storage_type(dtype_);
  std::string text = fmt::format("fn {}(kiln_index: u32) -> {} {{\n{}  return {};\n}}\n",
                                 name("one"), type, reads_ ? reads_->coordinates("kiln_index") : "",
                                 result([&](std::size_t i) { return element(i, 0, false); }));
  if (wanted_.load) {
    text += fmt::format("fn load_{}(kiln_index: u32) -> {} {{ return {}(kiln_index); }}\n",
                        operand_, type, name("one"));
  }
  if (wanted_.load_four) {
    text += fmt::format("fn load_{}4(kiln_index: u32) -> vec4<{}> {{\n{}}}\n", operand_, type,
                        four_elements());
  }
  return text;
}

std::string OperandLoad::by_coordinates() const {
  const std::string_view type = wgsl_storage_type(dtype_);
  std::string text = places_->functions();
  const auto function = [&](std::string_view end, const std::string& result,
                            const std::string& body) {
    text += fmt::format("fn load_{}_{}({}) -> {} {{\n{}}}\n", operand_, end, places_->parameters(),
                        result, body);
  };
  if (wanted_.at) {
    function("at", std::string(type), fmt::format("  return {};\n", result([&](std::size_t i) {
                                                    return element_of(arrays_[i],
                                                                      places_->position(i));
                                                  })));
  }
  const std::string four = fmt::format("vec4<{}>", type);
  if (wanted_.at_four) function("at4", four, four_along(-1));
  if (wanted_.down_four) function("down4", four, four_along(-2));
  return text;
}

std::string OperandLoad::functions(std::set<std::string>& helpers) const {
  std::string text = producer_ == nullptr ? "" : compute(helpers);
  if (wanted_.by_number()) text += by_number();
  if (wanted_.by_coordinates()) text += by_coordinates();
  return text;
}

}  // namespace kiln::dispatch::wgsl
