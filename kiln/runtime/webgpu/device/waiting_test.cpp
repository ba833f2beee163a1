#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>

#include "kiln/runtime/waiting.hpp"
#include "kiln/runtime/webgpu/pipelines/compile_thread.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"
#include "kiln/runtime/webgpu/webgpu_runtime.hpp"

namespace kiln::wgpu {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Gpu& gpu_of(const Device& device) { return dynamic_cast<WebGpuRuntime&>(device.runtime()).gpu(); }

/// Busy for many milliseconds on any adapter if a thousand workgroups run it: software ends a
/// thread's loops after 65,535 rounds, and a GPU runs the workgroups side by side.
CompiledKernelPtr slow_kernel(Runtime& runtime) {
  KernelId id;
  id.source =
      "@group(0) @binding(0) var<storage, read_write> output: array<u32>;\n"
      "@compute @workgroup_size(1) fn main() {\n"
      "  var x = output[0];\n"
      "  for (var i = 0u; i < 1000u; i++) {\n"
      "    for (var j = 0u; j < 30000u; j++) { x = x * 1664525u + (x >> 7u) + j; }\n"
      "  }\n"
      "  output[0] = x;\n"
      "}\n";
  id.bindings = {{0, 0, Access::read_write}};
  return runtime.compile(id, "slow");
}

TEST(Waiting, HasAnEnd) {
  const Device device = webgpu::device({.f16 = false});
  Runtime& runtime = device.runtime();
  const CompiledKernelPtr kernel = slow_kernel(runtime);
  const BufferPtr buffer = upload<float>(runtime, {1});
  runtime.synchronize();
  gpu_of(device).patience = milliseconds(1);
  runtime.launch(kernel, std::array{Binding{buffer}}, {}, {1000, 1, 1});
  EXPECT_THAT(message_of<DeviceError>([&] { runtime.read(buffer, 0, 4).get(); }),
              AllOf(HasSubstr(device.adapter()), HasSubstr("lost"), HasSubstr("0.001 s"),
                    HasSubstr("KILN_DEVICE_TIMEOUT")));
  EXPECT_THROW(runtime.allocate(4), DeviceError);
  EXPECT_THROW(runtime.synchronize(), DeviceError);

  const Device fresh = webgpu::device({.f16 = false});
  EXPECT_FALSE(fresh.same_as(device));
  EXPECT_THAT(download(fresh.runtime(), upload<float>(fresh.runtime(), {7}), 1), ElementsAre(7));
}

TEST(Waiting, GoesOnAsLongAsTheDeviceMakesProgress) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  const CompiledKernelPtr kernel = runtime.compile(map_id("x + 1.0"), "plus_one");
  BufferPtr a = upload(runtime, std::vector<float>(64, 0));
  BufferPtr b = runtime.allocate(256);
  for (int i = 0; i < 3000; ++i) {
    launch_map(runtime, kernel, a, b);
    std::swap(a, b);
  }
  EXPECT_EQ(download(runtime, a, 1)[0], 3000);
}

class DeviceTimeout : public ::testing::Test {
 protected:
  static void set(const char* text) { ::setenv("KILN_DEVICE_TIMEOUT", text, 1); }
  void TearDown() override { ::unsetenv("KILN_DEVICE_TIMEOUT"); }
};

TEST_F(DeviceTimeout, IsReadFromTheEnvironment) {
  EXPECT_EQ(patience_by_environment(), milliseconds(120'000));
  set("2.5");
  EXPECT_EQ(patience_by_environment(), milliseconds(2500));
  set("0.0001");
  EXPECT_EQ(patience_by_environment(), milliseconds(1));
  for (const char* text : {"0", "-1", "soon", "nan", "1e30", "1s"}) {
    set(text);
    EXPECT_THROW(patience_by_environment(), DeviceError) << text;
    EXPECT_THROW(webgpu::device(), DeviceError) << text;
  }
}

TEST_F(DeviceTimeout, IsAnOptionOfTheDevice) {
  const Device device = webgpu::device({.timeout = milliseconds(77'000)});
  EXPECT_EQ(gpu_of(device).patience, milliseconds(77'000));
}

TEST(CompileThread, ThrowsWhatItsWorkThrows) {
  Gpu gpu;
  gpu.patience = milliseconds(60'000);
  bool ran = false;
  on_compile_thread(gpu, "one", [&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_THROW(on_compile_thread(gpu, "two", [] { throw KernelError("no"); }), KernelError);
}

int descend(int levels) {
  volatile char frame[1000] = {};
  frame[levels % 1000] = 1;
  return levels == 0 ? 0 : descend(levels - 1) + frame[levels % 1000];
}

TEST(CompileThread, HasALargeStack) {
  Gpu gpu;
  gpu.patience = milliseconds(60'000);
  on_compile_thread(gpu, "deep", [] { EXPECT_EQ(descend(100'000), 100'000); });
}

TEST(CompileThread, IsNotWaitedForWithoutEnd) {
  Gpu gpu;
  gpu.adapter = "an adapter";
  gpu.patience = milliseconds(20);
  const auto held = std::make_shared<std::timed_mutex>();
  const std::unique_lock lock(*held);
  EXPECT_THAT(
      message_of<DeviceError>([&] {
        on_compile_thread(gpu, "endless",
                          [held] { (void)held->try_lock_for(std::chrono::seconds(20)); });
      }),
      AllOf(HasSubstr("an adapter"), HasSubstr("compilation of endless"), HasSubstr("lost")));
  EXPECT_TRUE(gpu.reports.lost());
}

}  // namespace
}  // namespace kiln::wgpu
