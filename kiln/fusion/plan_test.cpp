#include "kiln/fusion/plan.hpp"

#include <gtest/gtest.h>

#include <array>

#include "kiln/scalar/body_of_test.hpp"

namespace kiln::fusion {
namespace {

/// A chain of `length` elementwise operations, of which every result is held.
PlanPtr chain(std::int32_t length) {
  const BodyPtr body = body_of([](Expr x) { return x + x; });
  const Shape shape{4};
  Graph graph;
  graph.values.push_back({{shape, DType::f32}, true, false});
  for (std::int32_t i = 0; i < length; ++i) {
    graph.values.push_back({{shape, DType::f32}, false, true});
    graph.nodes.push_back(
        {{i}, Elementwise{{body, {}}, shape}, {{i, Layout::dense(shape)}}, {i + 1}});
  }
  return make_plan(graph, std::vector<std::string>(static_cast<std::size_t>(length), "twice"), {});
}

TEST(PlanCache, KeepsThoseUsedLastWithinItsBytes) {
  const PlanPtr plan = chain(10);
  PlanCache cache(3 * bytes_of(*plan) + 3000);
  for (const char* form : {"a", "b", "c"}) cache.add(form, plan);
  EXPECT_EQ(cache.find("a"), plan) << "used again";
  cache.add("d", plan);
  EXPECT_EQ(cache.find("b"), nullptr) << "used longest ago";
  for (const char* form : {"a", "c", "d"}) EXPECT_EQ(cache.find(form), plan) << form;
  EXPECT_EQ(cache.size(), 3U);
}

TEST(PlanCache, KeepsTheFirstPlanOfAForm) {
  PlanCache cache(1 << 20);
  const PlanPtr first = chain(2);
  EXPECT_EQ(cache.add("a", first), first);
  const std::size_t bytes = cache.bytes();
  EXPECT_EQ(cache.add("a", chain(2)), first);
  EXPECT_EQ(cache.find("a"), first);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(cache.bytes(), bytes);
}

TEST(PlanCache, GrowsNoFurtherHoweverManyFormsThereAre) {
  constexpr std::size_t most = 1 << 20;
  PlanCache cache(most);
  for (int i = 0; i < 500; ++i) cache.add(std::string(1000, 'x') + std::to_string(i), chain(20));
  EXPECT_LE(cache.bytes(), most);
  EXPECT_GT(cache.size(), 4U);
  EXPECT_LT(cache.size(), 500U);
}

TEST(PlanCache, KeepsThePlanThatIsInUseEvenIfItIsTooLarge) {
  PlanCache cache(10);
  cache.add("a", chain(1));
  cache.add("b", chain(2));
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_NE(cache.find("b"), nullptr);
}

TEST(Plan, ItsBytesFollowItsOperations) {
  const auto small = bytes_of(*chain(100));
  const auto large = bytes_of(*chain(400));
  EXPECT_GT(small, 100 * sizeof(Node));
  EXPECT_GT(large, 3 * small);
  EXPECT_LT(large, 5 * small);
}

}  // namespace
}  // namespace kiln::fusion
