#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::values;

TEST(Members, CallTheFunctionsOfTheirNames) {
  const AnyTensor x = make_wave({2, 1, 3});
  const auto same = [](const AnyTensor& a, const AnyTensor& b) {
    EXPECT_EQ(a.spec(), b.spec());
    EXPECT_EQ(values(a), values(b));
  };
  same(x.sum(), sum(x));
  same(x.sum({0, -1}, true), sum(x, {0, -1}, true));
  same(x.mean(2), mean(x, 2));
  same(x.max(0, true), max(x, 0, true));
  same(x.min(-1), min(x, -1));
  same(x.argmax(2), argmax(x, 2));
  same(x.argmin(0, true), argmin(x, 0, true));
  same(x.reshape({-1, 2}), reshape(x, {-1, 2}));
  same(x.reshape(Shape{6}), reshape(x, Shape{6}));
  same(x.permute({2, 0, 1}), permute(x, {2, 0, 1}));
  same(x.transpose(), transpose(x));
  same(x.transpose(0, 2), transpose(x, 0, 2));
  same(x.squeeze(), squeeze(x));
  same(x.squeeze(1), squeeze(x, 1));
  same(x.unsqueeze(-1), unsqueeze(x, -1));
  same(x.broadcast_to({2, 4, 3}), broadcast_to(x, {2, 4, 3}));
  same(x.cast(DType::f16), cast(x, DType::f16));
}

TEST(Members, OfTypedTensorsCrossToARank) {
  const Tensor<2> x = make<float>({1, 2, 3, 4}, {2, 2});
  const Tensor<1> rows = x.sum(1);
  EXPECT_EQ(values(rows), (std::vector<float>{3, 7}));
  EXPECT_EQ(x.sum().item(), 10);
}

TEST(Members, AreDifferentiable) {
  test::expect_gradients("members",
                         [](const auto& in) { return in[0].transpose().mean(0).reshape({2, 1}); },
                         {make_wave({2, 3})});
}

TEST(Members, OfATemporaryOutliveIt) {
  const AnyTensor x = make_wave({2, 3});
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : x(all, 0).shape()) sizes.push_back(size);
  EXPECT_EQ(sizes, std::vector<std::int64_t>{2});
  const TensorSpec& spec = x.sum(0).spec();
  EXPECT_EQ(spec.shape, Shape{3});
  const Device& device = x.sum(0).device();
  EXPECT_TRUE(device.same_as(x.device()));
}

// An index gives a new tensor, so assigning to it would do nothing.
static_assert(!std::is_assignable_v<AnyTensor, AnyTensor>);
static_assert(std::is_assignable_v<AnyTensor&, AnyTensor>);

}  // namespace
}  // namespace kiln
