#include "kiln/kernel/source_template.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using Variables = SourceTemplate::Variables;

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const KernelError& error) {
    return error.what();
  }
  return "no KernelError";
}

std::string parse_error(std::string_view text) {
  return error_of([&] { SourceTemplate({"scale.wgsl", text}); });
}

std::string render(std::string_view text, const Variables& user, const Variables& library = {}) {
  return SourceTemplate({"scale.wgsl", text}).render(user, library).text;
}

TEST(SourceTemplate, PlaceholdersAreReplacedWhereverTheyStand) {
  EXPECT_EQ(render("const by = {{ factor }};", {{"factor", "2.0"}}), "const by = 2.0;");
  EXPECT_EQ(render("{{ a }}{{ b }}-{{ a }}", {{"a", "1"}, {"b", "2"}}), "12-1");
}

TEST(SourceTemplate, SpacesInsideAPlaceholderDoNotMatter) {
  EXPECT_EQ(render("{{a}} {{  a\t}}", {{"a", "1"}}), "1 1");
}

TEST(SourceTemplate, TextWithoutPlaceholdersIsKept) {
  EXPECT_EQ(render("fn f() { if (a) { b(); } }\n", {}), "fn f() { if (a) { b(); } }\n");
  EXPECT_EQ(render("", {}), "");
  EXPECT_EQ(render("}} }", {}), "}} }");
}

TEST(SourceTemplate, ValuesAreNotExpandedAgain) {
  EXPECT_EQ(render("{{ a }}", {{"a", "{{ b }}"}}), "{{ b }}");
}

TEST(SourceTemplate, AnEmptyValueIsAValue) { EXPECT_EQ(render("a{{ x }}b", {{"x", ""}}), "ab"); }

TEST(SourceTemplate, TheUsersValueComesBeforeTheLibrarys) {
  EXPECT_EQ(render("{{ a }} {{ b }}", {{"a", "user"}}, {{"a", "lib"}, {"b", "lib"}}), "user lib");
}

TEST(SourceTemplate, LibraryVariablesNeedNotBeUsed) {
  EXPECT_EQ(render("x", {}, {{"elem", "f32"}}), "x");
}

TEST(SourceTemplate, AVariableThatNobodySetIsNamedWithItsLine) {
  EXPECT_EQ(error_of([] { render("a\nb\n  {{ tile }}\n", {}, {{"elem", "f32"}}); }),
            "scale.wgsl:3: variable 'tile' is not set");
  // A value of several lines before it does not move it.
  EXPECT_EQ(error_of([] { render("{{ elem }}\n{{ tile }}", {}, {{"elem", "a\nb\nc"}}); }),
            "scale.wgsl:2: variable 'tile' is not set");
}

TEST(SourceTemplate, AUsersVariableThatTheSourceNeverUsesIsNamed) {
  EXPECT_EQ(error_of([] { render("{{ tile }}", {{"tile", "8"}, {"tille", "8"}}); }),
            "scale.wgsl: variable 'tille' is set, but the source never uses it");
}

TEST(SourceTemplate, AMalformedPlaceholderIsShownWithItsLine) {
  EXPECT_EQ(parse_error("a\n{{ a b }}"),
            "scale.wgsl:2: malformed placeholder '{{ a b }}'; write {{ name }}");
  EXPECT_EQ(parse_error("{{}}"), "scale.wgsl:1: malformed placeholder '{{}}'; write {{ name }}");
  EXPECT_EQ(parse_error("{{ 2x }}"),
            "scale.wgsl:1: malformed placeholder '{{ 2x }}'; write {{ name }}");
  EXPECT_EQ(parse_error("\n\n{{ a-b }}\n"),
            "scale.wgsl:3: malformed placeholder '{{ a-b }}'; write {{ name }}");
  EXPECT_EQ(parse_error("{{{ a }}}"),
            "scale.wgsl:1: malformed placeholder '{{{ a }}'; write {{ name }}");
}

TEST(SourceTemplate, APlaceholderThatIsNotClosedIsShownWithItsLine) {
  EXPECT_EQ(parse_error("a\nb {{ tile\n}}"),
            "scale.wgsl:2: placeholder '{{ tile' is not closed on its line");
  EXPECT_EQ(parse_error("{{ a }}\n\n{{"),
            "scale.wgsl:3: placeholder '{{' is not closed on its line");
  EXPECT_EQ(parse_error("{{ tile }"),
            "scale.wgsl:1: placeholder '{{ tile }' is not closed on its line");
}

TEST(SourceTemplate, UsesTellsWhetherAPlaceholderIsThere) {
  const SourceTemplate t({"a", "{{ elem }} tile"});
  EXPECT_TRUE(t.uses("elem"));
  EXPECT_FALSE(t.uses("tile"));
}

TEST(SourceTemplate, AnswersNoForTheEmptyName) {
  EXPECT_FALSE(SourceTemplate({"a", "text"}).uses(""));
}

TEST(SourceTemplate, CopiesAndMovesOutliveTheOriginal) {
  const std::string text =
      "a {{ x }} and then quite some text, too long for the small string {{ y }}";
  const std::string expected = "a 1 and then quite some text, too long for the small string 2";
  const Variables values{{"x", "1"}, {"y", "2"}};
  auto original = std::make_unique<SourceTemplate>(SourceText{"a", text});
  const SourceTemplate copy = *original;
  std::vector<SourceTemplate> moved;
  moved.push_back(std::move(*original));
  original.reset();
  EXPECT_EQ(copy.render(values, {}).text, expected);
  EXPECT_EQ(moved[0].render(values, {}).text, expected);

  std::optional<SourceTemplate> small;
  small.emplace(SourceText{"a", "{{ x }}"});
  const SourceTemplate taken = std::move(*small);
  small.reset();
  EXPECT_EQ(taken.render({{"x", "1"}}, {}).text, "1");
}

TEST(RenderedSource, KnowsTheTemplatesLineOfEachOfItsLines) {
  const SourceTemplate t({"a", "one\n{{ two }}\nthree {{ x }} {{ two }}\nfour"});
  const RenderedSource out = t.render({{"two", "2a\n2b\n2c"}, {"x", "x"}}, {});
  EXPECT_EQ(out.text, "one\n2a\n2b\n2c\nthree x 2a\n2b\n2c\nfour");
  EXPECT_EQ(out.lines, (std::vector{1, 2, 2, 2, 3, 3, 3, 4}));
}

/// Rendered lines: 1, 2 to 11 from the placeholder of line 2, then 12 and 13 from lines 3 and 4.
RenderedSource bindings_of_ten_lines() {
  const SourceTemplate t(
      {"scale.wgsl", "// scale\n{{ bindings }}\nfn main() {\n  let y = nope;\n"});
  return t.render({}, {{"bindings", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10"}});
}

TEST(RenderedSource, LocateMapsPositionsBack) {
  const RenderedSource out = bindings_of_ten_lines();
  EXPECT_EQ(out.locate("wgsl:13:11"), "scale.wgsl:4:11");
  EXPECT_EQ(out.locate("wgsl:1:2"), "scale.wgsl:1:2");
  EXPECT_EQ(out.locate("wgsl:6:1"), "scale.wgsl:2:1");
}

TEST(RenderedSource, LocateMapsTheMarginOfAnExcerptAndKeepsItAligned) {
  const std::string message =
      "Shader '' parsing error: no definition in scope for identifier: `nope`\n"
      "   ┌─ wgsl:13:11\n"
      "   │\n"
      "13 │   let y = nope;\n"
      "   │           ^^^^ unknown identifier\n"
      "   │\n"
      "   = note: 3 │ is no margin here";
  EXPECT_EQ(bindings_of_ten_lines().locate(message),
            "Shader '' parsing error: no definition in scope for identifier: `nope`\n"
            "   ┌─ scale.wgsl:4:11\n"
            "   │\n"
            " 4 │   let y = nope;\n"
            "   │           ^^^^ unknown identifier\n"
            "   │\n"
            "   = note: 3 │ is no margin here");
}

TEST(RenderedSource, LocateMapsEveryLineOfALongExcerpt) {
  EXPECT_EQ(bindings_of_ten_lines().locate("  ┌─ wgsl:1:1\n   │  \n 1 │ ╭ a\n12 │ │ b\n13 │ ╰ c"),
            "  ┌─ scale.wgsl:1:1\n   │  \n 1 │ ╭ a\n 3 │ │ b\n 4 │ ╰ c");
}

TEST(RenderedSource, LocateMapsPositionsUnderWhateverLabelTheShaderHas) {
  const RenderedSource out = bindings_of_ten_lines();
  for (const std::string label : {"custom", "my op: f32", "wgsl", "", "a:12:5", "┌─ x"}) {
    const std::string message =
        "Shader validation error: Entry point main is invalid\n"
        "   ┌─ " +
        label + ":13:11\n   │\n13 │   let y = 1;";
    EXPECT_EQ(out.locate(message),
              "Shader validation error: Entry point main is invalid\n"
              "   ┌─ scale.wgsl:4:11\n   │\n 4 │   let y = 1;")
        << label;
  }
}

TEST(RenderedSource, LocateSaysWhatIsGeneratedBehindTheTemplate) {
  EXPECT_EQ(bindings_of_ten_lines().locate("   ┌─ custom:99:2"),
            "   ┌─ what is generated behind scale.wgsl, line 99:2");
}

TEST(RenderedSource, LocateLeavesFramesWithoutAPosition) {
  const RenderedSource out = bindings_of_ten_lines();
  for (const char* const text : {"┌─ ", "┌─ x", "┌─ x:1", "┌─ x:y:1", "┌─ :", "┌─ x:0:1",
                                 "┌─ x:99999999999999:1", "a ┌─ x:13:1"}) {
    EXPECT_EQ(out.locate(text), text);
  }
}

TEST(RenderedSource, LocateLeavesOtherTextAlone) {
  const RenderedSource out = bindings_of_ten_lines();
  EXPECT_EQ(out.locate(""), "");
  EXPECT_EQ(out.locate("a validation error\n  12 things"), "a validation error\n  12 things");
  EXPECT_EQ(out.locate("12 bytes are missing"), "12 bytes are missing");
}

TEST(RenderedSource, LocateLeavesLinesThatItDoesNotHave) {
  const RenderedSource out = bindings_of_ten_lines();
  for (const char* const text : {"wgsl:99:1", "wgsl:0:1", "99 │ x", "0 │ x", "wgsl:x",
                                 "wgsl:", "wgsl:99999999999999:1", "99999999999999 │ x"}) {
    EXPECT_EQ(out.locate(text), text);
  }
}

TEST(RenderedSource, LocateTakesNoPartOfALongerNameForAPosition) {
  EXPECT_EQ(bindings_of_ten_lines().locate("in other.wgsl:13:2"), "in other.wgsl:13:2");
}

}  // namespace
}  // namespace kiln
