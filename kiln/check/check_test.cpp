#include "kiln/check/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kiln/check/broken_ops_test.hpp"
#include "kiln/check/reference.hpp"
#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/create/create.hpp"
#include "kiln/ops/gather/gather.hpp"
#include "kiln/runtime/webgpu/webgpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Device& adapter() {
  static const Device device = webgpu::device();
  return device;
}

struct Silu {
  static constexpr std::string_view name = "silu";
  static Expr body(Expr x) { return x * sigmoid(x); }
};

struct Abs {
  static constexpr std::string_view name = "abs";
  static Expr body(Expr x) { return abs(x); }
};

struct Scaled {
  static constexpr std::string_view name = "scaled";
  static constexpr std::array inputs = {"x", "y"};
  Param by;
  [[nodiscard]] Expr body(Expr x, Expr y) const { return relu(x * by) - y; }
};

template <class T>
struct Both {
  T doubled;
  T next;
};

struct TwoResults {
  static constexpr std::string_view name = "two_results";
  static constexpr std::array inputs = {"x"};
  static constexpr std::array outputs = {"doubled", "next"};
  using layers = Layers<Default<Autodiff>, Default<Cube>, Fusion>;
  static Both<TensorSpec> output(const TensorSpec& x) { return {x, x}; }
  static Both<AnyTensor> reference(const AnyTensor& x) { return {x * 2.0, x + 1.0}; }
};

TEST(CheckOp, PassesARightKernelInAllCasesAndDtypes) {
  const CheckReport report =
      check_op(broken::Right{}, {.devices = {adapter()}, .cases = matmul_cases()});
  EXPECT_TRUE(report.passed()) << report.table();
  for (const CheckRow& row : report.rows) {
    EXPECT_TRUE(std::isfinite(row.max_abs) && std::isfinite(row.max_rel)) << row.name;
  }
  EXPECT_THAT(report.table(), HasSubstr("grad lhs vs finite differences, f16"));
}

TEST(CheckOp, ComparesAnElementwiseBodyWithTheHost) {
  const CheckReport one = check_op(Silu{}, {.devices = {adapter()}, .cases = elementwise_cases(1)});
  EXPECT_TRUE(one.passed()) << one.table();
  const CheckReport two =
      check_op(Scaled{{-3}}, {.devices = {adapter()}, .cases = elementwise_cases(2)});
  EXPECT_TRUE(two.passed()) << two.table();
}

TEST(CheckOp, TakesAReferenceThatStandsElsewhere) {
  const CheckOptions options{
      .devices = {adapter()}, .cases = {{"odd", {{3, 5}}}}, .dtypes = {DType::f32}};
  EXPECT_TRUE(
      check_op(Silu{}, [](const AnyTensor& x) { return x * sigmoid(x); }, options).passed());
  const CheckReport wrong =
      check_op(Silu{}, [](const AnyTensor& x) { return sigmoid(x); }, options);
  EXPECT_FALSE(wrong.rows.at(0).pass);
  EXPECT_THAT(wrong.rows.at(0).detail, StartsWith("odd: out["));
  EXPECT_THAT(wrong.table(), HasSubstr("FAILED"));
}

TEST(CheckOp, LooksAtAllResults) {
  const CheckReport report =
      check_op(TwoResults{}, {.devices = {adapter()}, .cases = {{"odd", {{3, 5}}}}});
  EXPECT_TRUE(report.passed()) << report.table();
  EXPECT_EQ(report.rows.at(0).compared, 60);  // two results of 15, plain and tracked
}

TEST(CheckOp, ChecksAPublicFunctionWithIndices) {
  const auto run = [](std::span<const AnyTensor> in) {
    return std::vector{gather(in[0], 0, in[1])};
  };
  // Row k where the index is k, and nothing elsewhere.
  const auto reference = [](std::span<const AnyTensor> in) {
    const AnyTensor rows = reshape(arange(in[0].dim(0), DType::i32, in[0].device()), {1, -1, 1});
    const AnyTensor chosen = equal(unsqueeze(in[1], 1), rows);
    return std::vector{sum(where(chosen, unsqueeze(in[0], 0), zeros({}, in[0].device())), 1)};
  };
  const CheckOptions options{.devices = {adapter()},
                             .cases = {{"rows", {{5, 3}, {4, 3}}}},
                             .dtypes = {DType::f32},
                             .inputs = {{}, {0, 5, DType::i32}}};
  const CheckReport report = check_function(
      {.name = "gather", .inputs = {"x", "at"}, .run = run, .reference = reference}, options);
  EXPECT_TRUE(report.passed()) << report.table();
  EXPECT_THAT(report.table(), testing::Not(HasSubstr("grad at")));
}

TEST(CheckOp, TellsWhatItIsAt) {
  std::vector<std::string> told;
  const CheckOptions options{.devices = {adapter()},
                             .cases = {{"odd", {{7}}}, {"even", {{8}}}},
                             .dtypes = {DType::f32},
                             .gradients = false,
                             .progress = [&](const CheckProgress& at) {
                               told.push_back(std::string(at.op) + " " + std::string(at.test_case) +
                                              " " + std::to_string(at.done) + "/" +
                                              std::to_string(at.total));
                             }};
  (void)check_op(Silu{}, options);
  EXPECT_THAT(told, testing::ElementsAre("silu odd 0/2", "silu even 1/2"));
}

TEST(CheckOp, TellsOfADevicesLimitOnTheRoundsOfLoops) {
  const CheckReport report =
      check_op(Silu{}, {.devices = {adapter()}, .cases = {{"odd", {{7}}}}, .dtypes = {DType::f32}});
  const std::uint32_t rounds = adapter().limits().loop_rounds;
  const auto told = testing::Contains(HasSubstr(std::to_string(rounds) + " rounds"));
  if (rounds > 0) {
    EXPECT_THAT(report.notes, told);
  } else {
    EXPECT_THAT(report.notes, testing::Not(told));
  }
}

TEST(CheckOp, VariesEveryParam) {
  const CheckReport report =
      check_op(Scaled{{-3}},
               {.devices = {adapter()}, .cases = {{"odd", {{7}, {7}}}}, .dtypes = {DType::f32}});
  EXPECT_TRUE(report.passed()) << report.table();
  EXPECT_THAT(report.table(), HasSubstr("forward with other attributes, f32"));
}

TEST(CheckOp, NamesTheAdapterWhereThereAreSeveral) {
  const CheckReport report = check_op(Silu{}, {.devices = {adapter(), adapter()},
                                               .cases = {{"odd", {{7}}}},
                                               .dtypes = {DType::f32},
                                               .gradients = false});
  EXPECT_THAT(report.rows.at(0).name,
              StartsWith("forward vs reference, f32 on " + adapter().adapter()));
}

TEST(CheckOp, DoesNotPassWhereNothingIsCompared) {
  const CheckReport report = check_op(
      Silu{}, {.devices = {adapter()}, .cases = {{"empty", {{0}}}}, .dtypes = {DType::f32}});
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(report.rows.at(0).detail, HasSubstr("nothing was compared"));
}

TEST(CheckOp, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW((void)check_op(Silu{}, {.cases = elementwise_cases(1)}), Error);
  EXPECT_THROW((void)check_op(Silu{}, {.devices = {adapter()}}), Error);
  EXPECT_THROW((void)check_op(Silu{}, {.devices = {adapter()}, .cases = elementwise_cases(2)}),
               Error);
}

TEST(Differences, StayAwayFromKinks) {
  const check::Reference reference = check::make_reference(check::erase(Abs{}), adapter());
  const check::HostArray x{{{5}, DType::f32}, {-1, 0, 0.003, -0.01, 2}};
  const check::HostArray seeds{{{5}, DType::f32}, {1, 1, 1, 1, 3}};
  const check::Slopes slopes = check::differences(reference, {x}, {seeds}, 0, 5, 1);
  EXPECT_THAT(slopes.elements, testing::UnorderedElementsAre(0, 4));
  for (std::size_t i = 0; i < slopes.elements.size(); ++i) {
    EXPECT_NEAR(slopes.values[i], slopes.elements[i] == 0 ? -1 : 3, 1e-5);
  }
}

TEST(Compare, LetsANanAgreeWithNothingElse) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto one = [](double value) { return check::HostArray{{{1}, DType::f32}, {value}}; };
  EXPECT_TRUE(check::compare(one(nan), one(nan), {}).pass());
  EXPECT_FALSE(check::compare(one(nan), one(0), {1, 1}).pass());
  EXPECT_FALSE(check::compare(one(0), one(nan), {1, 1}).pass());
  EXPECT_TRUE(check::compare(one(1.5), one(1), {0, 0.5}).pass());
  EXPECT_FALSE(check::compare(one(1.6), one(1), {0, 0.5}).pass());
}

TEST(MatmulCases, HaveTheRankAskedFor) {
  for (const CheckCase& c : matmul_cases(true, 3)) {
    for (const Shape& shape : c.inputs) EXPECT_EQ(shape.rank(), 3) << c.name;
  }
  EXPECT_EQ(matmul_cases(false).front().inputs.size(), 2U);
}

}  // namespace
}  // namespace kiln
