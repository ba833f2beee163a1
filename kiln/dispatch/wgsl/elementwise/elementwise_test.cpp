#include <gtest/gtest.h>

#include <array>

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/test_support.hpp"
#include "kiln/dispatch/wgsl/elementwise/elementwise_kernel.hpp"
#include "kiln/dispatch/wgsl/grid.hpp"
#include "kiln/runtime/webgpu/portable_test_support.hpp"
#include "kiln/scalar/body_of_test.hpp"

namespace kiln::dispatch::wgsl {
namespace {

constexpr std::uint32_t workgroup = 64;

RawTensor given(const std::vector<float>& values) {
  const Client client(test::device().shared_runtime(), "test");
  return client.create(std::span<const float>(values), {std::ssize(values)});
}

/// a - b * b over n elements in `steps` steps a thread; the result in a's buffer if `in_place`.
std::vector<float> run(std::int64_t n, int steps, bool in_place) {
  Runtime& runtime = test::device().runtime();
  const Client client(test::device().shared_runtime(), "test");
  const std::array in{given(test::wave(n)), given(test::wave(n, 1))};
  const std::array out{in_place ? in[0] : client.empty({{n}, DType::f32})};
  const BodyPtr body = body_of([](Expr a, Expr b) { return a - b * b; });
  const std::array layouts{in[0].layout, in[1].layout, out[0].layout};
  ElementwiseLaunch call{"test", body, {}, in, out, Reads("", {n}, layouts), {}, steps};
  constexpr std::array<std::int32_t, 2> first{0, -1};
  if (in_place) call.overwritten_by = first;
  const BodyTypes types = infer("test", *body, std::array{DType::f32, DType::f32}, DType::f32);
  const CompiledKernelPtr kernel =
      runtime.compile(elementwise_kernel(call, types, runtime.limits(), workgroup), "test");
  std::vector<Binding> bindings;
  if (!in_place) bindings.push_back({in[0].buffer});
  bindings.push_back({in[1].buffer});
  bindings.push_back({out[0].buffer});
  std::vector<std::uint32_t> words;
  each_number(call, types, n,
              [&](auto, std::string_view, std::uint32_t word) { words.push_back(word); });
  words.resize((words.size() + 3) / 4 * 4);
  const std::int64_t groups =
      ceil_div(n, std::int64_t{call.width()} * steps * std::int64_t{workgroup});
  runtime.launch(kernel, bindings, std::as_bytes(std::span(words)),
                 folded_grid(groups, runtime.limits()));
  return client.read<float>(out[0]);
}

std::vector<double> expected(std::int64_t n) {
  const std::vector<float> a = test::wave(n);
  const std::vector<float> b = test::wave(n, 1);
  std::vector<double> out;
  for (std::size_t i = 0; i < a.size(); ++i)
    out.push_back(double{a[i]} - double{b[i]} * double{b[i]});
  return out;
}

TEST(Elementwise, AThreadOfSeveralStepsReachesEachElementOnce) {
  for (const std::int64_t n : {4, 256, 1024, 1028, 2044, 5000}) {
    for (const int steps : {1, 2, 4}) {
      test::expect_near(run(n, steps, false), expected(n), 1e-6);
      test::expect_near(run(n, steps, true), expected(n), 1e-6, "in place");
    }
  }
}

TEST(Elementwise, AResultTakesTheBufferOfAnInput) {
  const BodyPtr body = body_of([](Expr a, Expr b) { return a - b; });
  for (const std::int64_t n : {3, 8}) {
    const std::array in{given(test::wave(n)), given(test::wave(n, 1))};
    const std::array reuse{std::int32_t{1}};
    const RawTensor out =
        run_elementwise("test", in[0].runtime, body, {}, in, {n}, std::array{DType::f32}, reuse)
            .front();
    EXPECT_EQ(out.buffer, in[1].buffer);
    const Client client(out.runtime, "test");
    const std::vector<float> a = test::wave(n);
    const std::vector<float> b = test::wave(n, 1);
    std::vector<double> difference;
    for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(double{a[i]} - double{b[i]});
    test::expect_near(client.read<float>(out), difference, 1e-6);
  }
}

TEST(Elementwise, WhatRepeatsAlongOuterAxesIsFoundWithoutADivision) {
  const std::array in{given(test::wave(24)), given(test::wave(8, 1))};
  const BodyPtr body = body_of([](Expr a, Expr b) { return a + b; });
  const Shape shape{3, 8};
  const std::array layouts{Layout::dense(shape), Layout::dense({8}).broadcast_to(shape),
                           Layout::dense(shape)};
  const ElementwiseLaunch call{
      "test", body, {}, in, std::span(in).first(1), Reads("", shape, layouts)};
  const BodyTypes types = infer("test", *body, std::array{DType::f32, DType::f32}, DType::f32);
  const KernelId id = elementwise_kernel(call, types, test::device().runtime().limits(), workgroup);
  EXPECT_THAT(id.source, ::testing::HasSubstr("index % params.d1"));
  EXPECT_THAT(id.source, ::testing::Not(::testing::HasSubstr("/ params.")));
}

/// A function of `inputs` inputs and one param, of whose results number r is
/// in[r] * in[r + 1] + param, counted round.
BodyPtr products(int inputs, int results) {
  const Param param;
  ExprGraph graph({&param});
  std::vector<std::int32_t> roots;
  for (int r = 0; r < results; ++r) {
    const Expr product = graph.input(r % inputs) * graph.input((r + 1) % inputs);
    roots.push_back(graph.place(product + param));
  }
  return make_body(graph, inputs, 1, roots);
}

TEST(Elementwise, WhereTheAdapterBindsTooFewBuffersResultsAreMadeInParts) {
  const Device device = wgpu::portable_device();
  const Client client(device.shared_runtime(), "test");
  const auto tensor = [&](int seed) {
    const std::vector<float> values = test::wave(10, seed);
    return client.create(std::span<const float>(values), {10});
  };
  std::vector<RawTensor> in;
  for (int i = 0; i < 7; ++i) in.push_back(tensor(i));
  const std::vector<DType> dtypes(7, DType::f32);
  const std::array param{0.5};
  const std::vector<std::int32_t> in_place{0, -1, -1, -1, -1, -1, -1};
  const std::uint64_t before = device.runtime().counters().launches;
  const auto out = run_elementwise("test", device.shared_runtime(), products(7, 7), param, in, {10},
                                   dtypes, in_place);
  EXPECT_EQ(device.runtime().counters().launches - before, 3U) << "3, 3 and 1 results fit";
  for (int r = 0; r < 7; ++r) {
    const std::vector<float> a = test::wave(10, r);
    const std::vector<float> b = test::wave(10, (r + 1) % 7);
    std::vector<double> expected;
    for (std::size_t i = 0; i < 10; ++i) expected.push_back(double{a[i]} * double{b[i]} + 0.5);
    test::expect_near(client.read<float>(out[static_cast<std::size_t>(r)]), expected, 1e-6);
  }
}

TEST(Elementwise, OneTensorTakesOneBufferWhereThereAreFew) {
  const Device device = wgpu::portable_device();
  const Client client(device.shared_runtime(), "test");
  const std::vector<float> values{1, 2, 3};
  const std::vector<RawTensor> in(9, client.create(std::span<const float>(values), {3}));
  const std::uint64_t before = device.runtime().counters().launches;
  const auto out = run_elementwise("test", device.shared_runtime(), products(9, 2), std::array{0.0},
                                   in, {3}, std::array{DType::f32, DType::f32});
  EXPECT_EQ(device.runtime().counters().launches - before, 1U);
  for (const RawTensor& t : out)
    EXPECT_THAT(client.read<float>(t), ::testing::ElementsAre(1, 4, 9));
}

}  // namespace
}  // namespace kiln::dispatch::wgsl
