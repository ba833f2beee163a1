#include "kiln/ops/matmul/matmul.hpp"

#include <fmt/format.h>

#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/matmul/lanes.hpp"
#include "kiln/ops/matmul/tile.hpp"
#include "kiln/ops/movement/movement.hpp"
#include "kiln/support/error.hpp"
#include "kiln/tensor/apply.hpp"
#include "matmul_wgsl.hpp"

namespace kiln {
namespace {

/// How the kernel reads one operand's matrices.
struct MatrixView {
  bool transposed = false;  ///< columns are contiguous, not rows
  bool dense = false;       ///< neither is contiguous: the operand is copied first
  bool vec4 = false;        ///< the contiguous dimension divides by four
};

MatrixView view_of(const Operand& t) {
  const auto lies_together = [&](int axis) { return t.stride(axis) == 1 || t.dim(axis) == 1; };
  MatrixView v;
  v.transposed = !lies_together(-1) && lies_together(-2);
  v.dense = !lies_together(-1) && !v.transposed;
  v.vec4 = t.dim(v.transposed ? -2 : -1) % 4 == 0;
  return v;
}

/// The stores of a thread's outputs, one line for each quad, with the kernel's names.
std::string stores_text(const MatmulTile& tile) {
  std::string text;
  const std::uint32_t quads = tile.thread_n / 4;
  for (std::uint32_t i = 0; i < tile.thread_m; ++i) {
    for (std::uint32_t j = 0; j < quads; ++j) {
      text += fmt::format(
          "  put(m0 + (y + {}u * ROWS) * 4 + {}, n0 + (x + {}u * COLS) * 4, tile.z, acc[{}]);\n",
          i / 4, i % 4, j, i * quads + j);
    }
  }
  return text;
}

std::string spelled(bool value) { return value ? "true" : "false"; }

struct Matmul {
  static constexpr std::string_view name = "matmul";
  static constexpr std::array inputs = {"lhs", "rhs"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  GradientIn gradient;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs) {
    return matmul_spec(name, lhs, rhs);
  }
  webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const Operand& out,
                               const Limits& limits) const {
    return webgpu::tiled_matmul(lhs, rhs, out, limits, gradient);
  }
  void cpu_kernel(const cpu::Input& lhs, const cpu::Input& rhs, const cpu::Output& out) const {
    cpu::matmul(lhs, rhs, out, {}, {}, gradient);
  }

  static constexpr Bound bound = Bound::compute;
  struct Saved {
    Checkpoint lhs;
    Checkpoint rhs;
  };
  static Saved save(const Saver& saver, const AnyTensor& lhs, const AnyTensor& rhs,
                    const AnyTensor&) {
    return {saver.keep_if(rhs.tracked(), lhs), saver.keep_if(lhs.tracked(), rhs)};
  }
  static void backward(const Saved& saved, const AnyTensor& grad, Grads<2>& grads) {
    auto& [lhs, rhs] = grads;
    if (lhs) lhs.set_reduced(matmul(grad, transpose(saved.rhs.get()), GradientIn::lhs));
    if (rhs) rhs.set_reduced(matmul(transpose(saved.lhs.get()), grad, GradientIn::rhs));
  }
};
static_assert(Extension<Matmul>);

/// How much of k a product takes at once: half of the rounds that the loops of a thread may have,
/// if the adapter limits them. A product of a gradient may take twice as many rounds.
std::int64_t part_of(GradientIn gradient) {
  return gradient == GradientIn::neither ? 32768 : 16384;
}

/// Whether the adapter would cut a thread's loop along k short.
bool loops_too_long(const AnyTensor& lhs, const AnyTensor& rhs, GradientIn gradient) {
  if (lhs.rank() < 2 || rhs.rank() < 2 || lhs.dim(-1) != rhs.dim(-2)) return false;
  return lhs.dim(-1) > part_of(gradient) && lhs.device().limits().loop_rounds != 0;
}

/// The product as a sum of products of parts along k, in f32.
AnyTensor product_in_parts(const AnyTensor& lhs, const AnyTensor& rhs, GradientIn gradient) {
  (void)matmul_spec(Matmul::name, lhs.spec(), rhs.spec());
  const std::int64_t part = part_of(gradient);
  const auto piece = [&](std::int64_t begin) {
    return apply(Matmul{gradient}, cast(slice(lhs, -1, begin, begin + part), DType::f32),
                 cast(slice(rhs, -2, begin, begin + part), DType::f32));
  };
  AnyTensor sum = piece(0);
  for (std::int64_t begin = part; begin < lhs.dim(-1); begin += part) sum = sum + piece(begin);
  return cast(sum, lhs.dtype());
}

}  // namespace

TensorSpec matmul_spec(std::string_view op, const TensorSpec& lhs, const TensorSpec& rhs) {
  const auto shapes = [&] {
    return fmt::format("(lhs {}, rhs {})", to_string(lhs.shape), to_string(rhs.shape));
  };
  if (lhs.shape.rank() < 2 || rhs.shape.rank() < 2) {
    throw ShapeError(fmt::format("{}: operands must have rank 2 or more {}", op, shapes()));
  }
  if (lhs.shape[-1] != rhs.shape[-2]) {
    throw ShapeError(fmt::format("{}: contraction dimensions must match {}", op, shapes()));
  }
  if (!is_float(lhs.dtype) || !is_float(rhs.dtype)) {
    throw DTypeError(
        fmt::format("{}: takes f32 or f16 (lhs {}, rhs {})", op, to_string(lhs), to_string(rhs)));
  }
  if (lhs.dtype != rhs.dtype) {
    throw DTypeError(fmt::format("{}: operands must have one dtype (lhs {}, rhs {})", op,
                                 to_string(lhs), to_string(rhs)));
  }
  const auto batch = [](const Shape& s) { return Shape(std::span(s.begin(), s.size() - 2)); };
  TensorSpec out{{}, lhs.dtype};
  try {
    out.shape = broadcast(op, batch(lhs.shape), batch(rhs.shape));
    out.shape.push_back(lhs.shape[-2]);
    out.shape.push_back(rhs.shape[-1]);
  } catch (const ShapeError&) {
    throw ShapeError(fmt::format("{}: batch dimensions must broadcast {}", op, shapes()));
  }
  return out;
}

webgpu::Launch webgpu::tiled_matmul(const Operand& lhs, const Operand& rhs, const Operand& out,
                                    const Limits& limits, GradientIn gradient) {
  if (limits.software_adapter) return lanes_matmul(lhs, rhs, out, limits, gradient);
  const MatrixView l = view_of(lhs);
  const MatrixView r = view_of(rhs);
  const bool out_vec = out.dim(-1) % 4 == 0;
  const MatmulTile tile = choose_tile(limits, out.batch(), out.dim(-2), out.dim(-1), lhs.dim(-1));
  if (!tile.fits(limits)) {
    return Launch::decline(fmt::format(
        "tiled matmul: needs {} threads and {} bytes of workgroup memory, the adapter has {} and "
        "{}",
        tile.threads(), tile.bytes(), limits.workgroup_invocations, limits.workgroup_bytes));
  }
  Launch launch{.source = KernelSource::wgsl(matmul_wgsl)
                              .define("tile_m", tile.m)
                              .define("tile_n", tile.n)
                              .define("tile_k", tile.k)
                              .define("thread_m", tile.thread_m)
                              .define("thread_n", tile.thread_n)
                              .define("k_split", tile.k_split)
                              .define("buffers", tile.buffers)
                              .define("lhs_along_k", spelled(!l.transposed))
                              .define("rhs_along_k", spelled(r.transposed))
                              .define("lhs_vec", spelled(l.vec4))
                              .define("rhs_vec", spelled(r.vec4))
                              .define("lhs_four", l.transposed ? "load_lhs_down4(at, m, k)"
                                                               : "load_lhs_at4(at, m, k)")
                              .define("rhs_four", r.transposed ? "load_rhs_down4(at, k, n)"
                                                               : "load_rhs_at4(at, k, n)")
                              .define("out_vec", spelled(out_vec))
                              .define("gradient_lhs", spelled(gradient == GradientIn::lhs))
                              .define("gradient_rhs", spelled(gradient == GradientIn::rhs))
                              .define("stores", stores_text(tile)),
                .workgroup = {tile.threads(), 1, 1},
                .params = {{"m", out.dim(-2)},
                           {"n", out.dim(-1)},
                           {"k", lhs.dim(-1)},
                           {"batches", out.batch()}},
                .grid = {ceil_div(out.dim(-1), tile.n), ceil_div(out.dim(-2), tile.m), out.batch()},
                .strided = true,
                .repeated = times_loaded(lhs, rhs, out, tile.m, tile.n),
                .trusted = true};
  if (l.dense) launch.dense.emplace_back("lhs");
  if (r.dense) launch.dense.emplace_back("rhs");
  if (out_vec) launch.vec4.emplace_back("out");
  return launch;
}

AnyTensor matmul(const AnyTensor& lhs, const AnyTensor& rhs, GradientIn gradient) {
  if (loops_too_long(lhs, rhs, gradient)) return product_in_parts(lhs, rhs, gradient);
  return apply(Matmul{gradient}, lhs, rhs);
}

}  // namespace kiln
