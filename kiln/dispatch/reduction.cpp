#include "kiln/dispatch/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/metadata.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/scalar/wgsl.hpp"
#include "reduce_columns_wgsl.hpp"
#include "reduce_rows_wgsl.hpp"

namespace kiln::dispatch {
namespace {

/// Axes of one kind, neighbours joined where the strides allow, outermost first.
struct AxisGroup {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;

  void push(std::int64_t size, std::int64_t stride) {
    if (size == 1) return;
    if (!sizes.empty() && strides.back() == stride * size) {
      sizes.back() *= size;
      strides.back() = stride;
    } else {
      sizes.push_back(size);
      strides.push_back(stride);
    }
  }
  [[nodiscard]] std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t size : sizes) n *= size;
    return n;
  }
  [[nodiscard]] std::int64_t inner_stride() const {
    return strides.empty() ? std::numeric_limits<std::int64_t>::max() : strides.back();
  }
};

enum class Variant : std::uint8_t { rows, columns };

/// One launch of a reduction.
struct Pass {
  std::string_view op;
  Combine combine = Combine::sum;
  double scale = 1;
  RawTensor in;
  RawTensor out;
  AxisGroup kept;
  AxisGroup reduced;
  Variant variant = Variant::rows;
  std::int64_t splits = 1;
  std::int64_t chunk = 0;  ///< elements of one part
  int width = 1;           ///< neighbours one load brings: 4 where they are an aligned vec4
  std::uint32_t workgroup = 256;
};

bool is_arg(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

/// The word all lanes start from: neutral for the combination.
std::uint32_t neutral(Combine combine, DType dtype) {
  const bool least = combine == Combine::max;
  if (combine == Combine::sum) return 0;
  if (is_float(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    return word_of("", least ? -inf : inf, DType::f32);
  }
  if (dtype == DType::i32) return least ? 0x8000'0000U : 0x7fff'ffffU;
  return least ? 0U : ~0U;
}

std::string offset_text(std::string_view name, std::string_view prefix, const AxisGroup& group) {
  std::string text =
      fmt::format("fn {}(at: u32) -> u32 {{\n  var rest = at;\n  var offset = 0u;\n", name);
  for (std::size_t i = group.sizes.size(); i-- > 1;) {
    text += fmt::format(
        "  offset += (rest % params.{0}d{1}) * params.{0}s{1};\n  rest /= params.{0}d{1};\n",
        prefix, i);
  }
  if (!group.sizes.empty()) text += fmt::format("  offset += rest * params.{}s0;\n", prefix);
  return text + "  return offset;\n}\n";
}

/// What an Item is and how it is started, loaded, combined and stored.
std::string item_text(const Pass& pass, std::set<std::string>& helpers) {
  const DType in = pass.in.dtype;
  const std::string_view type = wgsl_compute_type(in);
  const auto load = [&](std::string_view item) {
    if (pass.width == 1)
      return fmt::format("  return {};\n",
                         fmt::format(fmt::runtime(item), wgsl_load(in, "x[at]"), 0));
    std::string lanes[4];
    for (int i = 0; i < 4; ++i)
      lanes[i] = fmt::format(fmt::runtime(item), wgsl_load(in, fmt::format("q[{}]", i)), i);
    return fmt::format(
        "  let q = x[at / 4u];\n  return combine(combine({}, {}), combine({}, {}));\n", lanes[0],
        lanes[1], lanes[2], lanes[3]);
  };
  if (is_arg(pass.combine)) {
    const char sign = pass.combine == Combine::argmax ? '>' : '<';
    std::string better =
        fmt::format("a.value {} b.value || (a.value == b.value && a.index < b.index)", sign);
    std::string nan;
    if (is_float(in)) {
      helpers.insert("kiln_is_nan");
      nan =
          "  let a_nan = kiln_is_nan(a.value);\n  let b_nan = kiln_is_nan(b.value);\n"
          "  if (a_nan || b_nan) {\n"
          "    if (a_nan && b_nan && b.index < a.index) { return b; }\n"
          "    if (a_nan) { return a; }\n    return b;\n  }\n";
    }
    return fmt::format(
        "struct Item {{ value: {0}, index: u32 }}\nconst no_index = 0xffffffffu;\n"
        "fn start() -> Item {{ return Item({0}(0), no_index); }}\n"
        "fn load(at: u32, index: u32) -> Item {{\n{1}}}\n"
        "fn combine(a: Item, b: Item) -> Item {{\n"
        "  if (b.index == no_index) {{ return a; }}\n  if (a.index == no_index) {{ return b; "
        "}}\n{2}"
        "  if ({3}) {{ return a; }}\n  return b;\n}}\n"
        "fn store(at: u32, item: Item) {{ y[at] = {4}(item.index); }}\n",
        type, load("Item({}, index + {}u)"), nan, better, wgsl_storage_type(pass.out.dtype));
  }
  std::string combined = "a + b";
  if (pass.combine != Combine::sum) {
    const std::string helper =
        fmt::format("kiln_{}_{}", pass.combine == Combine::max ? "max" : "min", type);
    helpers.insert(helper);
    combined = helper + "(a, b)";
  }
  const std::string result = is_float(in) ? "item * params.scale" : "item";
  return fmt::format(
      "alias Item = {0};\nfn start() -> Item {{ return bitcast<{0}>(params.neutral); }}\n"
      "fn load(at: u32, index: u32) -> Item {{\n{1}}}\n"
      "fn combine(a: Item, b: Item) -> Item {{ return {2}; }}\n"
      "fn store(at: u32, item: Item) {{ y[at] = {3}; }}\n",
      type, load("{}"), combined, wgsl_store(in, pass.out.dtype, result));
}

Metadata metadata_of(const Pass& pass) {
  Metadata m;
  const auto size = [&](std::string_view name, std::int64_t n) {
    m.add(name, "u32", word_of_size(pass.op, n));
  };
  size("outputs", pass.kept.count());
  size("count", pass.reduced.count());
  size("splits", pass.splits);
  size("chunk", pass.chunk);
  size("offset", pass.in.layout.offset);
  m.add("neutral", "u32", neutral(pass.combine, pass.in.dtype));
  m.add("scale", "f32", word_of(pass.op, pass.scale, DType::f32));
  for (const auto& [prefix, group] : {std::pair{'k', &pass.kept}, std::pair{'r', &pass.reduced}}) {
    for (std::size_t i = 0; i < group->sizes.size(); ++i) {
      size(fmt::format("{}d{}", prefix, i), group->sizes[i]);
      size(fmt::format("{}s{}", prefix, i), group->strides[i]);
    }
  }
  return m;
}

std::shared_ptr<const Prepared> prepare(Runtime& runtime, const Pass& pass) {
  auto out = std::make_shared<Prepared>();
  const Limits& limits = runtime.limits();
  KernelId id;
  id.workgroup = {pass.workgroup, 1, 1};
  id.trusted = true;
  id.bindings = {{0, 0, Access::read}, {0, 1, Access::read_write}};
  std::set<std::string> helpers;
  const std::string items = item_text(pass, helpers);
  const bool half = pass.in.dtype == DType::f16 || pass.out.dtype == DType::f16;
  const std::string declarations = fmt::format(
      "@group(0) @binding(0) var<storage, read> x: array<{}>;\n"
      "@group(0) @binding(1) var<storage, read_write> y: array<{}>;\n{}{}{}{}{}",
      pass.width == 4 ? fmt::format("vec4<{}>", wgsl_storage_type(pass.in.dtype))
                      : wgsl_storage_type(pass.in.dtype),
      wgsl_storage_type(pass.out.dtype), metadata_of(pass).declare(limits, 0, 2, id),
      wgsl_helpers(helpers), items, offset_text("kept_offset", "k", pass.kept),
      offset_text("reduced_offset", "r", pass.reduced));
  const SourceTemplate source(pass.variant == Variant::rows ? reduce_rows_wgsl
                                                            : reduce_columns_wgsl);
  const SourceTemplate::Variables variables{{"declarations", declarations},
                                            {"workgroup_size_x", std::to_string(pass.workgroup)},
                                            {"width", std::to_string(pass.width)}};
  id.source = (half ? "enable f16;\n" : "") + source.render({}, variables).text;
  out->kernel = runtime.compile(id, pass.op);
  return out;
}

void run(const Pass& pass) {
  Runtime& runtime = *pass.in.runtime;
  std::string key = "r";
  append_bytes(key, pass.combine);
  append_bytes(key, pass.variant);
  append_bytes(key, pass.in.dtype);
  append_bytes(key, pass.out.dtype);
  append_bytes(key, pass.kept.sizes.size());
  append_bytes(key, pass.reduced.sizes.size());
  append_bytes(key, pass.width);
  append_bytes(key, pass.workgroup);
  const auto prepared =
      KernelCache::of(runtime).find_or<Prepared>(key, [&] { return prepare(runtime, pass); });
  const std::int64_t jobs = pass.kept.count() * pass.splits;
  const std::int64_t groups = pass.variant == Variant::rows ? jobs : ceil_div(jobs, pass.workgroup);
  const std::int64_t limit = runtime.limits().workgroups;
  const std::array<std::uint32_t, 3> grid{static_cast<std::uint32_t>(std::min(groups, limit)),
                                          static_cast<std::uint32_t>(ceil_div(groups, limit)), 1};
  const std::array<Binding, 2> bindings{Binding{pass.in.buffer}, Binding{pass.out.buffer}};
  const std::vector<std::uint32_t> words = metadata_of(pass).values();
  runtime.launch(prepared->kernel, bindings, std::as_bytes(std::span(words)), grid);
}

/// Whether whole vec4 can be read along the reduced elements.
bool reads_quads(const Pass& pass) {
  const auto aligned = [](std::int64_t stride) { return stride % 4 == 0; };
  const AxisGroup& r = pass.reduced;
  return !r.sizes.empty() && r.strides.back() == 1 && r.sizes.back() % 4 == 0 &&
         pass.in.layout.offset % 4 == 0 &&
         std::all_of(r.strides.begin(), r.strides.end() - 1, aligned) &&
         std::ranges::all_of(pass.kept.strides, aligned);
}

/// Rows where the reduced elements lie next to each other, columns where the kept ones do; split
/// (up to `most_splits`) where that alone gives too few threads to fill a GPU.
void choose(Pass& pass, std::int64_t most_splits) {
  constexpr std::int64_t wanted_threads = 1 << 18;
  const std::int64_t outputs = pass.kept.count();
  const std::int64_t count = pass.reduced.count();
  const bool neighbours = pass.reduced.inner_stride() <= pass.kept.inner_stride();
  // llvmpipe ends any loop after 65535 rounds; only a column that may not be split is ever so long.
  const bool long_loop = most_splits == 1 && count > 32768;
  const bool rows = long_loop || (neighbours && (count > 32 || outputs < 1024));
  pass.variant = rows ? Variant::rows : Variant::columns;
  if (rows && reads_quads(pass)) pass.width = 4;
  const std::int64_t share = rows ? 4096 : 64;
  const std::int64_t threads = rows ? outputs * 256 : outputs;
  if (threads < wanted_threads && count > 2 * share) {
    pass.splits =
        std::min({ceil_div(count, share), ceil_div(wanted_threads, threads), most_splits});
  }
  pass.chunk = ceil_div(ceil_div(count, pass.splits), pass.width) * pass.width;
  // Short rows keep few lanes busy, and the fold of a large workgroup costs more than it saves.
  pass.workgroup = std::min(rows && pass.chunk <= 2048 ? 64U : 256U,
                            pass.in.runtime->limits().workgroup_invocations);
}

}  // namespace

RawTensor run_reduction(std::string_view op, const Reduction& reduction, const RawTensor& x,
                        const TensorSpec& out) {
  (void)x.shape().elements();  // throws where the joined axes below would overflow
  Pass pass{.op = op, .combine = reduction.combine, .scale = reduction.scale, .in = x};
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    AxisGroup& group = reduction.axes[static_cast<std::size_t>(axis)] ? pass.reduced : pass.kept;
    group.push(x.shape()[axis], x.layout.stride(axis));
  }
  RawTensor result = allocate(op, x.runtime, out);
  if (out.shape.elements() == 0) return result;
  choose(pass, is_arg(reduction.combine) ? 1 : std::numeric_limits<std::int64_t>::max());
  if (pass.splits == 1) {
    pass.out = result;
    run(pass);
    return result;
  }
  const DType partial = is_float(x.dtype) ? DType::f32 : x.dtype;
  Pass second{.op = op, .combine = pass.combine, .scale = pass.scale, .out = result};
  pass.scale = 1;
  pass.out = allocate(op, x.runtime, {{pass.kept.count(), pass.splits}, partial});
  run(pass);
  second.in = pass.out;
  second.kept.push(pass.kept.count(), pass.splits);
  second.reduced.push(pass.splits, 1);
  choose(second, 1);
  run(second);
  return result;
}

}  // namespace kiln::dispatch
