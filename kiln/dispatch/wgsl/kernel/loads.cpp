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

/// What one text says about an operand.
class Search {
 public:
  explicit Search(std::string_view text) : tokens_(wgsl_tokens(text)) {}

  /// Whether the text has this variable. A member of that name is none.
  [[nodiscard]] bool names(std::string_view variable) const {
    return any(variable, [&](std::size_t i) { return !follows(i, "."); });
  }
  [[nodiscard]] bool calls(std::string_view function) const {
    return any(function,
               [&](std::size_t i) { return tokens_[i + 1].is("(") && !follows(i, "fn"); });
  }
  [[nodiscard]] bool defines(std::string_view function) const {
    return any(function, [&](std::size_t i) {
      return follows(i, "fn") || follows(i, "struct") || follows(i, "alias");
    });
  }

 private:
  template <class F>
  [[nodiscard]] bool any(std::string_view word, F f) const {
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].is(word) && f(i)) return true;
    }
    return false;
  }
  [[nodiscard]] bool follows(std::size_t i, std::string_view before) const {
    return i > 0 && tokens_[i - 1].is(before);
  }

  std::vector<WgslToken> tokens_;
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
  const std::vector<Search> texts(sources.begin(), sources.end());
  const auto in_any = [&](auto f) { return std::ranges::any_of(texts, f); };
  std::vector<OperandReads> out;
  for (const std::string_view name : names) {
    const auto loads = [&](const std::string& function) {
      return in_any([&](const Search& text) { return text.calls(function); }) &&
             !in_any([&](const Search& text) { return text.defines(function); });
    };
    const auto calls = [&](std::string_view what) {
      const std::string function = fmt::format("{}_{}", name, what);
      return in_any([&](const Search& text) { return text.calls(function); });
    };
    const bool in_store =
        launch.store && std::ranges::find(launch.store->inputs, name) != launch.store->inputs.end();
    out.push_back(
        {.array = in_store || in_any([&](const Search& text) { return text.names(name); }),
         .layout = calls("stride") || calls("offset") || calls("batch"),
         .load = loads(fmt::format("load_{}", name)),
         .load_four = std::ranges::find(names, fmt::format("{}4", name)) == names.end() &&
                      loads(fmt::format("load_{}4", name))});
  }
  return out;
}

Loads loads_of(const webgpu::Launch& launch, std::string_view name, const OperandReads& reads) {
  if (!reads.loads_alone()) return Loads::closed;
  const bool repeated = std::ranges::find(launch.repeated, name) != launch.repeated.end();
  return repeated ? Loads::repeated : Loads::once;
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
                         const OperandReads& reads, const FusedProducer* producer, bool vec4)
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
  return first;
}

/// Whether four elements of array i, from a multiple of four on, are one of its vec4s.
bool OperandLoad::is_quad(std::size_t i) const {
  return arrays_[i].vec4 && (!reads_ || reads_->is_quad(i));
}

/// Element `index + lane` of array i. With `four`, whole vec4s were read.
std::string OperandLoad::element(std::size_t i, int lane, bool four) const {
  if (four && is_quad(i)) return fmt::format("kiln_q{}[{}]", i, lane);
  const std::string plain = lane == 0 ? "index" : fmt::format("index + {}u", lane);
  return element_of(arrays_[i], reads_ ? reads_->position(i, lane) : plain);
}

/// What a load gives for `index + lane`.
std::string OperandLoad::result(int lane, bool four) const {
  if (producer_ == nullptr) return element(0, lane, four);
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    arguments.push_back(wgsl_load(arrays_[i].dtype, element(i, lane, four)));
  return fmt::format("{}({})", name("compute"), fmt::join(arguments, ", "));
}

/// The body of load_NAME4.
std::string OperandLoad::four_elements() const {
  const std::string_view type = wgsl_storage_type(dtype_);
  std::vector<std::string> lanes;
  if (reads_ && !reads_->by_four()) {
    for (int lane = 0; lane < 4; ++lane)
      lanes.push_back(fmt::format("{}(index + {}u)", name("one"), lane));
    return fmt::format("  return vec4<{}>({});\n", type, fmt::join(lanes, ", "));
  }
  std::string text = reads_ ? reads_->coordinates() : "";
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (!is_quad(i)) continue;
    text += fmt::format("  let kiln_q{} = {}[({}) / 4u];\n", i, arrays_[i].name,
                        reads_ ? reads_->position(i) : "index");
  }
  if (producer_ == nullptr && is_quad(0)) return text + "  return kiln_q0;\n";
  for (int lane = 0; lane < 4; ++lane) lanes.push_back(result(lane, true));
  return fmt::format("{}  return vec4<{}>({});\n", text, type, fmt::join(lanes, ", "));
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

std::string OperandLoad::functions(std::set<std::string>& helpers) const {
  const std::string_view type = wgsl_storage_type(dtype_);
  std::string text = producer_ == nullptr ? "" : compute(helpers);
  text += fmt::format("fn {}(index: u32) -> {} {{\n{}  return {};\n}}\n", name("one"), type,
                      reads_ ? reads_->coordinates() : "", result(0, false));
  if (wanted_.load) {
    text += fmt::format("fn load_{}(index: u32) -> {} {{ return {}(index); }}\n", operand_, type,
                        name("one"));
  }
  if (wanted_.load_four) {
    text += fmt::format("fn load_{}4(index: u32) -> vec4<{}> {{\n{}}}\n", operand_, type,
                        four_elements());
  }
  return text;
}

}  // namespace kiln::dispatch::wgsl
