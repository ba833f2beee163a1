#include "kiln/runtime/process_end.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using std::chrono::milliseconds;

// How long threads sleep after the end has begun. Any process has ended by then, unless it waits
// for the sleeping thread.
constexpr auto longest_sleep = std::chrono::seconds(10);
constexpr milliseconds usual_patience{120'000};

std::atomic<int> inside = 0;  // stretches: of threads, and of those that help them
std::atomic<bool> is_closed = false;
std::atomic<bool> is_closing = false;
std::atomic<std::thread::id> closed_by;
thread_local int stretches = 0;  // of this thread and of those that it helps

/// What was registered. Never destroyed.
struct AtEnd {
  const pid_t process = getpid();
  std::mutex mutex;
  std::vector<void (*)()> finish;
  std::atomic<milliseconds> patience{};
};
AtEnd& at_end() {
  static AtEnd& shared = *new AtEnd;
  return shared;
}

/// Lets no other thread enter from now on. Waits, at most for `longest`, until only threads that
/// wait for the calling thread are inside. Gives whether that is so.
bool close(milliseconds longest) {
  closed_by.store(std::this_thread::get_id());
  is_closed.store(true);
  const auto until = std::chrono::steady_clock::now() + longest;
  while (inside.load() > stretches) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

/// What is to be run. It takes locks of its own, under which others may call at_process_end.
std::vector<void (*)()> finishing(AtEnd& end) {
  const std::lock_guard lock(end.mutex);
  return end.finish;
}

/// Runs when the process begins to end.
void run_at_end() {
  const LibrarySection section(std::nothrow);
  if (!section) return;  // it has run before
  AtEnd& end = at_end();
  // A forked child has none of the threads that its parent's libraries work with.
  const bool forked = getpid() != end.process;
  const milliseconds asked = end.patience.load();
  const milliseconds longest = asked.count() > 0 ? asked : usual_patience;
  is_closing.store(true);
  if (close(forked ? milliseconds(0) : longest) && !forked) {
    for (void (*const finish)() : finishing(end)) finish();
  }
  is_closing.store(false);
}

void sleep_until_the_end() {
  while (is_closing.load()) std::this_thread::sleep_for(milliseconds(10));
  std::this_thread::sleep_for(longest_sleep);
}

bool on_main_thread() {
#ifdef __linux__
  return syscall(SYS_gettid) == getpid();
#else
  return pthread_main_np() != 0;
#endif
}

// Destructors of thread_locals are the first thing that std::exit runs. Libraries register handlers
// at exit at any time, from threads of their own, so no handler of ours is sure to run before
// theirs.
struct EndOfThread {
  bool watching = false;
  ~EndOfThread() {
    if (watching && on_main_thread()) run_at_end();
  }
};
thread_local EndOfThread end_of_thread;
// At namespace scope, so that the main thread owns it even if another thread opens the first
// device.
const bool watches_main_thread = end_of_thread.watching = true;

}  // namespace

LibrarySection::LibrarySection(std::nothrow_t) noexcept {
  if (stretches == 0) {
    (void)at_end();  // of this process, not of a child that is forked later
    inside.fetch_add(1);
    if (is_closed.load()) {
      inside.fetch_sub(1);
      return;
    }
    outermost_ = true;
    stretches = 1;
  }
  depth_ = stretches;
}

LibrarySection::LibrarySection() : LibrarySection(std::nothrow) {
  if (depth_ > 0) return;
  if (closed_by.load() != std::this_thread::get_id()) sleep_until_the_end();
  throw DeviceError("the process ends, and its devices have ended with it");
}

LibrarySection::~LibrarySection() {
  if (!outermost_) return;
  stretches = 0;
  inside.fetch_sub(1);
}

LibrarySection::Helper::Helper(int of) : before_(std::exchange(stretches, of + 1)) {
  inside.fetch_add(1);
}

LibrarySection::Helper::~Helper() {
  stretches = before_;
  inside.fetch_sub(1);
}

void at_process_end(void (*finish)(), milliseconds patience) {
  AtEnd& end = at_end();
  {
    const std::lock_guard lock(end.mutex);
    if (std::ranges::find(end.finish, finish) == end.finish.end()) end.finish.push_back(finish);
    end.patience = std::max(end.patience.load(), patience);
  }
  static constinit Library drivers;
  drivers.may_have_changed();
}

void Library::may_have_changed() noexcept {
  // The handler that was registered last runs first. To register one at each call would make an
  // endless list.
  if (std::has_single_bit(calls_.fetch_add(1) + 1)) (void)std::atexit(run_at_end);
}

}  // namespace kiln
