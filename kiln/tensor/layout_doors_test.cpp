// Layouts that reach outside of their buffer are refused at every place where one comes in.
#include "kiln/autodiff/test_support.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/tensor/apply.hpp"

namespace kiln {
namespace {

using test::make;
using test::message_of;
using test::values;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// All kinds of reaching outside of a buffer of two elements, and of the slack behind it.
std::vector<Layout> outside() {
  const Layout dense = Layout::dense({100'000});
  return {dense,
          {.shape = {2}, .strides = {100'000}},
          {.shape = {2}, .strides = {1}, .offset = 100'000},
          {.shape = {2}, .strides = {1}, .offset = -1},
          {.shape = {2}, .strides = {-1}, .offset = 1},
          {.shape = {2}, .strides = {most}, .offset = 2},
          {.shape = {5}, .strides = {std::int64_t{1} << 62}},
          {.shape = {1}, .offset = most}};
}

RawTensor two(const Device& device = test::device()) {
  return make<float>({1, 2}, {2}, device).value().raw();
}

RawTensor with(RawTensor tensor, const Layout& layout) {
  tensor.layout = layout;
  return tensor;
}

TEST(LayoutDoors, AValueOfElementsThatAreNotThereIsRefused) {
  for (const Layout& layout : outside()) {
    EXPECT_THAT(message_of<ShapeError>([&] { (void)Value(with(two(), layout)); }),
                HasSubstr("lies outside of its buffer"));
  }
  EXPECT_THAT(message_of<KernelError>([] { (void)Value(RawTensor{}); }), HasSubstr("empty handle"));
  EXPECT_NO_THROW((void)Value(with(two(), {.shape = {3, 0}, .strides = {9, 9}, .offset = 5})));
}

struct Seen {
  static constexpr std::string_view name = "seen";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  TensorSpec spec;
  std::vector<std::int64_t> numbers;  ///< the view's offset and first stride
  Shape shape;
  TensorSpec output(const TensorSpec&) const { return spec; }
  std::optional<Layout> view(const Layout&) const {
    return Layout{.shape = shape, .strides = {numbers[1]}, .offset = numbers[0]};
  }
};
static_assert(Extension<Seen>);

TEST(LayoutDoors, AViewRuleIsHeldToItsInputAndToTheOutputRule) {
  // Of elements that are there, and of those that are still to be computed.
  const AnyTensor ready = make<float>({1, 2, 3}, {3});
  const auto queued = [&] {
    return AnyTensor(add(test::device(), ready.value(), ready.value()), test::device());
  };
  for (const AnyTensor& x : {ready, queued()}) {
    for (const Layout& layout : outside()) {
      const Seen seen{{layout.shape, DType::f32}, {layout.offset, layout.strides[0]}, layout.shape};
      EXPECT_THAT(message_of<ShapeError>([&] { (void)apply(seen, x); }),
                  AllOf(HasSubstr("seen: "), HasSubstr("outside of its buffer")));
    }
    EXPECT_THAT(
        message_of<ShapeError>([&] { (void)apply(Seen{{{2}, DType::f32}, {0, 1}, {3}}, x); }),
        AllOf(HasSubstr("seen: the result is f32 [2] by the output rule"), HasSubstr("f32 [3]")));
    EXPECT_THAT(
        message_of<DTypeError>([&] { (void)apply(Seen{{{3}, DType::i32}, {0, 1}, {3}}, x); }),
        HasSubstr("seen: the result is i32 [3] by the output rule"));
  }
  EXPECT_THAT(values(apply(Seen{{{2}, DType::f32}, {0, 2}, {2}}, queued())), ElementsAre(2, 6));
  // Queued elements are counted, not the room that their buffer will have behind them.
  EXPECT_THROW((void)apply(Seen{{{4}, DType::f32}, {0, 1}, {4}}, queued()), ShapeError);
}

Layout& given_layout() {
  static Layout layout;
  return layout;
}

struct Forward {
  static constexpr std::string_view name = "forward";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {given_layout().shape, x.dtype}; }
  static RawTensor webgpu_forward(Client&, const RawTensor& x, const TensorSpec&) {
    return with(x, given_layout());
  }
};
struct DirectForward {
  static constexpr std::string_view name = "direct_forward";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube>;
  static RawTensor webgpu_forward(Client&, const RawTensor& x) { return with(x, given_layout()); }
};
static_assert(Extension<Forward> && Extension<DirectForward>);

TEST(WgslLayoutDoors, WhatAForwardGivesLiesInItsBuffer) {
  const AnyTensor x = make<float>({1, 2}, {2});
  for (const Layout& layout : outside()) {
    given_layout() = layout;
    EXPECT_THAT(message_of<ShapeError>([&] { test::evaluate(apply(Forward{}, x)); }),
                AllOf(HasSubstr("forward: output 'out'"), HasSubstr("outside of its buffer")));
    EXPECT_THAT(
        message_of<ShapeError>([&] { (void)apply(DirectForward{}, x); }),
        AllOf(HasSubstr("direct_forward: output 'out'"), HasSubstr("outside of its buffer")));
  }
  given_layout() = {.shape = {3}};
  EXPECT_THAT(values(apply(Forward{}, x)), ElementsAre(1, 1, 1));
}

TEST(LayoutDoors, WhatALaunchingFunctionGivesLiesInItsBuffer) {
  const AnyTensor x = make<float>({1, 2}, {2});
  for (const Layout& layout : outside()) {
    const TensorSpec out{layout.shape, DType::f32};
    const auto launched = [&] {
      return Stream::of(test::device().runtime())
          .launch("by_hand", test::device(), {&x.value(), 1}, {&out, 1},
                  [layout](Client&, std::span<const RawTensor> in) {
                    return std::vector{with(in[0], layout)};
                  })
          .front()
          .raw();
    };
    EXPECT_THAT(message_of<ShapeError>([&] { (void)launched(); }),
                AllOf(HasSubstr("by_hand"), HasSubstr("outside of its buffer")));
  }
}

TEST(LayoutDoors, AClientRefusesTensorsThatLieOutsideOfTheirBuffer) {
  for (const Device& device : {test::device(), cpu::device()}) {
    const Client client(device.shared_runtime(), "by_hand");
    for (const Layout& layout : outside()) {
      const RawTensor bad = with(two(device), layout);
      const auto refused = HasSubstr("by_hand: f32 ");
      const TensorSpec spec{layout.shape, DType::f32};
      EXPECT_THAT(message_of<ShapeError>([&] { (void)client.read<float>(bad); }), refused);
      EXPECT_THAT(message_of<ShapeError>([&] { (void)client.contiguous(bad); }), refused);
      EXPECT_THAT(message_of<ShapeError>([&] { client.copy(bad, client.empty(spec)); }), refused);
      EXPECT_THAT(message_of<ShapeError>([&] { client.copy(client.empty(spec), bad); }), refused);
    }
    const RawTensor none;
    EXPECT_THROW((void)client.read<float>(none), DeviceError);
    EXPECT_THROW((void)client.contiguous(none), DeviceError);
    EXPECT_THROW(client.copy(none, none), DeviceError);
  }
}

TEST(WgslLayoutDoors, AClientLaunchesNothingOnSuchATensor) {
  const Client client(test::device().shared_runtime(), "by_hand");
  const KernelSource source = KernelSource::wgsl(
      "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
      "@compute @workgroup_size(1) fn main() { x[0] = 7; }\n");
  for (const Layout& layout : outside()) {
    EXPECT_THAT(message_of<ShapeError>(
                    [&] { client.launch(source, {1, 1, 1}, {1, 1, 1}, {with(two(), layout)}); }),
                AllOf(HasSubstr("by_hand: kernel.wgsl"), HasSubstr("outside of its buffer")));
  }
}

TEST(LayoutDoors, AFunctionOfTheHostGetsNoSuchTensor) {
  const RawTensor x = two(cpu::device());
  for (const Layout& layout : outside()) {
    const RawTensor bad = with(x, layout);
    EXPECT_THAT(message_of<ShapeError>([&] { (void)cpu::Input("op", "x", bad); }),
                HasSubstr("op: operand 'x': f32"));
    EXPECT_THAT(message_of<ShapeError>([&] { (void)cpu::Output("op", "out", bad, nullptr); }),
                HasSubstr("op: operand 'out': f32"));
    EXPECT_THROW(cpu::copy(cpu::Input("op", "x", x), bad), ShapeError);
  }
  EXPECT_THROW((void)cpu::Input("op", "x", RawTensor{}), KernelError);
}

}  // namespace
}  // namespace kiln
