#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "kiln/scalar/opcode_table.hpp"
#include "kiln/scalar/wgsl/wgsl.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using Names = std::set<std::string>;

int count(std::string_view text, std::string_view what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos;
       at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(WgslHelpers, AreGivenOnceWithWhatTheyCallBeforeThem) {
  const std::string text = wgsl_helpers({"kiln_max_f32", "kiln_min_f32", "kiln_pow"});
  EXPECT_EQ(count(text, "fn kiln_is_nan("), 1);
  EXPECT_EQ(count(text, "fn kiln_max_f32("), 1);
  EXPECT_EQ(count(text, "fn kiln_min_f32("), 1);
  EXPECT_EQ(count(text, "fn kiln_pow("), 1);
  EXPECT_EQ(count(text, "fn "), 4);
  EXPECT_LT(text.find("fn kiln_is_nan("), text.find("fn kiln_max_f32("));
}

TEST(WgslHelpers, OfNothingAreNothing) { EXPECT_EQ(wgsl_helpers({}), ""); }

TEST(WgslHelpers, OfIntegersNeedNoNaN) {
  EXPECT_EQ(wgsl_helpers({"kiln_min_i32"}),
            "fn kiln_min_i32(a: i32, b: i32) -> i32 { return min(a, b); }\n");
  EXPECT_EQ(wgsl_helpers({"kiln_relu_u32"}),
            "fn kiln_relu_u32(x: u32) -> u32 { return max(x, u32(0)); }\n");
}

TEST(WgslHelpers, OfAnUnknownNameAreRefused) {
  try {
    (void)wgsl_helpers({"kiln_nothing"});
    FAIL() << "must throw";
  } catch (const KernelError& error) {
    EXPECT_STREQ(error.what(), "wgsl: no helper function is called kiln_nothing");
  }
}

TEST(WgslHelpers, ExistForEveryOpcodeThatCallsOne) {
  for (int i = 0; i <= static_cast<int>(Opcode::select); ++i) {
    const std::string_view pattern = row(static_cast<Opcode>(i)).wgsl;
    if (!pattern.starts_with("kiln_")) continue;
    const std::string name{pattern.substr(0, pattern.find('('))};
    const std::size_t type = name.find("$t");
    if (type == std::string::npos) {
      EXPECT_NO_THROW((void)wgsl_helpers({name})) << name;
      continue;
    }
    for (const std::string spelled : {"f32", "i32", "u32"}) {
      if (spelled == "f32" && row(static_cast<Opcode>(i)).domain == Domain::integer) continue;
      std::string typed = name;
      EXPECT_NO_THROW((void)wgsl_helpers({typed.replace(type, 2, spelled)})) << typed;
    }
  }
}

TEST(WgslHelpers, BracketsOfEveryHelperMatch) {
  const Names all{"is_nan",    "relu",       "sigmoid",       "silu",
                  "erf",       "gelu",       "kiln_tanh",     "kiln_pow",
                  "kiln_i32",  "kiln_u32",   "kiln_softplus", "kiln_unless_zero",
                  "kiln_hide", "kiln_sin",   "kiln_cos",      "kiln_tan",
                  "kiln_acos", "kiln_atan2", "kiln_mod_i32",  "kiln_shift_left_u32"};
  const std::string text = wgsl_helpers(all);
  EXPECT_EQ(count(text, "("), count(text, ")"));
  EXPECT_EQ(count(text, "{"), count(text, "}"));
}

TEST(WgslHelpers, ThatHideANumberInsideSaySo) {
  const auto names = [](const std::string& name) {
    Names all;
    add_wgsl_helper(name, all);
    return all;
  };
  EXPECT_EQ(names("kiln_tan"), (Names{"kiln_tan", "kiln_hide"}));
  EXPECT_EQ(names("kiln_hide"), Names{"kiln_hide"});
  EXPECT_EQ(names("kiln_atan"), Names{"kiln_atan"});
  EXPECT_EQ(count(wgsl_helpers(names("kiln_tan")), "fn kiln_hide("), 1);
}

TEST(Calls, LooksForAWholeIdentifierBeforeABracket) {
  EXPECT_TRUE(calls("let y = relu(x);", "relu"));
  EXPECT_TRUE(calls("relu (x)", "relu"));
  EXPECT_TRUE(calls("relu\n  (x)", "relu"));
  EXPECT_TRUE(calls("my_relu(x) + relu(x)", "relu"));
  EXPECT_FALSE(calls("my_relu(x)", "relu"));
  EXPECT_FALSE(calls("relu6(x)", "relu"));
  EXPECT_FALSE(calls("relu_x(x)", "relu"));
  EXPECT_FALSE(calls("let relu = 1;", "relu"));
  EXPECT_FALSE(calls("relu", "relu"));
  EXPECT_FALSE(calls("", "relu"));
}

TEST(UsedHelpers, AreThoseThatTheSourceCalls) {
  EXPECT_EQ(used_helpers("store_out(i, relu(a) + sigmoid(b));"), (Names{"relu", "sigmoid"}));
  EXPECT_EQ(used_helpers("if (is_nan(x)) { y = gelu(silu(erf(x))); }"),
            (Names{"erf", "gelu", "is_nan", "silu"}));
  EXPECT_EQ(used_helpers("fn main() {}"), Names{});
}

TEST(UsedHelpers, DoNotIncludeFunctionsThatTheSourceDefines) {
  EXPECT_EQ(used_helpers("fn relu(x: f32) -> f32 { return x; }\nlet y = relu(1f);"), Names{});
  EXPECT_EQ(used_helpers("fn relu (x: f32) -> f32 { return x; }\nlet y = relu(1f);"), Names{});
  EXPECT_EQ(used_helpers("fn  relu(x: f32) -> f32 { return x; }\nlet y = relu(1f);"), Names{});
  EXPECT_EQ(used_helpers("fn\n  relu(x: f32) -> f32 { return x; }\nlet y = relu(1f);"), Names{});
}

TEST(UsedHelpers, DoNotMistakeOtherDefinitionsForTheirOwn) {
  EXPECT_EQ(used_helpers("fn leaky_relu(x: f32) -> f32 { return max(relu(x), 0.1 * x); }"),
            Names{"relu"});
  EXPECT_EQ(used_helpers("let fn_ = relu(x);"), Names{"relu"});
  EXPECT_EQ(used_helpers("dfn relu(x)"), Names{"relu"});
}

TEST(UsedHelpers, IgnoreIdentifiersThatMerelyContainTheName) {
  EXPECT_EQ(used_helpers("prelu(x) + relu6(x) + kiln_relu_f32(x) + erfc(x) + inverf(x)"), Names{});
}

TEST(UsedHelpers, CanAllBeResolved) {
  const std::string text =
      wgsl_helpers(used_helpers("relu(sigmoid(silu(gelu(erf(x))))) is_nan(x)"));
  for (const char* const name : {"relu", "sigmoid", "silu", "gelu", "erf", "is_nan"}) {
    EXPECT_EQ(count(text, std::string("fn ") + name + "(x: Elem)"), 1) << name;
  }
}

}  // namespace
}  // namespace kiln
