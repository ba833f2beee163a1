#include "kiln/ops/matmul/matmul.hpp"

#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::expect_near;
using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The product in double precision, batch dimensions broadcast.
std::vector<double> product(const AnyTensor& lhs, const AnyTensor& rhs) {
  const Shape out = matmul_spec("test", lhs.spec(), rhs.spec()).shape;
  const std::int64_t m = out[-2];
  const std::int64_t n = out[-1];
  const std::int64_t inner = lhs.dim(-1);
  const std::vector<float> a = values(lhs);
  const std::vector<float> b = values(rhs);
  const auto start = [&](const Shape& shape, std::int64_t batch) {
    std::int64_t at = 0;
    std::int64_t step = shape[-1] * shape[-2];
    for (int axis = -3; axis >= -out.rank(); --axis) {
      const std::int64_t here = batch % out[axis];
      batch /= out[axis];
      if (axis < -shape.rank()) continue;
      if (shape[axis] != 1) at += here * step;
      step *= shape[axis];
    }
    return at;
  };
  std::vector<double> result;
  const std::int64_t count = m * n == 0 ? 0 : out.elements() / (m * n);
  for (std::int64_t z = 0; z < count; ++z) {
    const std::int64_t at_a = start(lhs.shape(), z);
    const std::int64_t at_b = start(rhs.shape(), z);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k) {
          sum += double{a[static_cast<std::size_t>(at_a + i * inner + k)]} *
                 double{b[static_cast<std::size_t>(at_b + k * n + j)]};
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

void expect_product(const AnyTensor& lhs, const AnyTensor& rhs) {
  const AnyTensor out = matmul(lhs, rhs);
  EXPECT_EQ(out.spec(), matmul_spec("test", lhs.spec(), rhs.spec()));
  const double k = static_cast<double>(lhs.dim(-1));
  const double tolerance = lhs.dtype() == DType::f16 ? 2e-3 : 1e-6 * (4 + std::sqrt(k));
  expect_near(values(out), product(lhs, rhs), tolerance,
              to_string(lhs.shape()) + " @ " + to_string(rhs.shape()));
}

TEST(Matmul, IsRightAtAllSizesAroundTheTilesEdges) {
  for (const std::int64_t m : {1, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33}) {
    for (const std::int64_t n : {1, 4, 15, 17, 63, 64, 65}) {
      for (const std::int64_t k : {1, 15, 16, 17, 40}) {
        expect_product(make_wave({m, k}), make_wave({k, n}, 1));
      }
    }
  }
}

TEST(Matmul, IsRightForSizesThatTakeTheLargeTiles) {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{129, 257, 33}, {512, 258, 16}, {96, 1400, 7}}) {
    expect_product(make_wave({m, k}), make_wave({k, n}, 1));
  }
  expect_product(make_wave({3, 2100}), make_wave({2100, 5}, 1));
  expect_product(make_wave({33, 2049}), make_wave({2049, 9}, 1));
}

TEST(WgslMatmul, EveryTileThatFitsTheAdapterIsChosenSomewhereAndFits) {
  const Limits limits = test::device().limits();
  for (const std::int64_t m : {1, 8, 64, 1000}) {
    for (const std::int64_t n : {1, 16, 64, 1000}) {
      for (const std::int64_t k : {0, 1, 64, 5000}) {
        EXPECT_TRUE(webgpu::tiled_matmul({"lhs", DType::f32, Layout::dense({m, k})},
                                         {"rhs", DType::f32, Layout::dense({k, n})},
                                         {"out", DType::f32, Layout::dense({m, n})}, limits)
                        .declined.empty());
      }
    }
  }
}

// More steps along k than some adapters let a loop have rounds.
TEST(Matmul, AVeryLongSumIsWhole) {
  const std::int64_t k = 1048577;
  const AnyTensor ones = broadcast_to(make<float>({1}, {1, 1}), {1, k});
  EXPECT_THAT(values(matmul(ones, transpose(ones))), ElementsAre(1048577));
  const AnyTensor halves = broadcast_to(make({0.5F}, {1, 1}, DType::f16), {2, 70000});
  EXPECT_THAT(values(matmul(halves, transpose(halves))), Each(17504)) << "17500, in f16";
}

TEST(Matmul, GradientsOfAVeryLongSumAreWhole) {
  const std::int64_t k = 70001;
  const Device device = test::device().autodiff();
  const AnyTensor w = make<float>({2, 3}, {1, 2}).to(device).require_grad();
  const AnyTensor x = broadcast_to(make<float>({1}, {1, 1}), {k, 1});
  EXPECT_THAT(values(sum(matmul(x, w)).backward().of(w)), ElementsAre(70001, 70001));
}

// Sizes and layouts are numbers of the kernel, so that few have to be compiled.
TEST(WgslMatmul, OneKernelOfASoftwareAdapterServesLayoutsAndSizes) {
  if (!test::device().limits().software_adapter)
    GTEST_SKIP() << "holds on software adapters alone; a GPU has a tile for each kind of size";
  const AnyTensor warm = matmul(make_wave({40, 20}), make_wave({20, 36}));
  (void)values(warm);
  const std::uint64_t before = test::device().runtime().counters().compiled;
  expect_product(make_wave({33, 7}), make_wave({7, 50}, 1));
  expect_product(transpose(make_wave({24, 64})), make_wave({24, 100}, 1));
  expect_product(make_wave({64, 24}), transpose(make_wave({100, 24}, 1)));
  expect_product(slice(make_wave({80, 48}), 1, 3, 40, 2), make_wave({19, 17}, 1));
  EXPECT_EQ(test::device().runtime().counters().compiled, before);
}

TEST(Matmul, BatchesBroadcastAtEveryRank) {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{2, 3, 5}, {5, 4}},          {{3, 5}, {2, 5, 4}},
      {{1, 3, 5}, {4, 5, 4}},       {{2, 1, 3, 5}, {3, 5, 4}},
      {{2, 3, 3, 5}, {1, 3, 5, 4}}, {{2, 1, 2, 3, 5}, {1, 3, 1, 5, 4}},
      {{3, 5}, {2, 1, 2, 5, 4}},    {{1, 1, 1, 1, 1, 2, 3, 5}, {2, 1, 1, 2, 1, 1, 5, 4}},
  };
  for (const auto& [lhs, rhs] : pairs) expect_product(make_wave(lhs), make_wave(rhs, 1));
}

TEST(Matmul, TransposedOperandsAreReadInPlace) {
  for (const std::int64_t size : {8, 9}) {
    const AnyTensor a = make_wave({size, size + 4});
    const AnyTensor b = make_wave({size, size + 8}, 1);
    const AnyTensor c = make_wave({size + 8, size + 4}, 2);
    expect_product(transpose(a), b);
    expect_product(a, transpose(c));
    expect_product(transpose(a), transpose(make_wave({size + 2, size}, 3)));
    const auto spent =
        test::counted([&] { return std::array{matmul(transpose(a), b), matmul(a, transpose(c))}; });
    EXPECT_EQ(spent.launches, 2U) << "nothing is copied";
  }
}

TEST(Matmul, SlicedAndBroadcastOperandsAreReadInPlace) {
  const AnyTensor a = make_wave({4, 12, 20});
  const AnyTensor b = make_wave({20, 24}, 1);
  const std::vector<std::pair<AnyTensor, AnyTensor>> pairs = {
      {slice(a, 1, 3, 10), b},                            // rows of each matrix
      {slice(a, 2, 4, 16), slice(b, 0, 4, 16)},           // columns, aligned
      {slice(a, 2, 3, 16), slice(b, 0, 3, 16)},           // columns, not aligned
      {slice(a, 0, 1, 4, 2), slice(b, 1, 5, 24)},         // every second matrix
      {slice(a, 1, 0, 12, 3), b},                         // every third row
      {broadcast_to(slice(a, 0, 2, 3), {3, 12, 20}), b},  // one matrix for all
      {permute(a, {1, 0, 2}), b},
  };
  for (const auto& [lhs, rhs] : pairs) {
    expect_product(lhs, rhs);
    EXPECT_EQ(test::counted([&] { return matmul(lhs, rhs); }).launches, 1U)
        << to_string(lhs.shape());
  }
  // One row for all: a library of the host wants it copied.
  const std::vector<std::pair<AnyTensor, AnyTensor>> repeated = {
      {broadcast_to(slice(a, 1, 0, 1), {4, 7, 20}), b},
      {a, broadcast_to(slice(b, 0, 2, 3), {20, 24})},
  };
  for (const auto& [lhs, rhs] : repeated) {
    expect_product(lhs, rhs);
    EXPECT_EQ(test::counted([&] { return matmul(lhs, rhs); }).launches, test::on_cpu() ? 2U : 1U)
        << to_string(lhs.shape());
  }
  // Neither dimension lies together: this one is copied.
  expect_product(slice(transpose(a), 1, 0, 20, 2), make_wave({12, 3}));
  expect_product(slice(a, 2, 0, 20, 2), make_wave({10, 5}));
  expect_product(broadcast_to(slice(slice(a, 1, 0, 1), 2, 0, 1), {4, 5, 6}), make_wave({6, 8}));
}

TEST(Matmul, OneTensorMayBeBothOperands) {
  const AnyTensor x = make_wave({12, 12});
  expect_product(x, x);
  expect_product(x, transpose(x));
}

TEST(Matmul, EmptyProductsAreZerosAndEmptyResultsEmpty) {
  const dispatch::PoisonOutputs poison;
  EXPECT_THAT(values(matmul(make<float>({}, {2, 0}), make<float>({}, {0, 3}))),
              AllOf(Each(0), ::testing::SizeIs(6)));
  EXPECT_EQ(matmul(make<float>({}, {0, 4}), make_wave({4, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(matmul(make_wave({3, 4}), make<float>({}, {4, 0})).shape(), (Shape{3, 0}));
  EXPECT_EQ(matmul(make<float>({}, {2, 0, 3}), make_wave({3, 5})).shape(), (Shape{2, 0, 5}));
  EXPECT_EQ(matmul(make<float>({}, {0, 2, 3}), make_wave({3, 5})).shape(), (Shape{0, 2, 5}));
  EXPECT_THAT(values(matmul(make<float>({}, {0, 1}), make<float>({}, {1, 0}))),
              ::testing::IsEmpty());
  EXPECT_THAT(values(matmul(make<float>({}, {2, 3, 0}), make<float>({}, {0, 1}))), Each(0));
}

TEST(Matmul, ABatchAbove65535Folds) {
  const std::int64_t batch = 65536;
  const AnyTensor lhs = make_wave({batch, 1, 1, 1});
  expect_product(lhs, make_wave({batch, 1, 1, 1}, 1));
}

TEST(Matmul, F16SumsInF32) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{5, 7, 3}, {8, 16, 12}, {33, 65, 40}}) {
    expect_product(make_wave({m, k}, 0, DType::f16), make_wave({k, n}, 1, DType::f16));
    expect_product(transpose(make_wave({k, m}, 0, DType::f16)), make_wave({k, n}, 1, DType::f16));
  }
  // 4096 ones and a small rest: f16 sums would stop at 2048.
  const AnyTensor ones = make(std::vector<float>(4096, 1), {1, 4096}, DType::f16);
  EXPECT_THAT(values(matmul(ones, transpose(ones))), ElementsAre(4096));
}

TEST(Matmul, ANaNStaysInItsRow) {
  std::vector<float> a = test::wave(6);
  a[1] = NAN;
  const std::vector<float> out = values(matmul(make(a, {2, 3}), make_wave({3, 5})));
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(std::isnan(out[i]), i < 5) << i;
}

TEST(Matmul, NothingOutsideOfTheResultIsWritten) {
  const dispatch::PoisonOutputs poison;
  for (const Shape& shape : {Shape{33, 65}, Shape{4, 8}, Shape{1, 1}, Shape{17, 64}}) {
    const AnyTensor out = matmul(make_wave({shape[0], 9}), make_wave({9, shape[1]}));
    const RawTensor& raw = out.value().raw();
    const std::uint64_t end = dispatch::bytes_of(raw.spec());
    const auto tail =
        raw.runtime->read(raw.buffer, end, dispatch::PoisonOutputs::canary_bytes).get();
    EXPECT_THAT(wgpu::values_of<std::uint32_t>(tail), Each(dispatch::PoisonOutputs::pattern));
  }
}

AnyTensor multiplied(const std::vector<AnyTensor>& in) { return matmul(in[0], in[1]); }

TEST(Matmul, GradientsAgreeWithDifferences) {
  test::expect_gradients("[2, 3] @ [3, 2]", multiplied, {make_wave({2, 3}), make_wave({3, 2}, 1)});
  test::expect_gradients("broadcast rhs", multiplied, {make_wave({2, 2, 3}), make_wave({3, 2}, 1)});
  test::expect_gradients("broadcast lhs", multiplied, {make_wave({2, 3}), make_wave({2, 3, 2}, 1)});
  test::expect_gradients("both broadcast", multiplied,
                         {make_wave({2, 1, 1, 3}), make_wave({1, 3, 3, 2}, 1)});
  test::expect_gradients("transposed",
                         [](const auto& in) { return matmul(transpose(in[0]), transpose(in[1])); },
                         {make_wave({3, 2}), make_wave({2, 3}, 1)});
  test::expect_gradients("twice", [](const auto& in) { return matmul(in[0], in[0]); },
                         {make_wave({3, 3})});
}

TEST(Matmul, GradientsOfEmptyProductsHaveTheInputsShapes) {
  const auto of = [](const Shape& lhs, const Shape& rhs) {
    return test::gradients_of(multiplied, {make_wave(lhs), make_wave(rhs)});
  };
  EXPECT_THAT(values(of({0, 4}, {4, 3})[1]), AllOf(Each(0), ::testing::SizeIs(12)));
  EXPECT_EQ(of({2, 0}, {0, 3})[0].shape(), (Shape{2, 0}));
  EXPECT_THAT(values(of({0, 2, 4}, {4, 3})[1]), AllOf(Each(0), ::testing::SizeIs(12)));
}

TEST(Matmul, GradientsOfF16AreF16) {
  const auto f16 = test::gradients_of(
      multiplied, {make_wave({3, 4}, 0, DType::f16), make_wave({4, 5}, 1, DType::f16)});
  const auto f32 = test::gradients_of(multiplied, {make_wave({3, 4}), make_wave({4, 5}, 1)});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(f16[i].dtype(), DType::f16);
    expect_near(values(f16[i]), test::doubles(values(f32[i])), 4e-3);
  }
}

TEST(Matmul, RefusesWithNameAndShapes) {
  const auto refusal = [](const AnyTensor& a, const AnyTensor& b) {
    return message_of<Error>([&] { (void)matmul(a, b); });
  };
  EXPECT_THAT(refusal(make_wave({3}), make_wave({3, 2})),
              AllOf(HasSubstr("matmul: operands must have rank 2 or more"), HasSubstr("lhs [3]")));
  EXPECT_THAT(
      refusal(make_wave({2, 64, 128}), make_wave({2, 100, 32})),
      HasSubstr("matmul: contraction dimensions must match (lhs [2, 64, 128], rhs [2, 100, 32])"));
  EXPECT_THAT(refusal(make_wave({2, 3, 4}), make_wave({3, 4, 5})),
              HasSubstr("matmul: batch dimensions must broadcast (lhs [2, 3, 4], rhs [3, 4, 5])"));
  EXPECT_THAT(refusal(make_wave({2, 3}), make_wave({3, 2}, 0, DType::f16)),
              AllOf(HasSubstr("matmul"), HasSubstr("one dtype"), HasSubstr("f16 [3, 2]")));
  EXPECT_THAT(refusal(make<std::int32_t>({1}, {1, 1}), make<std::int32_t>({1}, {1, 1})),
              AllOf(HasSubstr("matmul: takes f32 or f16"), HasSubstr("i32 [1, 1]")));
}

}  // namespace
}  // namespace kiln
