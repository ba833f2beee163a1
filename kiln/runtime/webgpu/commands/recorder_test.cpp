#include "kiln/runtime/webgpu/commands/recorder.hpp"

#include <thread>

#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln::wgpu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Recorder, AFaultThatNobodyForesawIsThrownAndTheNextBatchWorks) {
  const std::shared_ptr<Gpu> gpu = open_gpu(choose_adapter("", AdapterKind::any), {.f16 = false});
  GpuMemory memory;
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.size = 256;
  descriptor.usage = WGPUBufferUsage_CopyDst;
  memory.buffer = BufferHandle(wgpuDeviceCreateBuffer(gpu->device.get(), &descriptor));
  memory.size = 256;

  Recorder recorder(*gpu);
  recorder.clear(memory, 0, 512);
  EXPECT_THAT(message_of<Error>([&] { recorder.flush(); }),
              AllOf(HasSubstr("refused"), HasSubstr("512")));
  EXPECT_EQ(recorder.submits(), 0U);
  recorder.clear(memory, 0, 256);
  EXPECT_NO_THROW(recorder.flush());
  EXPECT_EQ(recorder.submits(), 1U);
  gpu->wait();
  EXPECT_NO_THROW(gpu->check());
}

TEST(ErrorScope, SeesTheFaultsOfItsOwnThreadAlone) {
  const std::shared_ptr<Gpu> gpu = open_gpu(choose_adapter("", AdapterKind::any), {.f16 = false});
  const auto fail = [&] {
    WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
    descriptor.size = UINT64_C(1) << 62;
    descriptor.usage = WGPUBufferUsage_Storage;
    const BufferHandle refused(wgpuDeviceCreateBuffer(gpu->device.get(), &descriptor));
  };
  ErrorScope scope(*gpu);
  std::jthread([&] {
    ErrorScope other(*gpu);
    fail();
    EXPECT_TRUE(other.take());
  }).join();
  EXPECT_FALSE(scope.take());
  std::jthread(fail).join();  // nobody catches it there: the device's next caller is told
  EXPECT_FALSE(scope.take());
  EXPECT_THROW(gpu->check(), Error);
  fail();
  EXPECT_TRUE(scope.take());
  EXPECT_NO_THROW(gpu->check());
}

TEST(DeviceReports, AnErrorIsThrownOnceAndALossForEver) {
  DeviceReports reports;
  EXPECT_NO_THROW(reports.check("gpu"));
  reports.add(WGPUErrorType_Validation, "first");
  reports.add(WGPUErrorType_Validation, "second");
  EXPECT_THAT(message_of<Error>([&] { reports.check("gpu"); }),
              AllOf(HasSubstr("gpu"), HasSubstr("first")));
  EXPECT_NO_THROW(reports.check("gpu"));
  reports.add(WGPUErrorType_OutOfMemory, "no memory");
  EXPECT_THROW(reports.check("gpu"), OutOfMemoryError);
  reports.add_loss("unplugged");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(message_of<DeviceError>([&] { reports.check("gpu"); }),
                AllOf(HasSubstr("lost"), HasSubstr("unplugged")));
  }
}

}  // namespace
}  // namespace kiln::wgpu
