#include "kiln/dispatch/elementwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/metadata.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/scalar/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {
namespace {

/// How the position in an operand follows from the position in the result.
enum class Indexing : std::uint8_t { linear, single, strided };

/// Result and operands seen with as few axes as their strides allow.
struct Collapsed {
  int rank = 0;
  std::array<std::int64_t, max_rank> sizes{};
  std::vector<Strides> strides;       ///< one an operand
  std::vector<std::int64_t> offsets;  ///< one an operand
  std::vector<Indexing> indexing;     ///< one an operand
};

Collapsed collapse(const Shape& shape, std::span<const Layout> operands) {
  Collapsed c;
  c.strides.resize(operands.size());
  for (const Layout& layout : operands) c.offsets.push_back(layout.offset);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const auto last = static_cast<std::size_t>(c.rank) - 1;
    bool joins = c.rank > 0;
    for (std::size_t i = 0; joins && i < operands.size(); ++i) {
      joins = c.strides[i][last] == operands[i].stride(axis) * shape[axis];
    }
    if (!joins) ++c.rank;
    const auto at = static_cast<std::size_t>(c.rank) - 1;
    c.sizes[at] = joins ? c.sizes[at] * shape[axis] : shape[axis];
    for (std::size_t i = 0; i < operands.size(); ++i) c.strides[i][at] = operands[i].stride(axis);
  }
  for (const Strides& strides : c.strides) {
    const bool all_zero = std::all_of(strides.begin(), strides.begin() + c.rank, [](auto s) { return s == 0; });
    std::int64_t step = 1;
    bool dense = true;
    for (int axis = c.rank - 1; axis >= 0; --axis) {
      dense = dense && strides[static_cast<std::size_t>(axis)] == step;
      step *= c.sizes[static_cast<std::size_t>(axis)];
    }
    c.indexing.push_back(all_zero ? Indexing::single : dense ? Indexing::linear : Indexing::strided);
  }
  if (std::ranges::count(c.indexing, Indexing::strided) == 0) c.rank = 0;  // nobody needs coordinates
  return c;
}

struct PreparedElementwise : Prepared {
  BodyPtr body;  // keeps the address in the key taken
  BodyTypes types;
  std::uint32_t workgroup = 0;
};

struct Call {
  std::string_view op;
  const BodyPtr& body;
  std::span<const double> params;
  std::span<const RawTensor> inputs;
  std::span<const RawTensor> outputs;
  Collapsed view;  ///< operands: the inputs, then the outputs
};

/// Spells all that the text depends on.
std::string key_of(const Call& call) {
  std::string key = "e";
  append_bytes(key, call.body.get());
  append_bytes(key, call.view.rank);
  for (const RawTensor& t : call.inputs) append_bytes(key, t.dtype);
  for (const RawTensor& t : call.outputs) append_bytes(key, t.dtype);
  for (const Indexing indexing : call.view.indexing) append_bytes(key, indexing);
  return key;
}

/// Calls sink(name, type, word) for every number of the launch, in the order the text declares them. `name` is a function,
/// so that a launch of a prepared kernel, which wants the words alone, makes no strings.
template <class Sink>
void each_number(const Call& call, const BodyTypes& types, std::int64_t elements, Sink sink) {
  const auto size = [&](auto name, std::int64_t value) { sink(name, "u32", word_of_size(call.op, value)); };
  size([] { return std::string("n"); }, elements);
  for (std::size_t i = 0; i < call.params.size(); ++i) {
    const DType dtype = types.params[i];
    const auto type = dtype == DType::boolean ? std::string_view("u32") : wgsl_compute_type(dtype);
    sink([i] { return fmt::format("p{}", i); }, type, word_of(call.op, call.params[i], dtype));
  }
  const Collapsed& c = call.view;
  for (std::size_t i = 0; i < c.offsets.size(); ++i) size([i] { return fmt::format("o{}", i); }, c.offsets[i]);
  for (std::size_t axis = 1; axis < static_cast<std::size_t>(c.rank); ++axis) {
    size([axis] { return fmt::format("d{}", axis); }, c.sizes[axis]);
  }
  for (std::size_t i = 0; i < c.indexing.size(); ++i) {
    if (c.indexing[i] != Indexing::strided) continue;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(c.rank); ++axis) {
      size([i, axis] { return fmt::format("s{}_{}", i, axis); }, c.strides[i][axis]);
    }
  }
}

std::string index_text(const Collapsed& c, std::size_t operand) {
  if (c.indexing[operand] == Indexing::single) return fmt::format("params.o{}", operand);
  if (c.indexing[operand] == Indexing::linear) return fmt::format("i + params.o{}", operand);
  std::string text = fmt::format("params.o{}", operand);
  for (int axis = 0; axis < c.rank; ++axis) text += fmt::format(" + c{0} * params.s{1}_{0}", axis, operand);
  return text;
}

std::string coordinates_text(int rank) {
  if (rank == 0) return {};
  std::string text = "  var rest = i;\n";
  for (int axis = rank - 1; axis > 0; --axis) {
    text += fmt::format("  let c{0} = rest % params.d{0};\n  rest = rest / params.d{0};\n", axis);
  }
  return text + "  let c0 = rest;\n";
}

std::shared_ptr<const PreparedElementwise> prepare(Runtime& runtime, const Call& call, BodyTypes types) {
  auto out = std::make_shared<PreparedElementwise>();
  KernelId id;
  std::string text;
  std::string body_text;
  std::vector<std::string> loaded;
  const bool half = std::ranges::any_of(call.inputs, [](auto& t) { return t.dtype == DType::f16; }) ||
                    std::ranges::any_of(call.outputs, [](auto& t) { return t.dtype == DType::f16; });
  std::uint32_t binding = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i, ++binding) {
    text += fmt::format("@group(0) @binding({0}) var<storage, read> x{0}: array<{1}>;\n", i,
                        wgsl_storage_type(call.inputs[i].dtype));
    body_text += fmt::format("  let v{0} = {1};\n", i,
                             wgsl_load(call.inputs[i].dtype, fmt::format("x{}[{}]", i, index_text(call.view, i))));
    loaded.push_back(fmt::format("v{}", i));
    id.bindings.push_back({0, binding, Access::read});
  }
  const WgslBody printed = print_wgsl(call.op, *call.body, types, loaded, "params.p", "t");
  body_text += printed.statements;
  for (std::size_t r = 0; r < call.outputs.size(); ++r, ++binding) {
    const DType dtype = call.outputs[r].dtype;
    text += fmt::format("@group(0) @binding({}) var<storage, read_write> y{}: array<{}>;\n", binding, r,
                        wgsl_storage_type(dtype));
    body_text += fmt::format("  y{}[{}] = {};\n", r, index_text(call.view, call.inputs.size() + r),
                             wgsl_store(types.roots[r], dtype, printed.results[r]));
    id.bindings.push_back({0, binding, Access::read_write});
  }
  const Limits& limits = runtime.limits();
  out->workgroup = std::min(256U, limits.workgroup_invocations);
  id.workgroup = {out->workgroup, 1, 1};
  id.trusted = true;  // every index is below a size that the operands were laid out for
  Metadata metadata;
  each_number(call, types, 0, [&](auto name, std::string_view type, std::uint32_t word) { metadata.add(name(), type, word); });
  text += metadata.declare(limits, 0, binding, id);
  id.source = fmt::format(
      "{}{}{}"
      "@compute @workgroup_size({})\n"
      "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,\n"
      "        @builtin(local_invocation_id) local: vec3<u32>) {{\n"
      "  let i = (group.y * groups.x + group.x) * {}u + local.x;\n"
      "  if (i >= params.n) {{ return; }}\n{}{}}}\n",
      half ? "enable f16;\n" : "", text, wgsl_helpers(printed.helpers), out->workgroup, out->workgroup,
      coordinates_text(call.view.rank), body_text);
  out->kernel = runtime.compile(id, call.op);
  out->body = call.body;
  out->types = std::move(types);
  return out;
}

void launch(Runtime& runtime, const Call& call, std::int64_t elements) {
  if (elements == 0) return;
  const auto prepared = KernelCache::of(runtime).find_or<PreparedElementwise>(key_of(call), [&] {
    std::vector<DType> dtypes;
    for (const RawTensor& t : call.inputs) dtypes.push_back(t.dtype);
    return prepare(runtime, call, infer(call.op, *call.body, dtypes, call.outputs[0].dtype));
  });
  std::vector<Binding> bindings;
  bindings.reserve(call.inputs.size() + call.outputs.size());
  for (const RawTensor& t : call.inputs) bindings.push_back({t.buffer});
  for (const RawTensor& t : call.outputs) bindings.push_back({t.buffer});
  std::vector<std::uint32_t> words;
  words.reserve(64);
  each_number(call, prepared->types, elements, [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  words.resize((words.size() + 3) / 4 * 4);
  const auto groups = ceil_div(elements, prepared->workgroup);
  const std::int64_t limit = runtime.limits().workgroups;
  const std::array<std::uint32_t, 3> grid{static_cast<std::uint32_t>(std::min(groups, limit)),
                                          static_cast<std::uint32_t>(ceil_div(groups, limit)), 1};
  runtime.launch(prepared->kernel, bindings, std::as_bytes(std::span(words)), grid);
}

const BodyPtr& identity() {
  static const BodyPtr body = [] {
    ExprGraph graph;
    const std::int32_t root = graph.input(0).id();
    return make_body(graph, 1, 0, std::array{root});
  }();
  return body;
}

}  // namespace

std::vector<RawTensor> run_elementwise(std::string_view op, const std::shared_ptr<Runtime>& runtime, const BodyPtr& body,
                                       std::span<const double> params, std::span<const RawTensor> inputs,
                                       const Shape& shape, std::span<const DType> dtypes) {
  std::vector<RawTensor> outputs;
  std::vector<Layout> layouts;
  outputs.reserve(dtypes.size());
  layouts.reserve(inputs.size() + dtypes.size());
  for (const RawTensor& t : inputs) layouts.push_back(t.layout.broadcast_to(shape));
  for (const DType dtype : dtypes) {
    outputs.push_back(allocate(op, runtime, {shape, dtype}));
    layouts.push_back(outputs.back().layout);
  }
  launch(*runtime, {op, body, params, inputs, outputs, collapse(shape, layouts)}, shape.elements());
  return outputs;
}

RawTensor make_dense(const RawTensor& x) {
  if (x.layout.is_dense() && x.layout.offset == 0) return x;
  return run_elementwise("contiguous", x.runtime, identity(), {}, {&x, 1}, x.shape(), {&x.dtype, 1}).front();
}

void copy_into(const RawTensor& x, const RawTensor& target) {
  const std::array layouts{x.layout, target.layout};
  launch(*x.runtime, {"copy", identity(), {}, {&x, 1}, {&target, 1}, collapse(x.shape(), layouts)}, x.shape().elements());
}

}  // namespace kiln::dispatch
