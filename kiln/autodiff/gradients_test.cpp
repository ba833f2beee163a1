#include "kiln/autodiff/gradients.hpp"

#include <thread>

#include "kiln/autodiff/node.hpp"
#include "kiln/autodiff/test_support.hpp"
#include "kiln/scalar/body_of_test.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class F>
AnyTensor elementwise(std::string_view name, F f, const std::vector<AnyTensor>& in) {
  return apply_elementwise(name, body_of(f), {}, in);
}
AnyTensor mul(const AnyTensor& a, const AnyTensor& b) {
  return elementwise("mul", [](Expr x, Expr y) { return x * y; }, {a, b});
}
AnyTensor add(const AnyTensor& a, const AnyTensor& b) {
  return elementwise("add", [](Expr x, Expr y) { return x + y; }, {a, b});
}

Device training() { return test::device().autodiff(); }
AnyTensor leaf(const std::vector<float>& numbers) {
  return make(numbers, {static_cast<std::int64_t>(numbers.size())}, training()).require_grad();
}
Gradients backward(const AnyTensor& out, float seed = 1) {
  const AnyTensor seeds =
      make(std::vector<float>(static_cast<std::size_t>(out.shape().elements()), seed), out.shape(),
           out.dtype(), out.device());
  return vjp({&out, 1}, {&seeds, 1});
}

TEST(Gradients, AreThoseOfTheLeaves) {
  const AnyTensor x = leaf({1, 2, 3});
  const AnyTensor y = leaf({4, 5, 6});
  const Gradients g = backward(mul(x, y));
  EXPECT_THAT(values(g.of(x)), ElementsAre(4, 5, 6));
  EXPECT_THAT(values(g.of(y)), ElementsAre(1, 2, 3));
  EXPECT_FALSE(g.of(x).tracked());
  EXPECT_FALSE(g.of(x).device().has_autodiff());
}

TEST(Gradients, AddUpWhereATensorIsUsedMoreThanOnce) {
  const AnyTensor x = leaf({2, 3});
  EXPECT_THAT(values(backward(mul(x, x)).of(x)), ElementsAre(4, 6));
  const AnyTensor y = mul(x, x);  // used before and after
  EXPECT_THAT(values(backward(add(mul(y, x), add(y, x))).of(x)),
              ElementsAre(3 * 4 + 4 + 1, 3 * 9 + 6 + 1));
}

TEST(Gradients, AreSummedOverBroadcastDimensions) {
  const AnyTensor x = make<float>({1, 2, 3, 4, 5, 6}, {2, 3}, training()).require_grad();
  const AnyTensor row = leaf({1, 10, 100});
  const AnyTensor column = make<float>({2, 3}, {2, 1}, training()).require_grad();
  const AnyTensor scalar = make<float>({7}, {}, training()).require_grad();
  const AnyTensor one = make<float>({7}, {1, 1}, training()).require_grad();
  EXPECT_THAT(values(backward(mul(x, row)).of(row)), ElementsAre(5, 7, 9));
  EXPECT_THAT(values(backward(mul(x, column)).of(column)), ElementsAre(6, 15));
  EXPECT_THAT(values(backward(mul(scalar, x)).of(scalar)), ElementsAre(21));
  EXPECT_EQ(backward(mul(scalar, x)).of(scalar).shape(), Shape{});
  EXPECT_THAT(values(backward(mul(x, one)).of(one)), ElementsAre(21));
  EXPECT_EQ(backward(mul(x, one)).of(one).shape(), (Shape{1, 1}));
  const Gradients outer = backward(mul(row, column));
  EXPECT_THAT(values(outer.of(row)), ElementsAre(5, 5, 5));
  EXPECT_THAT(values(outer.of(column)), ElementsAre(111, 111));
}

TEST(Gradients, APartOfATensorTimesTheWhole) {
  const AnyTensor x = leaf({3, 4, 5});
  const Device plain = training();
  // A broadcast leaf of shape [1] and an empty result: its gradient is zero, not missing.
  const AnyTensor one = leaf({3});
  const AnyTensor empty = make<float>({}, {0}, plain);
  EXPECT_THAT(values(backward(mul(one, empty)).of(one)), ElementsAre(0));
  EXPECT_THAT(values(backward(mul(one, x)).of(one)), ElementsAre(12));
}

TEST(Gradients, BackwardTwiceGivesTheSameTwice) {
  const AnyTensor x = leaf({2, 3});
  const AnyTensor y = mul(x, mul(x, x));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(values(backward(y).of(x)), ElementsAre(12, 27));
}

TEST(Gradients, ALeafServesManyGraphsAndAGradientIsAnOrdinaryTensor) {
  const AnyTensor x = leaf({2, 3});
  const AnyTensor g = backward(mul(x, x)).of(x);
  EXPECT_THAT(values(backward(mul(x, g)).of(x)), ElementsAre(4, 6));
  const AnyTensor again = g.to(training()).require_grad();
  const Gradients second = backward(mul(x, again));
  EXPECT_THAT(values(second.of(again)), ElementsAre(2, 3));
  EXPECT_THAT(values(second.of(x)), ElementsAre(4, 6));
}

TEST(Gradients, SeveralOutputsAndSeeds) {
  const AnyTensor x = leaf({2, 3});
  const std::vector<AnyTensor> outs{mul(x, x), add(x, x), x, make_wave({2})};
  const std::vector<AnyTensor> seeds{make<float>({1, 1}, {2}), make<float>({10, 20}, {2}),
                                     make<float>({100, 200}, {2}), make<float>({1, 1}, {2})};
  EXPECT_THAT(values(vjp(outs, seeds).of(x)), ElementsAre(4 + 20 + 100, 6 + 40 + 200));
  EXPECT_THROW((void)vjp(outs, std::span(seeds).first(2)), ShapeError);
  const std::vector<AnyTensor> wrong{make<float>({1}, {1})};
  EXPECT_THROW((void)vjp(std::span(outs).first(1), wrong), ShapeError);
  const std::vector<AnyTensor> half{make({1, 1}, {2}, DType::f16)};
  EXPECT_THROW((void)vjp(std::span(outs).first(1), half), DTypeError);
}

TEST(Gradients, BackwardOfOneElementStartsFromOne) {
  const AnyTensor x = make<float>({3}, {}, training()).require_grad();
  EXPECT_THAT(values(mul(x, x).backward().of(x)), ElementsAre(6));
  const AnyTensor h = make({3}, {1}, DType::f16, training()).require_grad();
  EXPECT_EQ(mul(h, h).backward().of(h).dtype(), DType::f16);
  EXPECT_THAT(values(x.backward().of(x)), ElementsAre(1)) << "a leaf is its own loss";
}

TEST(Gradients, BackwardSaysWhatItNeeds) {
  const AnyTensor x = leaf({1, 2});
  EXPECT_THAT(message_of<ShapeError>([&] { (void)mul(x, x).backward(); }),
              AllOf(HasSubstr("exactly one element"), HasSubstr("[2]"), HasSubstr("vjp")));
  EXPECT_THAT(
      message_of<UnsupportedError>([&] { (void)make<float>({1}, {1}, training()).backward(); }),
      HasSubstr("require_grad()"));
}

TEST(Gradients, MarkingSaysWhatIsWrong) {
  const AnyTensor plain = make_wave({2});
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)plain.require_grad(); }),
              HasSubstr("device.autodiff()"));
  const AnyTensor x = leaf({1, 2});
  const AnyTensor y = mul(x, x);
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)y.require_grad(); }),
              AllOf(HasSubstr("'mul'"), HasSubstr("detach()")));
  EXPECT_THAT(message_of<DTypeError>(
                  [&] { (void)make<std::int32_t>({1}, {1}, training()).require_grad(); }),
              HasSubstr("i32 [1]"));
  EXPECT_TRUE(y.detach().require_grad().tracked());
  EXPECT_EQ(NodeAccess::node(x.require_grad()), NodeAccess::node(x))
      << "marking twice changes nothing";
}

TEST(Gradients, AskingSaysWhatIsWrong) {
  const AnyTensor x = leaf({1, 2});
  const AnyTensor other = leaf({1, 2});
  const AnyTensor y = mul(x, x);
  const Gradients g = backward(y);
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)g.of(make_wave({2})); }),
              HasSubstr("require_grad()"));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)g.of(x.detach()); }),
              HasSubstr("require_grad()"));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)g.of(y); }),
              AllOf(HasSubstr("'mul'"), HasSubstr("leaves")));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)g.of(other); }),
              HasSubstr("does not depend"));
  EXPECT_FALSE(g.contains(other));
  EXPECT_FALSE(g.contains(make_wave({2})));
  EXPECT_TRUE(g.contains(x));
}

TEST(Gradients, WorkFromSeveralThreadsOverOneGraph) {
  const AnyTensor x = leaf({2, 3});
  AnyTensor y = x;
  for (int i = 0; i < 20; ++i) y = add(mul(y, x), x);
  const std::vector<float> expected = values(backward(y).of(x));
  std::vector<std::vector<float>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found) {
    threads.emplace_back([&mine, x, y] {
      for (int round = 0; round < 5; ++round) mine = values(backward(y).of(x));
    });
  }
  const AnyTensor z = mul(x, x);  // the leaf goes on being used meanwhile
  y = AnyTensor();
  EXPECT_THAT(values(backward(z).of(x)), ElementsAre(4, 6));
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(found, Each(expected));
}

TEST(Gradients, GraphsAreFreedWithTheirOutputs) {
  const std::int64_t before = Node::alive();
  const std::uint64_t bytes = test::counters().bytes_in_use;
  {
    const AnyTensor x = leaf(test::wave(1 << 16));
    AnyTensor y = mul(x, x);
    const Gradients g = backward(y);
    EXPECT_EQ(Node::alive() - before, 2);
    y = AnyTensor();
    EXPECT_EQ(Node::alive() - before, 1) << "gradients hold no graph";
    EXPECT_EQ(values(g.of(x)).size(), std::size_t{1} << 16);
  }
  EXPECT_EQ(Node::alive(), before);
  EXPECT_EQ(test::counters().bytes_in_use, bytes);
}

TEST(Gradients, UntrackedCallsKeepNothing) {
  const std::int64_t before = Node::alive();
  AnyTensor y = make_wave({64}, 0, DType::f32, training());
  for (int i = 0; i < 10; ++i) y = mul(y, y);
  EXPECT_FALSE(y.tracked());
  EXPECT_EQ(Node::alive(), before);
  const AnyTensor x = leaf({1});
  EXPECT_FALSE(mul(x.detach(), x.detach()).tracked());
}

TEST(Gradients, OnlyWhatBackwardReadsIsKept) {
  const std::uint64_t mib = 1 << 20;
  const auto in_use = [] { return test::counters().bytes_in_use; };
  const AnyTensor x = leaf(test::wave(1 << 18));
  const std::uint64_t before = in_use();
  {  // a sum reads neither operand
    AnyTensor y = x;
    for (int i = 0; i < 8; ++i) y = add(y, x);
    EXPECT_EQ(in_use() - before, mib);
    EXPECT_THAT(values(backward(y).of(x)), Each(9));
  }
  {  // exp reads its result only
    AnyTensor y = x;
    for (int i = 0; i < 2; ++i) {
      y = elementwise("exp", [](Expr v) { return exp(v); }, {add(y, x)});
    }
    EXPECT_EQ(in_use() - before, 2 * mib);
  }
  {  // of a product with an untracked factor only that factor
    AnyTensor y = add(x, x);
    const AnyTensor factor = make_wave({1 << 18}, 1, DType::f32, training());
    y = mul(y, factor);
    EXPECT_EQ(in_use() - before, 2 * mib);
  }
  EXPECT_EQ(in_use(), before);
}

TEST(Gradients, LongChainsAreDifferentiatedAndDestroyedWithoutRecursion) {
  const std::int64_t before = Node::alive();
  const AnyTensor x = leaf({1});
  (void)values(backward(add(add(x, x), x)).of(x));  // compiles where the stack is large
  test::on_a_small_stack([&] {
    AnyTensor y = x;
    for (int i = 0; i < 20000; ++i) y = add(y, x);
    EXPECT_THAT(values(backward(y).of(x)), ElementsAre(20001));
  });
  EXPECT_EQ(Node::alive(), before + 1);
}

TEST(Gradients, TrackingPassesToDevicesWithAutodiffOnly) {
  const AnyTensor x = leaf({1, 2});
  EXPECT_TRUE(x.to(training()).tracked());
  EXPECT_FALSE(x.to(test::device()).tracked());
  EXPECT_FALSE(x.to(test::device()).device().has_autodiff());
  const Device narrow = webgpu::device({.f16 = false});
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)x.to(narrow); }), HasSubstr("detach()"));
  const AnyTensor moved = x.detach().to(narrow);
  EXPECT_TRUE(moved.device().same_as(narrow));
  EXPECT_THAT(values(moved), ElementsAre(1, 2));
}

}  // namespace
}  // namespace kiln
