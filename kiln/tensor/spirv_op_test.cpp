// Operations whose kernels are SPIR-V, and devices that take another language than they offer.
#include "add_one_spirv.hpp"
#include "kiln/autodiff/test_support.hpp"
#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/tensor/apply.hpp"
#include "sum_and_difference_spirv.hpp"

namespace kiln {
namespace {

using test::make;
using test::make_wave;
using test::message_of;
using test::values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const Device& spirv_device() {
  static const Device opened = webgpu::device({.language = Language::spirv});
  return opened;
}

const Device& wgsl_device() {
  static const Device opened = webgpu::device();
  return opened;
}

template <class T>
struct Both {
  T sum;
  T difference;
};

struct SumAndDifference {
  static constexpr std::string_view name = "sum_and_difference";
  static constexpr std::array inputs = {"x", "y"};
  static constexpr std::array outputs = {"sum", "difference"};
  using layers = Layers<Cube, Fusion>;
  Param shift;
  double tuned = 0;

  static Both<TensorSpec> output(const TensorSpec& x, const TensorSpec&) { return {x, x}; }
  webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Both<Operand>&) const {
    const std::int64_t count = x.shape().elements();
    return {.source = KernelSource::spirv(sum_and_difference_spirv).constant("0", tuned),
            .params = {{"count", count}, {"factor", 2.0}, {"shift", shift}},
            .grid = {ceil_div(count, 32), 1, 1},
            .scratch = {{"temp", DType::f32, count}}};
  }
};
static_assert(Extension<SumAndDifference>);

/// An operation with the candidates that `rule` gives.
template <auto rule>
struct Custom {
  static constexpr std::string_view name = "custom";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static std::vector<webgpu::Launch> webgpu_kernel(const Operand& x, const Operand&) {
    return rule(x);
  }
};

/// out = x + 100, in WGSL.
webgpu::Launch in_wgsl(const Operand& x) {
  return {.source = KernelSource::wgsl(
              "{{ bindings }}\n@compute @workgroup_size(64)\n"
              "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
              "  if (at.x < params.count) { store_out(at.x, x[at.x] + 100); }\n}\n"),
          .params = {{"count", x.shape().elements()}},
          .grid = {1, 1, 1}};
}

/// Does not fit one input and one output, which shows only when it is bound.
webgpu::Launch in_spirv(const Operand&) {
  return {.source = KernelSource::spirv(sum_and_difference_spirv), .grid = {1, 1, 1}};
}

template <auto rule, class E = KernelError>
std::string refusal(const Device& device = spirv_device()) {
  return message_of<E>(
      [&] { test::evaluate(apply(Custom<rule>{}, make<float>({1, 2}, {2}, device))); });
}
template <auto rule>
std::string unsupported(const Device& device = spirv_device()) {
  return refusal<rule, UnsupportedError>(device);
}

TEST(SpirvOp, BindsInputsThenOutputsThenScratchAndItsParams) {
  const auto x = make<float>({1, 2, 3}, {3}, spirv_device());
  const auto y = make<float>({10, 20, 30}, {3}, spirv_device());
  const Both<AnyTensor> out = apply(SumAndDifference{{0.5}}, x, y);
  EXPECT_THAT(values(out.sum), ElementsAre(21.5, 42.5, 63.5));
  EXPECT_THAT(values(out.difference), ElementsAre(-19, -38, -57));
  EXPECT_THAT(values(apply(SumAndDifference{{0.5}, 1000}, x, y).sum),
              ElementsAre(1021.5, 1042.5, 1063.5));
}

TEST(SpirvOp, AParamThatChangesCompilesNothing) {
  const auto x = make_wave({100}, 0, DType::f32, spirv_device());
  test::evaluate(apply(SumAndDifference{{1.0}}, x, x).sum);
  const std::uint64_t compiled = spirv_device().runtime().counters().compiled;
  const float first = values(x)[0];
  EXPECT_FLOAT_EQ(values(apply(SumAndDifference{{7.0}}, x, x).sum)[0], 3 * first + 7);
  EXPECT_EQ(spirv_device().runtime().counters().compiled, compiled);
}

TEST(SpirvOp, ADeviceGetsTheFirstCandidateInItsLanguage) {
  constexpr auto rule = [](const Operand& x) {
    webgpu::Launch later = in_wgsl(x);
    later.params = {{"count", 0}};
    return std::vector{in_spirv(x), in_wgsl(x), later};
  };
  EXPECT_THAT(values(apply(Custom<rule>{}, make<float>({1, 2}, {2}, wgsl_device()))),
              ElementsAre(101, 102));
  EXPECT_THAT(refusal<rule>(), StartsWith("custom: sum_and_difference.comp: "));
}

TEST(SpirvOp, AnOperationWithoutAnAcceptedKernelIsRefusedWithBothSidesAndTheWaysOut) {
  constexpr auto wgsl = [](const Operand& x) {
    return std::vector{in_wgsl(x), webgpu::Launch::decline("too small")};
  };
  const std::string adapter = "webgpu: " + spirv_device().adapter();
  EXPECT_EQ(unsupported<wgsl>(),
            "custom: it has no kernel for this device: " + adapter +
                " takes kernels in SPIR-V, the operation offers WGSL. Give it a kernel in SPIR-V, "
                "or let the device fall back to its reference: device.fallback(true)");
  constexpr auto spirv = [](const Operand& x) { return std::vector{in_spirv(x)}; };
  EXPECT_EQ(unsupported<spirv>(wgsl_device()),
            "custom: it has no kernel for this device: " + adapter +
                " takes kernels in WGSL, the operation offers SPIR-V. Give it a kernel in WGSL, "
                "or let the device fall back to its reference: device.fallback(true)");
}

TEST(SpirvOp, WhereAllInTheLanguageDeclineTheirReasonsAreGiven) {
  constexpr auto rule = [](const Operand& x) {
    return std::vector{in_wgsl(x), webgpu::Launch::decline("too small", Language::spirv)};
  };
  EXPECT_EQ(refusal<rule>(), "custom: every kernel declines:\n  too small");
}

/// Its language is an attribute, as it might be a matter of shapes, dtypes or the device.
struct InEither {
  static constexpr std::string_view name = "in_either";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Default<Autodiff>, Fusion>;
  bool spirv;
  static TensorSpec output(const TensorSpec& x) { return x; }
  std::vector<webgpu::Launch> webgpu_kernel(const Operand& x, const Operand&) const {
    return {spirv || x.dim(0) == 3 || x.dtype == DType::i32 ? in_spirv(x) : in_wgsl(x)};
  }
  static AnyTensor reference(const AnyTensor& x) { return x; }
};

TEST(SpirvOp, TheLanguageOfAnOperationIsThatOfItsOperandsAndAttributes) {
  const AnyTensor x = make<float>({1, 2}, {2}, wgsl_device());
  const auto refused = [](const InEither& op, const AnyTensor& on) {
    return message_of<UnsupportedError>([&] { (void)apply(op, on); });
  };
  // In both orders: what was asked first decides nothing.
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(refused({true}, x), StartsWith("in_either: it has no kernel for this device"));
    EXPECT_THAT(values(apply(InEither{false}, x)), ElementsAre(101, 102));
    EXPECT_THAT(refused({false}, make<float>({1, 2, 3}, {3}, wgsl_device())),
                HasSubstr("the operation offers SPIR-V"));
    EXPECT_THAT(refused({false}, make<std::int32_t>({1, 2}, {2}, wgsl_device())),
                HasSubstr("the operation offers SPIR-V"));
    EXPECT_THAT(refused({false}, make<float>({1, 2}, {2}, spirv_device())),
                HasSubstr("the operation offers WGSL"));
  }
}

TEST(SpirvOp, TheFallbackIsAMatterOfOperandsAndAttributesToo) {
  const Device device = wgsl_device().fallback(true);
  const AnyTensor x = make<float>({1, 2}, {2}, device);
  EXPECT_THAT(values(apply(InEither{true}, x)), ElementsAre(1, 2));
  EXPECT_THAT(values(apply(InEither{false}, x)), ElementsAre(101, 102));
  EXPECT_THAT(values(apply(InEither{true}, x)), ElementsAre(1, 2));
}

TEST(SpirvOp, TheHostSaysWhichLanguagesAnOperationOffersThere) {
  const AnyTensor x = make<float>({1, 2}, {2}, cpu::device());
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)apply(InEither{true}, x); }),
              HasSubstr("the operation offers SPIR-V"));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)apply(InEither{false}, x); }),
              HasSubstr("the operation offers WGSL"));
}

TEST(SpirvOp, WhatTakesGeneratedTextIsRefused) {
  constexpr auto store = [](const Operand& x) {
    webgpu::Launch launch = in_spirv(x);
    launch.store = epilogue([](Expr value) { return value * 2; }, {});
    return std::vector{launch};
  };
  constexpr auto strided = [](const Operand& x) {
    webgpu::Launch launch = in_spirv(x);
    launch.strided = true;
    return std::vector{launch};
  };
  constexpr auto vec4 = [](const Operand& x) {
    webgpu::Launch launch = in_spirv(x);
    launch.vec4 = {"x"};
    return std::vector{launch};
  };
  const std::string text = "custom: sum_and_difference.comp: a SPIR-V kernel has no ";
  EXPECT_EQ(refusal<store>(), text + "'store': nothing is generated into it");
  EXPECT_EQ(refusal<strided>(), text + "'strided': nothing is generated into it");
  EXPECT_EQ(refusal<vec4>(), text + "'vec4': nothing is generated into it");
}

TEST(SpirvOp, BindingsThatAreNotTheLaunchsAreRefusedByName) {
  constexpr auto rule = [](const Operand& x) { return std::vector{in_spirv(x)}; };
  EXPECT_EQ(refusal<rule>(),
            "custom: sum_and_difference.comp: it declares a buffer at set = 0, binding = 2; the "
            "operation has 1 inputs, 1 outputs and 0 scratch buffers at set = 0, binding = 0 to 1");
}

struct ThreeInputs {
  static constexpr std::string_view name = "three_inputs";
  static constexpr std::array inputs = {"x", "y", "z"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x, const TensorSpec&, const TensorSpec&) { return x; }
  static webgpu::Launch webgpu_kernel(const Operand& x, const Operand&, const Operand&,
                                      const Operand&) {
    webgpu::Launch launch = in_spirv(x);
    launch.scratch = {{"temp", DType::f32, 1}};
    return launch;
  }
};

TEST(SpirvOp, AnInputThatTheModuleMayWriteIsRefused) {
  const auto x = make<float>({1, 2}, {2}, spirv_device());
  EXPECT_EQ(message_of<KernelError>([&] { test::evaluate(apply(ThreeInputs{}, x, x, x)); }),
            "three_inputs: sum_and_difference.comp: input 'z' (set = 0, binding = 2) is not "
            "readonly: declare it so, and make the module for Vulkan 1.0 (wgpu-native does not see "
            "it in newer ones)");
}

TEST(SpirvOp, BrokenModulesAreErrorsThatNameTheOperation) {
  constexpr auto rule = [](const Operand& x) {
    webgpu::Launch launch = in_spirv(x);
    launch.source = KernelSource::spirv({1, 2, 3, 4, 5}, "garbage.spv");
    return std::vector{launch};
  };
  EXPECT_EQ(refusal<rule>(),
            "custom: garbage.spv: not a SPIR-V module: it begins with 0x00000001, not 0x07230203");
}

TEST(SpirvOp, AGridAboveTheLimitIsRefused) {
  constexpr auto rule = [](const Operand& x) {
    webgpu::Launch launch = in_spirv(x);
    launch.source = KernelSource::spirv({0x07230203, 0x00010000, 0, 1, 0}, "none.spv");
    launch.grid = {std::int64_t{1} << 40, 1, 1};
    return std::vector{launch};
  };
  EXPECT_EQ(refusal<rule>(),
            "custom: none.spv: grid 1099511627776 x 1 x 1 is above the adapter's limit of " +
                std::to_string(spirv_device().limits().workgroups) +
                " workgroups in a dimension, and SPIR-V kernels are not folded");
}

TEST(SpirvOp, TakesNoNeighbourIntoItsStore) {
  constexpr auto rule = [](const Operand& x) { return std::vector{in_wgsl(x), in_spirv(x)}; };
  const Custom<rule> op;
  const std::array in{Operand{"x", DType::f32, Layout::dense({2})}};
  const std::array out{TensorSpec{{2}, DType::f32}};
  const auto takes = [&](const Device& device) {
    return dispatch::fusable(detail::table_of<Custom<rule>>, &op, device.runtime(), in, out).store;
  };
  EXPECT_TRUE(takes(wgsl_device()));
  EXPECT_FALSE(takes(spirv_device()));
}

TEST(SpirvOp, AStridedOperandIsRefusedByName) {
  const AnyTensor x = make<float>({1, 2, 3, 4}, {4}, spirv_device());
  const Layout every_other{.shape = {2}, .strides = {2}};
  const AnyTensor view(
      Value(RawTensor{x.value().raw().runtime, x.value().raw().buffer, x.dtype(), every_other}),
      spirv_device());
  EXPECT_EQ(message_of<UnsupportedError>(
                [&] { test::evaluate(apply(SumAndDifference{}, view, view).sum); }),
            "sum_and_difference: 'x' is a strided view [2], which a kernel in WGSL would make "
            "dense; this device (webgpu: " +
                spirv_device().adapter() + ") takes none: pass a dense tensor");
}

TEST(SpirvOp, AClientLaunchesModulesBoundByTheirOwnDeclarations) {
  const Client client(spirv_device().shared_runtime(), "by_hand");
  const auto numbers = [&](std::vector<float> v) {
    return client.create(std::span<const float>(v), {std::ssize(v)});
  };
  const RawTensor sum = client.empty({{2}, DType::f32});
  const KernelSource source = KernelSource::spirv(add_one_spirv);
  client.launch(source, {1, 1, 1}, {2, 1, 1}, {numbers({1, 2}), sum});
  EXPECT_THAT(client.read<float>(sum), ElementsAre(2, 3));
  EXPECT_EQ(message_of<KernelError>([&] { client.launch(source, {1, 1, 1}, {2, 1, 1}, {sum}); }),
            "by_hand: add_one.comp declares 2 storage buffers, but 1 are given");
  const KernelSource wgsl = KernelSource::wgsl("@compute @workgroup_size(1) fn main() {}");
  EXPECT_THAT(message_of<UnsupportedError>([&] { client.launch(wgsl, {1, 1, 1}, {1, 1, 1}, {}); }),
              StartsWith("by_hand: kernel.wgsl is WGSL; webgpu: "));
}

/// An elementwise operation: kiln makes its kernel, in WGSL.
struct Twice {
  static constexpr std::string_view name = "twice";
  static Expr body(Expr x) { return x + x; }
};

TEST(SpirvOp, AGeneratedKernelIsRefusedWhenItIsRead) {
  const AnyTensor x = make<float>({1, 2}, {2}, spirv_device());
  const std::string message =
      message_of<UnsupportedError>([&] { (void)values(apply(Twice{}, x)); });
  EXPECT_EQ(message, "twice: its kernel is written in WGSL; this device (webgpu: " +
                         spirv_device().adapter() + ") takes kernels in SPIR-V alone");
  EXPECT_THAT(values(x), ElementsAre(1, 2));  // all else still works
}

}  // namespace
}  // namespace kiln
