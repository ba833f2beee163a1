#include "kiln/runtime/webgpu/webgpu.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "kiln/runtime/webgpu/device/adapters.hpp"
#include "kiln/runtime/webgpu/portable_test_support.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WebGpu, OpensAnAdapterOfThisMachine) {
  const std::vector<AdapterInfo> adapters = webgpu::adapters();
  ASSERT_FALSE(adapters.empty()) << "no adapter: install a driver, for example mesa-vulkan-drivers";
  const Device device = webgpu::device();
  EXPECT_FALSE(device.adapter().empty());
  EXPECT_EQ(to_string(device), "webgpu: " + device.adapter());
  EXPECT_EQ(device.runtime().name(), "webgpu");
  ASSERT_EQ(device.runtime().languages().size(), 1U);
  EXPECT_EQ(device.runtime().languages()[0], Language::wgsl);
}

TEST(WebGpu, StatesTheAdaptersOwnLimits) {
  const Limits& limits = webgpu::device().limits();
  EXPECT_GE(limits.buffer_bytes, limits.binding_bytes);
  EXPECT_GE(limits.binding_bytes, 128U << 20);
  EXPECT_EQ(limits.binding_bytes % 16, 0U);
  EXPECT_GE(limits.storage_buffers, 8U);
  EXPECT_GE(limits.workgroup_invocations, 256U);
  EXPECT_GE(limits.workgroups, 65535U);
  EXPECT_GT(limits.workgroup_bytes, 0U);
  EXPECT_GT(limits.offset_alignment, 0U);
  for (const std::uint32_t size : limits.workgroup_size) EXPECT_GE(size, 64U);
}

TEST(WebGpu, APortableDeviceHasWhatEveryAdapterHas) {
  const Device device = portable_device();
  const Limits& limits = device.limits();
  EXPECT_EQ(limits.buffer_bytes, 256U << 20);
  EXPECT_EQ(limits.binding_bytes, 128U << 20);
  EXPECT_EQ(limits.storage_buffers, 8U);
  EXPECT_EQ(limits.workgroup_bytes, 16384U);
  EXPECT_EQ(limits.workgroup_invocations, 256U);
  EXPECT_THAT(limits.workgroup_size, ::testing::ElementsAre(256, 256, 64));
  EXPECT_EQ(limits.workgroups, 65535U);
  EXPECT_EQ(limits.immediate_bytes, 0U);
  EXPECT_EQ(limits.offset_alignment, 256U);
  EXPECT_TRUE(device.same_as(portable_device()));
  for (const char* off : {"", "0"})
    EXPECT_FALSE(device.same_as(opened_where_portable_is(off))) << off;
  // The device itself holds to it, so nothing can slip through.
  KernelId id = map_id("x + number");
  id.source += "var<immediate> number: f32;\n";
  EXPECT_THROW(device.runtime().compile(id, "immediate"), KernelError);
}

// y[i] counts the rounds of a thread: those of a nest of loops, and those of one after it.
KernelId rounds_id(std::uint32_t outer, std::uint32_t inner, std::uint32_t after) {
  KernelId id = map_id("f32(count)");
  const std::string loops = fmt::format(
      "  var count = 0u;\n"
      "  for (var i = 0u; i < {}u * u32(x); i++) {{\n"
      "    for (var j = 0u; j < {}u * u32(x); j++) {{ count += u32(x); }}\n  }}\n"
      "  for (var i = 0u; i < {}u * u32(x); i++) {{ count += u32(x); }}\n",
      outer, inner, after);
  id.source.insert(id.source.find("  output[i]"), loops);
  id.trusted = true;
  return id;
}

TEST(WebGpu, StatesHowManyRoundsTheLoopsOfAThreadMayTake) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  const std::uint32_t stated = device.limits().loop_rounds;
  // Nests count as a whole: where nothing is stated, far more than any limit that is known.
  const std::uint32_t inner = stated == 0 ? 1000 : stated / 4 - 10;
  const std::uint32_t outer = stated == 0 ? 150 : 3;
  const std::uint32_t after = stated == 0 ? 100000 : stated / 4;
  const BufferPtr x = upload<float>(runtime, {1, 1});
  const BufferPtr y = runtime.allocate(8);
  launch_map(runtime, runtime.compile(rounds_id(outer, inner, after), "rounds"), x, y);
  const auto all = static_cast<float>(outer * inner + after);
  EXPECT_THAT(download(runtime, y, 2), ElementsAre(all, all));
}

TEST(WebGpu, StatesTheSizeOfSubgroupsWhereItIsFixed) {
  const Device device = webgpu::device();
  if (device.limits().subgroup == 0) GTEST_SKIP() << device.adapter() << " has none, or several";
  KernelId id = map_id("f32(size)");
  const std::string at = "at: vec3<u32>";
  id.source.replace(id.source.find(at), at.size(), at + ", @builtin(subgroup_size) size: u32");
  Runtime& runtime = device.runtime();
  const BufferPtr y = runtime.allocate(8);
  launch_map(runtime, runtime.compile(id, "subgroup"), upload<float>(runtime, {1, 1}), y);
  EXPECT_THAT(download(runtime, y, 2), Each(static_cast<float>(device.limits().subgroup)));
}

TEST(WebGpu, EqualOptionsGiveTheSameOpenedAdapter) {
  const Device a = webgpu::device();
  EXPECT_TRUE(a.same_as(webgpu::device()));
  EXPECT_TRUE(a.same_as(a.autodiff()));
  EXPECT_FALSE(a.same_as(webgpu::device({.f16 = false})));
}

TEST(WebGpu, FindsAnAdapterByAPartOfItsNameInAnyCase) {
  std::string part = webgpu::adapters().front().name.substr(0, 5);
  for (char& c : part) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_THAT(webgpu::device({.adapter = part}).adapter(),
              HasSubstr(webgpu::adapters().front().name.substr(0, 5)));
}

TEST(WebGpu, ListsTheAdaptersWhereNoneFits) {
  const std::string message =
      message_of<DeviceError>([] { webgpu::device({.adapter = "no such thing"}); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("no such thing"), HasSubstr(webgpu::adapters().front().name)));
}

TEST(WebGpu, TheEnvironmentChoosesWhereNoNameIsGiven) {
  ::setenv("KILN_ADAPTER", "no such thing either", 1);
  const std::string message = message_of<DeviceError>([] { webgpu::device(); });
  EXPECT_NO_THROW(webgpu::device({.adapter = webgpu::adapters().front().name}));
  ::unsetenv("KILN_ADAPTER");
  EXPECT_THAT(message, HasSubstr("no such thing either"));
}

TEST(WebGpu, PicksByNameAndKindInTheOrderOfTheList) {
  const std::vector<AdapterInfo> adapters = {{"NVIDIA H200", AdapterKind::discrete_gpu, "", ""},
                                             {"Intel UHD", AdapterKind::integrated_gpu, "", ""},
                                             {"llvmpipe (LLVM 15)", AdapterKind::cpu, "", ""}};
  EXPECT_EQ(pick_adapter(adapters, "", AdapterKind::any), 0U);
  EXPECT_EQ(pick_adapter(adapters, "", AdapterKind::integrated_gpu), 1U);
  EXPECT_EQ(pick_adapter(adapters, "LLVMPIPE", AdapterKind::any), 2U);
  EXPECT_EQ(pick_adapter(adapters, "uhd", AdapterKind::cpu), std::nullopt);
  EXPECT_EQ(pick_adapter({}, "", AdapterKind::any), std::nullopt);
  EXPECT_EQ(to_string(AdapterKind::integrated_gpu), "integrated GPU");
}

TEST(WebGpu, AnAdjustedDeviceIsACopy) {
  const Device device = webgpu::device();
  const Device training = device.autodiff(Checkpointing::balanced);
  EXPECT_TRUE(training.has_autodiff());
  EXPECT_EQ(training.checkpointing(), Checkpointing::balanced);
  EXPECT_FALSE(device.has_autodiff());
  EXPECT_FALSE(training.plain().has_autodiff());
}

}  // namespace
}  // namespace kiln::wgpu
