#include "kiln/support/layout.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// Where every element lies, in row-major order of the indices.
std::vector<std::int64_t> addresses(const Layout& layout) {
  std::vector<std::int64_t> out{layout.offset};
  for (int axis = 0; axis < layout.shape.rank(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t at : out) {
      for (std::int64_t i = 0; i < layout.shape[axis]; ++i) {
        next.push_back(at + i * layout.strides[static_cast<std::size_t>(axis)]);
      }
    }
    out = std::move(next);
  }
  return out;
}

/// Whether any strides at all put a tensor of this shape at these addresses.
bool has_strides(const Shape& shape, const std::vector<std::int64_t>& wanted) {
  if (wanted.empty()) return true;
  Layout guess{.shape = shape, .offset = wanted[0]};
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(step);
    if (shape[axis] > 1) guess.strides[static_cast<std::size_t>(axis)] = wanted[at] - wanted[0];
    step *= shape[axis];
  }
  return addresses(guess) == wanted;
}

Layout permuted(const Layout& layout, const std::vector<int>& order) {
  Layout out{.offset = layout.offset};
  for (std::size_t i = 0; i < order.size(); ++i) {
    out.shape.push_back(layout.shape[order[i]]);
    out.strides[i] = layout.stride(order[i]);
  }
  return out;
}

/// Every second element of an axis, from its second on.
Layout sliced(Layout layout, int axis) {
  if (layout.shape[axis] < 2) return layout;
  layout.offset += layout.stride(axis);
  layout.strides[static_cast<std::size_t>(axis)] *= 2;
  layout.shape[axis] /= 2;
  return layout;
}

Layout transposed(const Shape& shape) {
  std::vector<int> order;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) order.push_back(axis);
  return permuted(Layout::dense(shape), order);
}

std::string reshape_error(const Layout& layout, const Shape& to) {
  try {
    (void)layout.reshape(to);
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no ShapeError";
}

TEST(Layout, DenseStridesLetTheLastAxisRunFastest) {
  const Layout layout = Layout::dense({2, 3, 4});
  EXPECT_EQ(layout.stride(0), 12);
  EXPECT_EQ(layout.stride(1), 4);
  EXPECT_EQ(layout.stride(-1), 1);
  EXPECT_EQ(layout.offset, 0);
  EXPECT_TRUE(layout.is_dense());
}

TEST(Layout, AStrideOfAnAxisOutsideIsRefused) {
  const Layout layout = Layout::dense({2, 3});
  EXPECT_THROW((void)layout.stride(2), ShapeError);
  EXPECT_THROW((void)layout.stride(-3), ShapeError);
}

TEST(Layout, DenseOfAnEmptyShapeNeverOverflows) {
  const std::int64_t large = std::int64_t{1} << 40;
  const Layout layout = Layout::dense({large, large, 0});
  EXPECT_EQ(layout.shape.elements(), 0);
  EXPECT_TRUE(layout.is_dense());
  EXPECT_TRUE(Layout::dense({0, large, large}).is_dense());
}

TEST(Layout, DenseOfTooManyElementsIsRefused) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THROW((void)Layout::dense({large, large}), ShapeError);
}

TEST(Layout, AnOffsetLeavesItDense) {
  Layout layout = Layout::dense({2, 3});
  layout.offset = 7;
  EXPECT_TRUE(layout.is_dense());
}

TEST(Layout, AxesOfSizeOneDoNotCountForDensity) {
  Layout layout = Layout::dense({2, 1, 3});
  layout.strides[1] = 99;
  EXPECT_TRUE(layout.is_dense());
}

TEST(Layout, TransposedBroadcastAndSlicedViewsAreNotDense) {
  EXPECT_FALSE(transposed({2, 3}).is_dense());
  EXPECT_FALSE(Layout::dense({1, 3}).broadcast_to({2, 3}).is_dense());
  EXPECT_FALSE(sliced(Layout::dense({4, 4}), 1).is_dense());
  EXPECT_TRUE(transposed({1, 3}).is_dense());
}

TEST(Layout, ScalarsAndEmptyTensorsAreDense) {
  EXPECT_TRUE(Layout::dense({}).is_dense());
  EXPECT_TRUE(transposed({2, 0, 3}).is_dense());
}

TEST(Layout, BroadcastRepeatsElementsThroughStrideZero) {
  const Layout view = Layout::dense({3, 1}).broadcast_to({2, 3, 2});
  EXPECT_EQ(view.shape, (Shape{2, 3, 2}));
  EXPECT_EQ(addresses(view), (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
}

TEST(Layout, BroadcastKeepsTheOffset) {
  Layout row = Layout::dense({3});
  row.offset = 5;
  EXPECT_EQ(addresses(row.broadcast_to({2, 3})), (std::vector<std::int64_t>{5, 6, 7, 5, 6, 7}));
}

TEST(Layout, BroadcastToAShapeThatItDoesNotReachIsRefused) {
  const auto text = [](const Shape& from, const Shape& to) -> std::string {
    try {
      (void)Layout::dense(from).broadcast_to(to);
    } catch (const ShapeError& error) {
      return error.what();
    }
    return "no ShapeError";
  };
  EXPECT_EQ(text({3}, {1}), "broadcast_to: [3] does not broadcast to [1]");
  EXPECT_EQ(text({1, 3}, {3}), "broadcast_to: [1, 3] does not broadcast to [3]");
  EXPECT_EQ(text({2}, {3}),
            "broadcast_to: shapes must broadcast: sizes equal or 1, aligned at the last axis "
            "([2], [3])");
}

TEST(Layout, ReshapeOfADenseViewIsDenseAndKeepsTheOffset) {
  Layout layout = Layout::dense({2, 6});
  layout.offset = 3;
  const auto view = layout.reshape({3, 4});
  ASSERT_TRUE(view.has_value());
  EXPECT_TRUE(view->is_dense());
  EXPECT_EQ(view->offset, 3);
  EXPECT_EQ(view->shape, (Shape{3, 4}));
}

TEST(Layout, ReshapeOfATransposedViewNeedsACopy) {
  EXPECT_FALSE(transposed({2, 3}).reshape({6}).has_value());
  EXPECT_FALSE(transposed({2, 3}).reshape({2, 3}).has_value());
}

TEST(Layout, ReshapeOfATransposedViewMaySplitAnAxis) {
  const auto view = transposed({4, 3}).reshape({3, 2, 2});
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(addresses(*view), addresses(transposed({4, 3})));
}

TEST(Layout, ReshapeOfATransposedViewMayAddAndDropAxesOfSizeOne) {
  const auto view = transposed({2, 3}).reshape({1, 3, 1, 2, 1});
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(addresses(*view), addresses(transposed({2, 3})));
  const auto back = view->reshape({3, 2});
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(addresses(*back), addresses(transposed({2, 3})));
}

TEST(Layout, ReshapeMergesBroadcastAxesWithoutACopy) {
  const Layout view = Layout::dense({1, 1, 5}).broadcast_to({2, 3, 5});
  const auto merged = view.reshape({6, 5});
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(addresses(*merged), addresses(view));
  EXPECT_FALSE(view.reshape({2, 15}).has_value());
}

TEST(Layout, ReshapeOfAScalarViewGivesAxesOfSizeOne) {
  Layout scalar = Layout::dense({});
  scalar.offset = 4;
  const auto view = scalar.reshape({1, 1});
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(addresses(*view), (std::vector<std::int64_t>{4}));
}

TEST(Layout, ReshapeOfAnEmptyViewIsFree) {
  EXPECT_TRUE(transposed({2, 0, 3}).reshape({0}).has_value());
  EXPECT_TRUE(transposed({0, 4}).reshape({7, 0, 2}).has_value());
}

TEST(Layout, ReshapeToAnotherNumberOfElementsIsRefused) {
  EXPECT_EQ(reshape_error(Layout::dense({2, 3}), {7}), "reshape: [2, 3] has 6 elements, [7] has 7");
  EXPECT_EQ(reshape_error(transposed({2, 3}), {2, 2}),
            "reshape: [3, 2] has 6 elements, [2, 2] has 4");
  EXPECT_EQ(reshape_error(transposed({2, 3}), {0}), "reshape: [3, 2] has 6 elements, [0] has 0");
  EXPECT_EQ(reshape_error(Layout::dense({0}), {1}), "reshape: [0] has 0 elements, [1] has 1");
}

// Brute force over random views: a reshaped view visits the same addresses in the same order, and
// where there is none, no strides would do.
RC_GTEST_PROP(Layout, ReshapeKeepsTheElementOrderAndCopiesOnlyWhereItMust, ()) {
  const auto sizes = *rc::gen::resize(
      5, rc::gen::container<std::vector<int>>(rc::gen::element(1, 1, 2, 2, 3, 4, 6)));
  Shape base;
  for (const int size : sizes) base.push_back(size);
  Layout view = Layout::dense(base);

  std::vector<int> order;
  for (int axis = 0; axis < base.rank(); ++axis) order.push_back(axis);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    if (*rc::gen::element(0, 0, 1) != 0) std::swap(order[i], order[i + 1]);
  }
  view = permuted(view, order);
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    const int what = *rc::gen::element(0, 1, 2, 3, 4, 5, 6, 7);
    if (what == 0) view = sliced(view, axis);
    if (what == 1) view.strides[static_cast<std::size_t>(axis)] = 0;
  }
  RC_PRE(view.shape.elements() <= 2000);

  // A random factorisation of the same number of elements.
  Shape to;
  std::int64_t rest = view.shape.elements();
  while (to.rank() < 5 && *rc::gen::element(0, 1, 1, 1) != 0) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= rest; ++d) {
      if (rest % d == 0) divisors.push_back(d);
    }
    to.push_back(*rc::gen::elementOf(divisors));
    rest /= to[-1];
  }
  to.push_back(rest);

  const auto wanted = addresses(view);
  const auto result = view.reshape(to);
  RC_ASSERT(result.has_value() == has_strides(to, wanted));
  if (result) {
    RC_ASSERT(result->shape == to);
    RC_ASSERT(addresses(*result) == wanted);
  }
}

TEST(Layout, ReachIsOnePastTheFurthestElement) {
  EXPECT_EQ(Layout::dense({2, 3}).reach(), 6);
  EXPECT_EQ(Layout::dense({}).reach(), 1);
  EXPECT_EQ((Layout{.shape = {2, 3}, .strides = {0, 5}, .offset = 7}.reach()), 18);
  EXPECT_EQ((Layout{.shape = {1, 3}, .strides = {std::int64_t{1} << 62, 1}}.reach()), 3);
  EXPECT_EQ((Layout{.shape = {4, 0}, .strides = {9, 9}, .offset = 99}.reach()), 0);
}

TEST(Layout, ReachIsNothingWhereItCannotBeCounted) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto none = [](const Layout& layout) { return !layout.reach().has_value(); };
  EXPECT_TRUE(none({.shape = {2}, .strides = {-1}, .offset = 4}));
  EXPECT_TRUE(none({.shape = {2}, .strides = {1}, .offset = -1}));
  EXPECT_TRUE(none({.shape = {2}, .strides = {most}, .offset = 1}));
  EXPECT_TRUE(none({.shape = {1}, .offset = most}));
  EXPECT_TRUE(none({.shape = {most}, .strides = {3}}));
  EXPECT_TRUE(none({.shape = {most, most}, .strides = {1, 1}}));
  EXPECT_EQ((Layout{.shape = {most}, .strides = {1}}.reach()), most);
}

RC_GTEST_PROP(Layout, ReachIsOnePastTheFurthestOfAllAddresses, ()) {
  Layout view{.offset = *rc::gen::inRange(0, 9)};
  const int rank = *rc::gen::inRange(0, 5);
  for (int axis = 0; axis < rank; ++axis) {
    view.shape.push_back(*rc::gen::inRange(0, 4));
    view.strides[static_cast<std::size_t>(axis)] = *rc::gen::inRange(0, 9);
  }
  const auto at = addresses(view);
  RC_ASSERT(view.reach() == (at.empty() ? 0 : *std::ranges::max_element(at) + 1));
}

RC_GTEST_PROP(Layout, DenseMeansAddressesInOrder, ()) {
  const auto sizes =
      *rc::gen::resize(4, rc::gen::container<std::vector<int>>(rc::gen::element(0, 1, 1, 2, 3)));
  Layout view{.offset = 2};
  std::size_t axis = 0;
  for (const int size : sizes) {
    view.shape.push_back(size);
    view.strides[axis++] = *rc::gen::element(0, 1, 2, 3, 6);
  }
  const auto at = addresses(view);
  bool in_order = true;
  for (std::size_t i = 0; i < at.size(); ++i) {
    in_order = in_order && at[i] == 2 + static_cast<std::int64_t>(i);
  }
  RC_ASSERT(view.is_dense() == in_order);
}

}  // namespace
}  // namespace kiln
