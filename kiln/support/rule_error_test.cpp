#include "kiln/support/rule_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace kiln {
namespace {

/// The text of the E that a rule which throws `what` ends with; it must nest a T.
template <class E, class T>
std::string nested(const T& what) {
  try {
    in_rule("op", "rule", [&] { throw what; });
  } catch (const E& error) {
    try {
      std::rethrow_if_nested(error);
    } catch (const T&) {
      return error.what();
    }
    ADD_FAILURE() << "nothing is nested";
  }
  ADD_FAILURE() << "another type was thrown";
  return {};
}

TEST(RuleError, HasTheOperationTheRuleAndTheTextAndNestsWhatWasThrown) {
  EXPECT_EQ(nested<Error>(std::out_of_range("vector::at")), "op: rule: vector::at");
  EXPECT_EQ(nested<OutOfMemoryError>(std::bad_alloc()), "op: rule: std::bad_alloc");
  EXPECT_EQ(nested<Error>(17), "op: rule: an exception was thrown that is not a std::exception");
}

TEST(RuleError, LeavesTheLibrarysOwnAsTheyAre) {
  try {
    in_rule("op", "rule", [] { throw ShapeError("other: shapes"); });
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "other: shapes");
  }
}

TEST(RuleError, PassesResultsOn) {
  int x = 3;
  int& same = in_rule("op", "rule", [&]() -> int& { return x; });
  EXPECT_EQ(&same, &x);
  EXPECT_EQ(in_rule("op", "rule", [] { return std::vector{1, 2}; }).size(), 2U);
}

}  // namespace
}  // namespace kiln
