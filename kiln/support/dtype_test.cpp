#include "kiln/support/dtype.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(DType, IsNamedAsUsersWriteIt) {
  EXPECT_EQ(to_string(DType::f32), "f32");
  EXPECT_EQ(to_string(DType::f16), "f16");
  EXPECT_EQ(to_string(DType::i32), "i32");
  EXPECT_EQ(to_string(DType::u32), "u32");
  EXPECT_EQ(to_string(DType::boolean), "bool");
}

TEST(DType, TakesFourBytesUnlessItIsF16) {
  static_assert(size_of(DType::f32) == 4);
  static_assert(size_of(DType::f16) == 2);
  static_assert(size_of(DType::i32) == 4);
  static_assert(size_of(DType::u32) == 4);
  static_assert(size_of(DType::boolean) == 4, "a bool takes one word, as WGSL stores none");
  static_assert(sizeof(float16) == size_of(DType::f16));
}

TEST(DType, OnlyF32AndF16AreFloats) {
  static_assert(is_float(DType::f32));
  static_assert(is_float(DType::f16));
  static_assert(!is_float(DType::i32));
  static_assert(!is_float(DType::u32));
  static_assert(!is_float(DType::boolean));
}

TEST(DType, FollowsFromTheElementType) {
  static_assert(dtype_of<float> == DType::f32);
  static_assert(dtype_of<float16> == DType::f16);
  static_assert(dtype_of<std::int32_t> == DType::i32);
  static_assert(dtype_of<std::uint32_t> == DType::u32);
  static_assert(dtype_of<bool> == DType::boolean);
}

}  // namespace
}  // namespace kiln
