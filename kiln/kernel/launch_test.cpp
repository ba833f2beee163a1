#include "kiln/kernel/launch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

std::string epilogue_error(auto f, std::vector<std::string> inputs) {
  try {
    (void)epilogue(f, std::move(inputs));
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error";
}

TEST(Operand, SeesShapeStridesAndBatch) {
  const Operand x{.name = "lhs", .dtype = DType::f16, .layout = Layout::dense({2, 3, 4, 5})};
  EXPECT_EQ(x.rank(), 4);
  EXPECT_EQ(x.dim(-1), 5);
  EXPECT_EQ(x.stride(-2), 5);
  EXPECT_EQ(x.batch(), 6);
  EXPECT_EQ(x.spec(), (TensorSpec{{2, 3, 4, 5}, DType::f16}));
}

TEST(Operand, OfRankTwoOrLessIsOneBatch) {
  EXPECT_EQ((Operand{.layout = Layout::dense({4, 5})}.batch()), 1);
  EXPECT_EQ((Operand{.layout = Layout::dense({})}.batch()), 1);
  EXPECT_EQ((Operand{.layout = Layout::dense({0, 4, 5})}.batch()), 0);
}

TEST(Operand, AnAxisOutsideIsRefused) {
  const Operand x{.layout = Layout::dense({4, 5})};
  EXPECT_THROW((void)x.dim(-3), ShapeError);
  EXPECT_THROW((void)x.stride(-3), ShapeError);
}

TEST(CeilDiv, RoundsUp) {
  static_assert(ceil_div(0, 16) == 0);
  static_assert(ceil_div(1, 16) == 1);
  static_assert(ceil_div(16, 16) == 1);
  static_assert(ceil_div(17, 16) == 2);
}

TEST(LaunchParam, KeepsWhetherItIsASizeANumberOrAField) {
  const Param rate{0.1};
  const Shape shape{7};
  EXPECT_EQ(std::get<std::int64_t>(LaunchParam("m", shape[0]).value), 7);
  EXPECT_EQ(std::get<double>(LaunchParam("scale", 0.5).value), 0.5);
  EXPECT_EQ(std::get<const Param*>(LaunchParam("rate", rate).value), &rate);
  EXPECT_EQ(LaunchParam("m", shape[0]).name, "m");
  const Number half = 0.5;  // as fields of options are
  const Integer seven = 7;
  EXPECT_EQ(std::get<double>(LaunchParam("half", half).value), 0.5);
  EXPECT_EQ(std::get<std::int64_t>(LaunchParam("seven", seven).value), 7);
  EXPECT_EQ(std::get<double>(LaunchParam("one", float16(1.0F)).value), 1);
  // Its address is kept.
  static_assert(!std::is_constructible_v<LaunchParam, const char*, Param>);
}

TEST(LaunchParam, TakesAnyIntegerAsASize) {
  EXPECT_EQ(std::get<std::int64_t>(LaunchParam("tile", 16).value), 16);
  EXPECT_EQ(std::get<std::int64_t>(LaunchParam("tile", 16U).value), 16);
  EXPECT_EQ(std::get<std::int64_t>(LaunchParam("tile", Shape{1, 2, 3}.size()).value), 3);
  EXPECT_EQ(std::get<double>(LaunchParam("scale", 0.5F).value), 0.5);
}

TEST(Epilogue, IsTheBodyOfItsFunction) {
  const Epilogue chain =
      epilogue([](Expr value, Expr bias) { return relu(value + bias); }, {"bias"});
  EXPECT_EQ(chain.body->inputs, 2);
  EXPECT_EQ(chain.inputs, std::vector<std::string>{"bias"});
  EXPECT_EQ(evaluate(*chain.body, 0, std::array{1.0, 2.0}), 3);
  EXPECT_EQ(evaluate(*chain.body, 0, std::array{1.0, -2.0}), 0);
}

TEST(Epilogue, TakesFromNoneToSixInputs) {
  EXPECT_EQ(epilogue([](Expr v) { return exp(v); }, {}).body->inputs, 1);
  EXPECT_EQ(epilogue([](const Expr& v) { return v; }, {}).body->inputs, 1);
  const auto seven = [](Expr v, Expr, Expr, Expr, Expr, Expr, Expr last) { return v - last; };
  const Epilogue wide = epilogue(seven, {"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(wide.body->inputs, 7);
  EXPECT_EQ(evaluate(*wide.body, 0, std::array{9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0}), 7);
}

TEST(Epilogue, MayBeALiteral) {
  const Epilogue constant = epilogue([](Expr) { return Expr(2); }, {});
  EXPECT_EQ(evaluate(*constant.body, 0, std::array{9.0}), 2);
}

TEST(Epilogue, NeedsOneNameForEveryParameterButTheFirst) {
  const auto add = [](Expr value, Expr bias) { return value + bias; };
  EXPECT_EQ(
      epilogue_error(add, {}),
      "epilogue: a function of 2 expressions reads 1 inputs beside the value, but 0 are named");
  EXPECT_EQ(
      epilogue_error(add, {"a", "b"}),
      "epilogue: a function of 2 expressions reads 1 inputs beside the value, but 2 are named");
  EXPECT_EQ(epilogue_error(add, {"a"}), "no Error");
}

TEST(Launch, HasTheDefaultsOfAPlainKernel) {
  const webgpu::Launch launch{.source = KernelSource::wgsl("x")};
  EXPECT_EQ(launch.workgroup, (std::array<std::uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(launch.grid, (std::array<std::int64_t, 3>{1, 1, 1}));
  EXPECT_EQ(launch.access, OutputAccess::write);
  EXPECT_FALSE(launch.strided);
  EXPECT_FALSE(launch.zeroed);
  EXPECT_FALSE(launch.trusted);
  EXPECT_TRUE(launch.declined.empty());
}

TEST(Launch, DeclinesWithAReason) {
  EXPECT_EQ(webgpu::Launch::decline("k must be a multiple of 4").declined,
            "k must be a multiple of 4");
}

}  // namespace
}  // namespace kiln
