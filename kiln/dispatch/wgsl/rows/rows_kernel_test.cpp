#include "kiln/dispatch/wgsl/rows/rows_kernel.hpp"

#include <gtest/gtest.h>

#include <array>

#include "kiln/dispatch/test_support.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln::dispatch::wgsl {
namespace {

/// x - max of the row, and the sum of that as a second fold.
RowsCall call_of(const Shape& shape) {
  Axes axes;
  axes.set(1);
  ExprGraph graph;
  const Expr x = graph.input(0);
  const Expr centred = x - graph.input(1);
  const BodyPtr body = make_body(
      graph, 3, 0,
      std::array{graph.place(x), graph.place(centred), graph.place(centred / graph.input(2))});
  return {.op = "test",
          .shape = shape,
          .axes = axes,
          .body = body,
          .params = {},
          .folds = {{.combine = Combine::max}, {.combine = Combine::sum}},
          .out = {{shape, DType::f32}}};
}

// GPUs take more steps a thread than software adapters do, so nothing else here has such texts.
TEST(RowsKernel, CompilesWithAsManyStepsAsGPUsTake) {
  Runtime& runtime = test::device().runtime();
  const RowsCall call = call_of({64, 130});
  const std::array inputs{RawTensor{nullptr, nullptr, DType::f32, Layout::dense(call.shape)}};
  const std::array dtypes{DType::f32};
  for (const std::uint32_t steps : {33U, 64U, 128U}) {
    for (const bool adjacent : {false, true}) {
      auto pass = row_pass(runtime, call, inputs);
      ASSERT_TRUE(pass);
      pass->lanes = 8;
      pass->rows = 8;
      pass->width = 1;
      pass->reach = {Reach::strided, Reach::strided};
      pass->steps = steps;
      pass->exact = false;
      pass->adjacent = adjacent;
      const KernelId id = rows_kernel(*pass, dtypes, pass->prepared->types, runtime.limits());
      EXPECT_NO_THROW((void)runtime.compile(id, "test")) << steps;
    }
  }
}

}  // namespace
}  // namespace kiln::dispatch::wgsl
