#include "kiln/runtime/cpu/gemm.hpp"

#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln::cpu {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

struct Problem {
  std::int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  std::int64_t padding = 0;  // between the rows of everything

  [[nodiscard]] std::string name() const {
    return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
           (a_transposed ? " T" : " N") + (b_transposed ? "T" : "N") + " padding " +
           std::to_string(padding);
  }
};

/// The numbers of an operand and how they lie.
struct Values {
  std::vector<float> data;
  std::int64_t row_stride, col_stride;

  [[nodiscard]] GemmOperand operand() const { return {data.data(), row_stride, col_stride}; }
  [[nodiscard]] float& at(std::int64_t row, std::int64_t col) {
    return data[static_cast<std::size_t>(row * row_stride + col * col_stride)];
  }
};

Values values_of(std::int64_t rows, std::int64_t cols, bool transposed, std::int64_t padding,
                 unsigned seed) {
  Values values;
  values.row_stride = transposed ? 1 : cols + padding;
  values.col_stride = transposed ? rows + padding : 1;
  values.data.resize(static_cast<std::size_t>(rows * cols + padding * (transposed ? cols : rows)));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::ranges::generate(values.data, [&] { return uniform(random); });
  return values;
}

/// A problem with its operands, and a result that is NaN until it is computed.
struct Case {
  explicit Case(const Problem& p)
      : problem(p),
        a(values_of(p.m, p.k, p.a_transposed, p.padding, 1)),
        b(values_of(p.k, p.n, p.b_transposed, p.padding, 2)),
        out_pitch(p.n + p.padding),
        out(static_cast<std::size_t>(p.m * out_pitch), nan) {}

  void run() {
    gemm(problem.m, problem.n, problem.k, a.operand(), b.operand(), out.data(), out_pitch);
  }
  [[nodiscard]] float result(std::int64_t row, std::int64_t col) const {
    return out[static_cast<std::size_t>(row * out_pitch + col)];
  }
  void expect_right() {
    const double tolerance = 1e-6 * std::sqrt(static_cast<double>(problem.k) + 1) +
                             1e-7 * static_cast<double>(problem.k);
    for (std::int64_t i = 0; i < problem.m; ++i) {
      for (std::int64_t j = 0; j < problem.n; ++j) {
        double sum = 0;
        for (std::int64_t x = 0; x < problem.k; ++x) {
          sum += static_cast<double>(a.at(i, x)) * static_cast<double>(b.at(x, j));
        }
        ASSERT_NEAR(static_cast<double>(result(i, j)), sum, tolerance)
            << problem.name() << " at " << i << ", " << j;
      }
      for (std::int64_t j = problem.n; j < out_pitch; ++j) {
        ASSERT_TRUE(std::isnan(result(i, j)))
            << problem.name() << " wrote into the padding at " << i << ", " << j;
      }
    }
  }

  Problem problem;
  Values a, b;
  std::int64_t out_pitch;
  std::vector<float> out;
};

const std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> sizes{
    {1, 1, 1},      {1, 7, 3},      {7, 1, 3},      {3, 5, 1},      {2, 3, 0},
    {1, 1, 200},    {17, 19, 23},   {64, 64, 64},   {1, 300, 65},   {300, 1, 65},
    {128, 10, 256}, {128, 256, 10}, {129, 257, 65}, {67, 301, 130}, {301, 67, 130},
    {5, 1000, 200}, {1000, 5, 200}, {1, 4000, 300}, {4000, 1, 300},
};

TEST(CpuGemm, MultipliesEverySizeAndLayout) {
  for (const auto& [m, n, k] : sizes) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        for (const std::int64_t padding : {0, 3}) {
          Case one({m, n, k, a_transposed, b_transposed, padding});
          one.run();
          one.expect_right();
        }
      }
    }
  }
}

TEST(CpuGemm, MultipliesOnAsManyThreadsAsTheArenaHas) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 64);
  for (const int threads : {1, 2, 3, 7, 64}) {
    tbb::task_arena arena(threads);
    for (const auto& [m, n] : {std::pair{300, 200}, {1000, 33}, {33, 1000}}) {
      Case one({m, n, 100, false, true, 1});
      arena.execute([&] { one.run(); });
      one.expect_right();
    }
  }
}

TEST(CpuGemm, DoesNothingWithoutRowsOrColumns) {
  gemm(0, 5, 3, {}, {}, nullptr, 5);
  gemm(5, 0, 3, {}, {}, nullptr, 0);
  gemm(0, 0, 0, {}, {}, nullptr, 0);
}

TEST(CpuGemm, GivesZerosWithoutAnythingToSum) {
  std::vector<float> out(6, nan);
  gemm(2, 3, 0, {}, {}, out.data(), 3);
  EXPECT_EQ(out, std::vector<float>(6, 0.0F));
}

TEST(CpuGemm, TakesAnyStrideForAnAxisOfSizeOne) {
  const std::array<float, 3> a{1, 2, 3};
  const std::array<float, 3> b{4, 5, 6};
  std::vector<float> out(9);
  for (const std::int64_t any : {0, 1, 3, 99, -5}) {
    for (const GemmOperand& row : {GemmOperand{a.data(), any, 1}, GemmOperand{a.data(), 1, 1}}) {
      gemm(1, 1, 3, row, {b.data(), 1, any}, out.data(), any);
      EXPECT_EQ(out[0], 32);
    }
    gemm(3, 3, 1, {a.data(), 1, any}, {b.data(), any, 1}, out.data(), 3);
    EXPECT_EQ(out, (std::vector<float>{4, 5, 6, 8, 10, 12, 12, 15, 18}));
  }
  const std::array<float, 5> spread{1, 0, 2, 0,
                                    3};  // every other element: a column of b, a row of a
  gemm(1, 1, 3, {spread.data(), 7, 2}, {spread.data(), 2, 7}, out.data(), 1);
  EXPECT_EQ(out[0], 14);
}

TEST(CpuGemm, PassesOnNaNAndInfinity) {
  for (const auto& [m, n, k] : {std::tuple{5, 6, 7}, {130, 120, 110}}) {
    Case one({m, n, k});
    std::ranges::fill(one.a.data, 1.0F);
    std::ranges::fill(one.b.data, 0.0F);
    one.a.at(1, 2) = nan;
    one.a.at(2, 3) = inf;  // inf * 0 is NaN
    one.b.at(4, 1) = inf;
    one.run();
    for (std::int64_t j = 0; j < n; ++j) {
      EXPECT_TRUE(std::isnan(one.result(1, j)));
      EXPECT_TRUE(std::isnan(one.result(2, j)));
      EXPECT_EQ(one.result(3, j), j == 1 ? inf : 0);
    }
  }
}

TEST(CpuGemm, GivesEqualBitsEveryTime) {
  for (const auto& [m, n, k] : {std::tuple{31, 33, 35}, {300, 200, 100}, {128, 10, 256}}) {
    Case first({m, n, k, true, true});
    first.run();
    for (int i = 0; i < 5; ++i) {
      Case again({m, n, k, true, true});
      again.run();
      ASSERT_EQ(std::memcmp(first.out.data(), again.out.data(), first.out.size() * sizeof(float)),
                0);
    }
  }
}

TEST(CpuGemm, RunsOnSeveralThreadsAndInTasksAtOnce) {
  const auto work = [](std::int64_t i) {
    Case one({100 + i, 90, 80 + i, i % 2 == 0, i % 3 == 0});
    one.run();
    one.expect_right();
  };
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&work, t] {
      for (std::int64_t i = 0; i < 4; ++i) {
        work(t * 4 + i);
      }
    });
  }
  tbb::parallel_for<std::int64_t>(0, 8, work);
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(CpuGemm, RefusesSizesAndStridesThatAreNone) {
  std::array<float, 64> data{};
  const GemmOperand rows{data.data(), 4, 1};
  EXPECT_THROW(gemm(-1, 4, 4, rows, rows, data.data(), 4), ShapeError);
  EXPECT_THROW(gemm(4, 4, -1, rows, rows, data.data(), 4), ShapeError);
  EXPECT_THROW(gemm(4, 4, 4, rows, rows, data.data(), 3), ShapeError);
  EXPECT_THROW(gemm(4, 4, 4, {data.data(), 3, 1}, rows, data.data(), 4), ShapeError);
  try {
    gemm(4, 4, 4, rows, {data.data(), 8, 2}, data.data(), 4);
    FAIL() << "took strides of 8 and 2";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "cpu gemm: operand b of 4 x 4 needs one stride of 1 and the other at least as "
                 "large as that axis, but "
                 "has strides 8 and 2");
  }
}

}  // namespace
}  // namespace kiln::cpu
