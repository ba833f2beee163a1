#include "kiln/dispatch/wgsl/kernel/bindings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/dispatch/wgsl/kernel/launch_epilogue.hpp"
#include "kiln/dispatch/wgsl/kernel/loads.hpp"
#include "kiln/dispatch/wgsl/kernel/names.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch::wgsl {
namespace {

class Renderer {
 public:
  Renderer(const OpTable& table, const webgpu::Launch& launch, std::span<const OperandReads> reads,
           std::span<const Operand> in, std::span<const Operand> out, const ParamFields& params,
           const Limits& limits, const FusedEpilogue* epilogue,
           std::span<const FusedProducer> producers)
      : table_(table),
        launch_(launch),
        reads_(reads),
        in_(in),
        out_(out),
        params_(params),
        limits_(limits),
        template_(launch.source.text()),
        source_(template_.text()),
        store_(table.name, out[0].spec(), epilogue, call_of(out[0]),
               launch_epilogue(table, launch, in, out[0])),
        producers_(producers) {}

  RenderedLaunch run() && {
    check_contract();
    make_loads();
    result_.patches = add_params(table_, launch_, params_, metadata_);
    result_.store_types = store_.types();
    result_.epilogue_word = store_.add_numbers(metadata_, result_.store_types);
    add_load_numbers();
    std::string bindings = aliases();
    bindings += inputs();  // in this order: each takes the next binding numbers
    bindings += scratch();
    bindings += store_.declare_inputs(result_.id, 0, next_binding_);
    for (const Operand& t : in_) bindings += accessors(t);
    for (const Operand& t : out_) bindings += accessors(t);
    bindings += workgroup_function();
    std::string stores = outputs();
    for (const auto& load : loads_) {
      if (load) stores += load->functions(helpers_);
    }
    metadata_.add_zero_for(helpers_);
    const std::string declared = metadata_.declare(limits_, 0, next_binding_, result_.id);
    bindings = declared + bindings;
    std::set<std::string> helpers = used_helpers(source_);
    helpers.insert(helpers_.begin(), helpers_.end());

    SourceTemplate::Variables library{{"bindings", bindings},
                                      {"elem", std::string(wgsl_storage_type(elem()))}};
    const std::array<std::string, 3> axes{"x", "y", "z"};
    for (std::size_t i = 0; i < 3; ++i)
      library["workgroup_size_" + axes[i]] = std::to_string(launch_.workgroup[i]);
    result_.source = template_.render(launch_.source.variables(), library);
    KernelId& id = result_.id;
    id.language = launch_.source.language();
    // On the first line, before everything, as WGSL requires. So line numbers stay.
    id.source =
        enable_f16(bindings + stores) + result_.source.text + "\n" + stores + wgsl_helpers(helpers);
    id.entry = launch_.source.entry_point();
    id.workgroup = launch_.workgroup;
    id.constants = launch_.source.constants();
    id.trusted = launch_.trusted;
    result_.words = metadata_.values();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw KernelError(fmt::format("{}: {}: {}", table_.name, launch_.source.text().name, what));
  }

  DType elem() const { return in_.empty() ? out_[0].dtype : in_[0].dtype; }

  static bool is_atomic(DType dtype) { return dtype == DType::i32 || dtype == DType::u32; }

  bool in_vec4(std::string_view name) const {
    return wants_vec4(launch_, name) || store_.reads_in_vec4(name);
  }

  /// How the kernel stores that output.
  StoreCall call_of(const Operand& t) const {
    const std::string name = fmt::format("store_{}", t.name);
    const bool open = launch_.access != OutputAccess::write;
    const bool vec4 = wants_vec4(launch_, t.name);
    return {name,
            {open ? std::string(t.name) : fmt::format("kiln_{}", t.name), t.dtype, vec4},
            calls(source_, name + "4")};
  }

  void check_contract() const {
    check_names(table_, launch_, in_, out_);
    require_rounds(table_, launch_, limits_);
    if (!template_.uses("bindings"))
      fail("the source must contain {{ bindings }}, which declares its operands");
    for (const Operand& t : out_) {
      const std::string store = fmt::format("store_{}", t.name);
      if (!calls(source_, store) && !calls(source_, store + "4") &&
          launch_.access == OutputAccess::write) {
        fail(fmt::format("output '{}' is never stored; call {}(index, value)", t.name, store));
      }
    }
    for (const Operand& t : out_) {
      if (launch_.access != OutputAccess::atomic || is_atomic(t.dtype)) continue;
      fail(fmt::format("output '{}' is {}; atomics are i32 or u32", t.name, to_string(t.dtype)));
    }
    for (const std::string& name : launch_.vec4) {
      const auto named = [&](const Operand& t) { return t.name == name; };
      if (std::ranges::none_of(in_, named) && std::ranges::none_of(out_, named)) {
        fail(fmt::format("vec4 names '{}', which is no operand", name));
      }
    }
  }

  std::string aliases() const {
    return fmt::format("alias Elem = {};\nalias Acc = {};\n", wgsl_storage_type(elem()),
                       wgsl_compute_type(elem()) == "bool" ? "u32" : wgsl_compute_type(elem()));
  }

  /// The loads of the operands that the kernel reads through them.
  void make_loads() {
    loads_.resize(in_.size());
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const OperandReads& reads = reads_[i];
      const FusedProducer* producer = producer_of(producers_, i);
      if (producer != nullptr && !loads_of(launch_, in_[i].name, reads).takes()) {
        refuse_producer(table_, *producer);
      }
      if (!reads.loads()) continue;
      check_load_name(table_, launch_, in_, out_, in_[i].name, reads.by_coordinates());
      loads_[i].emplace(table_.name, i, in_[i], reads, producer, in_vec4(in_[i].name),
                        out_[0].shape());
    }
    for (const auto& [name, times] : launch_.repeated) {
      const auto named = [&](const Operand& t) { return t.name == name; };
      const auto at = std::ranges::find_if(in_, named);
      if (at == in_.end() || !loads_[static_cast<std::size_t>(at - in_.begin())])
        fail(fmt::format("repeated names '{0}', which is no input that is read by load_{0}", name));
    }
  }

  void add_load_numbers() {
    for (const auto& load : loads_) {
      if (!load) continue;
      const std::size_t word = load->add_numbers(metadata_);
      if (load->has_producer()) result_.producers.push_back({load->types(), word});
    }
  }

  std::string inputs() {
    std::string text;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const Operand& t = in_[i];
      text += loads_[i] ? loads_[i]->declare(result_.id, 0, next_binding_)
                        : declare_array(result_.id, 0, next_binding_++, Access::read,
                                        {std::string(t.name), t.dtype, in_vec4(t.name)});
    }
    return text;
  }

  std::string scratch() {
    std::string text;
    for (const Scratch& s : launch_.scratch)
      text += declare_array(result_.id, 0, next_binding_++, Access::read_write, {s.name, s.dtype});
    return text;
  }

  /// NAME_shape, NAME_stride, NAME_offset and NAME_batch, if the source calls them.
  std::string accessors(const Operand& t) {
    std::string text;
    const auto by_axis = [&](std::string_view what, std::span<const std::int64_t> numbers) {
      if (!calls(source_, fmt::format("{}_{}", t.name, what))) return;
      const std::size_t first = metadata_.add_words(numbers);
      text += fmt::format("fn {}_{}(d: u32) -> u32 {{ return {}; }}\n", t.name, what,
                          Metadata::word_at(first, numbers.size(), "d"));
    };
    const auto rank = static_cast<std::size_t>(t.rank());
    by_axis("shape", {t.layout.shape.begin(), rank});
    by_axis("stride", {t.layout.strides.data(), rank});
    if (calls(source_, fmt::format("{}_offset", t.name))) {
      const std::size_t word = metadata_.add_words(std::array{t.layout.offset});
      text += fmt::format("fn {}_offset() -> u32 {{ return {}; }}\n", t.name, Metadata::word(word));
    }
    if (calls(source_, fmt::format("{}_batch", t.name))) text += batch_function(t);
    return text;
  }

  /// Where matrix i of the output's batch begins in `t`, whose batch dimensions broadcast. A kernel
  /// that takes no strides sees it dense, even where its loads know better.
  std::string batch_function(const Operand& t) {
    const Shape& shape = out_[0].shape();
    const Layout layout = launch_.strided ? t.layout : Layout::dense(t.shape());
    std::string body = fmt::format("  var at = {};\n",
                                   Metadata::word(metadata_.add_words(std::array{layout.offset})));
    body += "  var rest = i;\n";
    for (int axis = -3; axis >= -shape.rank(); --axis) {
      const bool present = axis >= -t.rank() && t.dim(axis) != 1;
      const std::size_t words =
          metadata_.add_words(std::array{shape[axis], present ? layout.stride(axis) : 0});
      body += fmt::format("  at += (rest % {0}) * {1};\n  rest /= {0};\n", Metadata::word(words),
                          Metadata::word(words + 1));
    }
    return fmt::format("fn {}_batch(i: u32) -> u32 {{\n{}  return at;\n}}\n", t.name, body);
  }

  /// Folds the grid if it is above the limit, and makes the function that undoes it.
  std::string workgroup_function() {
    std::int64_t total = 1;
    bool folds = false;
    for (const std::int64_t n : launch_.grid) {
      if (n < 0 || __builtin_mul_overflow(total, n, &total)) {
        const auto& [x, y, z] = launch_.grid;
        fail(fmt::format(
            "grid {} x {} x {} must have sizes of 0 or more, and fewer than 2^63 workgroups", x, y,
            z));
      }
      folds = folds || n > limits_.workgroups;
    }
    const bool asks = calls(source_, "kiln_workgroup");
    if (!folds) {
      for (std::size_t i = 0; i < 3; ++i)
        result_.grid[i] = static_cast<std::uint32_t>(launch_.grid[i]);
      return asks ? "fn kiln_workgroup(group: vec3<u32>, groups: vec3<u32>) -> vec3<u32> { return "
                    "group; }\n"
                  : "";
    }
    const auto [x, y, z] = launch_.grid;
    if (!asks) {
      fail(
          fmt::format("grid {} x {} x {} is above the adapter's limit of {} workgroups in a "
                      "dimension; take the position "
                      "from kiln_workgroup(group, groups), and the grid is folded",
                      x, y, z, limits_.workgroups));
    }
    const std::int64_t rows = ceil_div(total, limits_.workgroups);
    if (rows > limits_.workgroups || total > std::numeric_limits<std::uint32_t>::max()) {
      fail(fmt::format("grid {} x {} x {} is above what a folded grid can hold", x, y, z));
    }
    result_.grid = {limits_.workgroups, static_cast<std::uint32_t>(rows), 1};
    const std::size_t words = metadata_.add_words(std::array{x, y, total});
    // Surplus workgroups of the last row get a position far outside, which the kernel's own bounds
    // check refuses.
    return fmt::format(
        "fn kiln_workgroup(group: vec3<u32>, groups: vec3<u32>) -> vec3<u32> {{\n"
        "  let flat = group.y * groups.x + group.x;\n"
        "  if (flat >= {2}) {{ return vec3<u32>(0x0fffffffu, 0x0fffffffu, 0u); }}\n"
        "  return vec3<u32>(flat % {0}, (flat / {0}) % {1}, flat / {0} / {1});\n}}\n",
        Metadata::word(words), Metadata::word(words + 1), Metadata::word(words + 2));
  }

  /// The outputs, in a group of their own, and their stores.
  std::string outputs() {
    std::string text;
    std::uint32_t binding = 0;
    if (launch_.access == OutputAccess::atomic) {
      for (const Operand& t : out_)
        text += declare_array(
            result_.id, 1, binding++, Access::read_write,
            {.name = std::string(t.name), .dtype = t.dtype, .vec4 = false, .atomic = true});
      return text;
    }
    const auto add = [&](const Store& store) {
      text += store.declare_results(result_.id, 1, binding);
      text += store.functions(result_.store_types, helpers_);
    };
    add(store_);
    for (const Operand& t : out_.subspan(1)) add(Store(table_.name, t.spec(), nullptr, call_of(t)));
    return text;
  }

  const OpTable& table_;
  const webgpu::Launch& launch_;
  std::span<const OperandReads> reads_;
  std::span<const Operand> in_;
  std::span<const Operand> out_;
  ParamFields params_;
  const Limits& limits_;
  SourceTemplate template_;
  std::string_view source_;
  Store store_;
  std::span<const FusedProducer> producers_;
  std::vector<std::optional<OperandLoad>> loads_;  ///< one for each input
  Metadata metadata_;
  std::uint32_t next_binding_ = 0;
  std::set<std::string> helpers_;
  RenderedLaunch result_;
};

}  // namespace

std::vector<RenderedLaunch::Patch> add_params(const OpTable& table, const webgpu::Launch& launch,
                                              const ParamFields& params, Metadata& metadata) {
  const auto fail = [&](std::string_view name, std::string_view what) {
    throw KernelError(
        fmt::format("{}: {}: param '{}'{}", table.name, launch.source.text().name, name, what));
  };
  std::vector<RenderedLaunch::Patch> patches;
  std::set<std::string_view> seen;
  for (const LaunchParam& p : launch.params) {
    if (!seen.insert(p.name).second) fail(p.name, " is given twice");
    if (const auto* size = std::get_if<std::int64_t>(&p.value)) {
      metadata.add(p.name, "u32", word_of_size(table.name, *size));
    } else if (const auto* number = std::get_if<double>(&p.value)) {
      metadata.add(p.name, "f32", word_of(table.name, *number, DType::f32));
    } else {
      const auto at = std::ranges::find(params.asked, std::get<const Param*>(p.value));
      if (at == params.asked.end()) fail(p.name, " must be a Param field of the operation itself");
      const auto field = static_cast<std::size_t>(at - params.asked.begin());
      const double value = params.own[field]->value();
      patches.push_back(
          {metadata.add(p.name, "f32", word_of(table.name, value, DType::f32)), field});
    }
  }
  return patches;
}

void require_rounds(const OpTable& table, const webgpu::Launch& launch, const Limits& limits) {
  if (limits.loop_rounds == 0 || launch.rounds <= limits.loop_rounds) return;
  throw KernelError(fmt::format(
      "{}: {}: the loops of a thread take {} rounds, and this adapter ends them silently after {}; "
      "share the work among more threads or launches",
      table.name, launch.source.text().name, std::int64_t{launch.rounds}, limits.loop_rounds));
}

RenderedLaunch render(const OpTable& table, const webgpu::Launch& launch,
                      std::span<const OperandReads> reads, std::span<const Operand> in,
                      std::span<const Operand> out, const ParamFields& params, const Limits& limits,
                      const FusedEpilogue* epilogue, std::span<const FusedProducer> producers) {
  if (launch.source.language() == Language::spirv) {
    if (!producers.empty()) refuse_producer(table, producers[0]);
    return bind_module(table, launch, in, out, params, limits);
  }
  return Renderer(table, launch, reads, in, out, params, limits, epilogue, producers).run();
}

}  // namespace kiln::dispatch::wgsl
