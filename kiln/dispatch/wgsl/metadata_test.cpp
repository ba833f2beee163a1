#include "kiln/dispatch/wgsl/metadata.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace kiln::dispatch::wgsl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Metadata with_words(std::size_t count) {
  Metadata metadata;
  metadata.add("alpha", "f32", 7);
  for (std::size_t i = 1; i < count; ++i)
    metadata.add_words(std::array{static_cast<std::int64_t>(i)});
  return metadata;
}

TEST(Metadata, IsABlockOfNumbersAlone) {
  // No array may be an immediate, and one in a uniform block would step by 16 bytes.
  KernelId id;
  const std::string text = with_words(3).declare({.immediate_bytes = 64}, 0, 0, id);
  EXPECT_EQ(text,
            "struct KilnParams { alpha: f32, kiln_w0: u32, kiln_w1: u32, }\n"
            "var<immediate> params: KilnParams;\n");
  EXPECT_THAT(with_words(3).values(), ElementsAre(7, 1, 2, 0));
  EXPECT_THAT(with_words(20).declare({}, 0, 0, id), Not(HasSubstr("array")));
}

TEST(Metadata, GoesToTheRingWhereItDoesNotFitTheImmediates) {
  const Limits limits{.immediate_bytes = 64};
  KernelId id;
  EXPECT_THAT(with_words(16).declare(limits, 1, 5, id), HasSubstr("var<immediate>"));
  EXPECT_TRUE(id.metadata_immediate);
  EXPECT_EQ(id.metadata_bytes, 64U);
  EXPECT_THAT(with_words(17).declare(limits, 1, 5, id),
              HasSubstr("@group(1) @binding(5) var<uniform> params: KilnParams;"));
  EXPECT_FALSE(id.metadata_immediate);
  EXPECT_EQ(id.metadata_bytes, 80U);
  EXPECT_EQ(id.metadata_group, 1U);
  EXPECT_EQ(id.metadata_binding, 5U);
  EXPECT_THAT(with_words(1).declare({}, 0, 0, id), HasSubstr("var<uniform>"))
      << "an adapter without immediates";
}

TEST(Metadata, WordsAreChosenByNumber) {
  EXPECT_EQ(Metadata::word_at(4, 0, "d"), "0u");
  EXPECT_EQ(Metadata::word_at(4, 1, "d"), "params.kiln_w4");
  EXPECT_EQ(Metadata::word_at(4, 3, "d"),
            "select(select(params.kiln_w4, params.kiln_w5, d == 1u), params.kiln_w6, d == 2u)");
}

}  // namespace
}  // namespace kiln::dispatch::wgsl
