#include <thread>

#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::Each;

// Runs `work(0)` to `work(count - 1)` at once; what they throw fails the test.
template <class Work>
void at_once(int count, Work work) {
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([i, &work] { EXPECT_NO_THROW(work(i)); });
  }
}

TEST(Threads, ShareARuntime) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  at_once(4, [&](int thread) {
    for (int round = 0; round < 20; ++round) {
      const auto start = static_cast<float>(thread * 1000 + round);
      const CompiledKernelPtr kernel =
          runtime.compile(map_id("x + " + std::to_string(thread + 1) + ".0"), "add");
      BufferPtr a = upload(runtime, std::vector<float>(100, start));
      BufferPtr b = runtime.allocate(400);
      for (int i = 0; i < 10; ++i) {
        launch_map(runtime, kernel, a, b);
        std::swap(a, b);
      }
      EXPECT_THAT(download(runtime, a, 100), Each(start + static_cast<float>(10 * (thread + 1))));
    }
  });
}

TEST(Threads, OneWaitsForAReadThatAnotherAskedFor) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  for (int round = 0; round < 20; ++round) {
    auto future = runtime.read(upload(runtime, std::vector<float>(10, 3)), 0, 40);
    std::jthread reader([&] { EXPECT_THAT(values_of<float>(future.get()), Each(3)); });
    runtime.synchronize();
  }
}

TEST(Threads, ErrorsOfOneDoNotReachAnother) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  at_once(3, [&](int thread) {
    for (int round = 0; round < 20; ++round) {
      if (thread == 0) {
        EXPECT_THROW(runtime.compile(map_id("nonsense " + std::to_string(round)), "broken"),
                     KernelError);
      } else {
        EXPECT_THAT(download(runtime, upload(runtime, std::vector<float>(10, 2)), 10), Each(2));
      }
    }
  });
}

TEST(Threads, OpenTheSameDeviceOnce) {
  std::vector<std::optional<Device>> devices(4);
  at_once(4, [&](int thread) { devices[static_cast<std::size_t>(thread)] = webgpu::device(); });
  for (const auto& device : devices) EXPECT_TRUE(device->same_as(*devices[0]));
}

TEST(Threads, DropBuffersThatOthersStillUse) {
  const Device device = webgpu::device();
  Runtime& runtime = device.runtime();
  const CompiledKernelPtr kernel = runtime.compile(map_id("x + 1.0"), "plus_one");
  BufferPtr shared = upload(runtime, std::vector<float>(100, 1));
  std::vector<BufferPtr> copies(4, shared);
  shared.reset();
  at_once(4, [&](int thread) {
    const BufferPtr in = std::move(copies[static_cast<std::size_t>(thread)]);
    const BufferPtr out = runtime.allocate(400);
    launch_map(runtime, kernel, in, out);
    EXPECT_THAT(download(runtime, out, 100), Each(2));
  });
}

}  // namespace
}  // namespace kiln::wgpu
