#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

// Constructed before any driver is loaded, so destroyed after most of what drivers have.
BufferPtr kept_by_namespace;

/// Has the device do work that nobody waits for, kernels not compiled before among it.
void start_work(Runtime& runtime, int kernels = 10) {
  BufferPtr a = upload(runtime, std::vector<float>(1000, 1));
  BufferPtr b = runtime.allocate(4000);
  for (int i = 0; i < kernels; ++i) {
    const std::string expression = "x + sin(" + std::to_string(i) + ".0 * x)";
    launch_map(runtime, runtime.compile(map_id(expression), "work"), a, b);
    std::swap(a, b);
  }
  kept_by_namespace = a;
  (void)runtime.read(a, 0, 4);
}

class ProcessEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // each in a process of its own
    ::setenv("MESA_SHADER_CACHE_DISABLE", "1", 1);   // so that the software adapter compiles
  }
  void TearDown() override { ::unsetenv("MESA_SHADER_CACHE_DISABLE"); }
};

TEST_F(ProcessEnd, WithWorkInFlightIsClean) {
  EXPECT_EXIT(
      {
        start_work(webgpu::device().runtime());
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEnd, ThatAnotherThreadBringsAboutIsClean) {
  EXPECT_EXIT(
      {
        const Device device = webgpu::device();
        start_work(device.runtime());
        device.runtime().synchronize();
        start_work(device.runtime());
        std::thread([] { std::exit(0); }).join();
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEnd, WhileAnotherThreadComputesIsClean) {
  EXPECT_EXIT(
      {
        static const Device device = webgpu::device();
        std::thread([] {
          while (true) start_work(device.runtime(), 3);
        }).detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEnd, WithBuffersInThreadLocalsIsClean) {
  EXPECT_EXIT(
      {
        static const Device device = webgpu::device();
        thread_local BufferPtr own;
        start_work(device.runtime());
        own = upload<float>(device.runtime(), {1});
        std::thread([] {
          thread_local const BufferPtr others = upload<float>(device.runtime(), {1});
        }).join();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ProcessEnd, LeavesATypedErrorForWhoComesLater) {
  EXPECT_EXIT(
      {
        struct Late {
          std::optional<Device> device;
          ~Late() {
            try {
              (void)device->runtime().allocate(4);
            } catch (const DeviceError&) {
              std::_Exit(7);
            }
          }
        };
        static Late late;
        late.device = webgpu::device();
        start_work(late.device->runtime());
        std::exit(0);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST_F(ProcessEnd, InAForkedChildDoesNotWaitForTheParentsDevice) {
  EXPECT_EXIT(
      {
        static const Device device = webgpu::device();
        if (!device.limits().software_adapter)
          std::exit(0);  // a GPU's driver may itself wait in such a child
        start_work(device.runtime());
        const pid_t child = fork();
        if (child == 0) std::exit(0);
        int status = 1;
        waitpid(child, &status, 0);
        std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace kiln::wgpu
