#include <vector>

#include "kiln/runtime/webgpu/pipelines/pipeline.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Compile : public ::testing::Test {
 protected:
  float value_of(const KernelId& id, const std::string& label = "kernel") {
    return value_on(runtime, id, label);
  }
  static float value_on(Runtime& runtime, const KernelId& id, const std::string& label = "kernel") {
    const BufferPtr out = runtime.allocate(4);
    launch_map(runtime, runtime.compile(id, label), upload<float>(runtime, {1}), out);
    return download(runtime, out, 1)[0];
  }
  std::string refusal(const KernelId& id) {
    return message_of<KernelError>([&] { runtime.compile(id, "broken"); });
  }

  Device device = webgpu::device();
  Runtime& runtime = device.runtime();
};

TEST_F(Compile, FindsWhatWasCompiledBefore) {
  const KernelId id = map_id("x + 17.0");
  const CompiledKernelPtr first = runtime.compile(id, "first");
  const std::uint64_t compiled = runtime.counters().compiled;
  EXPECT_EQ(runtime.compile(id, "another label"), first);
  EXPECT_EQ(runtime.counters().compiled, compiled);
}

TEST_F(Compile, TwoKernelsUnderOneLabelInOneBatchAreNotMixedUp) {
  const BufferPtr in = upload<float>(runtime, {3});
  const BufferPtr a = runtime.allocate(4);
  const BufferPtr b = runtime.allocate(4);
  launch_map(runtime, runtime.compile(map_id("x * 2.0"), "op"), in, a);
  launch_map(runtime, runtime.compile(map_id("x + 100.0"), "op"), in, b);
  EXPECT_THAT(download(runtime, a, 1), ElementsAre(6));
  EXPECT_THAT(download(runtime, b, 1), ElementsAre(103));
}

TEST_F(Compile, OneConstantMakesAnotherKernel) {
  KernelId id = map_id("x + amount");
  id.source = "override amount: f32 = 0.0;\n" + id.source;
  EXPECT_EQ(value_of(id), 1);
  id.constants = {{"amount", 5}};
  EXPECT_EQ(value_of(id), 6);
  id.constants = {{"amount", 7}};
  EXPECT_EQ(value_of(id), 8);
  id.constants = {{"amount", 5}};
  EXPECT_EQ(value_of(id), 6);
}

TEST_F(Compile, ZeroAndMinusZeroAreTwoConstants) {
  KernelId id = map_id("f32(bitcast<u32>(amount) >> 31u)");
  id.source = "override amount: f32 = 1.0;\n" + id.source;
  id.constants = {{"amount", 0.0}};
  EXPECT_EQ(value_of(id), 0);
  id.constants = {{"amount", -0.0}};
  EXPECT_EQ(value_of(id), 1);
}

TEST_F(Compile, F32AndThenF16OfOneKernelAreTwoKernels) {
  if (!runtime.limits().f16) GTEST_FAIL() << "this adapter has no f16";
  const auto with = [&](const std::string& elem) {
    KernelId id;
    id.source = (elem == "f16" ? "enable f16;\n" : "") +
                ("@group(0) @binding(0) var<storage, read_write> output: array<" + elem + ">;\n") +
                "@compute @workgroup_size(1) fn main() { output[0] = " + elem +
                "(1.0); output[1] = " + elem + "(2.0); }\n";
    id.bindings = {{0, 0, Access::read_write}};
    const BufferPtr out = runtime.allocate(8);
    runtime.launch(runtime.compile(id, "ones"), std::array{Binding{out}}, {}, {1, 1, 1});
    return out;
  };
  EXPECT_THAT(download(runtime, with("f32"), 2), ElementsAre(1, 2));
  EXPECT_THAT(download<std::uint16_t>(runtime, with("f16"), 2), ElementsAre(0x3C00, 0x4000));
  EXPECT_THAT(download(runtime, with("f32"), 2), ElementsAre(1, 2));
}

TEST_F(Compile, EntryAndTrustAreParts) {
  KernelId id = map_id("x + 1.0");
  id.source +=
      "@compute @workgroup_size(64) fn other(@builtin(global_invocation_id) at: vec3<u32>) {\n"
      "  if (at.x < arrayLength(&output)) { output[at.x] = input[0] + 50.0; }\n}\n";
  EXPECT_EQ(value_of(id), 2);
  id.entry = "other";
  EXPECT_EQ(value_of(id), 51);
  const std::uint64_t compiled = runtime.counters().compiled;
  id.trusted = true;
  EXPECT_EQ(value_of(id), 51);
  EXPECT_EQ(runtime.counters().compiled, compiled + 1);
}

TEST_F(Compile, HashesOfEqualIdsAreEqualAndEveryFieldCounts) {
  const KernelId id = map_id("x");
  EXPECT_EQ(hash_value(id), hash_value(map_id("x")));
  std::vector<KernelId> others(10, id);
  others[0].language = Language::cpp;
  others[1].source += " ";
  others[2].entry = "m";
  others[3].workgroup = {32, 2, 1};
  others[4].bindings[0].access = Access::read_write;
  others[5].constants = {{"a", 1}};
  others[6].metadata_bytes = 16;
  others[7].metadata_immediate = true;
  others[8].trusted = true;
  others[9].words = {1};
  for (const KernelId& other : others) EXPECT_NE(hash_value(id), hash_value(other));
}

TEST_F(Compile, InvalidSourceGivesTheCompilersMessageAndTheDeviceStillWorks) {
  KernelId id = map_id("x + 1.0");
  id.source += "\nfn broken( {\n";
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("expected identifier"),
                                 HasSubstr("wgsl:10:12")));
  EXPECT_THAT(refusal(map_id("x + undefined_thing")), HasSubstr("undefined_thing"));
  EXPECT_THAT(refusal(map_id("i")), StartsWith("broken: "));  // a type error
  EXPECT_EQ(value_of(map_id("x + 1.0")), 2);
  EXPECT_NO_THROW(runtime.synchronize());
}

TEST_F(Compile, ABindingThatTheLayoutLacksIsAnError) {
  KernelId id = map_id("x + extra[i]");
  id.source += "@group(0) @binding(5) var<storage, read> extra: array<f32>;\n";
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("binding: 5")));
}

TEST_F(Compile, AnAccessOtherThanTheLayoutsIsAnError) {
  KernelId id = map_id("x");
  id.bindings[1].access = Access::read;
  EXPECT_THAT(refusal(id), StartsWith("broken: "));
}

TEST_F(Compile, ABindingThatTheSourceNeverUsesIsFine) {
  KernelId id = map_id("x + 1.0");
  id.source += "@group(1) @binding(0) var<storage, read> unused: array<vec4<f32>>;\n";
  id.bindings.push_back({1, 0, Access::read});
  id.bindings.push_back({3, 2, Access::read_write});  // not even declared; group 2 is empty
  const BufferPtr in = upload<float>(runtime, {1});
  const BufferPtr out = runtime.allocate(4);
  runtime.launch(runtime.compile(id, "unused"),
                 std::array{Binding{in}, Binding{out}, Binding{in}, Binding{runtime.allocate(4)}},
                 {}, {1, 1, 1});
  EXPECT_THAT(download(runtime, out, 1), ElementsAre(2));
}

TEST_F(Compile, AMissingEntryPointIsAnError) {
  KernelId id = map_id("x");
  id.entry = "start";
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("start")));
}

TEST_F(Compile, RefusesWorkgroupsAboveTheLimits) {
  const Limits& limits = runtime.limits();
  KernelId id = map_id("x");
  id.workgroup = {limits.workgroup_size[0] + 1, 1, 1};
  EXPECT_THAT(refusal(id), HasSubstr(std::to_string(limits.workgroup_size[0] + 1)));
  id.workgroup = {limits.workgroup_size[0], 2, 2};
  EXPECT_THAT(refusal(id), HasSubstr(std::to_string(limits.workgroup_invocations)));
  id.workgroup = {0, 1, 1};
  EXPECT_THAT(refusal(id), HasSubstr("[0, 1, 1]"));
  KernelId lying = map_id("x");  // the source says more than the id does
  lying.source.replace(lying.source.find("workgroup_size(64)"), 18, "workgroup_size(70000)");
  EXPECT_THAT(refusal(lying), StartsWith("broken: "));
}

TEST_F(Compile, AWorkgroupOtherThanTheLaunchesIsRefusedWithBoth) {
  KernelId id = map_id("x");
  id.workgroup = {32, 1, 1};
  EXPECT_THAT(refusal(id),
              AllOf(StartsWith("broken: "), HasSubstr("(64, 1, 1)"), HasSubstr("[32, 1, 1]")));
  id.source = "override threads: u32 = 64;\n" + id.source;
  id.source.replace(id.source.find("workgroup_size(64)"), 18, "workgroup_size(threads / 2)");
  EXPECT_EQ(value_of(id), 1);
  id.constants = {{"threads", 128}};
  EXPECT_THAT(refusal(id), AllOf(HasSubstr("(64, 1, 1)"), HasSubstr("[32, 1, 1]")));
  id.workgroup = {64, 1, 1};
  EXPECT_EQ(value_of(id), 1);
}

TEST_F(Compile, AConstantThatItsOverrideCannotHoldIsRefused) {
  KernelId id = map_id("x + f32(amount)");
  id.source = "override amount: i32 = 0;\n" + id.source;
  id.constants = {{"amount", 1.5}};
  EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("'amount'"), HasSubstr("1.5"),
                                 HasSubstr("i32")));
  id.constants = {{"amount", -3}};
  EXPECT_EQ(value_of(id), -2);
  id.constants = {{"amuont", 3}};
  EXPECT_THAT(refusal(id), HasSubstr("'amuont'"));
}

/// A kernel with `count` floats of workgroup memory that gives 1 + the last of them.
KernelId with_workgroup_memory(std::uint64_t count) {
  KernelId id = map_id("x + shared_values[last]");
  const std::string n = std::to_string(count);
  id.source = "const last = " + n +
              "u - 1u;\nvar<workgroup> shared_values: array<f32, last + 1u>;\n" + id.source;
  id.source.replace(id.source.find("  let x ="), 0, "  shared_values[last] = 2.0;\n");
  return id;
}

TEST_F(Compile, MoreWorkgroupMemoryThanTheAdapterHasIsRefusedWithBothNumbers) {
  const std::uint64_t limit = runtime.limits().workgroup_bytes;
  EXPECT_THAT(refusal(with_workgroup_memory(limit / 4 + 1)),
              AllOf(StartsWith("broken: "), HasSubstr(std::to_string(limit + 16)),
                    HasSubstr("has " + std::to_string(limit))));
  EXPECT_EQ(value_of(with_workgroup_memory(limit / 4)), 3);
}

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_F(Compile, WhatNestsDeeperThanTheCompilerCanIsRefused) {
  const auto deep = [](int n) {
    const auto declared = [](const std::string& text) {
      KernelId id = map_id("x");
      id.source += text;
      return id;
    };
    std::string chain = "const c0 = 1;\n";
    for (int i = 1; i < n; ++i)
      chain += "const c" + std::to_string(i) + " = c" + std::to_string(i - 1) + ";\n";
    return std::vector<KernelId>{
        map_id(repeat("(", n) + "x" + repeat(")", n)),
        map_id("x" + repeat(" + x", n)),
        map_id("x" + repeat(" * (x", n) + repeat(")", n)),
        map_id(repeat("- ", n) + "x"),
        map_id(repeat("abs(", n) + "x" + repeat(")", n)),
        map_id("vec4(x)" + repeat(".xyzw", n) + ".x"),
        declared("fn f() { " + repeat("{ ", n) + repeat("}", n) + " }"),
        declared("fn f() { " + repeat("if (true) { ", n) + repeat("}", n) + " }"),
        declared("fn f() { if (true) { } " + repeat("else if (true) { } ", n) + "}"),
        declared("alias A = " + repeat("array<", n) + "f32" + repeat(", 1>", n) + ";"),
        declared(chain),
        declared("const a = " + repeat("!", n) + "true;"),
    };
  };
  for (const KernelId& id : deep(20000))
    EXPECT_THAT(refusal(id), AllOf(StartsWith("broken: "), HasSubstr("deep")))
        << id.source.substr(0, 400);
  // What is let through either compiles or is the compiler's to refuse; Dawn takes less.
  const DumpsTo nowhere("");
  for (const KernelId& id : deep(1300)) {
    try {
      EXPECT_NE(runtime.compile(id, "deep"), nullptr);
    } catch (const KernelError&) {
    }
  }
}

TEST_F(Compile, ALongSumIsAccepted) {
  const DumpsTo nowhere("");  // Dawn takes 512 terms
  EXPECT_EQ(value_of(map_id("x" + repeat(" + x", 3900))), 3901);
}

TEST_F(Compile, RefusesLayoutsThatTheAdapterCannotHave) {
  KernelId id = map_id("x");
  id.bindings.assign(runtime.limits().storage_buffers + 1, {});
  EXPECT_THAT(refusal(id), HasSubstr(std::to_string(runtime.limits().storage_buffers)));
  id.bindings = {{0, 0, Access::read}, {0, 0, Access::read_write}};
  EXPECT_THAT(refusal(id), HasSubstr("twice"));
  id.bindings = {{9, 0, Access::read}};
  EXPECT_THAT(refusal(id), HasSubstr("@group(9)"));
  id = map_id("x");
  id.metadata_bytes = 20;
  EXPECT_THAT(refusal(id), HasSubstr("multiple of 16"));
  id.metadata_bytes = 1 << 20;
  EXPECT_THAT(refusal(id), HasSubstr("uniform"));
}

TEST_F(Compile, AsManyBuffersAsTheLimitWork) {
  const std::uint32_t count = runtime.limits().storage_buffers;
  const std::uint32_t total = (count - 1) * (count - 2) / 2;
  KernelId id;
  std::string sum = "0.0";
  std::vector<Binding> bindings;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    const bool last = i + 1 == count;
    id.source.append("@group(0) @binding(").append(n).append(") var<storage, ");
    id.source.append(last ? "read_write" : "read").append("> b").append(n);
    id.source.append(": array<f32>;\n");
    id.bindings.push_back({0, i, last ? Access::read_write : Access::read});
    bindings.push_back({upload<float>(runtime, {static_cast<float>(i)})});
    if (!last) sum.append(" + b").append(n).append("[0]");
  }
  id.source += "@compute @workgroup_size(1) fn main() { b" + std::to_string(count - 1) +
               "[0] = " + sum + "; }\n";
  runtime.launch(runtime.compile(id, "many"), bindings, {}, {1, 1, 1});
  EXPECT_THAT(download(runtime, bindings.back().buffer, 1), ElementsAre(static_cast<float>(total)));
}

TEST_F(Compile, F16OnADeviceWithoutItSaysSo) {
  const Device plain = webgpu::device({.f16 = false});
  EXPECT_FALSE(plain.limits().f16);
  KernelId id = map_id("f32(f16(x))");
  id.source = "enable f16;\n" + id.source;
  EXPECT_THAT(message_of<KernelError>([&] { plain.runtime().compile(id, "half"); }),
              AllOf(StartsWith("half: "), HasSubstr("f16"), HasSubstr(plain.adapter())));
  EXPECT_EQ(value_on(plain.runtime(), map_id("x + 1.0")), 2);
}

TEST_F(Compile, AnotherLanguageIsRefusedWithTheOneThatIsTaken) {
  KernelId id = map_id("x");
  id.language = Language::cpp;
  EXPECT_EQ(message_of<UnsupportedError>([&] { runtime.compile(id, "op"); }),
            "op: its kernel is written in C++; this device (webgpu: " + device.adapter() +
                ") takes kernels in WGSL alone");
}

TEST(NeededBytes, AreReadFromTheMessage) {
  const auto needed = parse_needed_bytes(
      "Shader global ResourceBinding { group: 1, binding: 12 } is not available in the pipeline "
      "layout\n"
      "Buffer structure size 256, added to one element of an unbound array, if it's the last "
      "field, ended up greater "
      "than the given `min_binding_size`, which is 4");
  ASSERT_TRUE(needed);
  EXPECT_EQ(needed->group, 1U);
  EXPECT_EQ(needed->binding, 12U);
  EXPECT_EQ(needed->bytes, 256U);
  EXPECT_FALSE(parse_needed_bytes("ResourceBinding { group: 1, binding: 12 } is not available"));
  EXPECT_FALSE(parse_needed_bytes(""));
}

}  // namespace
}  // namespace kiln::wgpu
