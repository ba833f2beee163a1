#include <optional>

#include "kiln/runtime/webgpu/test_support.hpp"
#include "kiln/runtime/webgpu/testing.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LostDevice, SaysSoAtEveryCallAndANewOneWorks) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  const CompiledKernelPtr kernel = runtime.compile(map_id("x + 1.0"), "plus_one");
  const BufferPtr a = upload<float>(runtime, {1});
  const BufferPtr b = runtime.allocate(4);
  launch_map(runtime, kernel, a, b);  // recorded, not submitted
  auto pending = runtime.read(a, 0, 4);
  launch_map(runtime, kernel, a, b);

  lose_device(device);
  EXPECT_THAT(message_of<DeviceError>([&] { runtime.synchronize(); }),
              AllOf(HasSubstr("lost"), HasSubstr(device.adapter()), HasSubstr("webgpu::device()")));
  EXPECT_THROW(runtime.allocate(4), DeviceError);
  EXPECT_THROW(launch_map(runtime, kernel, a, b), DeviceError);
  EXPECT_THROW(runtime.write(a, 0, std::vector<std::byte>(4)), DeviceError);
  EXPECT_THROW(runtime.write(a, 0, std::vector<std::byte>(2)), DeviceError);
  EXPECT_THROW(runtime.fill(a, 0, 4, 1), DeviceError);
  EXPECT_THROW(runtime.read(a, 0, 4), DeviceError);
  EXPECT_THROW(runtime.compile(map_id("x + 2.0"), "plus_two"), DeviceError);
  EXPECT_THROW(runtime.trim(), DeviceError);
  EXPECT_THROW(runtime.launch_times(), DeviceError);
  try {
    pending.get();  // was submitted before: either way is right, but it must end
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("lost"));
  }

  const Device fresh = webgpu::device();
  EXPECT_FALSE(fresh.same_as(device));
  EXPECT_THAT(download(fresh.runtime(), upload<float>(fresh.runtime(), {7}), 1), ElementsAre(7));
}

// Whichever call comes first after the loss, it throws.
TEST(LostDevice, IsNoticedByWhateverCallComesFirst) {
  using Call = void (*)(Runtime&, const BufferPtr&, const BufferPtr&, const CompiledKernelPtr&);
  const std::vector<Call> calls = {
      [](Runtime& runtime, const BufferPtr& a, const BufferPtr&, const CompiledKernelPtr&) {
        runtime.read(a, 0, 4);
      },
      [](Runtime& runtime, const BufferPtr&, const BufferPtr&, const CompiledKernelPtr&) {
        runtime.allocate(777777);
      },
      [](Runtime& runtime, const BufferPtr&, const BufferPtr&, const CompiledKernelPtr&) {
        runtime.compile(map_id("x + 3.0"), "plus_three");
      },
      [](Runtime& runtime, const BufferPtr& a, const BufferPtr&, const CompiledKernelPtr&) {
        runtime.write(a, 0, std::vector<std::byte>(100000));
      },
      [](Runtime& runtime, const BufferPtr& a, const BufferPtr& b,
         const CompiledKernelPtr& kernel) {
        launch_map(runtime, kernel, a, b);
        runtime.synchronize();
      },
      [](Runtime& runtime, const BufferPtr& a, const BufferPtr&, const CompiledKernelPtr&) {
        runtime.fill(a, 0, 4, 1);
        runtime.synchronize();
      },
  };
  for (const Call call : calls) {
    const Device device = webgpu::device();
    Runtime& runtime = device.runtime();
    const CompiledKernelPtr kernel = runtime.compile(map_id("x + 1.0"), "plus_one");
    const BufferPtr a = runtime.allocate(100000);
    const BufferPtr b = runtime.allocate(100000);
    runtime.synchronize();
    lose_device(device);
    EXPECT_THAT(message_of<DeviceError>([&] { call(runtime, a, b, kernel); }), HasSubstr("lost"));
  }
}

TEST(LostDevice, APendingReadEnds) {
  const Device device = webgpu::device();
  const BufferPtr a = upload<float>(device.runtime(), {1});
  auto pending = device.runtime().read(a, 0, 4);
  lose_device(device);
  try {
    EXPECT_THAT(values_of<float>(pending.get()), ElementsAre(1));
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("lost"));
  }
  (void)message_of<DeviceError>([&] { device.runtime().allocate(123456); });
}

void use(const Device& device) {
  const BufferPtr buffer = upload<float>(device.runtime(), {1, 2});
  (void)download(device.runtime(), buffer, 2);
  device.runtime().fill(buffer, 0, 8, 3);  // recorded, never submitted
}

std::optional<Device> opened_late;
BufferPtr kept_buffer;

TEST(ProcessExit, WithDevicesInStaticStorageIsClean) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static const Device opened_first = webgpu::device();
        opened_late = webgpu::device({.f16 = false});
        use(opened_first);
        use(*opened_late);
        kept_buffer = upload<float>(opened_late->runtime(), {1});
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(ProcessExit, WithAReadThatNobodyWaitedForIsClean) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        opened_late = webgpu::device();
        static auto pending =
            opened_late->runtime().read(upload<float>(opened_late->runtime(), {1}), 0, 4);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Lifetime, ABufferAndAKernelOutliveTheDevice) {
  BufferPtr buffer;
  CompiledKernelPtr kernel;
  {
    const Device device = webgpu::device({.f16 = false});
    buffer = upload<float>(device.runtime(), {1});
    kernel = device.runtime().compile(map_id("x"), "same");
  }
  buffer.reset();
  kernel.reset();
  EXPECT_NO_THROW(use(webgpu::device({.f16 = false})));
}

}  // namespace
}  // namespace kiln::wgpu
