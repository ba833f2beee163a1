#include "kiln/dispatch/bindings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kiln/scalar/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {
namespace {

class Renderer {
 public:
  Renderer(const OpTable& table, const webgpu::Launch& launch, std::span<const Operand> in,
           std::span<const Operand> out, std::span<const Param* const> params, const Limits& limits)
      : table_(table),
        launch_(launch),
        in_(in),
        out_(out),
        params_(params),
        limits_(limits),
        template_(launch.source.text()),
        source_(template_.text()) {}

  RenderedLaunch run() && {
    check_contract();
    add_params();
    std::string bindings = aliases();
    bindings += inputs();  // one after the other: each takes the next binding numbers
    bindings += scratch();
    for (const Operand& t : in_) bindings += accessors(t);
    for (const Operand& t : out_) bindings += accessors(t);
    bindings += workgroup_function();
    const std::string declared = metadata_.declare(limits_, 0, next_binding_, result_.id);
    bindings = declared + bindings;
    const std::string stores = outputs();
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
    // On the first line, before everything: WGSL wants it there, and line numbers stay.
    id.source = (uses_half() ? "enable f16; " : "") + result_.source.text + "\n" + stores +
                wgsl_helpers(helpers);
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

  bool uses_half() const {
    const auto half = [](const auto& t) { return t.dtype == DType::f16; };
    return std::ranges::any_of(in_, half) || std::ranges::any_of(out_, half) ||
           std::ranges::any_of(launch_.scratch, half);
  }

  bool in_vec4(std::string_view name) const {
    if (std::ranges::find(launch_.vec4, name) != launch_.vec4.end()) return true;
    // What only the epilogue reads is read as the output is written.
    return launch_.store && name != out_[0].name &&
           std::ranges::find(launch_.store->inputs, name) != launch_.store->inputs.end() &&
           in_vec4(out_[0].name) && !mentions(source_, name);
  }

  void check_contract() const {
    if (!template_.uses("bindings"))
      fail("the source must contain {{ bindings }}, which declares its operands");
    for (const Operand& t : out_) {
      const std::string store = fmt::format("store_{}", t.name);
      if (!calls(source_, store) && !calls(source_, store + "4") &&
          launch_.access == OutputAccess::write) {
        fail(fmt::format("output '{}' is never stored; call {}(index, value)", t.name, store));
      }
    }
    for (const std::string& name : launch_.vec4) {
      const auto named = [&](const Operand& t) { return t.name == name; };
      if (std::ranges::none_of(in_, named) && std::ranges::none_of(out_, named)) {
        fail(fmt::format("vec4 names '{}', which is no operand", name));
      }
    }
  }

  void add_params() {
    std::set<std::string_view> seen;
    for (const LaunchParam& p : launch_.params) {
      if (p.name.starts_with("kiln_"))
        fail(fmt::format("param '{}': names that begin with kiln_ are the library's", p.name));
      if (!seen.insert(p.name).second) fail(fmt::format("param '{}' is given twice", p.name));
      if (const auto* size = std::get_if<std::int64_t>(&p.value)) {
        metadata_.add(p.name, "u32", word_of_size(table_.name, *size));
      } else if (const auto* number = std::get_if<double>(&p.value)) {
        metadata_.add(p.name, "f32", word_of(table_.name, *number, DType::f32));
      } else {
        const auto at = std::ranges::find(params_, std::get<const Param*>(p.value));
        if (at == params_.end())
          fail(fmt::format("param '{}' must be a Param field of the operation itself", p.name));
        const std::size_t word =
            metadata_.add(p.name, "f32", word_of(table_.name, (*at)->value, DType::f32));
        result_.patches.push_back({word, static_cast<std::size_t>(at - params_.begin())});
      }
    }
  }

  std::string aliases() const {
    return fmt::format("alias Elem = {};\nalias Acc = {};\n", wgsl_storage_type(elem()),
                       wgsl_compute_type(elem()) == "bool" ? "u32" : wgsl_compute_type(elem()));
  }

  std::string array_type(const Operand& t) const {
    return in_vec4(t.name) ? fmt::format("array<vec4<{}>>", wgsl_storage_type(t.dtype))
                           : fmt::format("array<{}>", wgsl_storage_type(t.dtype));
  }

  std::string declare(std::uint32_t group, std::uint32_t binding, Access access,
                      std::string_view name, std::string_view type) {
    result_.id.bindings.push_back({group, binding, access});
    return fmt::format("@group({}) @binding({}) var<storage, {}> {}: {};\n", group, binding,
                       access == Access::read ? "read" : "read_write", name, type);
  }

  std::string inputs() {
    std::string text;
    for (const Operand& t : in_)
      text += declare(0, next_binding_++, Access::read, t.name, array_type(t));
    return text;
  }

  std::string scratch() {
    std::string text;
    for (const Scratch& s : launch_.scratch) {
      text += declare(0, next_binding_++, Access::read_write, s.name,
                      fmt::format("array<{}>", wgsl_storage_type(s.dtype)));
    }
    return text;
  }

  /// NAME_shape, NAME_stride, NAME_offset and NAME_batch, as far as the source calls them.
  std::string accessors(const Operand& t) {
    std::string text;
    const auto by_axis = [&](std::string_view what, std::span<const std::int64_t> numbers) {
      if (!calls(source_, fmt::format("{}_{}", t.name, what))) return;
      const std::size_t first = metadata_.add_words(numbers);
      text += fmt::format(
          "fn {0}_{1}(d: u32) -> u32 {{ let at = d + {2}u; return params.kiln_words[at / 4u][at % "
          "4u]; }}\n",
          t.name, what, first);
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

  /// Where matrix i of the output's batch begins in `t`, whose own batch dimensions broadcast.
  std::string batch_function(const Operand& t) {
    const Shape& shape = out_[0].shape();
    std::string body = fmt::format(
        "  var at = {};\n", Metadata::word(metadata_.add_words(std::array{t.layout.offset})));
    body += "  var rest = i;\n";
    for (int axis = -3; axis >= -shape.rank(); --axis) {
      const bool present = axis >= -t.rank() && t.dim(axis) != 1;
      const std::size_t words =
          metadata_.add_words(std::array{shape[axis], present ? t.stride(axis) : 0});
      body += fmt::format("  at += (rest % {0}) * {1};\n  rest /= {0};\n", Metadata::word(words),
                          Metadata::word(words + 1));
    }
    return fmt::format("fn {}_batch(i: u32) -> u32 {{\n{}  return at;\n}}\n", t.name, body);
  }

  /// Folds the grid where it is above the limit, and makes the function that undoes it.
  std::string workgroup_function() {
    std::int64_t total = 1;
    bool folds = false;
    for (const std::int64_t n : launch_.grid) {
      if (n < 0 || __builtin_mul_overflow(total, n, &total))
        fail("the grid has a negative or too large size");
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
    // Surplus workgroups of the last row get a position far outside, which a kernel's own bounds
    // check turns away.
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
    for (const Operand& t : out_) {
      const bool open = launch_.access == OutputAccess::read_write;
      const std::string name = open ? std::string(t.name) : fmt::format("kiln_{}", t.name);
      text += declare(1, binding++, Access::read_write, name, array_type(t));
      text +=
          launch_.store && &t == out_.data() ? store_with_epilogue(t, name) : plain_store(t, name);
    }
    return text;
  }

  static std::string element(const std::string& array, std::string_view index, bool vec4) {
    return vec4 ? fmt::format("{0}[({1}) / 4u][({1}) % 4u]", array, index)
                : fmt::format("{}[{}]", array, index);
  }

  std::string plain_store(const Operand& t, const std::string& array) const {
    const std::string_view type = wgsl_storage_type(t.dtype);
    std::string text = fmt::format("fn store_{}(index: u32, value: {}) {{ {} = value; }}\n", t.name,
                                   type, element(array, "index", in_vec4(t.name)));
    if (!calls(source_, fmt::format("store_{}4", t.name))) return text;
    text += fmt::format("fn store_{}4(index: u32, value: vec4<{}>) {{ ", t.name, type);
    if (in_vec4(t.name)) return text + fmt::format("{}[index / 4u] = value; }}\n", array);
    for (int i = 0; i < 4; ++i) text += fmt::format("{}[index + {}u] = value[{}]; ", array, i, i);
    return text + "}\n";
  }

  /// The epilogue's operands, dense and of the output's shape, read at the index stored to.
  std::vector<const Operand*> epilogue_operands(const Operand& out) const {
    const Epilogue& e = *launch_.store;
    if (e.body->inputs != static_cast<int>(e.inputs.size()) + 1) {
      fail(fmt::format("the epilogue takes {} values besides the stored one, but names {} operands",
                       e.body->inputs - 1, e.inputs.size()));
    }
    std::vector<const Operand*> operands;
    for (const std::string& name : e.inputs) {
      const auto at = std::ranges::find_if(in_, [&](const Operand& t) { return t.name == name; });
      if (at == in_.end()) fail(fmt::format("the epilogue names '{}', which is no input", name));
      if (at->shape() != out.shape()) {
        fail(fmt::format(
            "the epilogue reads '{}' {} where it stores '{}' {}; the shapes must be equal", name,
            to_string(at->shape()), out.name, to_string(out.shape())));
      }
      operands.push_back(&*at);
    }
    return operands;
  }

  std::string store_with_epilogue(const Operand& out, const std::string& array) {
    const std::vector<const Operand*> operands = epilogue_operands(out);
    std::vector<DType> dtypes{out.dtype};
    std::vector<std::string> names{"value"};
    std::string signature = fmt::format("value: {}", wgsl_compute_type(out.dtype));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      dtypes.push_back(operands[i]->dtype);
      names.push_back(fmt::format("e{}", i));
      signature += fmt::format(", e{}: {}", i, wgsl_compute_type(operands[i]->dtype));
    }
    const BodyTypes types = infer(table_.name, *launch_.store->body, dtypes, out.dtype);
    const WgslBody printed =
        print_wgsl(table_.name, *launch_.store->body, types, names, "params.", "t");
    helpers_.insert(printed.helpers.begin(), printed.helpers.end());
    const std::string_view type = wgsl_storage_type(out.dtype);
    std::string text =
        fmt::format("fn kiln_finish({}) -> {} {{\n{}  return {};\n}}\n", signature, type,
                    printed.statements, wgsl_store(types.roots[0], out.dtype, printed.results[0]));

    std::string arguments = wgsl_load(out.dtype, "value");
    for (const Operand* t : operands) {
      arguments +=
          ", " + wgsl_load(t->dtype, element(std::string(t->name), "index", in_vec4(t->name)));
    }
    text += fmt::format("fn store_{}(index: u32, value: {}) {{ {} = kiln_finish({}); }}\n",
                        out.name, type, element(array, "index", in_vec4(out.name)), arguments);
    if (!calls(source_, fmt::format("store_{}4", out.name))) return text;
    return text + fmt::format("fn store_{}4(index: u32, value: vec4<{}>) {{\n{}}}\n", out.name,
                              type, wide_store(out, array, operands));
  }

  std::string wide_store(const Operand& out, const std::string& array,
                         std::span<const Operand* const> operands) const {
    std::string text;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& t = *operands[i];
      if (in_vec4(t.name)) {
        text += fmt::format("  let e{} = {}[index / 4u];\n", i, t.name);
      } else {
        text += fmt::format(
            "  let e{0} = vec4<{1}>({2}[index], {2}[index + 1u], {2}[index + 2u], {2}[index + "
            "3u]);\n",
            i, wgsl_storage_type(t.dtype), t.name);
      }
    }
    std::string lanes;
    for (int lane = 0; lane < 4; ++lane) {
      lanes += fmt::format("{}kiln_finish({}", lane == 0 ? "" : ", ",
                           wgsl_load(out.dtype, fmt::format("value[{}]", lane)));
      for (std::size_t i = 0; i < operands.size(); ++i) {
        lanes += ", " + wgsl_load(operands[i]->dtype, fmt::format("e{}[{}]", i, lane));
      }
      lanes += ")";
    }
    text += fmt::format("  let finished = vec4<{}>({});\n", wgsl_storage_type(out.dtype), lanes);
    if (in_vec4(out.name)) return text + fmt::format("  {}[index / 4u] = finished;\n", array);
    for (int lane = 0; lane < 4; ++lane)
      text += fmt::format("  {}[index + {}u] = finished[{}];\n", array, lane, lane);
    return text;
  }

  const OpTable& table_;
  const webgpu::Launch& launch_;
  std::span<const Operand> in_;
  std::span<const Operand> out_;
  std::span<const Param* const> params_;
  const Limits& limits_;
  SourceTemplate template_;
  std::string_view source_;
  Metadata metadata_;
  std::uint32_t next_binding_ = 0;
  std::set<std::string> helpers_;
  RenderedLaunch result_;
};

}  // namespace

RenderedLaunch render(const OpTable& table, const webgpu::Launch& launch,
                      std::span<const Operand> in, std::span<const Operand> out,
                      std::span<const Param* const> params, const Limits& limits) {
  return Renderer(table, launch, in, out, params, limits).run();
}

}  // namespace kiln::dispatch
