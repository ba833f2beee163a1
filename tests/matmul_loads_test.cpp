// Matrix products that compute what comes before them in their loads, forward and backward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/queued.hpp"

namespace kiln {
namespace {

using queued::input;
using queued::lazy;
using test::make;
using test::make_wave;
using test::values;

/// The product by the tiles of a GPU, whatever the adapter is.
struct Tiled {
  static constexpr std::string_view name = "tiled";
  static constexpr std::array inputs = {"lhs", "rhs"};
  using layers = Layers<Cube, Fusion>;
  GradientIn gradient;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs) {
    return matmul_spec(name, lhs, rhs);
  }
  webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const Operand& out,
                               const Limits& limits) const {
    Limits gpu = limits;
    gpu.software_adapter = false;
    return webgpu::tiled_matmul(lhs, rhs, out, gpu, gradient);
  }
};
static_assert(Extension<Tiled>);

using Product = AnyTensor (*)(const AnyTensor&, const AnyTensor&, GradientIn);
constexpr std::array<Product, 2> products{
    [](const AnyTensor& a, const AnyTensor& b, GradientIn side) { return matmul(a, b, side); },
    [](const AnyTensor& a, const AnyTensor& b, GradientIn side) {
      return apply(Tiled{side}, a, b);
    }};

using In = const std::vector<AnyTensor>&;

template <class F>
DrainReport drained(F f) {
  lazy().flush();
  const auto out = f();
  DrainReport report = inspect(lazy());
  lazy().flush();
  return report;
}

/// One launch, and the values of the operations one by one.
template <class F>
void expect_one_launch(F f, std::vector<AnyTensor> in, const std::string& what) {
  EXPECT_EQ(drained([&] { return f(in); }).launches, 1U) << what;
  const std::vector<float> fused = values(f(in));
  const bool half = in[0].dtype() == DType::f16;
  for (AnyTensor& t : in) t = t.to(test::device().eager());
  test::expect_near(fused, test::doubles(values(f(in))), half ? 4e-3 : 1e-5, what);
}

/// What may come before an operand of shape t[0], t[1] being another of that shape, t[2] a row and
/// t[3] a column.
struct Before {
  std::string_view what;
  AnyTensor (*make)(In);
};
constexpr std::array befores{
    Before{"a mask", [](In t) { return relu_backward(t[1], t[0]); }},
    Before{"a scale", [](In t) { return t[0] * 0.5; }},
    Before{"a row", [](In t) { return t[0] * t[2] - 1.0; }},
    Before{"a column", [](In t) { return relu(t[0] + t[3]); }},
    Before{"a mask of a column", [](In t) { return relu_backward(t[1] + t[3], t[0]); }},
    Before{"other floats", [](In t) { return cast(cast(t[0], DType::i32), t[0].dtype()) * t[2]; }},
    Before{"nothing read",
           [](In t) { return full(t[0].shape(), 0.25, t[0].dtype(), t[0].device()); }},
};

struct Sizes {
  std::int64_t b, m, k, n;
};
// With and without vec4, several tiles, a batch; dimensions of one.
const std::vector<Sizes> sizes{{1, 8, 12, 16}, {2, 19, 7, 33}, {1, 70, 36, 68}, {3, 1, 5, 4}};

std::vector<AnyTensor> operand(const Shape& shape, DType dtype, int seed) {
  Shape column = shape;
  column[-1] = 1;
  return {input(shape, seed, dtype), input(shape, seed + 1, dtype),
          input({shape[-1]}, seed + 2, dtype), input(column, seed + 3, dtype)};
}

/// The operand of t[0] to t[3] with what comes before it, times t[4]; or the other way round.
void expect_taken(Product product, const Before& before, const Sizes& size, bool left,
                  DType dtype) {
  const auto& [b, m, k, n] = size;
  std::vector in = operand(left ? Shape{b, m, k} : Shape{b, k, n}, dtype, 0);
  in.push_back(input(left ? Shape{b, k, n} : Shape{b, m, k}, 5, dtype));
  expect_one_launch(
      [&](In t) {
        const AnyTensor made = before.make(t);
        return left ? product(made, t[4], GradientIn::neither)
                    : product(t[4], made, GradientIn::neither);
      },
      in, std::string(before.what));
}

// The tiles of a GPU take long to compile on a software adapter, so they see few of the cases.
TEST(WgslMatmulLoads, TakeWhatComesBeforeEitherOperand) {
  for (std::size_t i = 0; i < befores.size(); ++i) {
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const bool left = (i + s) % 2 == 0;
      expect_taken(products[0], befores[i], sizes[s], left, DType::f32);
      if (s == i % 2) expect_taken(products[1], befores[i], sizes[s], left, DType::f32);
    }
    if (!lazy().limits().f16) continue;
    expect_taken(products[0], befores[i], sizes[1], i % 2 == 0, DType::f16);
    if (i < 3) expect_taken(products[1], befores[i], sizes[0], i % 2 == 0, DType::f16);
  }
}

// dA = (g where out > 0) @ B^T and dB = A^T @ (g where out > 0), and products of other views.
TEST(WgslMatmulLoads, SeeWhatComesBeforeThroughViews) {
  const std::vector<AnyTensor (*)(Product, In)> forms{
      [](Product p, In t) {
        return p(relu_backward(t[1], t[0]), transpose(t[2]), GradientIn::lhs);
      },
      [](Product p, In t) {
        return p(t[2], transpose(relu_backward(t[1], t[0])), GradientIn::rhs);
      },
      [](Product p, In t) {
        return p(transpose(t[0] * t[1]), slice(t[0], 0, 0, t[0].dim(0)), GradientIn::neither);
      },
      [](Product p, In t) {
        return p(slice(relu(t[0]), 1, 1, t[0].dim(1)), slice(transpose(t[2]), 0, 1, t[2].dim(1)),
                 GradientIn::neither);
      },
      [](Product p, In t) {
        const AnyTensor x = relu(t[0]) * 3.0;
        return p(x, transpose(x), GradientIn::neither);
      },
      [](Product p, In t) {
        return p(broadcast_to(relu(t[0]), {3, t[0].dim(0), t[0].dim(1)}), transpose(t[2]),
                 GradientIn::neither);
      }};
  for (const auto& [rows, cols, others] : {std::array<std::int64_t, 3>{68, 36, 72}, {33, 7, 9}}) {
    const std::vector in{input({rows, cols}), input({rows, cols}, 1), input({others, cols}, 2)};
    for (std::size_t i = 0; i < forms.size(); ++i) {
      expect_one_launch([&](In t) { return forms[i](products[0], t); }, in, std::to_string(i));
      if ((rows == 68) == (i % 2 == 1)) continue;
      expect_one_launch([&](In t) { return forms[i](products[1], t); }, in, std::to_string(i));
    }
  }
}

TEST(WgslMatmulLoads, BatchesOfWhatComesBeforeBroadcast) {
  const std::vector in{input({2, 1, 5, 6}), input({3, 1, 1}, 1), input({3, 6, 4}, 2)};
  for (const Product product : products) {
    expect_one_launch([&](In t) { return product(relu(t[0]) * t[1], t[2], GradientIn::neither); },
                      in, "lhs");
    expect_one_launch(
        [&](In t) {
          return product(t[0], broadcast_to(t[2] * t[1], {2, 3, 6, 4}), GradientIn::neither);
        },
        in, "rhs");
  }
}

TEST(WgslMatmulLoads, ANaNThatNoOutputReadsSpreadsNowhere) {
  const std::vector<float> nans(6 * 8, std::numeric_limits<float>::quiet_NaN());
  const AnyTensor x = concat({input({5, 8}), make(nans, {6, 8}, DType::f32, lazy())}, 0);
  const AnyTensor w = input({8, 7}, 1);
  (void)values(x);
  for (const Product product : products) {
    expect_one_launch(
        [&](In t) { return product(slice(abs(t[0]), 0, 0, 5), t[1], GradientIn::neither); }, {x, w},
        "rows");
    expect_one_launch(
        [&](In t) {
          return product(transpose(t[1]), transpose(slice(abs(t[0]), 0, 1, 5)),
                         GradientIn::neither);
        },
        {x, w}, "columns");
  }
}

TEST(WgslMatmulLoads, ZerosThatAMaskMakesAreStrong) {
  const std::vector<float> bad{INFINITY, 1, NAN, 2, 3, -INFINITY};
  const AnyTensor w = make(bad, {2, 3}, DType::f32, lazy());
  const AnyTensor out = make<float>({1, 0, 0, 2, 0, 0}, {3, 2}, lazy());
  const AnyTensor g = make<float>({1, 1, 1, 1, 1, 1}, {3, 2}, lazy());
  for (const Product product : products) {
    const AnyTensor y = product(relu_backward(out, g), w, GradientIn::lhs);
    const std::vector<float> got = values(y);
    EXPECT_EQ(std::vector(got.begin() + 3, got.end()),
              (std::vector<float>{2, 3, -INFINITY, 0, 0, 0}));
    EXPECT_EQ(got[0], INFINITY);
    EXPECT_TRUE(std::isnan(got[2]));
    const std::vector<float> turned =
        values(product(transpose(w), transpose(relu_backward(out, g)), GradientIn::rhs));
    EXPECT_EQ((std::vector{turned[1], turned[4], turned[7]}),
              (std::vector<float>{2, 3, -INFINITY}));
  }
}

TEST(WgslMatmulLoads, SizesOfZero) {
  for (const Product product : products) {
    const auto f = [&](const Shape& a, const Shape& b) {
      return values(product(relu(input(a)), input(b, 1) * 2.0, GradientIn::neither));
    };
    EXPECT_EQ(f({3, 0}, {0, 2}), std::vector<float>(6, 0));
    EXPECT_TRUE(f({0, 3}, {3, 2}).empty());
    EXPECT_TRUE(f({2, 3, 4}, {2, 4, 0}).empty());
  }
}

// What is read again and again must be little: else it is stored.
TEST(WgslMatmulLoads, WhatCostsTooMuchIsStored) {
  const auto launches = [](AnyTensor (*f)(In), In in) {
    return drained([&] { return f(in); }).launches;
  };
  const std::vector in{input({16, 16}), input({16, 160}, 1)};
  EXPECT_EQ(launches(
                [](In t) {
                  AnyTensor x = t[0];
                  for (int i = 0; i < 12; ++i) x = tanh(x) * 0.5;
                  return matmul(x, t[1]);
                },
                in),
            2U);
  // A wide product loads its rows many times, and each time from both tensors.
  const std::vector wide{input({4, 4}), input({4, 4}, 1), input({4, 1 << 18}, 2)};
  EXPECT_EQ(launches([](In t) { return matmul(t[0] * t[1], t[2]); }, wide), 2U);
  EXPECT_EQ(launches([](In t) { return matmul(relu(t[0]), t[2]); }, wide), 1U);
}

/// relu(lhs @ rhs + bias), as the worked example has it.
struct Worked {
  static constexpr std::string_view name = "worked";
  static constexpr std::array inputs = {"lhs", "rhs", "bias"};
  using layers = Layers<Autodiff, Cube, Fusion>;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec&) {
    return matmul_spec(name, lhs, rhs);
  }
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const Operand&,
                                      const Operand& out, const Limits& limits) {
    webgpu::Launch launch = webgpu::tiled_matmul(lhs, rhs, out, limits);
    launch.store = epilogue([](Expr value, Expr bias) { return relu(value + bias); }, {"bias"});
    return launch;
  }
  static constexpr Bound bound = Bound::compute;
  struct Saved {
    Checkpoint lhs;
    Checkpoint rhs;
    Checkpoint out;
  };
  static Saved save(const Saver& saver, const AnyTensor& lhs, const AnyTensor& rhs,
                    const AnyTensor&, const AnyTensor& out) {
    return {saver.keep_if(rhs.tracked(), lhs), saver.keep_if(lhs.tracked(), rhs), saver.keep(out)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<3>& grads) {
    const AnyTensor g = relu_backward(saved.out.get(), grad);
    auto& [lhs, rhs, bias] = grads;
    if (lhs) lhs.set_reduced(matmul(g, transpose(saved.rhs.get()), GradientIn::lhs));
    if (rhs) rhs.set_reduced(matmul(transpose(saved.lhs.get()), g, GradientIn::rhs));
    if (bias) bias.set(g);
  }
};
static_assert(Extension<Worked>);

using Layer = AnyTensor (*)(const AnyTensor&, const AnyTensor&, const AnyTensor&);
constexpr std::array<Layer, 2> layers{
    [](const AnyTensor& x, const AnyTensor& w, const AnyTensor& b) {
      return apply(Worked{}, x, w, broadcast_to(b, {x.dim(0), w.dim(1)}));
    },
    [](const AnyTensor& x, const AnyTensor& w, const AnyTensor& b) {
      return relu(matmul(x, w) + b);
    }};

TEST(WgslMatmulLoads, ALayersForwardAndBackwardAreFourLaunchesAndWriteNoMask) {
  constexpr std::int64_t m = 24;
  constexpr std::int64_t k = 20;
  constexpr std::int64_t n = 36;
  const Device device = lazy().autodiff();
  const AnyTensor seed = input({m, n}, 3);
  for (const Layer layer : layers) {
    const AnyTensor x = make_wave({m, k}, 0, DType::f32, device).require_grad();
    const AnyTensor w = make_wave({k, n}, 1, DType::f32, device).require_grad();
    const AnyTensor b = make_wave({n}, 2, DType::f32, device).require_grad();
    lazy().flush();
    const AnyTensor y = layer(x, w, b);
    const Gradients g = vjp(std::array{y}, std::array{seed});
    const std::array grads{g.of(x), g.of(w), g.of(b)};
    const DrainReport report = inspect(lazy());
    EXPECT_EQ(report.launches, 4U) << to_table(report);
    std::uint64_t written = 0;
    for (const BlockReport& block : report.blocks) written += block.bytes_written;
    // The result, and what x, w and b get.
    EXPECT_EQ(written, (m * n + m * k + k * n + n) * 4U) << to_table(report);

    const Device plain = test::device().eager().autodiff();
    const AnyTensor x1 = x.detach().to(plain).require_grad();
    const AnyTensor w1 = w.detach().to(plain).require_grad();
    const AnyTensor b1 = b.detach().to(plain).require_grad();
    const AnyTensor y1 = layers[1](x1, w1, b1);
    const Gradients h = vjp(std::array{y1}, std::array{seed.to(plain)});
    test::expect_near(values(y), test::doubles(values(y1)), 1e-5);
    test::expect_near(values(grads[0]), test::doubles(values(h.of(x1))), 1e-5);
    test::expect_near(values(grads[1]), test::doubles(values(h.of(w1))), 1e-5);
    test::expect_near(values(grads[2]), test::doubles(values(h.of(b1))), 1e-5);
  }
}

// As in training: the backward pass runs when the forward pass was read.
TEST(WgslMatmulLoads, ABackwardPassOfItsOwnIsThreeLaunches) {
  const Device device = lazy().autodiff();
  for (const Layer layer : layers) {
    const AnyTensor x = make_wave({24, 20}, 0, DType::f32, device).require_grad();
    const AnyTensor w = make_wave({20, 36}, 1, DType::f32, device).require_grad();
    const AnyTensor b = make_wave({36}, 2, DType::f32, device).require_grad();
    const AnyTensor y = layer(x, w, b);
    (void)values(y);
    const Gradients g = vjp(std::array{y}, std::array{input({24, 36}, 3)});
    const std::array grads{g.of(x), g.of(w), g.of(b)};
    const DrainReport report = inspect(lazy());
    EXPECT_EQ(report.launches, 3U) << to_table(report);
    (void)values(grads[0]);
  }
}

}  // namespace
}  // namespace kiln
