#include "kiln/fusion/passes/rewrite.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kiln::fusion {
namespace {

/// Where each element of a layout lies, in row-major order.
std::vector<std::int64_t> positions(const Layout& layout) {
  std::vector<std::int64_t> out;
  const std::int64_t count = layout.shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    std::int64_t at = layout.offset;
    for (int axis = layout.shape.rank(); axis-- > 0;) {
      at += rest % layout.shape[axis] * layout.stride(axis);
      rest /= layout.shape[axis];
    }
    out.push_back(at);
  }
  return out;
}

/// One more view upon `layout`: two axes exchanged, a part, a broadcast axis, another shape.
Layout viewed(Layout layout, int kind, int pick) {
  const int rank = layout.shape.rank();
  const int axis = rank == 0 ? 0 : pick % rank;
  const auto a = static_cast<std::size_t>(axis);
  switch (kind) {
    case 0: {
      const auto b = static_cast<std::size_t>((axis + 1) % rank);
      std::swap(layout.shape[axis], layout.shape[static_cast<int>(b)]);
      std::swap(layout.strides[a], layout.strides[b]);
      return layout;
    }
    case 1:
      if (layout.shape[axis] > 1) {
        layout.offset += layout.strides[a];
        layout.shape[axis] -= 1;
      }
      return layout;
    case 2: {
      Shape wider{2 + pick % 3};
      for (const std::int64_t size : layout.shape) wider.push_back(size);
      return wider.rank() <= 5 ? layout.broadcast_to(wider) : layout;
    }
    default: {
      const Shape flat{layout.shape.elements()};
      return layout.reshape(flat).value_or(layout);
    }
  }
}

Layout strided(const Shape& shape, int spread) {
  Layout layout = Layout::dense(shape);
  for (auto& stride : layout.strides) stride *= spread;
  layout.offset = spread;
  return layout;
}

RC_GTEST_PROP(SeenThrough, GivesTheElementsThatTheViewReaches, ()) {
  Shape shape;
  const int rank = *rc::gen::inRange(1, 4);
  for (int i = 0; i < rank; ++i) shape.push_back(*rc::gen::inRange(1, 5));
  Layout view = Layout::dense(shape);
  const int views = *rc::gen::inRange(0, 4);
  for (int i = 0; i < views; ++i)
    view = viewed(view, *rc::gen::inRange(0, 4), *rc::gen::inRange(0, 100));
  const Layout inner = strided(shape, *rc::gen::inRange(1, 4));
  const auto seen = seen_through(inner, view);
  if (!seen) return;  // a copy is right, if slower
  RC_ASSERT(seen->shape == view.shape);
  const std::vector<std::int64_t> of_inner = positions(inner);
  std::vector<std::int64_t> expected;
  for (const std::int64_t at : positions(view))
    expected.push_back(of_inner[static_cast<std::size_t>(at)]);
  RC_ASSERT(positions(*seen) == expected);
}

TEST(SeenThrough, PermutedSlicedAndBroadcastViewsNeedNoCopy) {
  const Layout inner = strided({2, 3, 4}, 2);
  for (const std::vector<int>& kinds :
       {std::vector{0}, {1}, {2}, {3}, {0, 1}, {1, 0, 2}, {0, 2, 1}, {0, 0, 1, 1}}) {
    Layout view = Layout::dense({2, 3, 4});
    for (const int kind : kinds) view = viewed(view, kind, 1);
    EXPECT_TRUE(seen_through(inner, view)) << ::testing::PrintToString(kinds);
  }
}

TEST(SeenThrough, ABroadcastOperandStaysBroadcast) {
  const Layout bias = Layout::dense({4}).broadcast_to({3, 4});
  Layout transposed = Layout::dense({3, 4});
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  const auto seen = seen_through(bias, transposed);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->stride(0), 1);
  EXPECT_EQ(seen->stride(1), 0);
}

}  // namespace
}  // namespace kiln::fusion
