#include "kiln/runtime/webgpu/device/native.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough for any process to end that does not wait for the sleeping thread.
constexpr auto longest_sleep = std::chrono::seconds(10);

std::atomic<int> threads_inside = 0;
std::atomic<bool> is_closed = false;
std::atomic<std::thread::id> closed_by;
thread_local int depth = 0;

std::atomic<void (*)()> at_end = nullptr;
void run_at_end() {
  if (void (*const end)() = at_end.load()) end();
}

bool on_main_thread() {
#ifdef __linux__
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np() != 0;
#endif
}

// Destructors of thread_locals are the first thing that std::exit runs. Drivers register handlers
// at exit when they like, from threads of their own, so no handler is sure to come before theirs.
struct EndOfThread {
  bool watching = false;
  ~EndOfThread() {
    if (watching && on_main_thread()) run_at_end();
  }
};
thread_local EndOfThread end_of_thread;
// Here, so that it is the main thread's even if another is the first to open a device.
const bool watches_main_thread = end_of_thread.watching = true;

bool enter() {
  if (depth == 0) {
    threads_inside.fetch_add(1);
    if (is_closed.load()) {
      threads_inside.fetch_sub(1);
      return false;
    }
  }
  ++depth;
  return true;
}

}  // namespace

NativeSection::NativeSection() {
  if (enter()) return;
  if (closed_by.load() != std::this_thread::get_id()) std::this_thread::sleep_for(longest_sleep);
  throw DeviceError("webgpu: the process ends, and its devices have ended with it");
}

NativeSection::NativeSection(std::nothrow_t) noexcept : open_(enter()) {}

NativeSection::~NativeSection() {
  if (open_ && --depth == 0) threads_inside.fetch_sub(1);
}

bool NativeSection::close(std::chrono::milliseconds longest) {
  closed_by.store(std::this_thread::get_id());
  is_closed.store(true);
  const auto until = Clock::now() + longest;
  while (threads_inside.load() > 1) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void at_process_end(void (*end)()) {
  at_end.store(end);
  libraries_may_have_changed();
}

void libraries_may_have_changed() noexcept {
  // Handlers that were registered last run first. Every time would be a list without end.
  static std::atomic<std::uint64_t> calls = 0;
  if (std::has_single_bit(calls.fetch_add(1) + 1)) (void)std::atexit(run_at_end);
}

void leave_to_system(const void* object) noexcept {
  try {
    static std::mutex& mutex = *new std::mutex;
    static std::vector<const void*>& kept = *new std::vector<const void*>;
    const std::lock_guard lock(mutex);
    kept.push_back(object);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory to remember it with: it is left all the same.
  }
}

}  // namespace kiln::wgpu
