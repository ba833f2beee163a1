// What becomes of gradients where something on the way to them fails.
#include "kiln/autodiff/gradients.hpp"
#include "kiln/autodiff/node.hpp"
#include "kiln/autodiff/test_support.hpp"
#include "kiln/fusion/inspect.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/scalar/body_of_test.hpp"

namespace kiln {
namespace {

using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Lazy, whatever the environment says: on an eager device a fault is thrown before others depend
/// on it.
Device lazy() { return test::device().lazy(); }

AnyTensor mul(const AnyTensor& a, const AnyTensor& b) {
  return apply_elementwise("mul", body_of([](Expr x, Expr y) { return x * y; }), {},
                           std::array{a, b});
}
AnyTensor square(const AnyTensor& a) {
  return apply_elementwise("square", body_of([](Expr x) { return x * x; }), {}, std::array{a});
}

/// The result of an operation by hand that throws `error` when it runs.
template <class E>
AnyTensor failing(const TensorSpec& spec, const E& error) {
  const LaunchFunction run =
      [error](Client&, std::span<const RawTensor>) -> std::vector<RawTensor> { throw error; };
  Stream& stream = Stream::of(lazy().runtime());
  return {stream.launch("failing", lazy(), {}, {&spec, 1}, run).front(), lazy()};
}

AnyTensor leaf(const Shape& shape, int seed) {
  return make_wave(shape, seed, DType::f32, lazy().autodiff()).require_grad();
}

/// x * w, where w broadcasts: the gradients of both are one operation, which goes into the sum that
/// is w's.
struct Product {
  AnyTensor x = leaf({4, 5}, 1);
  AnyTensor w = leaf({5}, 2);
  AnyTensor y = mul(x, w);

  [[nodiscard]] Gradients backward(const AnyTensor& seed) const { return vjp({&y, 1}, {&seed, 1}); }
};

TEST(Failure, OfASeedReachesEveryGradientThatDependsOnIt) {
  for (const bool x_first : {false, true}) {
    const Product p;
    const AnyTensor fine = square(p.x.detach());
    Gradients g = p.backward(failing({{4, 5}, DType::f32}, KernelError("failing: on purpose")));
    const AnyTensor of_x = g.of(p.x);
    const AnyTensor of_w = g.of(p.w);
    g = {};
    for (const AnyTensor& t : {x_first ? of_x : of_w, x_first ? of_w : of_x}) {
      EXPECT_EQ(message_of<KernelError>([&] { (void)values(t); }), "failing: on purpose");
      EXPECT_EQ(message_of<KernelError>([&] { (void)values(square(t)); }), "failing: on purpose");
    }
    EXPECT_EQ(values(fine).size(), 20U);
    EXPECT_EQ(values(p.y).size(), 20U);
  }
}

TEST(Failure, OfASeedIsThatOfTheOneGradientThatIsRead) {
  for (const bool of_x : {false, true}) {
    Product p;
    Gradients g = p.backward(failing({{4, 5}, DType::f32}, OutOfMemoryError("failing: no room")));
    AnyTensor read = g.of(of_x ? p.x : p.w);
    g = {};
    p = {};  // nobody holds the operands any more: each ends with the block that reads it last
    EXPECT_EQ(message_of<OutOfMemoryError>([&] { (void)values(read); }), "failing: no room");
    read = {};
    EXPECT_EQ(values(square(make_wave({3}, 0, DType::f32, lazy()))).size(), 3U);
  }
}

TEST(Failure, OfOneOperandSparesTheGradientThatDoesNotReadIt) {
  // The gradients by both operands are one operation of two results. That of x reads w, which is
  // there; that of w reads x, which failed.
  const auto body = [] {
    ExprGraph graph;
    const Expr x = graph.input(0);
    const Expr w = graph.input(1);
    const Expr g = graph.input(2);
    return make_body(graph, 3, 0, std::array{graph.place(g * w), graph.place(g * x)});
  }();
  const TensorSpec spec{{4, 5}, DType::f32};
  const AnyTensor x = failing(spec, KernelError("failing: x"));
  const std::array in{x.value(), make_wave({4, 5}, 1, DType::f32, lazy()).value(),
                      make_wave({4, 5}, 2, DType::f32, lazy()).value()};
  const std::vector<float> expected =
      values(mul(AnyTensor(in[1], lazy()), AnyTensor(in[2], lazy())));
  lazy().flush();
  const AnyTensor again = failing(spec, KernelError("failing: x"));
  std::vector<Value> both = record({"both", ElementwiseCall{body, {}}}, lazy(),
                                   std::array{again.value(), in[1], in[2]}, std::array{spec, spec});
  const AnyTensor by_x(sum_to(lazy(), both[0], {5}), lazy());
  const AnyTensor by_w(sum_to(lazy(), both[1], {5}), lazy());
  both.clear();
  std::vector<double> sums(5);
  for (std::size_t i = 0; i < expected.size(); ++i) sums[i % 5] += double{expected[i]};
  EXPECT_EQ(message_of<KernelError>([&] { (void)values(by_w); }), "failing: x");
  test::expect_near(values(by_x), sums, 1e-5);
}

TEST(Failure, OfASeedOfAnotherDeviceIsADeviceError) {
  const Product p;
  const AnyTensor seed = make_wave({4, 5}, 0, DType::f32, webgpu::device({.f16 = false}));
  EXPECT_THAT(message_of<DeviceError>([&] { (void)p.backward(seed); }),
              AllOf(HasSubstr("vjp: seed 0"), HasSubstr("to(device)")));
}

TEST(Failure, ForWantOfMemoryReachesWhatDependsOnItAndNothingElse) {
  // Above what one buffer can be; the view takes nothing.
  const std::uint64_t limit = lazy().limits().buffer_bytes;
  const auto rows = static_cast<std::int64_t>(limit / 4 / 1024) + 1;
  const std::uint64_t elements = static_cast<std::uint64_t>(rows) * 1024;
  if (elements > std::uint64_t{1} << 32 || elements * 4 >= Stream::most_queued_bytes)
    GTEST_SKIP() << "this adapter's buffers are larger than a tensor can be";
  const AnyTensor small = make_wave({1, 1024}, 1, DType::f32, lazy());
  Layout wide = small.value().layout();
  wide.shape = {rows, 1024};
  wide.strides[0] = 0;
  const AnyTensor broadcast(Stream::of(lazy().runtime()).view("wide", small.value(), wide), lazy());
  const AnyTensor fine = square(small);
  const AnyTensor huge = square(broadcast);
  const AnyTensor after = square(huge);
  const AnyTensor last(sum_to(lazy(), after.value(), {1, 1024}), lazy());
  EXPECT_THAT(message_of<OutOfMemoryError>([&] { (void)values(after); }), HasSubstr("square"));
  EXPECT_THAT(message_of<OutOfMemoryError>([&] { (void)values(huge); }), HasSubstr("square"));
  EXPECT_EQ(values(fine), values(square(small)));
  EXPECT_THROW((void)values(last), OutOfMemoryError);
}

}  // namespace
}  // namespace kiln
