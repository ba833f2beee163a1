#include "kiln/ops/matmul/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/ops/matmul/tile.hpp"
#include "lanes_wgsl.hpp"

namespace kiln {
namespace {

/// What a workgroup computes: `rows` rows, and `cols` columns of each of its lanes.
struct LanesTile {
  std::uint32_t lanes = 8;
  bool shared = false;  ///< lanes share what they loaded, by subgroup operations
  std::uint32_t rows = 8;
  std::uint32_t cols = 4;
};

// Measured on llvmpipe (docs/performance.md). More rows make fewer loads of rhs, as long as there
// are registers. There are few shapes of tiles, because each is a kernel to compile.
LanesTile choose_lanes(const Limits& limits, std::int64_t m, std::int64_t n) {
  LanesTile tile;
  const std::uint32_t lanes = limits.subgroup;
  tile.shared = lanes != 0 && 16 % lanes == 0;
  if (!tile.shared) return tile;
  tile.lanes = lanes;
  tile.rows = std::max(lanes, m > 8 ? 16U : 8U);
  if (m > 8 && n <= lanes) tile.cols = 1;
  return tile;
}

/// The lines of the kernel that name the registers of a thread one by one.
struct LanesText {
  std::string starts;
  std::string step;
  std::string sums;
};

/// If a sum is NaN, adds up all sums of the thread again, with strong zeros of the gradient. That
/// is rare, so the first loop does without it, and here each lane loads for itself.
std::string again_text(const LanesTile& tile) {
  std::string all;
  std::string starts;
  std::string row;
  std::string step;
  std::string next;
  for (std::uint32_t j = 0; j < tile.cols; ++j) {
    starts += fmt::format("    r{0} = rhs_move(r{0}, 0u - params.k, 0u);\n", j);
    row += fmt::format("{}Acc(load_rhs_at(r{}, 0u, 0u))", j == 0 ? "" : ", ", j);
    next += fmt::format("      r{0} = rhs_move(r{0}, 1u, 0u);\n", j);
  }
  for (std::uint32_t i = 0; i < tile.rows; ++i) {
    all += fmt::format("{}s{}", i == 0 ? "" : " + ", i);
    starts += fmt::format(
        "    s{0} = Row();\n"
        "    var f{0} = lhs_move(lhs_base, min(m0 + {0}u, params.m - 1), 0u);\n",
        i);
    step += fmt::format("      s{0} += strong_term(Acc(load_lhs_at(f{0}, 0u, 0u)), b);\n", i);
    next += fmt::format("      f{0} = lhs_move(f{0}, 0u, 1u);\n", i);
  }
  return fmt::format(
      "  let all = {};\n  if (is_nan_sum({})) {{\n{}    for (var k = 0u; k < params.k; k++) {{\n"
      "      let b = Row({});\n{}{}    }}\n  }}",
      all, tile.cols == 1 ? "all" : "all.x + all.y + all.z + all.w", starts, row, step, next);
}

/// A number says which operand is the gradient, so that both cases share a kernel.
constexpr std::string_view again_functions = R"(
// By the bits: compilers take 0 * x for 0, and would drop a comparison of floats.
fn is_nan_sum(x: Acc) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn strong_term(a: Acc, b: Row) -> Row {
  let size = select(bitcast<Bits>(b), Bits(bitcast<u32>(a)), params.gradient_rhs == 0u) & Bits(0x7fffffffu);
  return select(a * b, Row(), size == Bits());
}
)";

LanesText lanes_text(const LanesTile& tile) {
  LanesText text;
  const std::uint32_t share = tile.shared ? tile.lanes : 1;  // rows whose values one load serves
  std::string row;
  std::string next;
  for (std::uint32_t i = 0; i < tile.rows / share; ++i) {
    text.starts +=
        fmt::format("  var l{} = lhs_move(lhs_base, min(m0 + {}u{}, params.m - 1), 0u);\n", i,
                    i * share, tile.shared ? " + lane" : "");
    text.step += fmt::format("    let a{0} = Acc(load_lhs_at(l{0}, 0u, 0u));\n", i);
    next += fmt::format("    l{0} = lhs_move(l{0}, 0u, 1u);\n", i);
  }
  for (std::uint32_t j = 0; j < tile.cols; ++j) {
    text.starts += fmt::format(
        "  var r{0} = rhs_move(rhs_base, 0u, min(n0 + {0}u * LANES + lane, params.n - 1));\n", j);
    row += fmt::format("{}Acc(load_rhs_at(r{}, 0u, 0u))", j == 0 ? "" : ", ", j);
    next += fmt::format("    r{0} = rhs_move(r{0}, 1u, 0u);\n", j);
  }
  text.step += fmt::format("    let b = Row({});\n", row);
  for (std::uint32_t i = 0; i < tile.rows; ++i) {
    text.starts += fmt::format("  var s{} = Row();\n", i);
    text.step += tile.shared ? fmt::format("    s{} += subgroupBroadcast(a{}, {}u) * b;\n", i,
                                           i / share, i % share)
                             : fmt::format("    s{0} += a{0} * b;\n", i);
    text.sums += fmt::format("{}s{}", i == 0 ? "" : ", ", i);
  }
  text.step += next;
  for (std::string* lines : {&text.starts, &text.step}) lines->pop_back();  // the last line's end
  return text;
}

}  // namespace

webgpu::Launch webgpu::lanes_matmul(const Operand& lhs, const Operand& rhs, const Operand& out,
                                    const Limits& limits, GradientIn gradient) {
  const std::int64_t m = out.dim(-2);
  const std::int64_t n = out.dim(-1);
  const std::int64_t k = lhs.dim(-1);
  const LanesTile tile = choose_lanes(limits, m, n);
  const LanesText text = lanes_text(tile);
  const std::int64_t width = std::int64_t{tile.lanes} * tile.cols;
  const bool strong = gradient != GradientIn::neither;
  Launch launch{.source = KernelSource::wgsl(lanes_wgsl)
                              .define("rows", tile.rows)
                              .define("cols", tile.cols)
                              .define("row", tile.cols == 1 ? "Acc" : "vec4<Acc>")
                              .define("bits", tile.cols == 1 ? "u32" : "vec4<u32>")
                              .define("lane", tile.shared ? "subgroup_invocation_id"
                                                          : "local_invocation_index")
                              .define("functions", std::string(strong ? again_functions : ""))
                              .define("starts", text.starts)
                              .define("step", text.step)
                              .define("again", strong ? again_text(tile) : std::string())
                              .define("sums", text.sums)
                              .define("sum", tile.cols == 1 ? "row" : "row[j]"),
                .workgroup = {tile.lanes, 1, 1},
                .params = {{"m", m}, {"n", n}, {"k", k}, {"batches", out.batch()}},
                .grid = {ceil_div(n, width), ceil_div(m, tile.rows), out.batch()},
                .strided = true,
                .repeated = times_loaded(lhs, rhs, out, tile.rows, tile.shared ? width : tile.cols),
                .trusted = true,
                .rounds = k * (strong ? 2 : 1) + std::int64_t{tile.rows} * (tile.cols + 1)};
  if (strong) launch.params.emplace_back("gradient_rhs", gradient == GradientIn::rhs ? 1 : 0);
  return launch;
}

}  // namespace kiln
