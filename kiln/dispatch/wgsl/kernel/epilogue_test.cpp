// Elementwise neighbours applied by the store of an operation's kernel.
#include "kiln/dispatch/wgsl/kernel/epilogue_test_support.hpp"

namespace kiln {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 2 x plus every input, in the way that elementwise kernels have it.
void expect_sum(const Kernel& kernel, const RawTensor& x, const std::vector<RawTensor>& inputs) {
  const FusedEpilogue epilogue{.body = body_of(static_cast<int>(inputs.size()) + 1,
                                               [](In in) -> Out {
                                                 Expr sum = in[0];
                                                 for (std::size_t i = 1; i < in.size(); ++i)
                                                   sum = sum + in[i];
                                                 return {sum};
                                               }),
                               .inputs = inputs,
                               .out = {x.dtype}};
  std::vector<double> expected = values(x);
  for (double& v : expected) v *= 2;
  for (const RawTensor& t : inputs) {
    const std::vector<double> more = broadcast_values(t, x.shape());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += more[i];
  }
  std::vector<RawTensor> out;
  const auto spent = counted([&] { out = run(kernel, x, epilogue); });
  EXPECT_EQ(spent.launches, 1U);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].spec(), x.spec());
  const std::vector<double> got = values(out[0]);
  test::expect_near(std::vector<float>(got.begin(), got.end()), expected,
                    test::tolerance_of(x.dtype), kernel.text);
}

TEST(FusedEpilogue, IsAppliedOnTheWayToMemory) {
  for (const Kernel& kernel : ways()) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const RawTensor x = make(wave(48), {2, 3, 8}, dtype);
      const auto ones = [&](const Shape& shape) {
        return make(wave(shape.elements(), 5), shape, dtype);
      };
      expect_sum(kernel, x, {});
      expect_sum(kernel, x, {ones({})});
      expect_sum(kernel, x, {ones({2, 3, 8})});
      expect_sum(kernel, x, {ones({8})});
      expect_sum(kernel, x, {ones({3, 1})});
      expect_sum(kernel, x, {ones({2, 1, 8})});
      expect_sum(kernel, x, {ones({2, 1, 1}), ones({8}), ones({1}), ones({2, 3, 8})});
    }
  }
}

TEST(FusedEpilogue, ReadsStridedInputsInPlace) {
  for (const Kernel& kernel : ways()) {
    const RawTensor x = make(wave(48), {6, 8});
    expect_sum(kernel, x, {transposed(wave(48, 3), 6, 8)});
    RawTensor part = make(wave(200, 4), {200});
    part.layout = {.shape = {6, 8}, .strides = {16, 2}, .offset = 3};
    expect_sum(kernel, x, {part, transposed(wave(48, 3), 6, 8)});
    part.layout = {.shape = {6, 8}, .strides = {8, 1}, .offset = 1};  // as dense, not aligned
    expect_sum(kernel, x, {part});
    part.layout = {.shape = {8}, .strides = {1}, .offset = 5};
    expect_sum(kernel, x, {part});
  }
}

TEST(FusedEpilogue, TakesRowsThatDoNotDivideByFour) {
  for (const Kernel& kernel :
       {Kernel{twice}, Kernel{twice_by_four}, Kernel{twice_in_vec4, in_vec4}}) {
    const RawTensor x = make(wave(28), {4, 7});
    expect_sum(kernel, x, {make(wave(7, 2), {7}), make(wave(4, 3), {4, 1})});
    expect_sum(kernel, x, {make(wave(28, 2), {4, 7})});
    const RawTensor cube = make(wave(60), {4, 5, 3});
    expect_sum(kernel, cube, {make(wave(5, 2), {5, 1})});  // steps along other axes, else alike
    expect_sum(kernel, cube, {make(wave(12, 2), {4, 1, 3})});
  }
}

TEST(FusedEpilogue, GivesEveryRootItsOwnOutput) {
  for (const Kernel& kernel : ways()) {
    const RawTensor x = make({1, -2, 3, -4, 5, -6, 7, -8}, {8});
    const FusedEpilogue epilogue{.body = body_of(1,
                                                 [](In in) -> Out {
                                                   return {in[0], in[0] > 0, relu(in[0]) + 0.5,
                                                           cast(in[0], DType::i32)};
                                                 }),
                                 .out = {DType::f32, DType::boolean, DType::f16, DType::i32}};
    const auto spent = counted([&] {
      const std::vector<RawTensor> out = run(kernel, x, epilogue);
      ASSERT_EQ(out.size(), 4U);
      EXPECT_EQ(out[1].spec(), (TensorSpec{{8}, DType::boolean}));
      EXPECT_THAT(values(out[0]), ElementsAre(2, -4, 6, -8, 10, -12, 14, -16))
          << "the value itself";
      EXPECT_THAT(values(out[1]), ElementsAre(1, 0, 1, 0, 1, 0, 1, 0));
      EXPECT_THAT(values(out[2]), ElementsAre(2.5, 0.5, 6.5, 0.5, 10.5, 0.5, 14.5, 0.5));
      EXPECT_THAT(client().read<std::int32_t>(out[3]), ElementsAre(2, -4, 6, -8, 10, -12, 14, -16));
    });
    EXPECT_EQ(spent.launches, 1U);
  }
}

TEST(FusedEpilogue, SeesTheValueAsItWouldHaveBeenStored) {
  const RawTensor x = make({1.0005F, 1}, {2}, DType::f16);
  const Kernel kernel{kernel_text("store_out(i, Elem(f32(x[i]) + 1024.3));")};
  const FusedEpilogue epilogue{
      .body = body_of(1, [](In in) -> Out { return {cast(in[0], DType::f32) - 1024.0}; }),
      .out = {DType::f32}};
  EXPECT_THAT(values(run(kernel, x, epilogue)[0]), Each(1)) << "an f16 has no fraction there";
}

TEST(FusedEpilogue, TakesBoolInputs) {
  const std::vector<std::uint32_t> flags{1, 0, 0, 1};
  RawTensor mask = client().create(std::span(flags), {4});
  mask.dtype = DType::boolean;
  for (const Kernel& kernel : ways()) {
    const FusedEpilogue epilogue{
        .body = body_of(2, [](In in) -> Out { return {select(in[1], in[0], Expr(0))}; }),
        .inputs = {mask},
        .out = {DType::f32}};
    EXPECT_THAT(values(run(kernel, make({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4}), epilogue)[0]),
                ElementsAre(2, 0, 0, 8, 10, 0, 0, 16));
  }
}

TEST(FusedEpilogue, ParamsAndPositionsCompileNothing) {
  static const Param by;
  static const Param add;
  const BodyPtr body =
      body_of(2, [](In in) -> Out { return {in[0] * Expr(by) + in[1] * Expr(add)}; }, {&by, &add});
  const RawTensor x = make({1, 2, 3, 4, 5, 6}, {3, 2});
  RawTensor bias = make({1, 2, 3, 4, 5, 6, 7, 8}, {8});
  const auto finished = [&](Kernel& kernel, double b, double a) {
    const FusedEpilogue epilogue{
        .body = body, .params = {b, a}, .inputs = {bias}, .out = {DType::f32}};
    return values(run(kernel, x, epilogue)[0]);
  };
  Kernel kernel{kernel_text("store_out(i, x[i] * params.factor);")};
  bias.layout = {.shape = {2}, .strides = {1}, .offset = 0};
  EXPECT_THAT(finished(kernel, 1, 10), ElementsAre(11, 22, 13, 24, 15, 26));
  const auto spent = counted([&] {
    EXPECT_THAT(finished(kernel, 2, 1), ElementsAre(3, 6, 7, 10, 11, 14));
    kernel.factor = 3;
    EXPECT_THAT(finished(kernel, 1, 1), ElementsAre(4, 8, 10, 14, 16, 20));
    bias.layout = {.shape = {2}, .strides = {3}, .offset = 2};
    EXPECT_THAT(finished(kernel, 1, 1), ElementsAre(6, 12, 12, 18, 18, 24));
  });
  EXPECT_EQ(spent.compiled, 0U);
  EXPECT_EQ(spent.launches, 3U);
}

TEST(FusedEpilogue, ShapesDoNotCompile) {
  const Kernel kernel{twice};
  const auto add_row = [&](std::int64_t rows, std::int64_t columns) {
    expect_sum(kernel, make(wave(rows * columns), {rows, columns}),
               {make(wave(columns, 1), {columns})});
  };
  add_row(2, 8);
  EXPECT_EQ(counted([&] { add_row(5, 12); }).compiled, 0U);
  EXPECT_EQ(counted([&] { add_row(3, 16); }).compiled, 0U);
}

TEST(FusedEpilogue, FollowsTheLaunchesOwnEpilogue) {
  const BodyPtr body =
      body_of(3, [](In in) -> Out { return {in[0], in[0] * in[1] + in[2], in[0] > 0}; });
  for (Kernel& kernel : ways()) {
    kernel.change = [inner = kernel.change](webgpu::Launch& l, const Operand& out) {
      inner(l, out);
      l.store = epilogue([](Expr value, Expr bias) { return relu(value + bias); }, {"bias"});
    };
    const RawTensor x = make({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
    RawTensor bias = make({-4, 1, 10, -20}, {4});
    bias.layout = bias.layout.broadcast_to({2, 4});
    const FusedEpilogue epilogue{.body = body,
                                 .inputs = {make({2, 3}, {2, 1}), make({100, 200, 300, 400}, {4})},
                                 .out = {DType::f32, DType::f32, DType::boolean}};
    const auto spent = counted([&] {
      const auto out = run(kernel, x, bias, &epilogue);
      EXPECT_THAT(values(out[0]), ElementsAre(0, 5, 16, 0, 6, 13, 24, 0));
      EXPECT_THAT(values(out[1]), ElementsAre(100, 210, 332, 400, 118, 239, 372, 400));
      EXPECT_THAT(values(out[2]), ElementsAre(0, 1, 1, 0, 1, 1, 1, 0));
    });
    EXPECT_EQ(spent.launches, 1U) << kernel.text;
  }
}

TEST(FusedEpilogue, SeesWhatTheEpilogueGivesRoundedToTheOutputsDtype) {
  Kernel kernel{kernel_text("store_out(i, x[i]);")};
  kernel.change = [](webgpu::Launch& l, const Operand&) {
    l.store = epilogue([](Expr value, Expr bias) { return value + bias; }, {"bias"});
  };
  const FusedEpilogue epilogue{
      .body = body_of(1, [](In in) -> Out { return {cast(in[0], DType::f32) - 2048.0}; }),
      .out = {DType::f32}};
  const RawTensor x = make({2048, 2048}, {2}, DType::f16);
  const RawTensor one = make({1, 3}, {2}, DType::f16);
  EXPECT_THAT(values(run(kernel, x, one, &epilogue)[0]), ElementsAre(0, 4)) << "2049 is no f16";
}

TEST(FusedEpilogue, MovesMetadataFromImmediatesToTheRing) {
  // The numbers of one strided input fit into the immediates of every adapter that has any, the 22
  // of five, which are as many as every adapter binds, into those of none.
  const std::uint32_t limit = device().runtime().limits().immediate_bytes;
  EXPECT_TRUE(limit == 0 || (limit >= 8 * 4 && limit < 22 * 4)) << limit;
  const RawTensor x = make(wave(24), {2, 3, 4});
  std::vector<RawTensor> inputs;
  for (int i = 0; i < 5; ++i) {
    RawTensor t = make(wave(24, i), {4, 3, 2});
    t.layout = {.shape = {2, 3, 4}, .strides = {1, 2, 6}, .offset = 0};
    inputs.push_back(t);
  }
  inputs.back().layout = {.shape = {2, 3, 4}, .strides = {12, 1, 3}, .offset = 0};
  const Kernel kernel{twice};
  expect_sum(kernel, x, {inputs[0]});
  expect_sum(kernel, x, inputs);
}

TEST(FusedEpilogue, ScratchAndItsInputsKeepTheirBindings) {
  const Kernel kernel{kernel_text("temp[i] = x[i] * 2;\n  store_out(i, temp[i]);"),
                      [](webgpu::Launch& l, const Operand& out) {
                        l.scratch = {{"temp", DType::f32, out.shape().elements()}};
                      }};
  expect_sum(kernel, make(wave(6), {2, 3}), {make(wave(3, 1), {3}), make(wave(2, 2), {2, 1})});
}

TEST(FusedEpilogue, LeavesMemoryBehindItsOutputsAlone) {
  for (const Kernel& kernel : ways()) {
    const RawTensor x = make(wave(12), {3, 4});
    const RawTensor row = make(wave(4), {4});
    const FusedEpilogue epilogue{
        .body = body_of(2, [](In in) -> Out { return {in[0] + in[1], in[0] > in[1]}; }),
        .inputs = {row},
        .out = {DType::f16, DType::boolean}};
    const dispatch::PoisonOutputs poison;
    (void)run(kernel, x, epilogue);
    ASSERT_EQ(poison.allocations().size(), 2U) << "the kernel's own array is not made";
    for (const auto& a : poison.allocations()) {
      const std::uint64_t bytes = dispatch::bytes_of(a.spec);
      const auto tail =
          device().runtime().read(a.buffer, bytes, dispatch::PoisonOutputs::canary_bytes).get();
      EXPECT_THAT(wgpu::values_of<std::uint32_t>(tail), Each(dispatch::PoisonOutputs::pattern));
    }
  }
}

TEST(FusedEpilogue, OfNothingIsNothing) {
  const RawTensor x = client().empty({{0, 3}, DType::f32});
  const FusedEpilogue epilogue{.body = body_of(1, [](In in) -> Out { return {in[0] > 0}; }),
                               .out = {DType::boolean}};
  const auto spent = counted([&] {
    EXPECT_EQ(run(Kernel{twice}, x, epilogue)[0].spec(), (TensorSpec{{0, 3}, DType::boolean}));
  });
  EXPECT_EQ(spent.launches, 0U);
}

TEST(FusedEpilogue, MustFitItsBodyAndTheResult) {
  const RawTensor x = make({1, 2}, {2});
  FusedEpilogue epilogue{.body = body_of(2, [](In in) -> Out { return {in[0] + in[1]}; }),
                         .out = {DType::f32}};
  EXPECT_THAT(message_of<KernelError>([&] { (void)run(Kernel{twice}, x, epilogue); }),
              AllOf(HasSubstr("custom"), HasSubstr("1 inputs"), HasSubstr("0 are given")));
  epilogue.inputs = {make({1, 2, 3}, {3})};
  EXPECT_THAT(message_of<ShapeError>([&] { (void)run(Kernel{twice}, x, epilogue); }),
              AllOf(HasSubstr("custom"), HasSubstr("[3]"), HasSubstr("[2]")));
}

}  // namespace
}  // namespace kiln
