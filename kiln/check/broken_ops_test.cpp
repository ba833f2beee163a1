/// check_op must find what is wrong, and say where.
#include "kiln/check/broken_ops_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kiln/runtime/webgpu/webgpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln::broken {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

const CheckCase matrices{"matrices", {{5, 7}, {7, 6}, {5, 6}}, 7};
const CheckCase square{"square", {{6, 6}, {6, 6}, {6, 6}}, 6};
const CheckCase broadcast_lhs{"broadcast lhs", {{1, 5, 7}, {3, 7, 6}, {3, 5, 6}}, 7};

class BrokenOps : public testing::Test {
 protected:
  template <class Op>
  void check(const Op& op, std::vector<CheckCase> cases, DType dtype = DType::f32) {
    report_ = check_op(op, {.devices = {device_},
                            .cases = std::move(cases),
                            .dtypes = {dtype},
                            .difference_samples = 2});
    EXPECT_FALSE(report_.passed());
  }

  CheckRow row(const std::string& name) const {
    const auto at = std::ranges::find(report_.rows, name, &CheckRow::name);
    EXPECT_NE(at, report_.rows.end()) << name << " is no row of\n" << report_.table();
    return at == report_.rows.end() ? CheckRow{} : *at;
  }
  void expect_fails(const std::string& name, const testing::Matcher<std::string>& detail) const {
    const CheckRow found = row(name);
    EXPECT_FALSE(found.pass) << report_.table();
    EXPECT_THAT(found.detail, detail);
  }
  void expect_passes(const std::string& name) const {
    EXPECT_TRUE(row(name).pass) << report_.table();
  }

  Device device_ = webgpu::device();
  CheckReport report_;
};

TEST_F(BrokenOps, AZeroGradientIsFoundByReferenceAndByDifferences) {
  check(ZeroGradient{}, {square});
  expect_fails("grad rhs vs reference, f32",
               AllOf(HasSubstr("square: rhs tracked alone: rhs["), ContainsRegex("got -?0,")));
  expect_fails("grad rhs vs finite differences, f32",
               AllOf(HasSubstr("square: rhs["), ContainsRegex("got -?0,")));
  expect_passes("grad lhs vs reference, f32");
  expect_passes("grad lhs vs finite differences, f32");
  expect_passes("forward vs reference, f32");
}

TEST_F(BrokenOps, SwappedSlotsAreFoundWhereShapesHideThem) {
  check(SlotsSwapped{}, {square});
  expect_fails("grad lhs vs reference, f32", HasSubstr("square: lhs tracked alone: lhs["));
  expect_fails("grad rhs vs reference, f32", HasSubstr("square: rhs tracked alone: rhs["));
  expect_passes("grad bias vs reference, f32");
}

TEST_F(BrokenOps, AGradientOfTheWrongShapeIsLaidToItsInputAlone) {
  check(WrongGradientShape{}, {matrices, broadcast_lhs});
  expect_fails("grad lhs vs reference, f32",
               AllOf(HasSubstr("broadcast lhs: "), HasSubstr("gradient of input 'lhs'"),
                     HasSubstr("[3, 5, 7]")));
  expect_passes("grad rhs vs reference, f32");
  expect_passes("grad rhs from strided inputs, f32");
  expect_passes("grad bias vs reference, f32");
}

TEST_F(BrokenOps, AGradientNotSummedOverItsBatchIsFound) {
  check(FirstBatchOnly{}, {matrices, broadcast_lhs});
  expect_fails("grad lhs vs reference, f32", HasSubstr("broadcast lhs"));
  expect_passes("grad rhs vs reference, f32");
}

TEST_F(BrokenOps, ALostNanIsFoundInItsOwnRow) {
  check(LostNan{}, {matrices});
  expect_fails("forward with a NaN, f32",
               AllOf(HasSubstr("NaN at "), HasSubstr("expected nan, got 0")));
  expect_passes("forward vs reference, f32");
  expect_passes("forward from strided inputs, f32");
}

TEST_F(BrokenOps, IgnoredStridesAreLaidToTheInput) {
  check(StridesIgnored{}, {matrices});
  expect_fails("forward from strided inputs, f32", HasSubstr("matrices: lhs as a "));
  expect_passes("forward vs reference, f32");
  expect_passes("forward memory, f32");
}

TEST_F(BrokenOps, AnUnwrittenTileIsFoundAtItsFirstElement) {
  check(LastTileUnwritten{}, {matrices});
  expect_fails("forward memory, f32", HasSubstr("matrices: out[4, 0] was never written"));
  expect_fails("forward vs reference, f32", HasSubstr("out[4, 0]"));
  check(LastTileUnwritten{}, {matrices}, DType::f16);
  expect_fails("forward memory, f16", HasSubstr("matrices: out[4, 0] was never written"));
}

TEST_F(BrokenOps, AWriteOutsideIsFoundThoughAllValuesAreRight) {
  check(WritesOutside{}, {matrices});
  expect_fails("forward memory, f32", AllOf(HasSubstr("written outside of f32 [5, 6]"),
                                            HasSubstr("at element 30, 1 past the last")));
  expect_passes("forward vs reference, f32");
}

TEST_F(BrokenOps, AWriteOutsideIsFoundWhereACopyReadsOutsideToo) {
  check(ByHand<CopiesTooMuch>{}, {{"flat", {{3, 5}}}});
  expect_fails("forward memory, f32", HasSubstr("written outside of f32 [3, 5]"));
  expect_passes("forward vs reference, f32");
}

TEST_F(BrokenOps, AResultThatIsNotWhatTheRulePromisesIsFound) {
  const CheckCase flat{"flat", {{3, 5}}};
  check(ByHand<OtherShape>{}, {flat});
  expect_fails("forward output rule, f32", AllOf(HasSubstr("f32 [3, 5]"), HasSubstr("f32 [15]")));
  check(ByHand<OtherDtype>{}, {flat});
  expect_fails("forward output rule, f32", AllOf(HasSubstr("f32 [3, 5]"), HasSubstr("i32 [3, 5]")));
}

TEST_F(BrokenOps, ARuleWithAnotherDtypeThanTheReferenceIsFound) {
  check(WrongRuleDtype{}, {matrices}, DType::f16);
  expect_fails("forward output rule, f16",
               AllOf(HasSubstr("out is f32 [5, 6]"), HasSubstr("the reference's is f16 [5, 6]")));
}

TEST_F(BrokenOps, ASaveThatKeepsTheWrongTensorIsFound) {
  check(KeepsBiasForOut{}, {matrices});
  for (const char* input : {"lhs", "rhs", "bias"}) {
    expect_fails(std::string("grad ") + input + " vs reference, f32", HasSubstr("matrices: "));
  }
  expect_passes("forward vs reference, f32");
}

TEST_F(BrokenOps, ASaveThatForgetsWhatALoneInputNeedsIsFound) {
  check(KeepsForItself{}, {matrices});
  expect_fails("grad lhs vs reference, f32",
               AllOf(HasSubstr("lhs tracked alone"), HasSubstr("not kept")));
  expect_fails("grad rhs vs reference, f32",
               AllOf(HasSubstr("rhs tracked alone"), HasSubstr("not kept")));
  expect_passes("grad bias vs reference, f32");
}

TEST_F(BrokenOps, AChangedInputIsFound) {
  check(ByHand<ChangesInput>{}, {{"flat", {{3, 5}}}});
  expect_fails("forward memory, f32",
               AllOf(HasSubstr("input x[0, 2] was changed"), HasSubstr("to 9")));
  expect_passes("forward vs reference, f32");
}

TEST_F(BrokenOps, IgnoredStridesOfTheIncomingGradientAreFound) {
  check(Negate{}, {{"flat", {{3, 5}}}});
  expect_fails("grad x from strided inputs, f32", HasSubstr("flat: the incoming gradient as a "));
  expect_passes("grad x vs reference, f32");
  expect_passes("forward from strided inputs, f32");
}

TEST_F(BrokenOps, AFaultThatTheReferenceSharesIsFoundOnAnotherRuntime) {
  check(SharedFault{}, {{"flat", {{3, 5}}}});
  expect_fails("forward vs reference, f32", HasSubstr("flat: out["));
  const CheckOptions blind{.devices = {device_},
                           .cases = {{"flat", {{3, 5}}}},
                           .dtypes = {DType::f32},
                           .reference_device = device_};
  const CheckReport unseen = check_op(SharedFault{}, blind);
  EXPECT_TRUE(unseen.rows.at(0).pass) << unseen.table();
  EXPECT_THAT(unseen.notes, testing::Contains(HasSubstr("would not show")));
}

TEST_F(BrokenOps, AParamThatAGradientForgetsIsFoundAtAnotherValue) {
  check(ForgetsParam{{2}}, {{"flat", {{3, 5}}}});
  expect_fails("grad x with other attributes, f32", HasSubstr("flat: Param 0 is another: x["));
  expect_passes("grad x vs reference, f32");
  expect_passes("forward with other attributes, f32");
}

TEST_F(BrokenOps, AParamInARuleThatRunsOnceIsFound) {
  check(BakesParam{{2}}, {{"flat", {{3, 5}}}});
  expect_fails("forward vs reference, f32",
               AllOf(HasSubstr("bakes_param: rule 'webgpu_kernel' reads the value of a Param"),
                     HasSubstr("is kept for every value")));
}

TEST_F(BrokenOps, AnAttributeThatAGradientForgetsIsFoundWhereItVaries) {
  const CheckOptions options{
      .devices = {device_}, .cases = {{"flat", {{4, 6}}}}, .dtypes = {DType::f32}};
  EXPECT_TRUE(check_op(ForgetsAttribute{0}, options).passed());
  report_ = check_op(ForgetsAttribute{0}, options, {ForgetsAttribute{1}});
  expect_fails("grad x with other attributes, f32", HasSubstr("flat: attributes 1: x["));
  expect_passes("forward with other attributes, f32");
}

TEST_F(BrokenOps, ARefusalThatComesWhenSomebodyReadsIsFound) {
  const CheckOptions options{.devices = {device_},
                             .cases = {{"flat", {{3, 5}, {3, 5}}}},
                             .dtypes = {DType::f32},
                             .refused = {{"other shapes", {{3, 5}, {3, 4}}}}};
  report_ = check_op(RefusesLate{}, options);
  expect_fails("refusals, f32", AllOf(HasSubstr("other shapes: queued: was refused when the result "
                                                "was read, not in the call"),
                                      HasSubstr("x and y must have one shape")));
  expect_passes("forward vs reference, f32");
}

TEST_F(BrokenOps, ARefusalThatOnlyTheRuleGivesIsFound) {
  const auto run = [](std::span<const AnyTensor> in) { return std::vector{in[0] * 1.0}; };
  report_ = check_function({.name = "lenient",
                            .inputs = {"x", "y"},
                            .run = run,
                            .reference = run,
                            .output =
                                [](std::span<const TensorSpec> in) {
                                  if (in[0] != in[1])
                                    throw ShapeError("lenient: x and y must be alike");
                                  return std::vector{in[0]};
                                }},
                           {.devices = {device_},
                            .cases = {{"flat", {{3, 5}, {3, 5}}}},
                            .dtypes = {DType::f32},
                            .refused = {{"other shapes", {{3, 5}, {3, 4}}}}});
  expect_fails("refusals, f32", HasSubstr("other shapes: queued: was not refused"));
}

TEST_F(BrokenOps, AResultThatCannotBeComputedAgainIsFoundByCheckpointing) {
  check(Unrepeatable{}, {{"flat", {{3, 5}}}});
  expect_fails("grad x checkpointing, f32", HasSubstr("flat: balanced, against keep: x["));
  expect_passes("grad x vs reference, f32");
}

TEST_F(BrokenOps, AResultThatIsAnotherWhereItIsQueuedIsFound) {
  report_ = check_function(
      {.name = "moody",
       .inputs = {"x"},
       .run =
           [](std::span<const AnyTensor> in) {
             return std::vector{in[0] * (in[0].device().is_eager() ? 2.0 : 3.0)};
           },
       .reference = [](std::span<const AnyTensor> in) { return std::vector{in[0] * 3.0}; }},
      {.devices = {device_.lazy()}, .cases = {{"flat", {{3, 5}}}}, .dtypes = {DType::f32}});
  expect_fails("forward lazy vs eager, f32", HasSubstr("flat: out["));
}

}  // namespace
}  // namespace kiln::broken
