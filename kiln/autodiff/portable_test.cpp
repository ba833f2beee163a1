// On an adapter that binds no more buffers than all do.
#include "kiln/autodiff/node.hpp"
#include "kiln/autodiff/test_support.hpp"
#include "kiln/runtime/webgpu/portable_test_support.hpp"
#include "kiln/scalar/expr.hpp"

namespace kiln {
namespace {

/// tanh(a * b + c * d): with the result and what comes in, its adjoint reads six tensors and makes
/// four.
AnyTensor mixed(const std::vector<AnyTensor>& in) {
  static const BodyPtr body = [] {
    ExprGraph graph;
    const auto x = [&](int slot) { return graph.input(slot); };
    const std::int32_t root = graph.place(tanh(x(0) * x(1) + x(2) * x(3)));
    return make_body(graph, 4, 0, std::array{root});
  }();
  return apply_elementwise("mixed", body, {}, in);
}

TEST(WgslPortable, GradientsThatBindTooManyBuffersAtOnceAreMadeInParts) {
  const Device device = wgpu::portable_device();
  ASSERT_EQ(device.limits().storage_buffers, 8U);
  std::vector<AnyTensor> in;
  for (int i = 0; i < 4; ++i) in.push_back(test::make_wave({3, 5}, i, DType::f32, device));
  test::expect_gradients("mixed", mixed, in);
  for (AnyTensor& t : in) t = t.to(device.eager());
  test::expect_gradients("mixed, eager", mixed, in);
}

}  // namespace
}  // namespace kiln
