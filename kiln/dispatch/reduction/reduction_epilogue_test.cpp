// What a reduction does to its results on their way out, against the host.
#include <array>

#include "kiln/dispatch/reduction/reduction_test_support.hpp"
#include "kiln/scalar/body_of_test.hpp"

namespace kiln {
namespace {

using dispatch::FusedEpilogue;
using dispatch::ReductionCall;
using test::axes_of;
using test::counted;
using test::Given;
using test::given_values;
using test::given_wave;
using test::message_of;
using test::out_of;
using test::turned;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// An epilogue, and the numbers of its inputs.
struct GivenFinish {
  BodyPtr body;
  std::vector<Given> inputs{};
  std::vector<DType> out{DType::f32};
  std::vector<double> params{};

  [[nodiscard]] FusedEpilogue epilogue() const {
    return {body, params, test::tensors_of(inputs), out};
  }
};

/// `values`: of the reduction alone, computed on the host.
void expect_finished(const ReductionCall& call, const std::vector<Given>& inputs,
                     const GivenFinish& given, const TensorSpec& value,
                     const std::vector<double>& values) {
  const FusedEpilogue epilogue = given.epilogue();
  const std::vector<RawTensor> results = test::run(call, inputs, value, &epilogue);
  ASSERT_EQ(results.size(), given.out.size());
  const auto given_operands = test::elements_of(given.inputs, value.shape);
  for (std::size_t r = 0; r < results.size(); ++r) {
    EXPECT_EQ(results[r].spec(), (TensorSpec{value.shape, given.out[r]}));
    std::vector<double> expected;
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<double> operands{values[i]};
      for (const auto& elements : given_operands) operands.push_back(elements[i]);
      const double finished = evaluate(*given.body, r, operands, given.params);
      expected.push_back(test::stored(finished, given.out[r]));
    }
    test::expect_near(test::numbers_of(results[r]), expected,
                      test::tolerance_of(call, given.out[r]), test::describe(call));
  }
}

void expect_finished(const ReductionCall& call, const std::vector<Given>& inputs,
                     const GivenFinish& given, const TensorSpec& value) {
  expect_finished(call, inputs, given, value, test::reduced_on_host(call, inputs, value.dtype));
}

void expect_finished(const ReductionCall& call, const std::vector<Given>& inputs,
                     const GivenFinish& given) {
  expect_finished(call, inputs, given, out_of(call));
}

/// value * y + p0, and the value itself.
BodyPtr scaled_and_plain() {
  const Param number;
  ExprGraph graph({&number});
  const Expr value = graph.input(0);
  return make_body(graph, 2, 1,
                   std::array{graph.place(value * graph.input(1) + number), value.id()});
}

const std::vector<DType> two_floats{DType::f32, DType::f32};

TEST(ReductionFinish, HasTwoRootsAndABroadcastOperandInBothKernelsAndTheirSplits) {
  const std::vector<std::pair<Shape, unsigned>> cases = {
      {{4, 6, 8}, 2},     {{4, 6, 8}, 1},    {{4, 6, 8}, 4},     {{3, 2, 20001}, 4},
      {{20001, 2, 3}, 1}, {{700, 3, 40}, 4}, {{2, 1000, 16}, 4}, {{5, 12000, 4}, 2}};
  for (const auto& [shape, axes] : cases) {
    const ReductionCall call{"r", {Combine::sum, axes_of(axes), 0.5}, shape};
    const std::vector<Given> inputs{given_wave(shape)};
    const TensorSpec value = out_of(call);
    const std::vector<double> values = test::reduced_on_host(call, inputs, value.dtype);
    const Shape& out = value.shape;
    for (const Given& operand :
         {given_wave({out[1]}, 5), given_wave({out[0], 1}, 6), given_wave(out, 7),
          given_wave({}, 8), turned(given_wave({out[1], out[0]}, 9), {1, 0})}) {
      const GivenFinish finish{scaled_and_plain(), {operand}, two_floats, {3}};
      expect_finished(call, inputs, finish, value, values);
    }
  }
}

TEST(ReductionFinish, GoesWithABodyOnTheWayIn) {
  const ReductionCall call{.op = "norm",
                           .reduction = {Combine::sum, axes_of(2)},
                           .shape = {9, 36},
                           .before = body_of([](const Expr& x) { return x * x; })};
  expect_finished(call, {given_wave({9, 36})}, {body_of([](const Expr& v) { return sqrt(v); })});
}

TEST(ReductionFinish, SeesTheValueAsItWouldHaveBeenStored) {
  const BodyPtr widen = body_of([](const Expr& v) { return cast(v, DType::f32); });
  const Given ones = turned(given_values({1}, {1, 1}, DType::f16), {0, 1});
  for (const Shape& shape : {Shape{1, 2049}, Shape{1, 60001}}) {
    Given wide = ones;
    wide.tensor.layout = ones.tensor.layout.broadcast_to(shape);
    const ReductionCall call{
        .op = "r", .reduction = {Combine::sum, axes_of(2)}, .shape = shape, .dtype = DType::f16};
    expect_finished(call, {wide}, {widen});
  }
}

TEST(ReductionFinish, OfAnIndexComparesWithLabels) {
  const ReductionCall call{"hits", {Combine::argmax, axes_of(2)}, {5, 40}};
  const BodyPtr equal = body_of([](const Expr& at, const Expr& label) { return at == label; });
  std::vector<double> x(200, 0);
  for (std::size_t row = 0; row < 5; ++row) x[row * 40 + 3 * row] = 1;
  const Given labels = given_values({0, 3, 5, 9, 39}, {5}, DType::i32);
  expect_finished(call, {given_values(x, {5, 40})}, {equal, {labels}, {DType::boolean}},
                  out_of(call, DType::i32));
}

TEST(ReductionFinish, KeepsReducedAxesOfTheResult) {
  const ReductionCall call{"r", {Combine::max, axes_of(2)}, {4, 10}};
  expect_finished(call, {given_wave({4, 10})},
                  {scaled_and_plain(), {given_wave({4, 1}, 2)}, two_floats, {1}},
                  {{4, 1}, DType::f32});
}

TEST(ReductionFinish, OfNothing) {
  const GivenFinish epilogue{scaled_and_plain(), {given_wave({3}, 2)}, two_floats, {1}};
  expect_finished({"r", {Combine::sum, axes_of(1)}, {0, 3}}, {given_values({}, {0, 3})}, epilogue);
  expect_finished({"r", {Combine::sum, axes_of(2)}, {0, 5, 3}}, {given_values({}, {0, 5, 3})},
                  epilogue);
}

TEST(ReductionFinish, AllocatesNoArrayForTheValue) {
  const auto allocated = [](const Shape& shape) {
    const ReductionCall call{"r", {Combine::sum, axes_of(2)}, shape};
    const Given x = given_wave(shape);
    const GivenFinish given{body_of([](const Expr& v) { return v + 1; })};
    const FusedEpilogue epilogue = given.epilogue();
    const dispatch::PoisonOutputs poison;
    (void)test::run(call, {x}, out_of(call), &epilogue);
    return poison.allocations().size();
  };
  EXPECT_EQ(allocated({5, 40}), 1U);
  EXPECT_EQ(allocated({1, 20001}), 2U) << "the parts, and the result";
}

TEST(ReductionFinish, NewNumbersCompileNothingAndAnotherFinishIsNotMixedUp) {
  const auto run = [](std::int64_t rows, double param) {
    expect_finished({"r", {Combine::sum, axes_of(2)}, {rows, 44}}, {given_wave({rows, 44})},
                    {scaled_and_plain(), {given_wave({rows}, 1)}, two_floats, {param}});
  };
  run(5, 1);
  EXPECT_EQ(counted([&] {
              run(5, 2);
              run(9, 3);
            }).compiled,
            0U);
  expect_finished(
      {"r", {Combine::sum, axes_of(2)}, {5, 44}}, {given_wave({5, 44})},
      {body_of([](const Expr& v, const Expr& y) { return v - y; }), {given_wave({5}, 1)}});
  test::expect_reduction({"r", {Combine::sum, axes_of(2)}, {5, 44}}, {given_wave({5, 44})});
}

TEST(ReductionFinish, SaysWhatDoesNotFit) {
  const ReductionCall call{"r", {Combine::sum, axes_of(2)}, {5, 44}};
  const auto refusal = [&](const GivenFinish& given) {
    return message_of<Error>([&] {
      const FusedEpilogue epilogue = given.epilogue();
      (void)test::run(call, {given_wave({5, 44})}, out_of(call), &epilogue);
    });
  };
  EXPECT_THAT(refusal({scaled_and_plain(), {given_wave({4})}, two_floats, {1}}),
              AllOf(HasSubstr("r: "), HasSubstr("[4]"), HasSubstr("[5]")));
  EXPECT_THAT(refusal({scaled_and_plain(), {}, two_floats, {1}}), HasSubstr("r: "));
}

RC_GTEST_PROP(ReductionFinish, AgreesWithTheHostWhateverTheShapes, ()) {
  const Shape shape = test::arbitrary_shape();
  const auto axes = axes_of(*rc::gen::inRange(0U, 1U << shape.size()));
  const ReductionCall call{
      .op = "r",
      .reduction = {*rc::gen::element(Combine::sum, Combine::max, Combine::min), axes},
      .shape = shape,
      .before = body_of([](const Expr& x, const Expr& y) { return x - y; })};
  const std::vector<Given> inputs{test::arbitrary_given(shape), test::arbitrary_given(shape)};
  const Given operand = test::arbitrary_given(out_of(call).shape);
  expect_finished(call, inputs, {scaled_and_plain(), {operand}, two_floats, {0.25}});
}

}  // namespace
}  // namespace kiln
