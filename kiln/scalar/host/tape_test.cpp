#include "kiln/scalar/host/tape.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "kiln/scalar/body_of_test.hpp"

namespace kiln {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Elements of any dtype, one word each (two bytes for f16).
template <class T>
std::vector<T> tape_values(const BodyPtr& body, const std::vector<std::vector<float>>& inputs,
                           DType out, std::span<const std::uint32_t> params = {}) {
  const std::vector<DType> dtypes(inputs.size(), DType::f32);
  const BodyTypes types = infer("test", *body, dtypes, out);
  const TapeResult result{out, true};
  const Tape tape(*body, types, dtypes, {&result, 1});
  Tape::State state(tape, params);
  std::size_t n = 0;
  for (const auto& input : inputs) n = std::max(n, input.size());
  std::vector<TileArg> args;
  for (const auto& input : inputs) args.push_back({input.data(), input.size() == 1 && n != 1});
  std::vector<T> values(n);
  void* to = values.data();
  tape.run(state, args, {&to, 1}, n);
  return values;
}

std::vector<float> ramp(std::size_t n) {
  std::vector<float> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(static_cast<double>(i * 37 % 1001) / 125 - 4));
  return out;
}

TEST(Tape, EveryCountOfElementsIsComputedAndNoneBehindIt) {
  const auto body = body_of([](Expr x, Expr y) { return x * y + sigmoid(x) - 2; });
  for (std::size_t n = 1; n <= 70; ++n) {
    const std::vector<float> x = ramp(n);
    const std::vector<float> y = ramp(2 * n);
    const auto got =
        tape_values<float>(body, {x, {y.begin(), y.begin() + static_cast<int>(n)}}, DType::f32);
    for (std::size_t i = 0; i < n; ++i) {
      const std::array in{double{x[i]}, double{y[i]}};
      EXPECT_NEAR(double{got[i]}, evaluate(*body, 0, in), 2e-6) << n << " " << i;
    }
  }
}

TEST(Tape, OneElementStandsForAllInEveryPlace) {
  const auto body = body_of([](Expr x, Expr y, Expr z) { return select(x < y, y - z, z / x); });
  const std::vector<float> many = ramp(100);
  for (int uniform = 0; uniform < 8; ++uniform) {
    std::vector<std::vector<float>> in;
    for (int i = 0; i < 3; ++i) {
      std::vector<float> x = many;
      for (float& v : x) v = v * static_cast<float>(i + 1) + 0.3F;
      in.push_back((uniform >> i & 1) != 0 ? std::vector{x[5]} : x);
    }
    if (uniform == 7) continue;  // nothing says how many
    const auto got = tape_values<float>(body, in, DType::f32);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto at = [&](std::size_t k) {
        return double{in[k].size() == 1 ? in[k][0] : in[k][i]};
      };
      EXPECT_NEAR(double{got[i]}, evaluate(*body, 0, std::array{at(0), at(1), at(2)}), 1e-5);
    }
  }
}

TEST(Tape, WhatParamsAndLiteralsAloneMakeIsComputedOnce) {
  ExprGraph graph;
  const Expr p = graph.expr(graph.intern({.op = Opcode::param, .args = {0, -1, -1}}));
  const Expr x = graph.input(0);
  const auto body = make_body(graph, 1, 1, std::array{(x * (1 - exp(p * 2))).id()});
  const std::array words{std::bit_cast<std::uint32_t>(0.25F)};
  const std::array dtypes{DType::f32};
  const TapeResult result{DType::f32, true};
  const Tape tape(*body, infer("test", *body, dtypes, DType::f32), dtypes, {&result, 1});
  EXPECT_EQ(tape.length(), 1U) << "one multiplication a tile";
  const auto got = tape_values<float>(body, {{3, 5}}, DType::f32, words);
  EXPECT_NEAR(got[0], 3 * (1 - std::exp(0.5)), 1e-6);
}

TEST(Tape, ResultsThatLieApartAreNotCopied) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const Expr y = graph.input(1);
  const auto body = make_body(graph, 2, 0, std::array{exp(x).id(), (exp(x) * y).id()});
  const std::array dtypes{DType::f32, DType::f32};
  const BodyTypes types = infer("test", *body, dtypes, DType::f32);
  const std::vector<TapeResult> over(2, {DType::f32, true});
  const std::vector<TapeResult> apart(2, {DType::f32, true, true});
  EXPECT_EQ(Tape(*body, types, dtypes, over).length(), 3U) << "y is read after exp(x)";
  const Tape tape(*body, types, dtypes, apart);
  EXPECT_EQ(tape.length(), 2U);
  Tape::State state(tape, {});
  const std::vector<float> a = ramp(50);
  const std::vector<float> b(50, 2.5F);
  std::vector<float> c(50);
  std::vector<float> d(50);
  const std::array<TileArg, 2> in{{{a.data(), false}, {b.data(), false}}};
  const std::array<void*, 2> out{c.data(), d.data()};
  tape.run(state, in, out, 50);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(c[i], std::exp(a[i]), 1e-6F * std::exp(a[i]));
    EXPECT_EQ(d[i], c[i] * 2.5F);
  }
}

TEST(Tape, ResultsMayLieOverInputs) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const Expr y = graph.input(1);
  // Swapped, plus one that reads both: whatever is written first must not be what is read later.
  const auto body =
      make_body(graph, 2, 0, std::array{y.id(), x.id(), (exp(x) + y).id(), (exp(x) + y).id()});
  const std::array dtypes{DType::f32, DType::f32};
  const std::vector<TapeResult> results(4, {DType::f32, true});
  const Tape tape(*body, infer("test", *body, dtypes, DType::f32), dtypes, results);
  Tape::State state(tape, {});
  std::vector<float> a = ramp(50);
  std::vector<float> b(50, 2.5F);
  std::vector<float> c(50);
  std::vector<float> d(50);
  const std::vector<float> before = a;
  const std::array<TileArg, 2> in{{{a.data(), false}, {b.data(), false}}};
  const std::array<void*, 4> out{a.data(), b.data(), c.data(), d.data()};
  tape.run(state, in, out, 50);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(a[i], 2.5F);
    EXPECT_EQ(b[i], before[i]);
    EXPECT_NEAR(double{c[i]}, std::exp(double{before[i]}) + 2.5, 1e-4);
    EXPECT_EQ(c[i], d[i]);
  }
}

TEST(Tape, HalvesAreLoadedComputedInSingleAndRoundedWhenStored) {
  ExprGraph graph;
  const Expr x = graph.input(0);
  const auto body = make_body(graph, 1, 0, std::array{(x * 3).id(), (x * 3).id(), x.id()});
  const std::array dtypes{DType::f16};
  const std::array results{TapeResult{DType::f16, true}, TapeResult{DType::f16, true},
                           TapeResult{DType::f16, false}};
  const Tape tape(*body, infer("test", *body, dtypes, DType::f16), dtypes, results);
  for (const std::size_t n : {1U, 7U, 8U, 33U, 100U}) {
    std::vector<float16> in;
    for (const float v : ramp(n)) in.emplace_back(v + 0.001F);
    Tape::State state(tape, {});
    const std::array<TileArg, 1> arg{{{in.data(), false}}};
    std::vector<float16> a(n);
    std::vector<float16> b(n);
    std::vector<float> wide(n);
    const std::array<void*, 3> out{a.data(), b.data(), wide.data()};
    tape.run(state, arg, out, n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(a[i].bits(), float16(static_cast<float>(in[i]) * 3).bits());
      EXPECT_EQ(b[i].bits(), a[i].bits());
      EXPECT_EQ(wide[i], static_cast<float>(in[i]));
    }
  }
}

TEST(Tape, ComparisonsWithNaNAreFalseAndLogicGivesWords) {
  const std::vector<float> x{1, nan, 2, nan};
  const std::vector<float> y{1, 1, nan, nan};
  const auto of = [&](auto f) {
    return tape_values<std::uint32_t>(body_of(f), {x, y}, DType::boolean);
  };
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(of([](Expr a, Expr b) { return a == b; }), (Words{1, 0, 0, 0}));
  EXPECT_EQ(of([](Expr a, Expr b) { return a != b; }), (Words{0, 1, 1, 1}));
  EXPECT_EQ(of([](Expr a, Expr b) { return a <= b; }), (Words{1, 0, 0, 0}));
  EXPECT_EQ(of([](Expr a, Expr b) { return a < b || is_nan(a); }), (Words{0, 1, 0, 1}));
  EXPECT_EQ(of([](Expr a, Expr b) { return !(a < b) && is_nan(b); }), (Words{0, 0, 1, 1}));
}

TEST(Tape, IntegersWrapAndDivideByZeroWithoutATrap) {
  const auto ints = [](auto f, const std::vector<std::int32_t>& a,
                       const std::vector<std::int32_t>& b) {
    const auto body = body_of(f);
    const std::array dtypes{DType::i32, DType::i32};
    const TapeResult result{DType::i32, true};
    const Tape tape(*body, infer("test", *body, dtypes, DType::i32), dtypes, {&result, 1});
    Tape::State state(tape, {});
    const std::array<TileArg, 2> in{{{a.data(), false}, {b.data(), false}}};
    std::vector<std::int32_t> out(a.size());
    void* to = out.data();
    tape.run(state, in, {&to, 1}, a.size());
    return out;
  };
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  using Ints = std::vector<std::int32_t>;
  EXPECT_EQ(ints([](Expr a, Expr b) { return a / b; }, {7, -7, least, 5}, {2, 2, -1, 0}),
            (Ints{3, -3, least, 5}));
  EXPECT_EQ(ints([](Expr a, Expr b) { return a - b; }, {least, 3}, {1, -4}),
            (Ints{std::numeric_limits<std::int32_t>::max(), 7}));
  EXPECT_EQ(ints([](Expr a, Expr b) { return abs(a) * b; }, {-3, least}, {2, 1}),
            (Ints{-6 * -1, least}));
}

TEST(Tape, SumsAndExtremesOfATileOfAnyLength) {
  const TileKernels& kernels = tile_kernels();
  for (std::size_t n = 1; n <= 200; n += 3) {
    std::vector<float> x = ramp(n);
    double sum = 0;
    for (const float v : x) sum += double{v};
    EXPECT_NEAR(kernels.sum_f32(x.data(), n), sum, 1e-3);
    EXPECT_EQ(kernels.max_f32(x.data(), n), *std::ranges::max_element(x));
    EXPECT_EQ(kernels.min_f32(x.data(), n), *std::ranges::min_element(x));
    for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      std::vector<float> y = x;
      y[at] = nan;
      EXPECT_TRUE(std::isnan(kernels.max_f32(y.data(), n))) << n << " " << at;
      EXPECT_TRUE(std::isnan(kernels.min_f32(y.data(), n))) << n << " " << at;
    }
    const std::vector<std::uint32_t> words(n, 0xffff'fff0U);
    EXPECT_EQ(kernels.sum_u32(words.data(), n), static_cast<std::uint32_t>(n) * 0xffff'fff0U);
  }
}

}  // namespace
}  // namespace kiln
