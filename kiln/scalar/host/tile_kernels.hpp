#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "kiln/scalar/opcode.hpp"
#include "kiln/support/dtype.hpp"

namespace kiln {

/// One operand of a tile kernel: `n` elements, or one that stands for all.
struct TileArg {
  const void* data = nullptr;
  bool uniform = false;
};

/// Computes n elements of `to`, which may be the memory of an operand.
using TileKernel = void (*)(const TileArg* from, void* to, std::size_t n);

/// How elements are held while they are computed on: f16 as f32, a bool as a word that is not 0.
enum class Lane : std::uint8_t { f32, i32, u32, boolean };
constexpr Lane lane_of(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return Lane::i32;
    case DType::u32:
      return Lane::u32;
    case DType::boolean:
      return Lane::boolean;
    default:
      return Lane::f32;
  }
}

inline constexpr std::size_t opcodes = static_cast<std::size_t>(Opcode::load) + 1;
inline constexpr std::size_t lanes = 4;

/// The scalar operations over tiles, in the widest vectors that this processor has.
struct TileKernels {
  /// By opcode and the lane of the operands; null if the opcode takes no such operands.
  std::array<std::array<TileKernel, lanes>, opcodes> by_opcode{};
  /// From a lane to a lane; null if the bits stay.
  std::array<std::array<TileKernel, lanes>, lanes> cast{};
  TileKernel copy = nullptr;
  TileKernel copy_f16 = nullptr;    ///< of stored f16
  TileKernel round_f16 = nullptr;   ///< f32 to the nearest f16, held as f32
  TileKernel load_f16 = nullptr;    ///< stored f16 to f32
  TileKernel store_f16 = nullptr;   ///< f32 to stored f16, rounded
  TileKernel gather = nullptr;      ///< the elements of an array at positions, u32
  TileKernel gather_f16 = nullptr;  ///< of stored f16, as f32
  /// Reduces a tile of n > 0 elements to one. Sums of f32 are almost as precise as in double
  /// precision, those of integers are modulo 2^32. Extremes of f32 keep a NaN.
  double (*sum_f32)(const float* x, std::size_t n) = nullptr;
  /// The sum of squares; no square leaves the range.
  double (*sum_squares_f32)(const float* x, std::size_t n) = nullptr;
  std::uint32_t (*sum_u32)(const std::uint32_t* x, std::size_t n) = nullptr;
  float (*max_f32)(const float* x, std::size_t n) = nullptr;
  float (*min_f32)(const float* x, std::size_t n) = nullptr;

  [[nodiscard]] TileKernel of(Opcode op, Lane lane) const {
    return by_opcode[static_cast<std::size_t>(op)][static_cast<std::size_t>(lane)];
  }
};

/// The kernels for this processor.
const TileKernels& tile_kernels();

}  // namespace kiln
