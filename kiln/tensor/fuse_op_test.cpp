// Operations that register their lazy execution by hand.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* twice_wgsl = R"(
@group(0) @binding(0) var<storage, read> x: array<{{ elem }}>;
@group(0) @binding(1) var<storage, read_write> y: array<{{ elem }}>;
@compute @workgroup_size({{ workgroup_size_x }})
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  if (at.x < arrayLength(&y)) { y[at.x] = x[at.x] * 2; }
}
)";

/// Every binding by hand, and queued by hand.
struct Twice {
  static constexpr std::string_view name = "twice_by_hand";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Fusion>;

  static AnyTensor fuse(Stream& stream, const AnyTensor& x) {
    const auto launch = [](Client& client, std::span<const RawTensor> in) {
      const RawTensor dense = client.contiguous(in[0]);
      RawTensor out = client.empty(dense.spec());
      const std::int64_t groups = ceil_div(dense.shape().elements(), 64);
      client.launch(KernelSource::wgsl(twice_wgsl), {64, 1, 1}, {groups, 1, 1}, {dense, out});
      return std::vector{out};
    };
    const std::array in{x.value()};
    return {stream.launch(name, x.device(), in, {&x.spec(), 1}, launch).front(), x.device()};
  }

  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  static void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) {
    grads[0].set(apply(Twice{}, grad));
  }
};
static_assert(Extension<Twice>);

TEST(WgslFuseOp, RunsWhenItIsReadAndNotBefore) {
  const AnyTensor x = make<float>({1, 2, 3}, {3}, test::device().lazy());
  test::device().flush();
  const std::uint64_t before = test::device().runtime().counters().launches;
  const AnyTensor y = apply(Twice{}, apply(Twice{}, x));
  EXPECT_EQ(y.shape(), (Shape{3}));
  EXPECT_EQ(test::device().runtime().counters().launches, before);
  EXPECT_THAT(values(y), ElementsAre(4, 8, 12));
  EXPECT_EQ(test::device().runtime().counters().launches, before + 2);
}

TEST(WgslFuseOp, HasItsGradientLikeAnyOther) {
  const AnyTensor x = make<float>({1, 2}, {2}, test::device().autodiff()).require_grad();
  const AnyTensor y = apply(Twice{}, x);
  const AnyTensor seed = make<float>({1, 10}, {2});
  EXPECT_THAT(values(vjp({&y, 1}, {&seed, 1}).of(x)), ElementsAre(2, 20));
}

/// Promises another shape than it gives.
struct Liar {
  static constexpr std::string_view name = "liar";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Fusion>;
  static AnyTensor fuse(Stream& stream, const AnyTensor& x) {
    const TensorSpec promised{{7}, DType::f32};
    const auto launch = [](Client&, std::span<const RawTensor> in) { return std::vector{in[0]}; };
    const std::array in{x.value()};
    return {stream.launch(name, x.device(), in, {&promised, 1}, launch).front(), x.device()};
  }
};

TEST(WgslFuseOp, WhatItPromisedIsComparedWhenItHasRun) {
  EXPECT_THAT(
      message_of<ShapeError>([] { test::evaluate(apply(Liar{}, make<float>({1, 2}, {2}))); }),
      AllOf(HasSubstr("liar"), HasSubstr("f32 [7]"), HasSubstr("f32 [2]")));
}

}  // namespace
}  // namespace kiln
