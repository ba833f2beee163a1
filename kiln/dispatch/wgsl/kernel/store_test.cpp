// Which stores take an epilogue, and how they read the operands of an epilogue.
#include "kiln/dispatch/wgsl/kernel/epilogue_test_support.hpp"

namespace kiln {
namespace {

using namespace test;
using ::testing::HasSubstr;

dispatch::Fusable fusable(const Kernel& kernel, const OpTable& op = table,
                          const std::vector<TensorSpec>& out = {{{4}, DType::f32}}) {
  const Operand x{.layout = Layout::dense({4})};
  return dispatch::fusable(op, &kernel, device().runtime(), std::array{x, x}, out);
}
bool takes(const Kernel& kernel, const OpTable& op = table,
           const std::vector<TensorSpec>& out = {{{4}, DType::f32}}) {
  return fusable(kernel, op, out).store;
}

Kernel changed(void (*change)(webgpu::Launch&)) {
  return {twice, [change](webgpu::Launch& l, const Operand&) { change(l); }};
}

TEST(TakesEpilogue, SaysWhatTheLaunchBindsBesidesOperands) {
  EXPECT_TRUE(takes({twice}));
  EXPECT_EQ(fusable({twice}).scratch, 0);
  const Kernel with_scratch =
      changed([](webgpu::Launch& l) { l.scratch = {{"temp", DType::f32, 4}}; });
  EXPECT_EQ(fusable(with_scratch).scratch, 1);
}

TEST(TakesEpilogue, NotWhereStoresDoNotHaveTheLastWord) {
  EXPECT_FALSE(takes(changed([](webgpu::Launch& l) { l.access = OutputAccess::read_write; })));
  EXPECT_FALSE(takes(changed([](webgpu::Launch& l) { l.zeroed = true; })));
  EXPECT_FALSE(takes(changed([](webgpu::Launch& l) { l = webgpu::Launch::decline("no"); })));
  EXPECT_FALSE(takes({twice}, table, {{{4}, DType::f32}, {{4}, DType::f32}}));
  OpTable forward = table;
  forward.webgpu_forward = [](const void*, Client&, std::span<const RawTensor>,
                              std::span<const TensorSpec>) { return std::vector<RawTensor>{}; };
  EXPECT_FALSE(takes({twice}, forward));
  OpTable none = table;
  none.webgpu_kernel = nullptr;
  EXPECT_FALSE(takes({twice}, none));
}

TEST(TakesEpilogue, AndThoseAreRefused) {
  const FusedEpilogue epilogue{.body = body_of(1, [](In in) -> Out { return {in[0]}; }),
                               .out = {DType::f32}};
  const Kernel zeroed = changed([](webgpu::Launch& l) { l.zeroed = true; });
  EXPECT_THAT(message_of<KernelError>([&] { (void)run(zeroed, make({1, 2}, {2}), epilogue); }),
              HasSubstr("custom"));
}

/// relu(2 x + bias) by a launch of its own store.
Kernel with_bias(Kernel kernel) {
  kernel.change = [inner = kernel.change](webgpu::Launch& l, const Operand& out) {
    inner(l, out);
    l.store = epilogue([](Expr value, Expr bias) { return value + bias; }, {"bias"});
  };
  return kernel;
}

void expect_in_place(const Kernel& kernel, const RawTensor& bias, std::uint64_t launches = 1) {
  const RawTensor x = make(wave(48), {6, 8});
  const std::vector<double> added = values(bias);
  std::vector<double> expected = values(x);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * expected[i] + added[i];
  std::vector<RawTensor> out;
  const auto spent = counted([&] { out = run(kernel, x, bias); });
  EXPECT_EQ(spent.launches, launches) << kernel.text;
  test::expect_near(values(out[0]), expected, 1e-5, kernel.text);
}

TEST(EpilogueOperands, AreReadByTheirStridesWithoutACopy) {
  for (const Kernel& way : ways()) {
    const Kernel kernel = with_bias(way);
    RawTensor bias = make(wave(48, 2), {6, 8});
    expect_in_place(kernel, bias);
    for (const Shape& shape : {Shape{8}, Shape{6, 1}, Shape{}}) {
      bias = make(wave(shape.elements(), 2), shape);
      bias.layout = bias.layout.broadcast_to({6, 8});
      expect_in_place(kernel, bias);
    }
    expect_in_place(kernel, transposed(wave(48, 2), 6, 8));
    bias = make(wave(60, 2), {60});
    for (const std::int64_t offset : {4, 5}) {
      bias.layout = {.shape = {6, 8}, .strides = {8, 1}, .offset = offset};
      expect_in_place(kernel, bias);
    }
  }
}

TEST(EpilogueOperands, AreDenseWhereTheKernelReadsThemToo) {
  const Kernel kernel = with_bias({kernel_text("store_out(i, x[i] * 2 + bias[i] - bias[i]);")});
  RawTensor bias = make(wave(8, 2), {8});
  bias.layout = bias.layout.broadcast_to({6, 8});
  expect_in_place(kernel, bias, 2);
  const Kernel hidden = with_bias(
      {kernel_text("store_out(i, x[i] * 2 {{ more }});"), [](webgpu::Launch& l, const Operand&) {
         l.source = l.source.define("more", "+ bias[i] - bias[i]");
       }});
  expect_in_place(hidden, bias, 2);
}

}  // namespace
}  // namespace kiln
