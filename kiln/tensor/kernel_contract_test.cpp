// What a kernel must say, what it may ask for, and how it is told what is wrong.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// An operation whose launch is given from outside, so that a test can be one launch.
struct Custom {
  static constexpr std::string_view name = "custom";
  static constexpr std::array inputs = {"x", "bias"};
  using layers = Layers<Cube, Fusion>;
  std::string text;
  int variant = 0;

  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Operand& out) const;
};

using Change = std::function<void(webgpu::Launch&, const Operand& x)>;
std::vector<Change>& changes() {
  static std::vector<Change> all{[](webgpu::Launch&, const Operand&) {}};
  return all;
}

webgpu::Launch Custom::webgpu_kernel(const Operand& x, const Operand&, const Operand& out) const {
  webgpu::Launch launch{.source = KernelSource::wgsl(text, "custom.wgsl"),
                        .workgroup = {64, 1, 1},
                        .params = {{"count", out.shape().elements()}},
                        .grid = {ceil_div(out.shape().elements(), 64), 1, 1}};
  changes()[static_cast<std::size_t>(variant)](launch, x);
  return launch;
}

const std::string head =
    "{{ bindings }}\n"
    "@compute @workgroup_size({{ workgroup_size_x }})\n"
    "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
    "  let i = at.x;\n"
    "  if (i >= params.count) { return; }\n";

std::string kernel(const std::string& body) { return head + "  " + body + "\n}\n"; }

AnyTensor run(const std::string& text, const AnyTensor& x, const AnyTensor& bias,
              const Change& change = {}) {
  int variant = 0;
  if (change) {
    changes().push_back(change);
    variant = static_cast<int>(changes().size()) - 1;
  }
  AnyTensor out = apply(Custom{text, variant}, x, bias);
  test::evaluate(out);
  return out;
}

AnyTensor run(const std::string& text, const Change& change = {}) {
  return run(text, make<float>({1, 2, 3}, {3}), make<float>({10, 20, 30}, {3}), change);
}

std::string refusal(const std::string& text, const Change& change = {}) {
  return message_of<KernelError>([&] { (void)run(text, change); });
}

TEST(WgslKernelContract, TheSourceMustDeclareItsOperandsByBindings) {
  EXPECT_THAT(refusal("@compute @workgroup_size(64) fn main() { store_out(0u, 1.0); }"),
              AllOf(HasSubstr("custom"), HasSubstr("custom.wgsl"), HasSubstr("{{ bindings }}")));
}

TEST(WgslKernelContract, NamesThatCannotStandInTheTextAreRefused) {
  const std::string text = kernel("store_out(i, x[i] + bias[i]);");
  const auto scratch = [&](const std::string& name) {
    return refusal(
        text, [name](webgpu::Launch& l, const Operand&) { l.scratch = {{name, DType::f32, 4}}; });
  };
  EXPECT_THAT(scratch("fn"), HasSubstr("custom: scratch 'fn': the name is a reserved word"));
  EXPECT_THAT(scratch("params"), HasSubstr("custom: scratch 'params'"));
  EXPECT_THAT(scratch("a b"), HasSubstr("no identifier"));
  EXPECT_THAT(scratch("x"), HasSubstr("'x': the name is another operand's, too"));
  EXPECT_THAT(scratch("x_batch"), HasSubstr("what a function over 'x' is called"));
  const auto param = [&](const std::string& name) {
    return refusal(text,
                   [name](webgpu::Launch& l, const Operand&) { l.params.emplace_back(name, 1); });
  };
  EXPECT_THAT(param("var"), HasSubstr("custom: param 'var': the name is a reserved word"));
  EXPECT_THAT(param("a: u32, b"), HasSubstr("no identifier"));
}

/// Generated stores have names of their own: those of arrays that they use must be others.
struct Hidden {
  static constexpr std::string_view name = "hidden";
  static constexpr std::array inputs = {"x", "value"};
  static constexpr std::array outputs = {"index"};
  using layers = Layers<Cube, Fusion>;
  bool epilogue;
  bool open;

  static TensorSpec output(const TensorSpec& x, const TensorSpec&) { return x; }
  webgpu::Launch webgpu_kernel(const Operand&, const Operand&, const Operand& out) const {
    webgpu::Launch launch{.source = KernelSource::wgsl(kernel("store_index(i, x[i] + value[i]);")),
                          .params = {{"count", out.shape().elements()}}};
    if (epilogue) {
      launch.source = KernelSource::wgsl(kernel("store_index(i, x[i]);"));
      launch.store = kiln::epilogue([](Expr y, Expr more) { return y + more; }, {"value"});
    }
    if (open) launch.access = OutputAccess::read_write;
    return launch;
  }
};

TEST(WgslKernelContract, NamesThatAGeneratedStoreWouldHideAreRefused) {
  const AnyTensor x = make<float>({1, 2}, {2});
  EXPECT_THAT(values(apply(Hidden{false, false}, x, x)), ElementsAre(2, 4));
  const auto refused = [&](const Hidden& op) {
    return message_of<KernelError>([&] { test::evaluate(apply(op, x, x)); });
  };
  EXPECT_THAT(refused({true, false}), HasSubstr("hidden: input 'value': the name is a local one"));
  EXPECT_THAT(refused({false, true}), HasSubstr("hidden: output 'index': the name is a local one"));
}

TEST(WgslKernelContract, AValidationErrorNamesTheLineOfTheTemplate) {
  // Parses; the parts do not go together. Line 6 of the template, behind the many that {{ bindings
  // }} becomes.
  const std::string message = refusal(kernel("store_out(i, x[i] + bias[i] * Acc(1u + i32(i)));"));
  EXPECT_THAT(message, AllOf(HasSubstr("custom.wgsl:6:"), HasSubstr("6 │")));
  EXPECT_THAT(message, Not(HasSubstr("┌─ custom:")));
}

TEST(WgslKernelContract, AnOutputNeverStoredIsRefused) {
  EXPECT_THAT(refusal(kernel("let y = x[i] + bias[i];")),
              AllOf(HasSubstr("output 'out' is never stored"), HasSubstr("store_out")));
}

TEST(WgslKernelContract, VariablesMustBeSetAndUsed) {
  const std::string text = kernel("store_out(i, x[i] * {{ factor }});");
  EXPECT_THAT(refusal(text), AllOf(HasSubstr("custom.wgsl:6"), HasSubstr("'factor' is not set")));
  EXPECT_THAT(refusal(text,
                      [](webgpu::Launch& l, const Operand&) {
                        l.source = l.source.define("factor", 2).define("other", 3);
                      }),
              HasSubstr("'other' is set, but the source never uses it"));
  EXPECT_THAT(refusal(kernel("store_out(i, x[i] * {{ 2x }});")),
              AllOf(HasSubstr("custom.wgsl:6"), HasSubstr("malformed placeholder")));
  EXPECT_THAT(values(run(text, [](webgpu::Launch& l,
                                  const Operand&) { l.source = l.source.define("factor", 3); })),
              ElementsAre(3, 6, 9));
}

TEST(WgslKernelContract, CompileErrorsPointIntoTheTemplate) {
  const std::string message = refusal(kernel("store_out(i, x[i] + nothing_of_this_name);"));
  EXPECT_THAT(message, AllOf(HasSubstr("custom"), HasSubstr("custom.wgsl:6:"),
                             HasSubstr("nothing_of_this_name")));
}

TEST(WgslKernelContract, AKernelThatReadsBackItsOutputDoesNotCompile) {
  EXPECT_THAT(refusal(kernel("store_out(i, x[i]); store_out(i, out[i]);")), HasSubstr("out"));
}

TEST(WgslKernelContract, ReadWriteAccessAllowsIt) {
  const auto result =
      run(kernel("out[i] = x[i]; out[i] += bias[i];"),
          [](webgpu::Launch& l, const Operand&) { l.access = OutputAccess::read_write; });
  EXPECT_THAT(values(result), ElementsAre(11, 22, 33));
}

TEST(WgslKernelContract, AtomicResultsAreIntegers) {
  const auto floats = [] {
    (void)values(run(kernel("atomicAdd(&out[i], 1u);"),
                     [](webgpu::Launch& l, const Operand&) { l.access = OutputAccess::atomic; }));
  };
  EXPECT_THAT(message_of<KernelError>(floats),
              HasSubstr("output 'out' is f32; atomics are i32 or u32"));
}

TEST(WgslKernelContract, ZeroedOutputsAreZeroWhereNothingIsStored) {
  const std::string text = kernel("if (i == 1u) { store_out(i, x[i]); }");
  const dispatch::PoisonOutputs poison;
  EXPECT_THAT(values(run(text, [](webgpu::Launch& l, const Operand&) { l.zeroed = true; })),
              ElementsAre(0, 2, 0));
}

TEST(WgslKernelContract, ScratchIsSharedBetweenTheThreadsOfALaunch) {
  const std::string text =
      "{{ bindings }}\n"
      "@compute @workgroup_size({{ workgroup_size_x }})\n"
      "fn main(@builtin(local_invocation_id) local: vec3<u32>) {\n"
      "  let i = local.x;\n"
      "  if (i < params.count) { temp[i] = {{ temp }}(x[i] + bias[i]); }\n"
      "  storageBarrier();\n"
      "  if (i < params.count) { store_out(i, Elem(temp[params.count - 1u - i])); }\n"
      "}\n";
  for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
    const auto result = run(text, [dtype](webgpu::Launch& l, const Operand&) {
      l.scratch = {{"temp", dtype, 3}};
      l.source = l.source.define("temp", std::string(to_string(dtype)));
    });
    EXPECT_THAT(values(result), ElementsAre(33, 22, 11)) << to_string(dtype);
  }
}

TEST(WgslKernelContract, AnEpilogueIsAppliedByTheStore) {
  const auto fused = [](webgpu::Launch& l, const Operand&) {
    l.store = epilogue([](Expr value, Expr bias) { return relu(value + bias); }, {"bias"});
  };
  for (const DType dtype : {DType::f32, DType::f16}) {
    const AnyTensor x = make({1, -2, 3, -40}, {4}, dtype);
    const AnyTensor bias = make({10, 20, -30, 1}, {4}, dtype);
    EXPECT_THAT(values(run(kernel("store_out(i, x[i] * 2);"), x, bias, fused)),
                ElementsAre(12, 16, 0, 0));
    const std::string wide =
        kernel("if (i == 0u) { store_out4(0u, vec4<Elem>(x[0], x[1], x[2], x[3])); }");
    EXPECT_THAT(values(run(wide, x, bias, fused)), ElementsAre(11, 18, 0, 0));
    const std::string wider = kernel("if (i == 0u) { store_out4(0u, x[0]); }");
    EXPECT_THAT(values(run(wider, x, bias,
                           [&](webgpu::Launch& l, const Operand& operand) {
                             fused(l, operand);
                             l.vec4 = {"x", "out"};
                           })),
                ElementsAre(11, 18, 0, 0));
  }
}

TEST(WgslKernelContract, AnEpilogueKeepsNaNs) {
  const AnyTensor x = make<float>({NAN, 1}, {2});
  const auto result = values(run(kernel("store_out(i, x[i]);"), x, make<float>({0, 0}, {2}),
                                 [](webgpu::Launch& l, const Operand&) {
                                   l.store = epilogue([](Expr v) { return relu(v); }, {});
                                 }));
  EXPECT_TRUE(std::isnan(result[0]));
  EXPECT_EQ(result[1], 1);
}

TEST(WgslKernelContract, AnEpilogueReadsOperandsOfTheOutputsShapeOnly) {
  const auto with = [](std::vector<std::string> names) {
    return [names](webgpu::Launch& l, const Operand&) {
      l.store = epilogue([](Expr v, Expr b) { return v + b; }, names);
    };
  };
  const std::string text = kernel("store_out(i, x[i]);");
  EXPECT_THAT(refusal(text, with({"other"})), HasSubstr("'other', which is no input"));
  EXPECT_THAT(message_of<KernelError>([&] {
                (void)run(text, make<float>({1, 2, 3}, {3}), make<float>({1}, {1}), with({"bias"}));
              }),
              AllOf(HasSubstr("'bias' [1]"), HasSubstr("[3]")));
}

TEST(WgslKernelContract, Vec4ReadsReachPastAShortTensor) {
  // Three elements read as one vec4: the allocation is padded.
  const auto result = run(kernel("let all = x[0]; store_out(i, all[i] + bias[i]);"),
                          [](webgpu::Launch& l, const Operand&) { l.vec4 = {"x"}; });
  EXPECT_THAT(values(result), ElementsAre(11, 22, 33));
  EXPECT_THAT(refusal(kernel("store_out(i, x[i]);"),
                      [](webgpu::Launch& l, const Operand&) { l.vec4 = {"y"}; }),
              HasSubstr("vec4 names 'y', which is no operand"));
}

TEST(WgslKernelContract, StridedKernelsGetStridesAndOffsets) {
  RawTensor raw = make<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {12}).value().raw();
  raw.layout = {.shape = {2, 3}, .strides = {1, 4}, .offset = 1};  // transposed
  const AnyTensor x(Value(raw), test::device());
  const std::string text = kernel(
      "let row = i / x_shape(1);\n  let col = i % x_shape(1);\n"
      "  store_out(i, x[x_offset() + row * x_stride(0) + col * x_stride(1)]);");
  const auto strided = [](webgpu::Launch& l, const Operand& operand) {
    EXPECT_EQ(operand.stride(0), 1);
    l.strided = true;
  };
  const auto spent = test::counted(
      [&] { EXPECT_THAT(values(run(text, x, x, strided)), ElementsAre(1, 5, 9, 2, 6, 10)); });
  EXPECT_EQ(spent.launches, 1U) << "nothing is copied";
  const auto dense = [](webgpu::Launch& l, const Operand&) {
    l.strided = true;
    l.dense = {"x", "bias"};
  };
  EXPECT_THAT(values(run(text, x, x, dense)), ElementsAre(1, 5, 9, 2, 6, 10));
}

TEST(WgslKernelContract, BatchesBroadcastThroughStrides) {
  const std::string text = kernel(
      "let z = i / (params.m * params.n);\n"
      "  store_out(i, x[x_batch(z) + i % (params.m * params.n)] + bias[bias_batch(z)]);");
  const AnyTensor x = make_wave({3, 2, 2, 2});
  const AnyTensor bias = make<float>({10, 20}, {1, 2, 1, 1});
  const auto sizes = [](webgpu::Launch& l, const Operand& operand) {
    l.params.emplace_back("m", operand.dim(-2));
    l.params.emplace_back("n", operand.dim(-1));
  };
  const std::vector<float> out = values(run(text, x, bias, sizes));
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_NEAR(out[i], values(x)[i] + (i / 4 % 2 == 0 ? 10 : 20), 1e-5) << i;
  }
}

TEST(WgslKernelContract, GridsAboveTheLimitFoldWhereTheKernelAsksForItsPosition) {
  const std::string folded =
      "{{ bindings }}\n"
      "@compute @workgroup_size({{ workgroup_size_x }})\n"
      "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
      "vec3<u32>,\n"
      "        @builtin(local_invocation_id) local: vec3<u32>) {\n"
      "  let i = kiln_workgroup(group, groups).x * {{ workgroup_size_x }}u + local.x;\n"
      "  if (i >= params.count) { return; }\n"
      "  store_out(i, x[i] + 1);\n"
      "}\n";
  const auto small = [](webgpu::Launch& l, const Operand& x) {
    l.workgroup = {16, 1, 1};
    l.grid = {ceil_div(x.shape().elements(), 16), 1, 1};
  };
  // The same operation below and above the limit: its plan depends on more than the launch's text.
  for (const std::int64_t n : {std::int64_t{100}, std::int64_t{65536} * 16 + 1}) {
    const AnyTensor x = make(std::vector<float>(static_cast<std::size_t>(n), 2), {n});
    EXPECT_THAT(values(run(folded, x, make<float>({1}, {1}), small)), Each(3)) << n;
  }
  const AnyTensor large = make(std::vector<float>(65536 * 16 + 1), {65536 * 16 + 1});
  EXPECT_THAT(message_of<KernelError>(
                  [&] { (void)run(kernel("store_out(i, x[i]);"), large, large, small); }),
              AllOf(HasSubstr("65537"), HasSubstr("65535"), HasSubstr("kiln_workgroup")));
}

TEST(WgslKernelContract, MoreRoundsThanTheAdapterGivesALoopAreRefused) {
  const std::uint32_t most = test::device().limits().loop_rounds;
  if (most == 0) GTEST_SKIP() << test::device().adapter() << " gives a loop all of its rounds";
  const AnyTensor x = make<float>({1}, {1});
  const auto with_rounds = [&](std::int64_t rounds) {
    return run(kernel("store_out(i, x[i]);"), x, x,
               [&](webgpu::Launch& l, const Operand&) { l.rounds = rounds; });
  };
  EXPECT_THAT(values(with_rounds(most)), Each(1));
  EXPECT_THAT(message_of<KernelError>([&] { (void)values(with_rounds(most + std::int64_t{1})); }),
              AllOf(HasSubstr(std::to_string(most + std::int64_t{1})),
                    HasSubstr("silently after " + std::to_string(most))));
}

TEST(WgslKernelContract, ThreeDimensionsFoldToo) {
  const std::string text =
      "{{ bindings }}\n"
      "@compute @workgroup_size(1)\n"
      "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
      "vec3<u32>) {\n"
      "  let at = kiln_workgroup(group, groups);\n"
      "  if (at.x >= 2u || at.y >= 3u) { return; }\n"
      "  let i = (at.z * 3u + at.y) * 2u + at.x;\n"
      "  store_out(i, f32(at.x + 10u * at.y) + x[i]);\n"
      "}\n";
  const std::int64_t batch = 65536;
  const AnyTensor x =
      make(std::vector<float>(static_cast<std::size_t>(batch) * 6, 100), {batch, 3, 2});
  const std::vector<float> out = values(run(text, x, x, [](webgpu::Launch& l, const Operand&) {
    l.workgroup = {1, 1, 1};
    l.params.clear();
    l.grid = {2, 3, 65536};
  }));
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], 100 + static_cast<float>(i % 2 + 10 * (i / 2 % 3))) << i;
  }
}

TEST(WgslKernelContract, ParamsHaveNamesOfTheirOwn) {
  const auto with = [](LaunchParam p) {
    return [p](webgpu::Launch& l, const Operand&) { l.params.push_back(p); };
  };
  const std::string text = kernel("store_out(i, x[i]);");
  EXPECT_THAT(refusal(text, with({"count", 3})), HasSubstr("'count' is given twice"));
  EXPECT_THAT(refusal(text, with({"kiln_words", 3})), HasSubstr("are the library's"));
  static const Param stray{1};
  EXPECT_THAT(refusal(text, with({"stray", stray})), HasSubstr("a Param field of the operation"));
}

TEST(WgslKernelContract, HelpersOfTheLibraryAreThereWhenCalled) {
  const AnyTensor x = make<float>({-13.24F, 0.5F, NAN}, {3});
  const auto out = values(run(kernel("store_out(i, relu(x[i]) + sigmoid(x[i]) + silu(x[i]) + "
                                     "gelu(x[i]) + erf(x[i]));"),
                              x, x));
  EXPECT_NEAR(out[0], -1 - 13.24 / (1 + std::exp(13.24)), 1e-4);
  EXPECT_NEAR(
      out[1],
      0.5 + 1 / (1 + std::exp(-0.5)) * 1.5 + 0.25 * (1 + std::erf(0.5 / M_SQRT2)) + std::erf(0.5),
      1e-5);
  EXPECT_TRUE(std::isnan(out[2]));
}

TEST(WgslKernelContract, F16IsEnabledOnlyWhereADtypeNeedsIt) {
  // On a device without the feature such a kernel would not compile.
  const Device narrow = webgpu::device({.f16 = false});
  const AnyTensor x = make<float>({1, 2, 3}, {3}, narrow);
  EXPECT_THAT(values(run(kernel("store_out(i, x[i] + bias[i]);"), x, x)), ElementsAre(2, 4, 6));
  const AnyTensor half = make({1, 2, 3}, {3}, DType::f16, narrow);
  EXPECT_THAT(message_of<Error>([&] { (void)run(kernel("store_out(i, x[i]);"), half, half); }),
              AllOf(HasSubstr("custom"), HasSubstr("f16")));
}

TEST(WgslKernelContract, TheFirstErrorDoesNotSpoilWhatComesAfter) {
  (void)refusal(kernel("store_out(i, x[i] + ;"));
  EXPECT_THAT(values(run(kernel("store_out(i, x[i]);"))), ElementsAre(1, 2, 3));
  EXPECT_THAT(refusal(kernel("store_out(i, x[i] + ;")), Not(HasSubstr("lost")));
}

}  // namespace
}  // namespace kiln
