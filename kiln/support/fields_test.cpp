#include "kiln/support/fields.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kiln/support/shape.hpp"

namespace kiln {
namespace {

using detail::field_count;
using detail::with_fields;

struct None {};
struct One {
  int a = 1;
};
struct Eight {
  int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
};
template <class T>
struct MinMax {
  T lo, hi;
  std::int64_t count;
};
struct Nested {
  MinMax<float> range;
  double scale = 1;
};
struct Rich {
  std::string text;
  std::vector<int> list;
  std::optional<int> maybe;
  std::variant<int, std::string> either;
  std::array<std::int64_t, 3> sizes;
  Shape shape;
  std::string_view view;
  std::function<int()> call;
};
struct NoDefault {
  explicit NoDefault(int v) : value(v) {}
  int value;
};
struct HoldsNoDefault {
  NoDefault first;
  std::unique_ptr<int> second;
};
struct Rules {
  [[maybe_unused]] static constexpr std::string_view name = "rules";
  static int output() { return 0; }
  double alpha = 0.5;
  [[nodiscard]] double body() const { return alpha; }
};

TEST(Fields, AreCountedFromNoneToEight) {
  static_assert(field_count<None>() == 0);
  static_assert(field_count<One>() == 1);
  static_assert(field_count<MinMax<int>>() == 3);
  static_assert(field_count<Eight>() == 8);
}

TEST(Fields, ANestedAggregateOrAnArrayIsOneField) {
  static_assert(field_count<Nested>() == 2);
  static_assert(field_count<MinMax<MinMax<int>>>() == 3);
}

TEST(Fields, MayBeOfLibraryTypes) { static_assert(field_count<Rich>() == 8); }

TEST(Fields, NeedNotBeDefaultConstructibleOrCopyable) {
  static_assert(field_count<HoldsNoDefault>() == 2);
  HoldsNoDefault holder{NoDefault(3), std::make_unique<int>(4)};
  EXPECT_EQ(with_fields(holder, [](auto& a, auto& b) { return a.value + *b; }), 7);
}

TEST(Fields, StaticMembersAndFunctionsAreNone) { static_assert(field_count<Rules>() == 1); }

TEST(Fields, AreVisitedInOrder) {
  const Eight eight;
  const auto list = [](const auto&... field) { return std::vector<int>{field...}; };
  EXPECT_EQ(with_fields(eight, list), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Fields, AreVisitedForEveryCount) {
  const auto sum = [](const auto&... field) { return (0 + ... + field); };
  struct Two {
    int a = 1, b = 2;
  };
  struct Four {
    int a = 1, b = 2, c = 3, d = 4;
  };
  struct Five {
    int a = 1, b = 2, c = 3, d = 4, e = 5;
  };
  struct Six {
    int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  };
  struct Seven {
    int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7;
  };
  const MinMax<int> three{1, 2, 3};
  EXPECT_EQ(with_fields(std::as_const(three), sum), 6);
  const None none;
  EXPECT_EQ(with_fields(none, sum), 0);
  const One one;
  EXPECT_EQ(with_fields(one, sum), 1);
  const Two two;
  EXPECT_EQ(with_fields(two, sum), 3);
  const Four four;
  EXPECT_EQ(with_fields(four, sum), 10);
  const Five five;
  EXPECT_EQ(with_fields(five, sum), 15);
  const Six six;
  EXPECT_EQ(with_fields(six, sum), 21);
  const Seven seven;
  EXPECT_EQ(with_fields(seven, sum), 28);
}

TEST(Fields, AreReferencesIntoTheObject) {
  MinMax<int> range{1, 2, 3};
  with_fields(range, [](int& lo, int& hi, std::int64_t& count) {
    lo = 10;
    hi = 20;
    count = 30;
  });
  EXPECT_EQ(range.lo, 10);
  EXPECT_EQ(range.hi, 20);
  EXPECT_EQ(range.count, 30);
  EXPECT_EQ(&with_fields(range, [](int& lo, int&, std::int64_t&) -> int& { return lo; }),
            &range.lo);
}

}  // namespace
}  // namespace kiln
