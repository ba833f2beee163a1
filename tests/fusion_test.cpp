// What becomes of ordinary code when it runs queued: which launches, and the same values.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/queued.hpp"

namespace kiln {
namespace {

using queued::drained;
using queued::input;
using queued::lazy;
using test::make;
using test::make_wave;
using test::values;
using ::testing::ElementsAre;

template <class F>
void expect_same_as_eager(F f, std::vector<AnyTensor> in, double tolerance = 2e-5) {
  queued::expect_same_as_eager(f, std::move(in), {}, tolerance);
}

TEST(Fusion, ABiasAndAReluGoIntoTheMatrixProduct) {
  const AnyTensor a = input({2, 33, 20});
  const AnyTensor b = input({2, 20, 24}, 1);
  for (const Shape& bias : {Shape{2, 33, 24}, Shape{24}, Shape{33, 1}, Shape{1}}) {
    const AnyTensor c = input(bias, 2);
    const DrainReport report = drained([&] { return relu(matmul(a, b) + c); });
    EXPECT_EQ(report.launches, 1U) << to_string(bias);
    ASSERT_EQ(report.blocks.size(), 1U);
    EXPECT_EQ(report.blocks[0].kind, BlockReport::Kind::kernel);
    EXPECT_THAT(report.blocks[0].ops, ElementsAre("matmul", "add", "relu"));
    expect_same_as_eager(
        [](const std::vector<AnyTensor>& t) { return relu(matmul(t[0], t[1]) + t[2]); }, {a, b, c});
  }
}

TEST(Fusion, AProductThatSomebodyElseReadsIsStoredBesides) {
  const AnyTensor a = input({8, 8});
  AnyTensor product;
  const DrainReport report = drained([&] {
    product = matmul(a, a);
    return tanh(product);
  });
  EXPECT_EQ(report.launches, 1U);
  EXPECT_EQ(report.blocks[0].bytes_written, 2 * 64 * 4U);
  test::expect_near(values(product), test::doubles(values(matmul(a, a))), 1e-6);
}

TEST(Fusion, OfTwoProductsOneTakesTheSum) {
  const AnyTensor a = input({16, 16});
  const AnyTensor b = input({16, 16}, 1);
  const DrainReport report = drained([&] { return sigmoid(matmul(a, b) + matmul(b, a)); });
  EXPECT_EQ(report.launches, 2U);
  expect_same_as_eager(
      [](const std::vector<AnyTensor>& t) {
        return sigmoid(matmul(t[0], t[1]) + matmul(t[1], t[0]));
      },
      {a, b});
}

TEST(Fusion, CompositesAreFewLaunches) {
  const AnyTensor x = input({6, 50});
  const AnyTensor w = input({50}, 1);
  const AnyTensor b = input({50}, 2);
  EXPECT_EQ(drained([&] { return softmax(x, 1); }).launches, 1U);
  EXPECT_EQ(drained([&] { return log_softmax(x, 1); }).launches, 1U);
  EXPECT_EQ(drained([&] { return layer_norm(x, w, b); }).launches, 1U);
  EXPECT_EQ(drained([&] { return mse(x, x * 0.5); }).launches, 1U);
  expect_same_as_eager([](const std::vector<AnyTensor>& t) { return softmax(t[0], 0); }, {x});
  expect_same_as_eager([](const std::vector<AnyTensor>& t) { return layer_norm(t[0], t[1], t[2]); },
                       {x, w, b});
  expect_same_as_eager([](const std::vector<AnyTensor>& t) { return mse(t[0], t[0] * 0.5); }, {x});
}

TEST(Fusion, NothingIsStoredBetweenAnElementwiseOperationAndASum) {
  const AnyTensor x = input({64, 32});
  const DrainReport report = drained([&] { return sqrt(sum(x * x, 1) + 1.0); });
  ASSERT_EQ(report.blocks.size(), 1U);
  EXPECT_THAT(report.blocks[0].ops, ElementsAre("mul", "sum", "add", "sqrt"));
  EXPECT_EQ(report.blocks[0].bytes_read, 64 * 32 * 4U);
  EXPECT_EQ(report.blocks[0].bytes_written, 64 * 4U);
}

TEST(Fusion, TheReportSaysItAsTextAndAsAGraph) {
  const AnyTensor x = input({8, 8});
  const DrainReport report = drained([&] { return matmul(matmul(x, x), x) + 1.0; });
  ASSERT_EQ(report.blocks.size(), 2U);
  EXPECT_THAT(report.blocks[1].after, ElementsAre(0U));
  EXPECT_THAT(to_table(report), ::testing::HasSubstr("matmul + add"));
  EXPECT_THAT(to_dot(report), ::testing::HasSubstr("b0 -> b1"));
}

/// A kernel of a user's own, which counts on from each element; `how` says what its launch is like.
enum class How : std::uint8_t { stores, zeroes, reads_back };
struct Counted {
  static constexpr std::string_view name = "counted";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  How how;

  static TensorSpec output(const TensorSpec& x) { return x; }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand& out) const {
    const bool reads = how == How::reads_back;
    return {.source = KernelSource::wgsl("{{ bindings }}\n"
                                         "@compute @workgroup_size({{ workgroup_size_x }})\n"
                                         "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
                                         "  if (at.x >= params.n) { return; }\n"
                                         "  store_out(at.x, x[at.x] + Elem(at.x));\n}\n"),
            .params = {{"n", x.shape().elements()}},
            .grid = {ceil_div(out.shape().elements(), 64), 1, 1},
            .access = reads ? OutputAccess::read_write : OutputAccess::write,
            .zeroed = how == How::zeroes};
  }
};
static_assert(Extension<Counted>);

TEST(WgslFusion, AUsersKernelTakesItsElementwiseNeighbours) {
  const AnyTensor x = input({4, 3});
  const AnyTensor row = input({3}, 1);
  const auto f = [](const std::vector<AnyTensor>& t) {
    return tanh(apply(Counted{How::stores}, t[0]) * t[1]) - 1.0;
  };
  const DrainReport report = drained([&] { return f({x, row}); });
  ASSERT_EQ(report.blocks.size(), 1U);
  EXPECT_THAT(report.blocks[0].ops, ElementsAre("counted", "mul", "tanh", "sub"));
  EXPECT_EQ(report.launches, 1U);
  expect_same_as_eager(f, {x, row});
}

TEST(WgslFusion, AKernelWhoseStoreIsNotAllStaysByItself) {
  const AnyTensor x = input({12});
  for (const How how : {How::zeroes, How::reads_back}) {
    const auto f = [&](const std::vector<AnyTensor>& t) { return apply(Counted{how}, t[0]) * 2.0; };
    EXPECT_EQ(drained([&] { return f({x}); }).blocks.size(), 2U);
    expect_same_as_eager(f, {x});
  }
}

TEST(WgslFusion, ANeighbourOfAnotherShapeOrOrderStaysOutside) {
  const AnyTensor x = input({4, 3});
  const auto f = [](const std::vector<AnyTensor>& t) {
    return transpose(apply(Counted{How::stores}, t[0])) + t[1];
  };
  const AnyTensor other = input({3, 4}, 1);
  EXPECT_EQ(drained([&] { return f({x, other}); }).blocks.size(), 2U);
  expect_same_as_eager(f, {x, other});
}

TEST(Fusion, WhatOnlyAnUnusedSlopeReadsIsLeftOut) {
  const Device device = lazy().autodiff();
  const AnyTensor x = make_wave({3}, 0, DType::f32, device).require_grad();
  // The gradient of the first operand is 0 whatever comes in.
  const AnyTensor y = relu_backward(x, make_wave({3, 3}, 1, DType::f32, device));
  const AnyTensor power = pow(y, y);
  const std::array outs{
      layer_norm(power, input({3}, 2), input({3}, 3)),
      matmul(y, power),
  };
  const std::array seeds{input({3, 3}, 4), input({3, 3}, 5)};
  EXPECT_THAT(values(vjp(outs, seeds).of(x)), ElementsAre(0, 0, 0));
}

/// A random program: a few tensors, each made from earlier ones.
class Program {
 public:
  explicit Program(const std::vector<AnyTensor>& inputs) : tensors_(inputs) {}

  void step(int kind, int a, int b) {
    const AnyTensor x = pick(a);
    switch (kind) {
      case 0:
        return add(x + like(pick(b), x));
      case 1:
        return add(x * like(pick(b), x));
      case 2:
        return add(maximum(x, like(pick(b), x)));
      case 3:
        return add(tanh(x));
      case 4:
        return add(where(greater(x, like(pick(b), x)), x, x * 0.5));
      case 5:
        return add(relu(x - 0.25));
      case 6:
        return add(cast(cast(x, DType::f16), x.dtype()));
      case 7:
        return add(transpose(x));
      case 8:
        return add(mean(x, 0, true));
      case 9:
        return add(sum(x * 0.1, -1, true));
      case 10:
        return add(x - max(x, 1, true));
      case 11:
        return add(cast(x, x.dtype() == DType::f32 ? DType::f16 : DType::f32));
      case 12:
        return add(slice(x, 0, 0, std::max<std::int64_t>(1, x.dim(0) - 1)));
      default:
        return add(tanh(matmul(x, transpose(x))));
    }
  }

  [[nodiscard]] const std::vector<AnyTensor>& tensors() const { return tensors_; }

 private:
  AnyTensor pick(int i) const { return tensors_[static_cast<std::size_t>(i) % tensors_.size()]; }

  /// `x` if it goes with `other`, else one number of it.
  static AnyTensor like(AnyTensor x, const AnyTensor& other) {
    if (x.dtype() != other.dtype()) x = cast(x, other.dtype());
    for (const int axis : {0, 1}) {
      if (x.dim(axis) != other.dim(axis) && x.dim(axis) != 1 && other.dim(axis) != 1)
        return mean(mean(x, 0, true), 1, true);
    }
    return x;
  }

  void add(const AnyTensor& t) { tensors_.push_back(t); }

  std::vector<AnyTensor> tensors_;
};

RC_GTEST_PROP(Fusion, RandomProgramsGiveTheSameQueuedAndAtOnce, ()) {
  std::vector<AnyTensor> queued;
  std::vector<AnyTensor> at_once;
  const int inputs = *rc::gen::inRange(1, 4);
  for (int i = 0; i < inputs; ++i) {
    const auto size = [](int k) {
      return static_cast<std::int64_t>(std::array{1, 3, 4, 8}[static_cast<std::size_t>(k)]);
    };
    const Shape shape{size(*rc::gen::inRange(0, 4)), size(*rc::gen::inRange(0, 4))};
    const DType dtype = *rc::gen::inRange(0, 4) == 0 ? DType::f16 : DType::f32;
    queued.push_back(make_wave(shape, i, dtype, lazy()));
    at_once.push_back(make_wave(shape, i, dtype, test::device().eager()));
  }
  Program lazily(queued);
  Program eagerly(at_once);
  const int steps = *rc::gen::inRange(1, 14);
  for (int i = 0; i < steps; ++i) {
    const int kind = *rc::gen::inRange(0, 14);
    const int a = *rc::gen::inRange(0, 20);
    const int b = *rc::gen::inRange(0, 20);
    lazily.step(kind, a, b);
    eagerly.step(kind, a, b);
  }
  // Held are a part of them, so that the others may be fused away.
  const int keep = *rc::gen::inRange(1, 4);
  std::vector<std::pair<AnyTensor, std::vector<float>>> checked;
  for (std::size_t i = 0; i < lazily.tensors().size(); ++i) {
    if (i + 1 == lazily.tensors().size() || i % static_cast<std::size_t>(keep) == 0)
      checked.emplace_back(lazily.tensors()[i], values(eagerly.tensors()[i]));
  }
  lazily = Program({});
  for (const auto& [tensor, expected] : checked) {
    const double tolerance = 5e-3;
    const std::vector<float> actual = values(tensor);
    RC_ASSERT(actual.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const bool same =
          actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])) ||
          std::abs(actual[i] - expected[i]) <= tolerance * std::max(1.0F, std::abs(expected[i]));
      RC_ASSERT(same);
    }
  }
}

}  // namespace
}  // namespace kiln
