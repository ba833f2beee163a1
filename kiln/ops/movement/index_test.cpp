#include "kiln/ops/test_support.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// 0, 1, ..., 23 as [2, 3, 4].
AnyTensor block() {
  std::vector<float> x(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  return make(x, {2, 3, 4});
}

TEST(Index, AnIntegerTakesOneElementAndItsAxisAway) {
  const AnyTensor x = block();
  EXPECT_EQ(x[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(values(x[1])[0], 12);
  EXPECT_EQ(values(x[-2]), values(x[0]));
  EXPECT_EQ(x[1][2][3].shape(), Shape{});
  EXPECT_EQ(x[1][2][3].item(), 23);
  EXPECT_EQ(x(1, 2, 3).item(), 23);
  EXPECT_EQ(x(-1, -1, -1).item(), 23);
  EXPECT_EQ(x(std::size_t{1}, 0U, std::int64_t{2}).item(), 14);
}

TEST(Index, SlicesAndWholeAxesKeepTheirs) {
  const AnyTensor x = block();
  EXPECT_THAT(values(x(all, slice(1, 3), -1)), ElementsAre(7, 11, 19, 23));
  EXPECT_EQ(x(all, slice(1, 3), -1).shape(), (Shape{2, 2}));
  EXPECT_THAT(values(x(0, all, 0)), ElementsAre(0, 4, 8));
  EXPECT_THAT(values(x(0, slice(-2), slice(0, -1, 2))), ElementsAre(4, 6, 8, 10));
  EXPECT_EQ(x[slice(1)].shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(x(all).shape(), x.shape());
  EXPECT_EQ(x(slice(0, 0), 1).shape(), (Shape{0, 4}));
}

TEST(Index, AnEllipsisStandsForTheAxesThatAreLeft) {
  const AnyTensor x = block();
  EXPECT_EQ(values(x(ellipsis, 1)), values(x(all, all, 1)));
  EXPECT_EQ(values(x(1, ellipsis, 2)), values(x(1, all, 2)));
  EXPECT_EQ(x(1, ellipsis, slice(1), 2).shape(), Shape{2});
  EXPECT_EQ(values(x(ellipsis)), values(x));
  EXPECT_EQ(make<float>({7}, {})(ellipsis).item(), 7);
}

TEST(Index, CopiesNothingAndReadsViews) {
  const AnyTensor x = block();
  EXPECT_EQ(test::counted([&] { return x(1, slice(0, 3, 2)); }).launches, 0U);
  const AnyTensor turned = permute(x, {2, 0, 1});
  EXPECT_EQ(values(turned(3, all, 1)), values(x(all, 1, 3)));
  for (const AnyTensor& view : test::other_views(x))
    EXPECT_EQ(values(view(1, slice(1), slice(1, 4, 2))), values(x(1, slice(1), slice(1, 4, 2))));
  const Tensor<3> typed = x;
  const Tensor<1> row = typed(0, 1);
  EXPECT_THAT(values(row), ElementsAre(4, 5, 6, 7));
}

TEST(Index, SaysWhatIsOutOfRange) {
  const AnyTensor x = block();
  EXPECT_THAT(message_of<ShapeError>([&] { (void)x[2]; }),
              AllOf(HasSubstr("index: 2"), HasSubstr("axis 0 of size 2"), HasSubstr("[2, 3, 4]")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)x(0, -4); }),
              AllOf(HasSubstr("index: -4"), HasSubstr("axis 1 of size 3")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)x(0, 0, 0, 0); }),
              AllOf(HasSubstr("4 places"), HasSubstr("rank 3")));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)x(ellipsis, ellipsis); }),
              HasSubstr("one ellipsis"));
  EXPECT_THAT(message_of<ShapeError>([&] { (void)x(all, slice(4)); }),
              AllOf(HasSubstr("slice"), HasSubstr("begin 4"), Not(HasSubstr("922337"))));
  EXPECT_THROW((void)make<float>({7}, {})[0], ShapeError);
  EXPECT_THROW((void)make<float>({}, {0})[0], ShapeError);
  EXPECT_THROW((void)AnyTensor()[0], Error);
}

TEST(Index, GradientsGoWhereTheElementsCameFrom) {
  const AnyTensor x = make_wave({2, 3, 4});
  test::expect_gradients("x[1]", [](const auto& in) { return in[0][1]; }, {x});
  test::expect_gradients("x(all, slice, -1)",
                         [](const auto& in) { return in[0](all, slice(0, 3, 2), -1); }, {x});
  const auto g = test::gradients_of([](const auto& in) { return in[0](ellipsis, 1); },
                                    {make({1, 2, 3, 4}, {2, 2}, DType::f16)}, 1.0F);
  EXPECT_THAT(values(g[0]), ElementsAre(0, 1, 0, 1));
}

}  // namespace
}  // namespace kiln
