// The raw form: every binding by hand.
#include "kiln/dispatch/kernel/client.hpp"

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/test_support.hpp"

namespace kiln {
namespace {

using test::device;
using test::message_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Client client() { return {device().shared_runtime(), "raw"}; }

RawTensor create(const std::vector<float>& x, const Shape& shape) {
  return client().create(std::span<const float>(x), shape);
}

/// y = x * factor, dense.
const std::string scale_text =
    "@group(0) @binding(0) var<storage, read> x: array<{{ elem }}>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<{{ elem }}>;\n"
    "@compute @workgroup_size({{ workgroup_size_x }})\n"
    "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
    "  if (at.x < arrayLength(&y)) { y[at.x] = x[at.x] * {{ factor }}; }\n"
    "}\n";

KernelSource scale(int by) {
  return KernelSource::wgsl(scale_text, "scale.wgsl").define("factor", by);
}

TEST(Client, CreatesReadsAndKeepsOrder) {
  EXPECT_THAT(client().read<float>(create({1, 2, 3}, {3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(client().read<std::uint32_t>(client().zeros({{3}, DType::u32})), Each(0));
  EXPECT_THAT(client().read<float16>(client().zeros({{3}, DType::f16})), ::testing::SizeIs(3));
  EXPECT_TRUE(client().read<float>(client().empty({{0, 2}, DType::f32})).empty());
  const RawTensor x = client().empty({{2, 3}, DType::i32});
  EXPECT_EQ(x.spec(), (TensorSpec{{2, 3}, DType::i32}));
  EXPECT_TRUE(x.layout.is_dense());
}

TEST(Client, SaysWhatDoesNotFit) {
  EXPECT_THAT(message_of<ShapeError>([] { (void)create({1, 2}, {3}); }),
              AllOf(HasSubstr("raw"), HasSubstr("2 values"), HasSubstr("[3]")));
  EXPECT_THAT(message_of<DTypeError>([] { (void)client().read<std::int32_t>(create({1}, {1})); }),
              AllOf(HasSubstr("raw"), HasSubstr("i32"), HasSubstr("f32 [1]")));
  EXPECT_THROW(client().copy(create({1}, {1}), create({1, 2}, {2})), ShapeError);
  EXPECT_THROW(client().copy(create({1}, {1}), client().zeros({{1}, DType::u32})), DTypeError);
}

TEST(Client, LaunchesAKernelThatDeclaresItsOwnBindings) {
  const RawTensor x = create({1, 2, 3}, {3});
  const RawTensor y = client().empty({{3}, DType::f32});
  const RawTensor z = client().empty({{3}, DType::f32});
  client().launch(scale(2), {64, 1, 1}, {1, 1, 1}, {x, y});
  client().launch(scale(5), {64, 1, 1}, {1, 1, 1}, {y, z});
  EXPECT_THAT(client().read<float>(y), ElementsAre(2, 4, 6));
  EXPECT_THAT(client().read<float>(z), ElementsAre(10, 20, 30));
}

TEST(Client, F16IsEnabledWhereABufferNeedsIt) {
  std::vector<float16> half;
  for (const float v : {1.0F, 2.0F, 3.0F}) half.emplace_back(v);
  const RawTensor x = client().create(std::span<const float16>(half), {3});
  const RawTensor y = client().empty({{3}, DType::f16});
  client().launch(scale(2), {64, 1, 1}, {1, 1, 1}, {x, y});
  EXPECT_THAT(client().read<float16>(y), ElementsAre(2, 4, 6));
  client().launch(KernelSource::wgsl("enable f16;\n" + scale_text).define("factor", 3), {64, 1, 1},
                  {1, 1, 1}, {x, y});
  EXPECT_THAT(client().read<float16>(y), ElementsAre(3, 6, 9));
}

TEST(Client, AWriteBetweenTwoUsesIsSeenByTheSecondOnly) {
  const RawTensor a = create({1, 1}, {2});
  const RawTensor y = client().empty({{2}, DType::f32});
  const RawTensor z = client().empty({{2}, DType::f32});
  client().launch(scale(2), {64, 1, 1}, {1, 1, 1}, {a, y});
  const std::vector<float> changed{7, 8};
  device().runtime().write(a.buffer, 0, std::as_bytes(std::span(changed)));
  client().launch(scale(2), {64, 1, 1}, {1, 1, 1}, {a, z});
  EXPECT_THAT(client().read<float>(y), ElementsAre(2, 2));
  EXPECT_THAT(client().read<float>(z), ElementsAre(14, 16));
}

TEST(Client, BuffersComeInTheOrderOfGroupAndBinding) {
  const std::string text =
      "// @group(9) @binding(9) var<storage, read> not_this: array<f32>;\n"
      "/* nor @group(9) @binding(8) var<storage> this: array<f32>; */\n"
      "@binding(1) @group(1) var<storage,read_write> second: array<f32>;\n"
      "@group(0) @binding(3)\nvar<storage> first: array<f32>;\n"
      "@compute @workgroup_size(1) fn main() { second[0] = first[0] + 1.0; }\n";
  const RawTensor y = client().empty({{1}, DType::f32});
  client().launch(KernelSource::wgsl(text), {1, 1, 1}, {1, 1, 1}, {create({4}, {1}), y});
  EXPECT_THAT(client().read<float>(y), ElementsAre(5));
}

TEST(Client, RefusesWhatTheDeviceWouldNotSurvive) {
  const RawTensor x = create({1}, {1});
  const RawTensor y = client().empty({{1}, DType::f32});
  const auto refusal = [&](std::array<std::int64_t, 3> grid, std::vector<RawTensor> buffers) {
    return message_of<Error>([&] { client().launch(scale(2), {64, 1, 1}, grid, buffers); });
  };
  EXPECT_THAT(
      refusal({1, 1, 1}, {x}),
      AllOf(HasSubstr("raw: scale.wgsl declares 2 storage buffers"), HasSubstr("1 are given")));
  EXPECT_THAT(refusal({65536, 1, 1}, {x, y}), AllOf(HasSubstr("65536"), HasSubstr("65535")));
  EXPECT_THAT(refusal({-1, 1, 1}, {x, y}), HasSubstr("-1"));
  EXPECT_THAT(refusal({1, 1, 1}, {x, x}), HasSubstr("read_write"));
  EXPECT_THAT(refusal({1, 1, 1}, {x, {}}), HasSubstr("empty"));
  const Device other = webgpu::device({.f16 = false});
  EXPECT_THAT(
      refusal({1, 1, 1}, {x, Client(other.shared_runtime(), "other").empty({{1}, DType::f32})}),
      HasSubstr("another device"));
}

TEST(Client, CompileErrorsPointIntoTheTemplate) {
  const RawTensor x = create({1}, {1});
  const RawTensor y = client().empty({{1}, DType::f32});
  const KernelSource wrong =
      KernelSource::wgsl(scale_text, "scale.wgsl").define("factor", "\n\n\n nothing_here");
  EXPECT_THAT(
      message_of<KernelError>([&] { client().launch(wrong, {64, 1, 1}, {1, 1, 1}, {x, y}); }),
      AllOf(HasSubstr("scale.wgsl:5"), HasSubstr("nothing_here")));
  EXPECT_THAT(message_of<KernelError>([&] {
                client().launch(KernelSource::wgsl(scale_text, "scale.wgsl"), {64, 1, 1}, {1, 1, 1},
                                {x, y});
              }),
              HasSubstr("'factor' is not set"));
}

TEST(Client, BuildInfoIsRankSizesStridesAndOffsetOfEach) {
  RawTensor x = create({1, 2, 3, 4, 5, 6}, {2, 3});
  RawTensor turned = x;
  turned.layout = {.shape = {3, 2}, .strides = {1, 3}, .offset = 0};
  RawTensor part = x;
  part.layout = {.shape = {2}, .strides = {3}, .offset = 1};
  const std::vector<RawTensor> all{x, turned, part};
  EXPECT_THAT(build_info(all), ElementsAre(2, 2, 3, 3, 1, 0, 2, 3, 2, 1, 3, 0, 1, 2, 3, 1));
  EXPECT_THAT(build_info(std::vector{create({1}, {})}), ElementsAre(0, 0));
}

TEST(Client, BuildInfoServesAKernelThatReadsStrides) {
  RawTensor x = create({0, 1, 2, 3, 4, 5}, {2, 3});
  x.layout = {.shape = {3, 2}, .strides = {1, 3}, .offset = 0};
  const RawTensor y = client().empty({{3, 2}, DType::f32});
  const std::vector<RawTensor> both{x, y};
  const std::vector<std::uint32_t> numbers = build_info(both);
  const RawTensor info =
      client().create(std::span(numbers), {static_cast<std::int64_t>(numbers.size())});
  const std::string text =
      "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
      "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
      "@group(0) @binding(2) var<storage, read> info: array<u32>;\n"
      "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
      "  let rows = info[1]; let columns = info[2];\n"
      "  if (at.x >= rows * columns) { return; }\n"
      "  y[at.x] = x[info[5] + at.x / columns * info[3] + at.x % columns * info[4]];\n"
      "}\n";
  client().launch(KernelSource::wgsl(text), {64, 1, 1}, {1, 1, 1}, {x, y, info});
  EXPECT_THAT(client().read<float>(y), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Client, CopiesIntoAPartOfABuffer) {
  const RawTensor whole = client().zeros({{3, 4}, DType::f32});
  RawTensor part = whole;
  part.layout = {.shape = {2, 2}, .strides = {4, 2}, .offset = 5};
  client().copy(create({1, 2, 3, 4}, {2, 2}), part);
  EXPECT_THAT(client().read<float>(whole), ElementsAre(0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4));
  EXPECT_THAT(client().read<float>(part), ElementsAre(1, 2, 3, 4)) << "reading makes it dense";
  EXPECT_THAT(client().read<float>(client().contiguous(part)), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(client().contiguous(whole).buffer, whole.buffer) << "already so: the same buffer";
}

TEST(Client, CopiesOddHalvesWithoutTouchingTheirNeighbours) {
  std::vector<float16> numbers;
  for (int i = 1; i <= 3; ++i) numbers.emplace_back(static_cast<float>(i));
  const RawTensor whole = client().zeros({{9}, DType::f16});
  RawTensor part = whole;
  for (const std::int64_t at : {1, 4}) {
    part.layout = {.shape = {3}, .strides = {1}, .offset = at};
    client().copy(client().create(std::span<const float16>(numbers), {3}), part);
  }
  EXPECT_THAT(client().read<float16>(whole), ElementsAre(0, 1, 2, 3, 1, 2, 3, 0, 0));
}

TEST(Client, OutputsCanBePoisonedAndHaveCanaries) {
  const dispatch::PoisonOutputs poison;
  const RawTensor x = client().empty({{3}, DType::f32});
  for (const float v : client().read<float>(x)) EXPECT_TRUE(std::isnan(v));
  const auto tail =
      device().runtime().read(x.buffer, 12, dispatch::PoisonOutputs::canary_bytes).get();
  EXPECT_THAT(wgpu::values_of<std::uint32_t>(tail), Each(dispatch::PoisonOutputs::pattern));
}

}  // namespace
}  // namespace kiln
