#include <bit>
#include <filesystem>
#include <random>

#include "kiln/runtime/webgpu/test_support.hpp"
#include "push_constants_spirv.hpp"
#include "scale_spirv.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// result = x * factor + amount, the amount being constant 3.
KernelId scale_id() {
  KernelId id;
  id.language = Language::spirv;
  id.words.assign(scale_spirv.words.begin(), scale_spirv.words.end());
  id.bindings = {{0, 0, Access::read}, {0, 1, Access::read_write}};
  id.metadata_bytes = 16;
  id.metadata_group = 1;
  return id;
}

class Spirv : public ::testing::Test {
 protected:
  float value_of(const KernelId& id, float x = 3, float factor = 10) {
    const BufferPtr out = runtime.allocate(4);
    const std::array<std::uint32_t, 4> metadata{1, std::bit_cast<std::uint32_t>(factor)};
    runtime.launch(runtime.compile(id, "scale"),
                   std::array{Binding{upload<float>(runtime, {x})}, Binding{out}},
                   std::as_bytes(std::span(metadata)), {1, 1, 1});
    return download(runtime, out, 1)[0];
  }
  std::string refusal(const KernelId& id) {
    return message_of<KernelError>([&] { runtime.compile(id, "broken"); });
  }

  Device device = webgpu::device({.language = Language::spirv});
  Runtime& runtime = device.runtime();
};

TEST_F(Spirv, ADeviceTakesTheLanguageItWasOpenedWithAndNoOther) {
  EXPECT_THAT(runtime.languages(), ElementsAre(Language::spirv));
  EXPECT_THAT(webgpu::device().runtime().languages(), ElementsAre(Language::wgsl));
}

TEST_F(Spirv, OptionsThatDifferInTheLanguageGiveAnotherDevice) {
  EXPECT_TRUE(device.same_as(webgpu::device({.language = Language::spirv})));
  EXPECT_FALSE(device.same_as(webgpu::device()));
  EXPECT_TRUE(webgpu::device().same_as(webgpu::device({.language = Language::wgsl})));
}

TEST_F(Spirv, ALanguageThatNoAdapterTakesIsRefusedAtOpening) {
  EXPECT_EQ(message_of<DeviceError>([] { webgpu::device({.language = Language::cpp}); }),
            "webgpu: an adapter takes kernels in WGSL or SPIR-V, never in C++");
}

TEST_F(Spirv, AModuleRuns) {
  EXPECT_EQ(value_of(scale_id()), 31);
  EXPECT_EQ(value_of(scale_id(), 5, 2), 11);
  KernelId trusted = scale_id();
  trusted.trusted = true;
  EXPECT_EQ(value_of(trusted), 31);
}

TEST_F(Spirv, WgslIsRefusedBeforeAnyCompilerSeesIt) {
  const std::uint64_t compiled = runtime.counters().compiled;
  KernelId id = map_id("this would not compile");
  EXPECT_EQ(message_of<UnsupportedError>([&] { runtime.compile(id, "op"); }),
            "op: its kernel is written in WGSL; this device (webgpu: " + device.adapter() +
                ") takes kernels in SPIR-V alone");
  EXPECT_EQ(runtime.counters().compiled, compiled);
}

TEST_F(Spirv, IsRefusedByADeviceForWgsl) {
  const Device other = webgpu::device();
  KernelId id = scale_id();
  id.words = {1, 2, 3};  // not even a module
  EXPECT_EQ(message_of<UnsupportedError>([&] { other.runtime().compile(id, "op"); }),
            "op: its kernel is written in SPIR-V; this device (webgpu: " + device.adapter() +
                ") takes kernels in WGSL alone");
}

TEST_F(Spirv, EqualModulesAreOneKernelAndConstantsMakeAnother) {
  KernelId id = scale_id();
  const CompiledKernelPtr first = runtime.compile(id, "first");
  const std::uint64_t compiled = runtime.counters().compiled;
  EXPECT_EQ(runtime.compile(scale_id(), "again"), first);
  EXPECT_EQ(runtime.counters().compiled, compiled);
  id.constants = {{"3", 100}};
  EXPECT_EQ(value_of(id), 130);
  EXPECT_EQ(value_of(scale_id()), 31);
}

TEST_F(Spirv, OneWordMakesAnotherKernel) {
  KernelId id = scale_id();
  const auto one = std::ranges::find(id.words, std::bit_cast<std::uint32_t>(1.0F));
  ASSERT_NE(one, id.words.end());
  *one = std::bit_cast<std::uint32_t>(7.0F);  // the constant's default
  EXPECT_FALSE(id == scale_id());
  EXPECT_NE(hash_value(id), hash_value(scale_id()));
  EXPECT_EQ(value_of(scale_id()), 31);
  EXPECT_EQ(value_of(id), 37);
}

TEST_F(Spirv, AConstantThatTheModuleLacksIsAnError) {
  KernelId id = scale_id();
  id.constants = {{"4", 1}};
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("constant '4'")));
}

TEST_F(Spirv, AMissingEntryPointIsAnError) {
  KernelId id = scale_id();
  id.entry = "start";
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("'start'")));
}

TEST_F(Spirv, BindingsOtherThanTheLayoutsAreErrors) {
  KernelId id = scale_id();
  id.bindings.pop_back();
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("binding: 1")));
  id = scale_id();
  id.bindings[0].access = Access::read_write;
  EXPECT_THAT(refusal(id), StartsWith("broken: inputs must be readonly"));
  id = scale_id();
  id.metadata_bytes = 0;
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("group: 1, binding: 0")));
}

TEST_F(Spirv, PushConstantsAreRefused) {
  KernelId id = scale_id();
  id.words.assign(push_constants_spirv.words.begin(), push_constants_spirv.words.end());
  EXPECT_EQ(refusal(id),
            "broken: the SPIR-V module has push constants; params are a uniform block");
}

TEST_F(Spirv, WordsThatAreNoModuleAreErrorsAndTheDeviceStillWorks) {
  KernelId id = scale_id();
  id.words.clear();
  EXPECT_EQ(refusal(id), "broken: not a SPIR-V module: it is empty");
  std::mt19937 random(1);
  id.words.resize(1000);
  for (std::uint32_t& word : id.words) word = static_cast<std::uint32_t>(random());
  EXPECT_THAT(refusal(id), StartsWith("broken: not a SPIR-V module: it begins with "));
  std::ranges::copy(std::span(scale_spirv.words).first(5), id.words.begin());
  EXPECT_THAT(refusal(id), StartsWith("broken: "));
  EXPECT_EQ(value_of(scale_id()), 31);
}

TEST_F(Spirv, AModuleCutOffAnywhereIsAnError) {
  KernelId id = scale_id();
  while (!id.words.empty()) {
    id.words.pop_back();
    EXPECT_THAT(refusal(id), StartsWith("broken: ")) << id.words.size() << " words are left";
  }
  EXPECT_EQ(value_of(scale_id()), 31);
}

TEST_F(Spirv, ModulesAreWrittenToTheFolderThatTheEnvironmentNames) {
  const auto folder = std::filesystem::temp_directory_path() / "kiln_dump_spirv_test";
  std::filesystem::remove_all(folder);
  KernelId id = scale_id();
  id.constants = {{"3", 31337}};
  {
    const DumpsTo dumps(folder);
    runtime.compile(id, "scale");
  }
  std::vector<std::filesystem::path> modules;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".spv") modules.push_back(entry.path());
  }
  ASSERT_EQ(modules.size(), 1U);
  EXPECT_EQ(std::filesystem::file_size(modules[0]), id.words.size() * 4);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::wgpu
