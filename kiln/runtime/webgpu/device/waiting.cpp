/// Waiting for a device. wgpu-native's own waits may never end, so kiln polls.
#include <fmt/format.h>

#include <algorithm>

#include "kiln/runtime/queue_run.hpp"
#include "kiln/runtime/waiting.hpp"
#include "kiln/runtime/webgpu/device/gpu.hpp"
#include "kiln/support/error.hpp"

namespace kiln::wgpu {

using Clock = Pause::Clock;
using std::chrono::milliseconds;

namespace {

Pause pause_for(const Limits& limits) {
  return Pause(limits.software_adapter ? Pause::coarse : Pause::fine);
}

}  // namespace

Gpu::~Gpu() {
  if (finish()) return;
  queue.abandon();
  device.abandon();
}

Submission Gpu::submit(std::span<const WGPUCommandBuffer> commands) {
  wgpuQueueSubmit(queue.get(), commands.size(), commands.data());
  const Submission number = submitted_.fetch_add(1, std::memory_order_acq_rel) + 1;
  WGPUQueueWorkDoneCallbackInfo callback = WGPU_QUEUE_WORK_DONE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = on_done;
  callback.userdata1 = this;
  callback.userdata2 = reinterpret_cast<void*>(number);  // NOLINT: a number, as C passes it
  wgpuQueueOnSubmittedWorkDone(queue.get(), callback);
  return number;
}

void Gpu::on_done(WGPUQueueWorkDoneStatus, WGPUStringView, void* gpu, void* submission) {
  drivers.may_have_changed();
  auto& done = static_cast<Gpu*>(gpu)->done_;
  const auto number = reinterpret_cast<Submission>(submission);  // NOLINT: as above
  Submission before = done.load(std::memory_order_relaxed);
  while (before < number && !done.compare_exchange_weak(before, number, std::memory_order_release,
                                                        std::memory_order_relaxed)) {
  }
}

void Gpu::wait(Submission submission) {
  wait_until([&] { return done() >= submission; });
}

void Gpu::wait_until(const std::function<bool()>& ready) {
  const Pause pause = pause_for(limits);
  Patience left(patience);
  Clock::duration asked = Clock::duration::zero();
  Submission last = done();
  while (!ready()) {
    wgpuDevicePoll(device.get(), 0, nullptr);
    if (ready()) return;
    check();
    const Clock::duration now = pause.waited();
    const bool progress = std::exchange(last, done()) != last;
    if (progress) QueueRun::count_step();
    if (left.ends(progress))
      give_up(fmt::format("a submission ({} of {} are done)", done(), submitted()));
    if (now - asked > milliseconds(100)) {  // a device that is gone says so only when asked
      check_alive();
      asked = now;
    }
    pause();
  }
}

void Gpu::give_up(std::string_view what) {
  stuck_.store(true);
  reports.add_loss(
      fmt::format("{} did not end within {} s (KILN_DEVICE_TIMEOUT sets how long a device may "
                  "take)",
                  what, static_cast<double>(patience.count()) / 1000));
  check();
  throw DeviceError(fmt::format("webgpu: the device \"{}\" does not answer", adapter));
}

bool Gpu::finish() noexcept {
  const LibrarySection section(std::nothrow);
  if (stuck_.load()) return false;
  if (!section || !device) return true;
  const Pause pause = pause_for(limits);
  // A lost device may never report that work is done.
  const milliseconds most = reports.lost() ? std::min(patience, milliseconds(5000)) : patience;
  while (done() < submitted()) {
    wgpuDevicePoll(device.get(), 0, nullptr);
    if (done() >= submitted()) break;
    if (pause.waited() > most) {
      stuck_.store(true);
      return false;
    }
    pause();
  }
  return true;
}

}  // namespace kiln::wgpu
