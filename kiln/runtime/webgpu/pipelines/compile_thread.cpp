#include "kiln/runtime/webgpu/pipelines/compile_thread.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <condition_variable>
#include <exception>
#include <mutex>

#include "kiln/support/error.hpp"

namespace kiln::wgpu {
namespace {

// The system gives a page only when it is used.
constexpr std::size_t stack_bytes = std::size_t{256} << 20;

struct Job {
  std::function<void()> work;
  int depth = 0;  ///< of the section that it belongs to
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
};

void* run(void* data) {
  const std::unique_ptr<std::shared_ptr<Job>> own(static_cast<std::shared_ptr<Job>*>(data));
  Job& job = **own;
  try {
    const LibrarySection::Helper inside(job.depth);
    job.work();
  } catch (...) {
    job.error = std::current_exception();
  }
  job.work = nullptr;  // what it holds ends on this thread, not on one that waits
  const std::lock_guard lock(job.mutex);
  job.done = true;
  job.ended.notify_all();
  return nullptr;
}

/// Attributes of a thread with a large stack.
class LargeStack {
 public:
  LargeStack() {
    pthread_attr_init(&attributes_);
    pthread_attr_setstacksize(&attributes_, stack_bytes);
  }
  LargeStack(const LargeStack&) = delete;
  LargeStack& operator=(const LargeStack&) = delete;
  ~LargeStack() { pthread_attr_destroy(&attributes_); }
  [[nodiscard]] const pthread_attr_t* get() const { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

}  // namespace

void on_compile_thread(Gpu& gpu, const std::string& what, std::function<void()> work) {
  const LibrarySection section;
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  job->depth = section.depth();
  auto own = std::make_unique<std::shared_ptr<Job>>(job);
  const LargeStack stack;
  pthread_t thread{};
  if (const int error = pthread_create(&thread, stack.get(), run, own.get()); error != 0)
    throw Error(fmt::format("{}: no thread can be started to compile it (error {})", what, error));
  (void)own.release();  // NOLINT(bugprone-unused-return-value): it is the thread's now
  std::unique_lock lock(job->mutex);
  const bool done = job->ended.wait_for(lock, gpu.patience, [&] { return job->done; });
  lock.unlock();
  if (!done) {
    pthread_detach(thread);
    gpu.give_up("the compilation of " + what);
  }
  pthread_join(thread, nullptr);
  if (job->error) std::rethrow_exception(job->error);
}

}  // namespace kiln::wgpu
