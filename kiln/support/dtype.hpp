#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kiln/support/float16.hpp"

namespace kiln {

/// Element types. `boolean` is stored as one 32-bit word, 0 or 1, since WGSL has no storable bool.
enum class DType : std::uint8_t { f32, f16, i32, u32, boolean };

/// The name as users write it: "f32", "f16", "i32", "u32", "bool".
///
///     to_string(DType::boolean);   // "bool"
std::string_view to_string(DType dtype);

/// Bytes one element takes in device memory.
///
///     size_of(DType::f16);   // [2]
constexpr std::size_t size_of(DType dtype) { return dtype == DType::f16 ? 2 : 4; }

/// Whether the dtype is f32 or f16.
///
///     is_float(DType::i32);   // [false]
constexpr bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16; }

/// The dtype of a C++ element type: float, float16, std::int32_t, std::uint32_t or bool.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0,
                "kiln: an element type is float, float16, int32_t, uint32_t or bool");
  return DType::f32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<float16> = DType::f16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;

}  // namespace kiln
