#include "kiln/runtime/cpu/parallel.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

#include "kiln/runtime/process_end.hpp"
#include "kiln/runtime/queue_run.hpp"

namespace kiln::cpu {
namespace {

constinit Library onetbb;

}  // namespace

void detail::parallel(std::int64_t count, std::int64_t grain, RangeFunction call, const void* f) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  const LibrarySection section(std::nothrow);
  if (count <= grain || !section) {  // once the process ends, this thread does everything
    call(f, 0, count);
    return;
  }
  // Ranges differ by one at most. There are a few for each thread, so that a slow thread does not
  // hold up the others.
  constexpr std::int64_t each = 4;
  const std::int64_t parts = std::min(count / grain, each * threads());
  if (parts <= 1) {
    call(f, 0, count);
    return;
  }
  const auto at = [&](std::int64_t part) {
    return count / parts * part + std::min(part, count % parts);
  };
  QueueRun* const queue = QueueRun::current();
  const auto run = [&](std::int64_t part) {
    const LibrarySection::Helper inside(section);
    const QueueRun::Scope here(queue);  // the other threads work for the caller's run
    call(f, at(part), at(part + 1));
    QueueRun::count_step();
  };
  // Isolated, because a caller may hold a lock: while it waits it must not get an outside task that
  // wants the same lock.
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for<std::int64_t>(0, parts, run, tbb::simple_partitioner()); });
  onetbb.may_have_changed();
}

int threads() {
  const LibrarySection section(std::nothrow);
  return section ? tbb::this_task_arena::max_concurrency() : 1;
}

}  // namespace kiln::cpu
