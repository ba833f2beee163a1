// The matrix product with an end of its own, and with a fused epilogue behind that.
#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/ops/test_support.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::expect_near;
using test::make_wave;
using test::values;

struct MatmulBias {
  static constexpr std::string_view name = "matmul_bias";
  static constexpr std::array inputs = {"lhs", "rhs", "bias"};
  using layers = Layers<Cube, Fusion>;

  static TensorSpec output(const TensorSpec& lhs, const TensorSpec& rhs, const TensorSpec&) {
    return matmul_spec(name, lhs, rhs);
  }
  static webgpu::Launch webgpu_kernel(const Operand& lhs, const Operand& rhs, const Operand&,
                                      const Operand& out, const Limits& limits) {
    webgpu::Launch launch = webgpu::tiled_matmul(lhs, rhs, out, limits);
    launch.store = epilogue([](Expr value, Expr bias) { return value + bias; }, {"bias"});
    return launch;
  }
};
static_assert(Extension<MatmulBias>);

struct Problem {
  std::int64_t b, m, k, n;
  DType dtype;
};

/// With and without vec4, one and several tiles.
const std::vector<Problem> problems{{1, 5, 7, 9, DType::f32},
                                    {3, 66, 40, 100, DType::f32},
                                    {2, 16, 16, 64, DType::f16},
                                    {1, 70, 33, 130, DType::f32}};

double tolerance(DType dtype) { return dtype == DType::f16 ? 4e-3 : 2e-5; }

TEST(WgslFusedMatmul, ReadsABroadcastBiasWithoutACopy) {
  for (const auto& [b, m, k, n, dtype] : problems) {
    const AnyTensor lhs = make_wave({b, m, k}, 0, dtype);
    const AnyTensor rhs = make_wave({b, k, n}, 1, dtype);
    const std::vector<float> plain = values(matmul(lhs, rhs));
    for (const Shape& shape : {Shape{n}, Shape{m, 1}, Shape{b, m, n}}) {
      const AnyTensor bias = broadcast_to(make_wave(shape, 2, dtype), {b, m, n});
      std::vector<double> expected = test::doubles(values(bias));
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += plain[i];
      AnyTensor out = lhs;
      const auto spent = test::counted([&] {
        out = apply(MatmulBias{}, lhs, rhs, bias);
        (void)out.value().raw();
      });
      EXPECT_EQ(spent.launches, 1U);
      expect_near(values(out), expected, tolerance(dtype), to_string(shape));
    }
  }
}

/// (out, out * row > 0) of out = lhs @ rhs + bias.
TEST(WgslFusedMatmul, NothingCancelsInWhatIsFusedIntoItsStore) {
  const AnyTensor lhs = test::make<float>({1, INFINITY}, {1, 2, 1});
  const AnyTensor rhs = test::make<float>({2}, {1, 1, 1});
  const AnyTensor bias = test::make<float>({3, 3}, {1, 2, 1});
  const AnyTensor out = apply(MatmulBias{}, lhs, rhs, bias);
  EXPECT_THAT(values((out + 1.0) - (out + 2.0)), ::testing::ElementsAre(-1, ::testing::IsNan()));
}

BodyPtr product_and_sign() {
  ExprGraph graph;
  const Expr out = graph.input(0);
  const Expr scaled = out * graph.input(1);
  return make_body(graph, 2, 0, std::array{scaled.id(), graph.place(scaled > 0)});
}

TEST(WgslFusedMatmul, TakesAFinish) {
  for (const auto& [b, m, k, n, dtype] : problems) {
    const AnyTensor lhs = make_wave({b, m, k}, 0, dtype);
    const AnyTensor rhs = make_wave({b, k, n}, 1, dtype);
    const AnyTensor bias = broadcast_to(make_wave({m, 1}, 2, dtype), {b, m, n});
    const AnyTensor row = make_wave({n}, 3, dtype);
    const dispatch::FusedEpilogue epilogue{
        .body = product_and_sign(), .inputs = {row.value().raw()}, .out = {dtype, DType::boolean}};
    const std::array in{lhs.value().raw(), rhs.value().raw(), bias.value().raw()};
    const std::array out{TensorSpec{{b, m, n}, dtype}};
    const MatmulBias op;
    std::vector<RawTensor> got;
    const auto spent = test::counted([&] {
      got = dispatch::run_kernel(detail::table_of<MatmulBias>, &op, test::device().shared_runtime(),
                                 in, out, &epilogue);
    });
    EXPECT_EQ(spent.launches, 1U);
    const std::vector<float> before = values(apply(MatmulBias{}, lhs, rhs, bias));
    const std::vector<float> scale = values(row);
    std::vector<double> expected;
    for (std::size_t i = 0; i < before.size(); ++i)
      expected.push_back(double{before[i]} * scale[i % scale.size()]);
    expect_near(values(AnyTensor(Value(got[0]), test::device())), expected,
                test::tolerance_of(dtype));
    got[1].dtype = DType::u32;
    const Client client(test::device().shared_runtime(), "test");
    const std::vector<std::uint32_t> signs = client.read<std::uint32_t>(got[1]);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(signs[i], expected[i] > 0 ? 1U : 0U) << i;
  }
}

}  // namespace
}  // namespace kiln
