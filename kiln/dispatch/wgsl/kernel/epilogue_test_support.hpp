#pragma once
/// For tests of generated stores: an operation whose launch a test changes at will.
#include <functional>

#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/dispatch/kernel_cache.hpp"
#include "kiln/dispatch/test_support.hpp"

namespace kiln::test {

using dispatch::FusedEpilogue;

/// A kernel over two operands of one shape, changed by a test; each has plans of its own.
struct Kernel {
  std::string text;
  std::function<void(webgpu::Launch&, const Operand& out)> change = [](webgpu::Launch&,
                                                                       const Operand&) {};
  Param factor{1};
  int id = next();

  static int next() {
    static int last = 0;
    return ++last;
  }
};

inline std::vector<webgpu::Launch> candidates(const void* op, std::span<const Operand>,
                                              std::span<const Operand> out, const Limits&) {
  const auto& kernel = *static_cast<const Kernel*>(op);
  const std::int64_t count = out[0].shape().elements();
  webgpu::Launch launch{.source = KernelSource::wgsl(kernel.text, "test.wgsl"),
                        .params = {{"count", count}, {"factor", kernel.factor}},
                        .grid = {ceil_div(count, 64), 1, 1}};
  kernel.change(launch, out[0]);
  return {launch};
}

inline constexpr std::array<std::string_view, 2> input_names{"x", "bias"};
inline constexpr std::array<std::string_view, 2> output_names{"out", "other"};
inline const OpTable table{.name = "custom",
                           .inputs = input_names,
                           .outputs = output_names,
                           .append_key =
                               [](const void* op, std::string& key) {
                                 dispatch::append_bytes(key, static_cast<const Kernel*>(op)->id);
                               },
                           .params =
                               [](const void* op, std::vector<const Param*>& out) {
                                 out.push_back(&static_cast<const Kernel*>(op)->factor);
                               },
                           .webgpu_kernel = candidates};

inline std::string kernel_text(const std::string& body) {
  return "{{ bindings }}\n"
         "@compute @workgroup_size(64)\n"
         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
         "  let i = at.x;\n  if (i >= params.count) { return; }\n  " +
         body + "\n}\n";
}

inline const std::string twice = kernel_text("store_out(i, x[i] * 2);");
inline const std::string twice_by_four = kernel_text(
    "if (i % 4 != 0) { return; }\n"
    "  store_out4(i, vec4<Elem>(x[i], x[i + 1], x[i + 2], x[i + 3]) * 2);");
inline const std::string twice_in_vec4 =
    kernel_text("if (i % 4 != 0) { return; }\n  store_out4(i, x[i / 4] * 2);");
inline const std::string twice_both_ways = kernel_text(
    "if (i % 4 != 0) { return; }\n  let v = x[i / 4] * 2;\n"
    "  if (i == 4) { for (var k = 0u; k < 4; k++) { store_out(i + k, v[k]); } }\n"
    "  else { store_out4(i, v); }");

inline void in_vec4(webgpu::Launch& l, const Operand&) { l.vec4 = {"x", "out"}; }

/// Ways in which one kernel brings its results out.
inline std::vector<Kernel> ways() {
  return {{twice}, {twice_by_four}, {twice_in_vec4, in_vec4}, {twice_both_ways, in_vec4}};
}

inline Client client() { return {device().shared_runtime(), "test"}; }

inline RawTensor make(const std::vector<float>& values, const Shape& shape,
                      DType dtype = DType::f32) {
  if (dtype == DType::f32) return client().create(std::span<const float>(values), shape);
  std::vector<float16> half;
  for (const float v : values) half.emplace_back(v);
  return client().create(std::span<const float16>(half), shape);
}

inline std::vector<double> values(const RawTensor& t) {
  const auto as_doubles = [](const auto& read) {
    return std::vector<double>(read.begin(), read.end());
  };
  if (t.dtype == DType::f32) return as_doubles(client().read<float>(t));
  if (t.dtype == DType::boolean) {
    RawTensor words = t;
    words.dtype = DType::u32;
    return as_doubles(client().read<std::uint32_t>(words));
  }
  std::vector<double> out;
  for (const float16 v : client().read<float16>(t)) out.push_back(static_cast<float>(v));
  return out;
}

template <class F>
BodyPtr body_of(int inputs, F f, std::vector<const Param*> params = {}) {
  const int count = static_cast<int>(params.size());
  ExprGraph graph(std::move(params));
  std::vector<Expr> in;
  for (int i = 0; i < inputs; ++i) in.push_back(graph.input(i));
  std::vector<std::int32_t> roots;
  for (const Expr& root : f(in)) roots.push_back(graph.place(root));
  return make_body(graph, inputs, count, roots);
}

using In = const std::vector<Expr>&;
using Out = std::vector<Expr>;

inline std::vector<RawTensor> run(const Kernel& kernel, const RawTensor& x, const RawTensor& bias,
                                  const FusedEpilogue* epilogue = nullptr) {
  const std::array in{x, bias};
  const std::array out{x.spec()};
  return dispatch::run_kernel(table, &kernel, device().shared_runtime(), in, out, epilogue);
}

inline std::vector<RawTensor> run(const Kernel& kernel, const RawTensor& x,
                                  const FusedEpilogue& epilogue) {
  return run(kernel, x, x, &epilogue);
}

/// The elements of `t` seen with `shape`.
inline std::vector<double> broadcast_values(const RawTensor& t, const Shape& shape) {
  RawTensor seen = t;
  seen.layout = t.layout.broadcast_to(shape);
  return values(seen);
}

inline RawTensor transposed(const std::vector<float>& numbers, std::int64_t rows,
                            std::int64_t columns) {
  RawTensor t = make(numbers, {columns, rows});
  t.layout = {.shape = {rows, columns}, .strides = {1, rows}, .offset = 0};
  return t;
}

}  // namespace kiln::test
