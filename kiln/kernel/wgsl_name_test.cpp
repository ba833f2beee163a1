#include "kiln/kernel/wgsl_name.hpp"

#include <gmock/gmock.h>

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WgslName, OfAnOperandIsAnIdentifierThatNothingElseHas) {
  for (const std::string_view name :
       {"x", "lhs", "_x", "x1", "Lhs", "input", "out", "length", "infn"})
    EXPECT_THAT(why_no_operand_name(name), IsEmpty()) << name;
  for (const std::string_view name : {"", "1x", "a-b", "a b", "_", "__x", "é", "x;"})
    EXPECT_THAT(why_no_operand_name(name), HasSubstr("no identifier")) << name;
  for (const std::string_view name : {"fn", "var", "true", "target", "NULL", "yield", "alias"})
    EXPECT_THAT(why_no_operand_name(name), HasSubstr("reserved word")) << name;
  for (const std::string_view name : {"params", "Elem", "Acc", "main", "is_nan", "relu"})
    EXPECT_THAT(why_no_operand_name(name), HasSubstr("declares")) << name;
  for (const std::string_view name : {"f32", "vec4", "select", "array", "abs"})
    EXPECT_THAT(why_no_operand_name(name), HasSubstr("WGSL's own")) << name;
  EXPECT_THAT(why_no_operand_name("in"), HasSubstr("keyword"));
  EXPECT_THAT(why_no_operand_name("kiln_x"), HasSubstr("kiln_"));
  EXPECT_THAT(why_no_operand_name("store_x"), HasSubstr("store_"));
}

TEST(WgslName, OfAParamMayBeWhatIsNoMemberOfParams) {
  for (const std::string_view name : {"count", "params", "abs", "f32", "store_x", "relu"})
    EXPECT_THAT(why_no_param_name(name), IsEmpty()) << name;
  EXPECT_THAT(why_no_param_name("fn"), HasSubstr("reserved word"));
  EXPECT_THAT(why_no_param_name("kiln_words"), HasSubstr("kiln_"));
  EXPECT_THAT(why_no_param_name("a.b"), HasSubstr("no identifier"));
}

TEST(WgslName, ListsAreSorted) {
  static_assert(std::ranges::is_sorted(detail::wgsl_reserved));
  static_assert(std::ranges::is_sorted(detail::kiln_names));
  static_assert(std::ranges::is_sorted(detail::wgsl_predeclared));
}

}  // namespace
}  // namespace kiln
