#include "kiln/ops/matmul/tile.hpp"

#include <algorithm>

namespace kiln {

std::uint32_t MatmulTile::bytes() const {
  const std::uint32_t stage = k * (m / 4 + 1 + n / 4 + 1);
  return 16 * std::max(buffers * stage, k_split / 2 * m * n / 4);
}

namespace {

/// The sizes of a product, and how many workgroups it has with a tile of a x b outputs.
struct Work {
  std::int64_t batches;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  [[nodiscard]] std::int64_t tiles(std::int64_t a, std::int64_t b) const {
    return (m + a - 1) / a * ((n + b - 1) / b) * batches;
  }
};

// Measured on an NVIDIA H200; docs/performance.md has the figures. If the outputs make too few
// workgroups, the threads of a workgroup divide k among themselves.
MatmulTile gpu_tile(const Work& w) {
  if (w.tiles(16, 32) < 64 && w.k >= 2048 && w.n <= 16) return {16, 4, 256, 4, 4, 64, 1};
  if ((w.tiles(16, 32) < 64 && w.k >= 2048) || w.m <= 8) return {4, 32, 128, 4, 4, 32, 1};
  if (w.n <= 4) return {16, 16, 64, 4, 4, 16, 1};
  if (w.n <= 16) return {16, 16, 64, 4, 4, 8, 1};
  // With 8 x 8 outputs for each thread it is up to 7 % faster, but half as fast with a fused
  // epilogue, which needs too many registers.
  if (w.tiles(64, 64) >= 128) return {64, 64, 16, 8, 4, 1, 1};
  if (w.tiles(32, 64) >= 96) return {32, 64, 32, 4, 4, 2, 1};
  return {16, 32, 64, 4, 4, 8, 1};
}

}  // namespace

MatmulTile choose_tile(const Limits& limits, std::int64_t batches, std::int64_t m, std::int64_t n,
                       std::int64_t k) {
  const Work work{batches, m, n, k};
  const MatmulTile best = gpu_tile(work);
  // 6.5 KiB and 32 threads: less than every WebGPU adapter has.
  return best.fits(limits) ? best : MatmulTile{32, 64, 16, 8, 8, 1, 1};
}

std::vector<Repeated> times_loaded(const Operand& lhs, const Operand& rhs, const Operand& out,
                                   std::int64_t rows, std::int64_t cols) {
  const auto batches = [&](const Operand& t) {
    return ceil_div(out.batch(), std::max<std::int64_t>(t.batch(), 1));
  };
  return {{"lhs", ceil_div(out.dim(-1), cols) * batches(lhs)},
          {"rhs", ceil_div(out.dim(-2), rows) * batches(rhs)}};
}

}  // namespace kiln
