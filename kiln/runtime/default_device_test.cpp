#include "kiln/runtime/default_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "kiln/runtime/cpu/cpu.hpp"
#include "kiln/runtime/webgpu/test_support.hpp"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// KILN_DEVICE for the time of a test.
class DefaultDevice : public ::testing::Test {
 protected:
  DefaultDevice() {
    if (const char* text = std::getenv("KILN_DEVICE")) before_ = text;
  }
  ~DefaultDevice() override {
    if (before_) {
      choose(before_->c_str());
    } else {
      unsetenv("KILN_DEVICE");
    }
  }
  static void choose(const char* text) { setenv("KILN_DEVICE", text, 1); }

 private:
  std::optional<std::string> before_;
};

TEST_F(DefaultDevice, IsTheOneThatTheEnvironmentNames) {
  choose("cpu");
  EXPECT_TRUE(default_device().same_as(cpu::device()));
  choose("webgpu");
  const Device gpu = default_device();
  EXPECT_TRUE(gpu.same_as(webgpu::device()));
  const std::string last = webgpu::adapters().back().name;  // a GPU's, or a software adapter's
  choose(("webgpu:" + last).c_str());
  EXPECT_EQ(default_device().adapter(), last);
}

TEST_F(DefaultDevice, AnUnknownNameIsAnErrorThatListsTheOthers) {
  choose("gpu");
  EXPECT_THAT(wgpu::message_of<DeviceError>([] { (void)default_device(); }),
              AllOf(HasSubstr("KILN_DEVICE is \"gpu\""), HasSubstr("\"cpu\""),
                    HasSubstr("\"webgpu:ADAPTER\"")));
  choose("webgpu:nonesuch");
  EXPECT_THAT(wgpu::message_of<DeviceError>([] { (void)default_device(); }),
              AllOf(HasSubstr("nonesuch"), HasSubstr("there are")));
}

TEST_F(DefaultDevice, WithoutItIsAGpuOrElseTheHost) {
  const auto is_gpu = [](const AdapterInfo& info) { return info.kind != AdapterKind::cpu; };
  const bool gpu = std::ranges::any_of(webgpu::adapters(), is_gpu);
  for (const bool empty : {true, false}) {
    if (empty) {
      choose("");
    } else {
      unsetenv("KILN_DEVICE");
    }
    EXPECT_EQ(default_device().runtime().name(), gpu ? "webgpu" : "cpu");
  }
}

}  // namespace
}  // namespace kiln
