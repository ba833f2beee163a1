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
};

struct PreparedReduction : Prepared {
  std::uint32_t workgroup = 0;
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
  std::string text = fmt::format("fn {}(at: u32) -> u32 {{\n  var rest = at;\n  var offset = 0u;\n", name);
  for (std::size_t i = group.sizes.size(); i-- > 1;) {
    text += fmt::format("  offset += (rest % params.{0}d{1}) * params.{0}s{1};\n  rest /= params.{0}d{1};\n", prefix, i);
  }
  if (!group.sizes.empty()) text += fmt::format("  offset += rest * params.{}s0;\n", prefix);
  return text + "  return offset;\n}\n";
}

/// What an Item is and how it is started, loaded, combined and stored.
std::string item_text(const Pass& pass, std::set<std::string>& helpers) {
  const DType in = pass.in.dtype;
  const std::string_view type = wgsl_compute_type(in);
  const std::string value = wgsl_load(in, "x[at]");
  if (is_arg(pass.combine)) {
    const char sign = pass.combine == Combine::argmax ? '>' : '<';
    std::string better = fmt::format("a.value {} b.value || (a.value == b.value && a.index < b.index)", sign);
    std::string nan;
    if (is_float(in)) {
      helpers.insert("kiln_is_nan");
      nan = "  let a_nan = kiln_is_nan(a.value);\n  let b_nan = kiln_is_nan(b.value);\n"
            "  if (a_nan || b_nan) {\n"
            "    if (a_nan && b_nan && b.index < a.index) { return b; }\n"
            "    if (a_nan) { return a; }\n    return b;\n  }\n";
    }
    return fmt::format(
        "struct Item {{ value: {0}, index: u32 }}\nconst no_index = 0xffffffffu;\n"
        "fn start() -> Item {{ return Item({0}(0), no_index); }}\n"
        "fn load(at: u32, index: u32) -> Item {{ return Item({1}, index); }}\n"
        "fn combine(a: Item, b: Item) -> Item {{\n"
        "  if (b.index == no_index) {{ return a; }}\n  if (a.index == no_index) {{ return b; }}\n{2}"
        "  if ({3}) {{ return a; }}\n  return b;\n}}\n"
        "fn store(at: u32, item: Item) {{ y[at] = {4}(item.index); }}\n",
        type, value, nan, better, wgsl_storage_type(pass.out.dtype));
  }
  std::string combined = "a + b";
  if (pass.combine != Combine::sum) {
    const std::string helper = fmt::format("kiln_{}_{}", pass.combine == Combine::max ? "max" : "min", type);
    helpers.insert(helper);
    combined = helper + "(a, b)";
  }
  const std::string result = is_float(in) ? "item * params.scale" : "item";
  return fmt::format(
      "alias Item = {0};\nfn start() -> Item {{ return bitcast<{0}>(params.neutral); }}\n"
      "fn load(at: u32, index: u32) -> Item {{ return {1}; }}\n"
      "fn combine(a: Item, b: Item) -> Item {{ return {2}; }}\n"
      "fn store(at: u32, item: Item) {{ y[at] = {3}; }}\n",
      type, value, combined, wgsl_store(in, pass.out.dtype, result));
}

Metadata metadata_of(const Pass& pass) {
  Metadata m;
  const auto size = [&](std::string_view name, std::int64_t n) { m.add(name, "u32", word_of_size(pass.op, n)); };
  size("outputs", pass.kept.count());
  size("count", pass.reduced.count());
  size("splits", pass.splits);
  size("chunk", ceil_div(pass.reduced.count(), pass.splits));
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

std::shared_ptr<const PreparedReduction> prepare(Runtime& runtime, const Pass& pass) {
  auto out = std::make_shared<PreparedReduction>();
  const Limits& limits = runtime.limits();
  out->workgroup = std::min(256U, limits.workgroup_invocations);
  KernelId id;
  id.workgroup = {out->workgroup, 1, 1};
  id.trusted = true;
  id.bindings = {{0, 0, Access::read}, {0, 1, Access::read_write}};
  std::set<std::string> helpers;
  const std::string items = item_text(pass, helpers);
  const bool half = pass.in.dtype == DType::f16 || pass.out.dtype == DType::f16;
  const std::string declarations = fmt::format(
      "@group(0) @binding(0) var<storage, read> x: array<{}>;\n"
      "@group(0) @binding(1) var<storage, read_write> y: array<{}>;\n{}{}{}{}{}",
      wgsl_storage_type(pass.in.dtype), wgsl_storage_type(pass.out.dtype),
      metadata_of(pass).declare(limits, 0, 2, id), wgsl_helpers(helpers), items,
      offset_text("kept_offset", "k", pass.kept), offset_text("reduced_offset", "r", pass.reduced));
  const SourceTemplate source(pass.variant == Variant::rows ? reduce_rows_wgsl : reduce_columns_wgsl);
  id.source = (half ? "enable f16;\n" : "") +
              source.render({}, {{"declarations", declarations}, {"workgroup_size_x", std::to_string(out->workgroup)}}).text;
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
  const auto prepared = KernelCache::of(runtime).find_or<PreparedReduction>(key, [&] { return prepare(runtime, pass); });
  const std::int64_t jobs = pass.kept.count() * pass.splits;
  const std::int64_t groups = pass.variant == Variant::rows ? jobs : ceil_div(jobs, prepared->workgroup);
  const std::int64_t limit = runtime.limits().workgroups;
  const std::array<std::uint32_t, 3> grid{static_cast<std::uint32_t>(std::min(groups, limit)),
                                          static_cast<std::uint32_t>(ceil_div(groups, limit)), 1};
  const std::array<Binding, 2> bindings{Binding{pass.in.buffer}, Binding{pass.out.buffer}};
  const std::vector<std::uint32_t> words = metadata_of(pass).values();
  runtime.launch(prepared->kernel, bindings, std::as_bytes(std::span(words)), grid);
}

/// Rows where the reduced elements lie next to each other, columns where the kept ones do; split where that alone gives too
/// few threads to fill a GPU.
void choose(Pass& pass) {
  constexpr std::int64_t wanted_threads = 1 << 16;
  const std::int64_t outputs = std::max<std::int64_t>(pass.kept.count(), 1);
  const std::int64_t count = pass.reduced.count();
  const bool neighbours = pass.reduced.inner_stride() <= pass.kept.inner_stride();
  pass.variant = neighbours && (count > 32 || outputs < 1024) ? Variant::rows : Variant::columns;
  if (is_arg(pass.combine)) return;
  const std::int64_t share = pass.variant == Variant::rows ? 4096 : 64;
  const std::int64_t threads = pass.variant == Variant::rows ? outputs * 256 : outputs;
  if (threads < wanted_threads && count > 2 * share) {
    pass.splits = std::min(ceil_div(count, share), ceil_div(wanted_threads, threads));
  }
}

}  // namespace

RawTensor run_reduction(std::string_view op, const Reduction& reduction, const RawTensor& x, const TensorSpec& out) {
  Pass pass{.op = op, .combine = reduction.combine, .scale = reduction.scale, .in = x};
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    AxisGroup& group = reduction.axes[static_cast<std::size_t>(axis)] ? pass.reduced : pass.kept;
    group.push(x.shape()[axis], x.layout.stride(axis));
  }
  RawTensor result = allocate(op, x.runtime, out);
  if (out.shape.elements() == 0) return result;
  choose(pass);
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
  choose(second);
  second.splits = 1;
  run(second);
  return result;
}

}  // namespace kiln::dispatch
