// Kernels that read operands through generated loads: what is fused into them, and the same values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/queued.hpp"

namespace kiln {
namespace {

using queued::drained;
using queued::expect_same_as_eager;
using queued::In;
using queued::input;
using queued::lazy;
using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// How the kernel of Mixed reads x.
enum class Way : std::uint8_t { one, four, both, array };

/// x * 2 + w: a kernel of a user's own, whose operands have one shape.
struct Mixed {
  static constexpr std::string_view name = "mixed";
  static constexpr std::array inputs = {"x", "w"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Way way;
  bool repeated = false;
  bool in_vec4 = false;

  static TensorSpec output(const TensorSpec& x, const TensorSpec& w) {
    (void)broadcast(name, x.shape, w.shape);
    return x;
  }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Operand&) const {
    // The comment names x, and so do members: neither reads the array.
    std::string text =
        "{{ bindings }}\n"
        "@compute @workgroup_size({{ workgroup_size_x }})\n"
        "fn main(@builtin(global_invocation_id) at: vec3<u32>) {  // x by x\n";
    if (way == Way::one) {
      text +=
          "  let i = at.x;\n  if (i >= params.n) { return; }\n"
          "  store_out(i, load_x(i) * 2 + load_w(i));\n}\n";
    } else if (way == Way::array) {
      text +=
          "  let i = at.x;\n  if (i >= params.n) { return; }\n"
          "  store_out(i, load_x(i) + x[i] + load_w(i));\n}\n";
    } else {
      text +=
          "  let i = at.x * 4;\n  if (i >= params.n) { return; }\n"
          "  let v = load_x4(i) * 2 + load_w4(i);\n";
      text += way == Way::four ? "  store_out4(i, v);\n}\n"
                               : "  store_out4(i, max(v, min(vec4<Elem>(load_x(i + 1)), v)));\n}\n";
    }
    webgpu::Launch launch{.source = KernelSource::wgsl(std::move(text), "mixed.wgsl"),
                          .params = {{"n", x.shape().elements()}},
                          .grid = {ceil_div(x.shape().elements(), 64), 1, 1}};
    if (repeated) launch.repeated = {{.name = "x"}};
    if (in_vec4) launch.vec4 = {"x", "w", "out"};
    return launch;
  }
  static AnyTensor reference(const AnyTensor& x, const AnyTensor& w) { return x * 2.0 + w; }
};
static_assert(Extension<Mixed>);

TEST(WgslLoads, AKernelTakesItsProducersAndItsConsumersIntoOneLaunch) {
  const auto f = [](In t) { return tanh(apply(Mixed{Way::one}, relu(t[0]) * 2.0, t[1])) + 1.0; };
  const std::vector in{input({6, 8}), input({6, 8}, 1)};
  const DrainReport report = drained(f, in);
  ASSERT_EQ(report.blocks.size(), 1U);
  EXPECT_EQ(report.launches, 1U);
  EXPECT_THAT(report.blocks[0].ops, ElementsAre("relu", "mul", "mixed", "tanh", "add"));
  EXPECT_EQ(report.blocks[0].bytes_read, 2 * 48 * 4U);
  EXPECT_EQ(report.blocks[0].bytes_written, 48 * 4U);
  expect_same_as_eager(f, in);
}

TEST(WgslLoads, ProducersComeThroughViewsAndBroadcasts) {
  const std::vector<AnyTensor (*)(In)> producers{
      [](In t) { return transpose(t[0] * 3.0); },
      [](In t) { return broadcast_to(exp(t[1]), {8, 6}); },
      [](In t) { return reshape(slice(abs(t[0]) + 1.0, 0, 0, 6), {8, 6}); },
      [](In t) { return slice(concat({t[0] - 1.0, t[0]}, 0), 0, 3, 9).permute({1, 0}); },
      [](In t) { return transpose(t[0]) * t[1] - sigmoid(transpose(t[0])); },
      [](In t) { return cast(transpose(t[0]) > 0.1, t[0].dtype()); },
      [](In t) { return cast(cast(transpose(t[0]), DType::f16), t[0].dtype()); }};
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::vector in{input({6, 8}, 0, dtype), input({6}, 1, dtype), input({8, 6}, 2, dtype)};
    for (const Way way : {Way::one, Way::four, Way::both, Way::array}) {
      for (const bool vec4 : {false, true}) {
        if (vec4 && way != Way::four) continue;
        for (const auto producer : producers) {
          expect_same_as_eager(
              [&](In t) { return apply(Mixed{way, false, vec4}, producer(t), t[2] * 0.5); }, in);
        }
      }
    }
  }
}

TEST(WgslLoads, StridedOperandsAreReadWhereTheyLie) {
  const std::vector<AnyTensor (*)(In)> views{
      [](In t) { return transpose(t[0]); }, [](In t) { return broadcast_to(t[1], {8, 8}); },
      [](In t) { return broadcast_to(reshape(t[1], {8, 1}), {8, 8}); },
      [](In t) { return reshape(slice(t[2], 0, 1, 65), {8, 8}); },
      [](In t) { return broadcast_to(slice(t[1], 0, 3, 4), {8, 8}); }};
  const std::vector in{input({8, 8}), input({8}, 1), input({70}, 2)};
  for (const auto view : views) {
    for (const Way way : {Way::one, Way::four, Way::both, Way::array}) {
      for (const bool vec4 : {false, true}) {
        if (vec4 && way != Way::four) continue;
        const auto f = [&](In t) { return apply(Mixed{way, false, vec4}, view(t), t[0]); };
        const DrainReport report = drained(f, in);
        EXPECT_EQ(report.launches, way == Way::array ? report.launches : 1U);
        const AnyTensor expected = view(in) * 2.0 + in[0];
        test::expect_near(values(f(in)), test::doubles(values(expected)), 2e-6);
      }
    }
  }
}

// The last axis does not divide by four, so four elements lie in two rows.
TEST(WgslLoads, FourElementsMayLieInTwoRows) {
  const std::vector in{input({6, 4}), input({4, 6}, 1), input({6}, 2)};
  for (const Way way : {Way::four, Way::both}) {
    expect_same_as_eager([&](In t) { return apply(Mixed{way}, transpose(t[0]) * 3.0, t[1]); }, in);
    expect_same_as_eager([&](In t) { return apply(Mixed{way}, t[1] - t[2], exp(t[1])); }, in);
  }
}

TEST(WgslLoads, IntegersAreComputedInTheirOwnArithmetic) {
  const AnyTensor x = make<std::int32_t>({7, -8, 2147483647, 3}, {4}, lazy());
  const auto f = [](In t) { return apply(Mixed{Way::one}, t[0] + t[0], t[1] * t[1]); };
  expect_same_as_eager(f, {x, x});
  EXPECT_THAT(values(cast(f({x, x}), DType::f32)), ElementsAre(77, 32, -3, 21));
}

TEST(WgslLoads, AProducerMayReadNothing) {
  const auto f = [](In t) {
    return apply(Mixed{Way::one}, full({6, 8}, 0.25, t[0].device()), t[0] * 2.0);
  };
  expect_same_as_eager(f, {input({6, 8})});
}

/// Two results of a kernel that widens what it loads: x / 3 and the sum of x and y.
struct Both {
  static constexpr std::string_view name = "both";
  static constexpr std::array inputs = {"a", "b"};
  static constexpr std::array outputs = {"third", "sum"};
  using layers = Layers<Cube, Fusion>;
  template <class T>
  struct Result {
    T third;
    T sum;
  };
  static Result<TensorSpec> output(const TensorSpec& a, const TensorSpec&) { return {a, a}; }
  static webgpu::Launch webgpu_kernel(const Operand& a, const Operand&, const Result<Operand>&) {
    return {.source = KernelSource::wgsl("{{ bindings }}\n"
                                         "@compute @workgroup_size({{ workgroup_size_x }})\n"
                                         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                         "  let i = at.x;\n  if (i >= params.n) { return; }\n"
                                         "  store_third(i, Elem(Acc(load_a(i)) * 1024 - 341));\n"
                                         "  store_sum(i, load_a(i) + load_b(i));\n}\n"),
            .params = {{"n", a.shape().elements()}},
            .grid = {ceil_div(a.shape().elements(), 64), 1, 1}};
  }
};

static_assert(Extension<Both>);

TEST(WgslLoads, AKernelOfSeveralResultsTakesProducers) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::vector in{input({6, 8}, 0, dtype), input({6, 8}, 1, dtype)};
    for (const bool second : {false, true}) {
      const auto f = [&](In t) {
        const auto out = apply(Both{}, t[0] * (1.0 / 3), relu(t[1]));
        return second ? out.sum : out.third;
      };
      EXPECT_EQ(drained(f, in).launches, 1U);
      expect_same_as_eager(f, in);
    }
  }
}

/// A body that the printer refuses: WGSL has no literal for the number.
struct Unprintable {
  static constexpr std::string_view name = "unprintable";
  Expr body(Expr x) const { return x * std::numeric_limits<double>::infinity(); }
};

TEST(WgslLoads, AFaultOfAProducerIsItsOwn) {
  const AnyTensor x = input({6, 8});
  const AnyTensor good = apply(Mixed{Way::one}, relu(x), x);
  const AnyTensor bad = apply(Mixed{Way::one}, apply(Unprintable{}, x), x);
  EXPECT_THAT(message_of<KernelError>([&] { (void)values(bad); }), HasSubstr("unprintable"));
  EXPECT_EQ(values(good).size(), 48U);
}

TEST(WgslLoads, AnArrayThatTheKernelReadsItselfIsStored) {
  const auto f = [](In t) { return apply(Mixed{Way::array}, relu(t[0]), relu(t[1])); };
  const std::vector in{input({6, 8}), input({6, 8}, 1)};
  EXPECT_EQ(drained(f, in).launches, 2U);  // the other operand still takes its producer
  expect_same_as_eager(f, in);
}

TEST(WgslLoads, AnOperandLoadedManyTimesTakesLittleWorkOnly) {
  const std::vector in{input({6, 8}), input({6, 8}, 1)};
  const auto cheap = [](In t) { return apply(Mixed{Way::one, true}, relu(t[0]), t[1]); };
  EXPECT_EQ(drained(cheap, in).launches, 1U);
  expect_same_as_eager(cheap, in);
  const auto of_two = [](In t) { return apply(Mixed{Way::one, true}, t[0] * t[1], t[1]); };
  EXPECT_EQ(drained(of_two, in).launches, 2U);  // each load would read both
  const auto long_one = [](In t) {
    AnyTensor x = t[0];
    for (int i = 0; i < 12; ++i) x = tanh(x) * 0.5;
    return apply(Mixed{Way::one, true}, x, t[1]);
  };
  EXPECT_EQ(drained(long_one, in).launches, 2U);
}

TEST(WgslLoads, WhatSomebodyHoldsIsStored) {
  const std::vector in{input({6, 8}), input({6, 8}, 1)};
  AnyTensor held;
  const auto f = [&](In t) {
    held = relu(t[0]);
    return apply(Mixed{Way::one}, held, t[1]);
  };
  EXPECT_EQ(drained(f, in).launches, 2U);
}

TEST(WgslLoads, RunTimeScalarsOfProducersCompileNothing) {
  const std::vector in{input({6, 8}), input({6, 8}, 1)};
  const auto f = [&](double a, double b) {
    return values(tanh(apply(Mixed{Way::four}, in[0] * a + b, in[1] - a) * b));
  };
  (void)f(1.5, 2.5);
  const auto before = lazy().runtime().counters().compiled;
  const std::vector<float> got = f(-3, 0.25);
  EXPECT_EQ(lazy().runtime().counters().compiled, before);
  const std::vector<float> x = values(in[0]);
  const std::vector<float> w = values(in[1]);
  std::vector<double> expected;
  for (std::size_t i = 0; i < x.size(); ++i)
    expected.push_back(std::tanh(((x[i] * -3 + 0.25) * 2 + (w[i] + 3)) * 0.25));
  test::expect_near(got, expected, 1e-5);
}

TEST(WgslLoads, TwoOperandsMayHaveTheSameProducer) {
  const auto f = [](In t) {
    const AnyTensor y = relu(t[0]);
    return apply(Mixed{Way::one}, y, y * 2.0);
  };
  const std::vector in{input({6, 8})};
  EXPECT_EQ(drained(f, in).launches, 1U);
  expect_same_as_eager(f, in);
}

TEST(WgslLoads, GradientsFollowTheReference) {
  const Device device = lazy().autodiff();
  const AnyTensor x = make_wave({6, 8}, 0, DType::f32, device).require_grad();
  const AnyTensor w = make_wave({6, 8}, 1, DType::f32, device);
  const AnyTensor y = tanh(apply(Mixed{Way::one}, x * x, w));
  const AnyTensor reference = tanh(Mixed::reference(x * x, w));
  const AnyTensor one = full({6, 8}, 1, lazy());
  test::expect_near(values(vjp(std::array{y}, std::array{one}).of(x)),
                    test::doubles(values(vjp(std::array{reference}, std::array{one}).of(x))), 1e-5);
}

/// The transpose of a matrix, which is read by coordinates: one by one, or four down a column.
struct Turned {
  static constexpr std::string_view name = "turned";
  static constexpr std::array inputs = {"index"};  // no name of the loads' own
  using layers = Layers<Cube, Fusion>;
  bool four = false;

  static TensorSpec output(const TensorSpec& x) { return {{x.shape[1], x.shape[0]}, x.dtype}; }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&) const {
    const std::string step = four ? "4" : "1";
    const std::string store =
        four ? "store_out4(i, load_index_down4(i % params.rows, i / params.rows));"
             : "store_out(i, load_index_at(i % params.rows, i / params.rows));";
    return {.source = KernelSource::wgsl("{{ bindings }}\n"
                                         "@compute @workgroup_size({{ workgroup_size_x }})\n"
                                         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                         "  let i = at.x * " +
                                             step + ";\n  if (i < params.n) { " + store + " }\n}\n",
                                         "turned.wgsl"),
            .params = {{"n", x.shape().elements()}, {"rows", x.dim(0)}},
            .grid = {ceil_div(x.shape().elements(), 64), 1, 1}};
  }
};
static_assert(Extension<Turned>);

TEST(WgslLoads, CoordinatesFindElementsOfViewsAndOfProducers) {
  const std::vector<AnyTensor (*)(In)> views{
      [](In t) { return t[0]; },
      [](In t) { return transpose(t[1]); },
      [](In t) { return slice(t[2], 1, 3, 9); },
      [](In t) { return broadcast_to(t[3], {8, 6}); },
      [](In t) { return relu(t[0]) * t[3]; },
      [](In t) { return transpose(t[1] * 2.0) - t[0]; },
      [](In t) { return slice(abs(t[2]), 1, 3, 9) + transpose(t[1]); }};
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::vector in{input({8, 6}, 0, dtype), input({6, 8}, 1, dtype), input({8, 11}, 2, dtype),
                         input({6}, 3, dtype)};
    for (const auto view : views) {
      for (const bool four : {false, true}) {
        EXPECT_EQ(drained([&](In t) { return apply(Turned{four}, view(t)); }, in).launches, 1U);
        test::expect_near(values(apply(Turned{four}, view(in))),
                          test::doubles(values(transpose(view(in)))), 2e-6);
      }
    }
  }
}

struct Down {
  static constexpr std::string_view name = "down";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand&, const Operand&) {
    return {.source = KernelSource::wgsl("{{ bindings }}\n"
                                         "@compute @workgroup_size({{ workgroup_size_x }})\n"
                                         "fn main() { store_out(0, load_x_down4(0, 0).x); }\n")};
  }
};

TEST(WgslLoads, TooFewAxesForTheCoordinatesAreRefused) {
  EXPECT_EQ(message_of<KernelError>([] { (void)values(apply(Down{}, input({4}))); }),
            "down: the kernel loads 'x' by 2 coordinates, but its shape is [4]");
}

/// A matrix product as it is first written: each thread sums one output, by dense numbers.
struct Naive {
  static constexpr std::string_view name = "naive";
  static constexpr std::array inputs = {"lhs", "rhs"};
  using layers = Layers<Cube, Fusion>;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs) {
    return matmul_spec(name, lhs, rhs);
  }
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand&, const Operand& out) {
    constexpr const char* text = R"({{ bindings }}
@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let i = at.x;
  if (i >= params.count) { return; }
  let row = i / params.n % params.m;
  let batch = i / params.n / params.m;
  let a = lhs_batch(batch);
  let b = rhs_batch(batch);
  var sum: Acc = 0;
  for (var k = 0u; k < params.k; k++) {
    sum += Acc(load_lhs(a + row * params.k + k)) * Acc(load_rhs(b + k * params.n + i % params.n));
  }
  store_out(i, Elem(sum));
})";
    return {.source = KernelSource::wgsl(text),
            .params = {{"count", out.shape().elements()},
                       {"m", out.dim(-2)},
                       {"k", lhs.dim(-1)},
                       {"n", out.dim(-1)}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
  }
};
static_assert(Extension<Naive>);

TEST(WgslLoads, MatricesOfABatchBeginAtTheirDenseNumber) {
  const std::vector<AnyTensor (*)(In)> forms{
      [](In t) { return apply(Naive{}, relu(t[0]), t[1] * 2.0); },
      [](In t) { return apply(Naive{}, transpose(t[1]), relu(t[1])); },
      [](In t) { return apply(Naive{}, slice(t[0], 1, 2, 5), t[1] - 1.0); }};
  const std::vector<AnyTensor (*)(In)> expected{
      [](In t) { return matmul(relu(t[0]), t[1] * 2.0); },
      [](In t) { return matmul(transpose(t[1]), relu(t[1])); },
      [](In t) { return matmul(slice(t[0], 1, 2, 5), t[1] - 1.0); }};
  const std::vector in{input({2, 5, 6}), input({1, 6, 4}, 1)};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    EXPECT_EQ(drained(forms[i], in).launches, 1U) << i;
    test::expect_near(values(forms[i](in)), test::doubles(values(expected[i](in))), 1e-5);
  }
}

TEST(WgslLoads, EmptyOperandsComputeNothing) {
  const auto f = [](In t) { return apply(Mixed{Way::one}, relu(t[0]), t[1]); };
  const std::vector in{input({0, 8}), input({0, 8}, 1)};
  EXPECT_EQ(values(f(in)).size(), 0U);
}

}  // namespace
}  // namespace kiln
