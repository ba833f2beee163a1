#include <numeric>

#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Launch : public ::testing::Test {
 protected:
  std::vector<float> map(const CompiledKernelPtr& kernel, const std::vector<float>& values) {
    const BufferPtr out = runtime.allocate(values.size() * 4);
    launch_map(runtime, kernel, upload(runtime, values), out);
    return download(runtime, out, values.size());
  }
  void overwrite(const BufferPtr& buffer, const std::vector<float>& values) {
    runtime.write(buffer, 0, std::as_bytes(std::span(values)));
  }
  std::string refusal(std::span<const Binding> bindings,
                      std::array<std::uint32_t, 3> grid = {1, 1, 1},
                      std::span<const std::byte> metadata = {}) {
    return message_of<KernelError>([&] { runtime.launch(plus_one, bindings, metadata, grid); });
  }

  Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  CompiledKernelPtr plus_one = runtime.compile(map_id("x + 1.0"), "plus_one");
};

TEST_F(Launch, RunsAKernel) { EXPECT_THAT(map(plus_one, {1, 2, 3}), ElementsAre(2, 3, 4)); }

TEST_F(Launch, OneAndAThousandLaunchesBeforeAReadAreRightAndSubmitFewTimes) {
  for (const int count : {1, 1000}) {
    BufferPtr a = upload<float>(runtime, {0, 10});
    BufferPtr b = runtime.allocate(8);
    const RuntimeCounters before = runtime.counters();
    for (int i = 0; i < count; ++i) {
      launch_map(runtime, plus_one, a, b);
      std::swap(a, b);
    }
    const auto n = static_cast<float>(count);
    EXPECT_THAT(download(runtime, a, 2), ElementsAre(n, n + 10));
    EXPECT_EQ(runtime.counters().launches, before.launches + static_cast<std::uint64_t>(count));
    EXPECT_LE(runtime.counters().submits, before.submits + 10);
  }
}

TEST_F(Launch, WritesLandBetweenTheLaunchesAroundThem) {
  for (const std::size_t count :
       {4U, 20000U, 300000U}) {  // below and above what goes through the staging buffer
    const BufferPtr a = upload(runtime, std::vector<float>(count, 1));
    const BufferPtr first = runtime.allocate(count * 4);
    const BufferPtr second = runtime.allocate(count * 4);
    launch_map(runtime, plus_one, a, first);
    overwrite(a, std::vector<float>(count, 10));
    launch_map(runtime, plus_one, a, second);
    overwrite(a, std::vector<float>(count, 100));
    EXPECT_THAT(download(runtime, first, count), Each(2)) << count;
    EXPECT_THAT(download(runtime, second, count), Each(11)) << count;
    EXPECT_THAT(download(runtime, a, count), Each(100)) << count;
  }
}

TEST_F(Launch, ASmallAndALargeWriteOfOneBufferKeepTheirOrder) {
  const std::size_t count = 50000;
  const BufferPtr a = upload(runtime, std::vector<float>(count, 1));  // large
  overwrite(a, {2, 2});                                               // small
  overwrite(a, std::vector<float>(count, 3));                         // large
  EXPECT_THAT(download(runtime, a, count), Each(3));
  overwrite(a, {4});
  EXPECT_THAT(download(runtime, a, 3), ElementsAre(4, 3, 3));
}

TEST_F(Launch, FillsLandBetweenTheLaunchesAroundThem) {
  for (const std::uint32_t word : {0U, 0x3F800000U}) {
    const float value = word == 0 ? 0.0F : 1.0F;
    const BufferPtr a = upload<float>(runtime, {5, 5});
    const BufferPtr first = runtime.allocate(8);
    const BufferPtr second = runtime.allocate(8);
    launch_map(runtime, plus_one, a, first);
    runtime.fill(a, 0, 8, word);
    launch_map(runtime, plus_one, a, second);
    EXPECT_THAT(download(runtime, first, 2), Each(6));
    EXPECT_THAT(download(runtime, second, 2), Each(value + 1));
  }
}

TEST_F(Launch, ManySmallWritesOverflowTheStagingBufferUnnoticed) {
  const std::size_t count = 16000;  // 64000 bytes, 4 MiB of staging
  const BufferPtr a = runtime.allocate(count * 4);
  std::vector<BufferPtr> outs;
  for (int i = 0; i < 150; ++i) {
    overwrite(a, std::vector<float>(count, static_cast<float>(i)));
    outs.push_back(runtime.allocate(count * 4));
    launch_map(runtime, plus_one, a, outs.back());
  }
  for (int i = 0; i < 150; ++i) {
    EXPECT_THAT(download(runtime, outs[static_cast<std::size_t>(i)], count),
                Each(static_cast<float>(i + 1)));
  }
}

TEST_F(Launch, ABufferReusedFromThePoolDoesNotDisturbQueuedWork) {
  std::vector<BufferPtr> outs;
  for (int i = 0; i < 100; ++i) {
    const BufferPtr in =
        upload(runtime, std::vector<float>(64, static_cast<float>(i)));  // the one before, reused
    outs.push_back(runtime.allocate(256));
    launch_map(runtime, plus_one, in, outs.back());
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(download(runtime, outs[static_cast<std::size_t>(i)], 64),
                Each(static_cast<float>(i + 1)));
  }
}

TEST_F(Launch, ManyDifferentBindGroupsAreForgottenAndMadeAnew) {
  const BufferPtr a = upload(runtime, std::vector<float>(100000, 1));
  const std::uint64_t step = runtime.limits().offset_alignment;
  const BufferPtr b = runtime.allocate(6000 * step);
  for (std::uint64_t i = 0; i < 6000; ++i) {
    const std::array<Binding, 2> bindings = {Binding{a, 0, 16}, Binding{b, i * step, 16}};
    runtime.launch(plus_one, bindings, {}, {1, 1, 1});
  }
  EXPECT_THAT(download(runtime, b, 4, 5999 * step), Each(2));
  runtime.trim();
  EXPECT_THAT(map(plus_one, {1}), ElementsAre(2));
}

TEST_F(Launch, AnEmptyGridDoesNothing) {
  const BufferPtr a = upload<float>(runtime, {1});
  const BufferPtr b = upload<float>(runtime, {9});
  const std::array<Binding, 2> bindings = {Binding{a}, Binding{b}};
  runtime.launch(plus_one, bindings, {}, {1, 0, 1});
  EXPECT_THAT(download(runtime, b, 1), ElementsAre(9));
}

TEST_F(Launch, RefusesAGridAboveTheLimit) {
  const std::array<Binding, 2> bindings = {Binding{runtime.allocate(4)},
                                           Binding{runtime.allocate(4)}};
  const std::uint32_t most = runtime.limits().workgroups;
  EXPECT_THAT(refusal(bindings, {1, most + 1, 1}),
              AllOf(HasSubstr("plus_one"), HasSubstr(std::to_string(most + 1)),
                    HasSubstr(std::to_string(most))));
}

TEST_F(Launch, RefusesBindingsThatDoNotFit) {
  const BufferPtr a = runtime.allocate(1024);
  const BufferPtr b = runtime.allocate(1024);
  const auto with = [&](const Binding& binding) {
    return refusal(std::array{binding, Binding{b}});
  };
  EXPECT_THAT(with({a, 1024, 0}), HasSubstr("binds no bytes"));
  EXPECT_THAT(with({a, 4, 16}), AllOf(HasSubstr("offset 4"), HasSubstr("@binding(0)")));
  EXPECT_THAT(with({a, 0, 6}), HasSubstr("no multiple of 4"));
  EXPECT_THAT(with({a, 512, 1024}), HasSubstr("outside a buffer of 1024"));
  EXPECT_THAT(with({a, UINT64_MAX - 255, 512}), HasSubstr("outside"));
  EXPECT_THAT(with({nullptr, 0, 0}), HasSubstr("no buffer"));
  EXPECT_THAT(refusal(std::array{Binding{a}}),
              HasSubstr("1 buffers were given; the kernel binds 2"));
}

TEST_F(Launch, RefusesOneBufferAsInputAndOutputEvenInDisjointParts) {
  const BufferPtr a = runtime.allocate(4096);
  EXPECT_THAT(refusal(std::array{Binding{a, 0, 1024}, Binding{a, 2048, 1024}}),
              AllOf(HasSubstr("@binding(0) (read)"), HasSubstr("@binding(1) (read_write)"),
                    HasSubstr("one buffer")));
}

TEST_F(Launch, RefusesOneBufferWrittenTwiceAndAllowsOneReadTwice) {
  KernelId id = map_id("x + extra[i]");
  id.source += "@group(1) @binding(3) var<storage, read> extra: array<f32>;\n";
  id.bindings.push_back({1, 3, Access::read});
  const CompiledKernelPtr add = runtime.compile(id, "add");
  const BufferPtr a = upload<float>(runtime, {1, 2});
  const BufferPtr b = runtime.allocate(8);
  runtime.launch(add, std::array{Binding{a}, Binding{b}, Binding{a}}, {}, {1, 1, 1});
  EXPECT_THAT(download(runtime, b, 2), ElementsAre(2, 4));

  id.source.replace(id.source.find("read> extra"), 4, "read_write");
  id.bindings[2].access = Access::read_write;
  const CompiledKernelPtr both = runtime.compile(id, "both");
  EXPECT_THROW(runtime.launch(both, std::array{Binding{a}, Binding{b}, Binding{b}}, {}, {1, 1, 1}),
               KernelError);
}

TEST_F(Launch, RefusesABufferSmallerThanTheKernelDeclares) {
  KernelId id = map_id("x + table[3].w");
  id.source += "@group(0) @binding(2) var<storage, read> table: array<vec4<f32>, 16>;\n";
  id.bindings.push_back({0, 2, Access::read});
  const CompiledKernelPtr kernel = runtime.compile(id, "lookup");
  const BufferPtr a = upload<float>(runtime, {1});
  const BufferPtr b = runtime.allocate(4);
  const BufferPtr table = upload(runtime, std::vector<float>(64, 5));
  EXPECT_THAT(message_of<KernelError>([&] {
                runtime.launch(kernel, std::array{Binding{a}, Binding{b}, Binding{table, 0, 240}},
                               {}, {1, 1, 1});
              }),
              AllOf(HasSubstr("lookup"), HasSubstr("240"), HasSubstr("256")));
  runtime.launch(kernel, std::array{Binding{a}, Binding{b}, Binding{table}}, {}, {1, 1, 1});
  EXPECT_THAT(download(runtime, b, 1), ElementsAre(6));
}

TEST_F(Launch, RefusesMetadataOfAnotherSize) {
  const std::array bindings = {Binding{runtime.allocate(4)}, Binding{runtime.allocate(4)}};
  const std::vector<std::byte> metadata(16);
  EXPECT_THAT(refusal(bindings, {1, 1, 1}, metadata),
              HasSubstr("16 bytes of metadata were given; the kernel takes 0"));
}

TEST_F(Launch, RefusesWhatBelongsToAnotherDevice) {
  const Device other = webgpu::device({.f16 = false});
  const BufferPtr a = runtime.allocate(4);
  EXPECT_THAT(refusal(std::array{Binding{a}, Binding{other.runtime().allocate(4)}}),
              HasSubstr("another device"));
  const CompiledKernelPtr foreign = other.runtime().compile(map_id("x + 1.0"), "plus_one");
  EXPECT_THAT(
      message_of<KernelError>([&] { launch_map(runtime, foreign, a, runtime.allocate(4)); }),
      HasSubstr("another device"));
  EXPECT_THROW(launch_map(runtime, nullptr, a, runtime.allocate(4)), KernelError);
}

/// `output[i] = sum of a block of metadata + x`, its block of 16 * `vectors` bytes.
KernelId metadata_id(std::uint32_t vectors, bool immediate, std::uint32_t group) {
  KernelId id = map_id("x + total()");
  std::string members;
  std::string sum;
  for (std::uint32_t i = 0; i < vectors; ++i) {
    members += "row" + std::to_string(i) + ": vec4<f32>, ";
    sum += (i == 0 ? "block.row" : " + block.row") + std::to_string(i);
  }
  id.source += "struct Block { " + members + "}\n";
  id.source +=
      immediate ? "var<immediate> block: Block;\n"
                : "@group(" + std::to_string(group) + ") @binding(7) var<uniform> block: Block;\n";
  id.source +=
      "fn total() -> f32 {\n  let sum = " + sum + ";\n  return sum.x + sum.y + sum.z + sum.w;\n}\n";
  id.metadata_bytes = vectors * 16;
  id.metadata_immediate = immediate;
  id.metadata_group = group;
  id.metadata_binding = 7;
  return id;
}

TEST_F(Launch, EveryLaunchSeesItsOwnMetadataByEitherWay) {
  struct Way {
    std::uint32_t vectors;
    bool immediate;
    std::uint32_t group;
  };
  for (const Way way :
       {Way{1, true, 0}, Way{4, true, 0}, Way{1, false, 0}, Way{8, false, 1}, Way{40, false, 2}}) {
    if (way.immediate && way.vectors * 16 > runtime.limits().immediate_bytes) continue;
    const CompiledKernelPtr kernel =
        runtime.compile(metadata_id(way.vectors, way.immediate, way.group), "metadata");
    BufferPtr a = upload<float>(runtime, {0});
    BufferPtr b = runtime.allocate(4);
    for (int i = 0; i < 3000; ++i) {  // more than one ring of metadata
      const std::vector<float> block(std::size_t{way.vectors} * 4, static_cast<float>(i % 5));
      runtime.launch(kernel, std::array{Binding{a}, Binding{b}}, std::as_bytes(std::span(block)),
                     {1, 1, 1});
      std::swap(a, b);
    }
    EXPECT_THAT(download(runtime, a, 1),
                ElementsAre(600.0F * 10 * static_cast<float>(way.vectors * 4)));
  }
}

TEST_F(Launch, MetadataAboveTheImmediatesIsRefusedAsImmediates) {
  const std::uint32_t vectors = runtime.limits().immediate_bytes / 16 + 1;
  EXPECT_THAT(
      message_of<KernelError>([&] { runtime.compile(metadata_id(vectors, true, 0), "large"); }),
      AllOf(HasSubstr("large"), HasSubstr(std::to_string(vectors * 16))));
}

}  // namespace
}  // namespace kiln::wgpu
