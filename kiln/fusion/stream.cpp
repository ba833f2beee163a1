#include "kiln/fusion/stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "kiln/fusion/batch.hpp"
#include "kiln/runtime/queue_run.hpp"
#include "kiln/runtime/trace.hpp"
#include "kiln/runtime/waiting.hpp"
#include "kiln/support/rule_error.hpp"

namespace kiln {

std::vector<Value> Stream::append(const OpRecord& record, const Device& device,
                                  std::span<const Value> inputs, std::span<const TensorSpec> out) {
  if (&device.runtime() != &runtime_) refuse_device(record.name, device.runtime(), "the result");
  QueuedOp op{record, {}, {}};
  op.in.reserve(inputs.size());
  for (const Value& v : inputs) {
    if (v.runtime().get() != &runtime_)
      refuse_device(record.name, *v.runtime(), fmt::format("input {}", op.in.size()));
    (void)v.shape().elements();  // throws if 64 bits cannot count them
    op.in.push_back({v.handle_->storage, v.handle_->layout});
  }
  std::vector<Value> values;
  values.reserve(out.size());
  op.out.reserve(out.size());
  std::uint64_t bytes = 0;
  for (const TensorSpec& spec : out) {
    dispatch::require_countable(record.name, spec);
    bytes += dispatch::bytes_of(spec);
    auto& storage = op.out.emplace_back(std::make_shared<Storage>());
    storage->dtype = spec.dtype;
    storage->shape = spec.shape;
    storage->bytes = dispatch::bytes_of(spec);
    values.push_back(Value(std::make_shared<const Value::Handle>(
        device.shared_runtime(), *this, storage, Layout::dense(spec.shape))));
  }
  bool full = false;
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(op));
    queued_bytes_ += bytes;
    full = queue_.size() >= most_queued || queued_bytes_ >= most_queued_bytes;
  }
  if (device.is_eager()) {
    drain({});
    for (const Value& v : values) settle(*v.handle_->storage);
  } else if (full && QueueRun::current() == nullptr) {
    make_room();
  }
  return values;
}

std::vector<Value> Stream::launch(std::string_view name, const Device& device,
                                  std::span<const Value> inputs, std::span<const TensorSpec> out,
                                  LaunchFunction function) {
  auto call = std::make_shared<const LaunchByHand>(std::string(name), std::move(function));
  const std::string_view own = call->name;
  return append({own, std::move(call)}, device, inputs, out);
}

void Stream::refuse_device(std::string_view op, const Runtime& other, std::string_view what) const {
  throw DeviceError(fmt::format(
      "{}: {} is on another device ({}: {}) than the queue ({}: {}); move it with to(device)", op,
      what, other.name(), other.adapter(), runtime_.name(), runtime_.adapter()));
}

Value Stream::view(std::string_view op, const Value& value, const Layout& layout) {
  if (value.runtime().get() != &runtime_) refuse_device(op, *value.runtime(), "the tensor");
  const Storage& storage = *value.handle_->storage;
  dispatch::require_inside([&] { return op; }, layout, storage.dtype, storage.bytes);
  return Value(std::make_shared<const Value::Handle>(value.handle_->runtime, *this,
                                                     value.handle_->storage, layout));
}

void Stream::settle(const Storage& storage) {
  if (storage.queued()) {
    // An operation that waits for another drain holds up the others of its drain. So it comes
    // later.
    if (busy()) drain({});
    if (storage.queued()) drain({.needed = &storage});
    await("stream", storage);
  }
  if (storage.state.load(std::memory_order_acquire) == Storage::State::failed)
    std::rethrow_exception(storage.error);
}

bool Stream::busy() {
  const std::lock_guard lock(queue_mutex_);
  return !running_.empty();
}

void Stream::flush() {
  if (busy()) drain({.all = true, .ready = true});
  drain({.all = true});
}

void Stream::finish() {
  flush();
  std::uint64_t last = 0;
  {
    const std::lock_guard lock(queue_mutex_);
    last = drains_;
  }
  const auto look = [&] { return progress(0, last); };
  await("stream", [&] { return look().drains == 0; }, look);
}

/// The queue is full. It runs what waits for no other thread, if that is much. The operations of
/// this thread come first.
void Stream::make_room() {
  drain({});
  if (fuller_than(2)) drain({.all = true, .ready = true});
  if (fuller_than(1)) drain({.all = true});
}

/// Whether it holds one `part`th of what it may hold.
bool Stream::fuller_than(std::size_t part) {
  const std::lock_guard lock(queue_mutex_);
  return queue_.size() >= most_queued / part || queued_bytes_ >= most_queued_bytes / part;
}

Stream::Progress Stream::progress(std::uint64_t first, std::uint64_t last) {
  Progress all;
  const std::lock_guard lock(queue_mutex_);
  for (const Running& running : running_) {
    if (running.drain < first || running.drain > last) continue;
    ++all.drains;
    all.steps += running.run->progress();
    if (all.at.empty()) all.at = running.run->at();  // the earliest waits for no other
  }
  return all;
}

std::uint64_t Stream::drain_of(const Storage& storage) {
  const std::lock_guard lock(queue_mutex_);
  return storage.drain;
}

void Stream::await(std::string_view who, const Storage& storage) {
  if (!storage.queued()) return;
  const auto look = [&] {
    const std::uint64_t drain = drain_of(storage);
    return progress(drain, drain);
  };
  await(who, [&] { return !storage.queued(); }, look);
}

/// Waits until `over()` is true. `look` gives the state of the drains for which it waits.
void Stream::await(std::string_view who, const std::function<bool()>& over,
                   const std::function<Progress()>& look) {
  constexpr std::chrono::milliseconds seldom(10);  // it takes locks
  const auto patience = runtime_.patience();
  const Pause pause(Pause::coarse);
  Patience left(patience + patience / 8);  // devices and compilers give up before
  Progress last;
  Pause::Clock::duration looked{};
  for (; !over(); pause()) {
    const auto waited = pause.waited();
    if (waited - looked < seldom) continue;
    looked = waited;
    const Progress now = look();
    // A thread that waits for this one waits on: this one gives up by itself.
    QueueRun::count_step();
    const bool progress = now.steps != last.steps || now.drains != last.drains;
    if (progress) last = now;
    if (left.ends(progress)) {
      throw DeviceError(fmt::format(
          "{}: another thread is at operation '{}' and has done nothing for {} s "
          "(KILN_DEVICE_TIMEOUT sets how long it may); if that is a rule that waits for this "
          "thread, this thread may not read what the rule's run of the queue makes",
          who, now.at, static_cast<double>(patience.count()) / 1000));
    }
  }
}

void Stream::handle_gone() {
  if (handles_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Nobody can read anything any more. Queued work would only hold memory and the runtime.
  std::vector<QueuedOp> dropped;
  const std::lock_guard lock(queue_mutex_);
  if (handles_.load(std::memory_order_acquire) != 0) return;
  dropped.swap(queue_);
  queued_bytes_ = 0;
}

void Stream::drain(const Wanted& wanted) {
  if (QueueRun::current() != nullptr) {
    throw Error(
        "stream: a rule may not read tensors or run operations while the queue runs; it gets "
        "what it may read as arguments");
  }
  QueueRun run;
  const QueueRun::Scope here(&run);
  TraceSpan span("drain");
  Batch batch;
  const std::size_t queued = take(batch, wanted, run);
  if (batch.ops.empty()) return;
  try {
    span.arg("queued", queued);
    span.arg("dead", queued - batch.ops.size());
    run_batch(batch, queued, run, span);
  } catch (...) {
    // An error of the queue's own work. Errors of operations are kept with their results.
    batch.fail(named_exception("stream", "running the queue"));
  }
  const std::lock_guard lock(queue_mutex_);
  std::erase_if(running_, [&](const Running& each) { return each.drain == batch.drain; });
}

void Stream::run_batch(Batch& batch, std::size_t queued, QueueRun& run, TraceSpan& span) {
  LastDrain last;
  last.counts.queued = queued;
  last.counts.dead = queued - batch.ops.size();
  last.plan = plan_of(batch, last.counts.plan_hit);
  span.arg("plan_hit", last.counts.plan_hit ? 1 : 0);
  Execution execution(*this, runtime_, batch, *last.plan, run);
  execution.run();
  last.launches = execution.launches();
  last.counts.in_place = execution.in_place();
  last.counts.launches = run.launches();
  last.counts.allocations = run.allocations();
  const std::lock_guard report(report_mutex_);
  last.counts.plan_hits = last_.counts.plan_hits + (last.counts.plan_hit ? 1 : 0);
  last.counts.plan_misses = last_.counts.plan_misses + (last.counts.plan_hit ? 0 : 1);
  last_ = std::move(last);
}

/// Takes what is wanted from the queue, and drops what nobody can read any more. Gives how many
/// operations that were.
std::size_t Stream::take(Batch& batch, const Wanted& wanted, const QueueRun& run) {
  std::vector<QueuedOp> queue;  // ends after the lock, and with it what is dropped
  const std::lock_guard lock(queue_mutex_);
  batch.drain = ++drains_;
  const std::size_t stay = look(batch.drain, wanted);
  std::vector<QueuedOp> rest;
  rest.reserve(stay);
  batch.ops.reserve(queue_.size() - stay);
  running_.reserve(running_.size() + 1);
  // Nothing throws from here on.
  queue.swap(queue_);
  queue_.swap(rest);
  queued_bytes_ = 0;
  for (QueuedOp& op : queue) {
    for (const StoragePtr& out : op.out) {
      out->drain = op.fate == QueuedOp::Fate::runs ? batch.drain : 0;
      if (op.fate == QueuedOp::Fate::stays) queued_bytes_ += out->bytes;
    }
    if (op.fate == QueuedOp::Fate::runs) {
      batch.ops.push_back(std::move(op));
    } else if (op.fate == QueuedOp::Fate::stays) {
      queue_.push_back(std::move(op));
    }
  }
  if (!batch.ops.empty()) running_.push_back({batch.drain, &run});
  return queue.size() - queue_.size();
}

/// Decides the fate of each queued operation, and gives how many stay. What a drain takes reads
/// nothing that stays, so drains depend on earlier ones alone.
std::size_t Stream::look(std::uint64_t drain, const Wanted& wanted) {
  const std::thread::id own = std::this_thread::get_id();
  if (!running_.empty()) look_for_waits();
  std::size_t stay = 0;
  for (QueuedOp& op : std::views::reverse(queue_)) {
    const bool waits = !running_.empty() && op.waits;
    // An operation that was left to its thread for long holds memory, or its thread has ended.
    bool runs = (wanted.all && !(wanted.ready && waits)) ||
                ((op.by == own || op.left >= most_left) && !waits);
    bool needed = false;
    for (const StoragePtr& out : op.out) {
      const bool asked = out->asked == drain;  // by a later operation
      out->held = out->handles.load(std::memory_order_acquire) > 0 || (asked && out->stays);
      runs = runs || out.get() == wanted.needed || (asked && out->runs);
      needed = needed || out->held || asked;
    }
    op.fate = !needed ? QueuedOp::Fate::dropped
              : runs  ? QueuedOp::Fate::runs
                      : QueuedOp::Fate::stays;
    if (!needed) continue;
    stay += runs ? 0 : 1;
    if (!runs && op.left < most_left) ++op.left;
    for (const QueuedOp::Input& in : op.in) {
      Storage& read = *in.storage;
      const bool asked = std::exchange(read.asked, drain) == drain;
      read.runs = (asked && read.runs) || runs;
      read.stays = (asked && read.stays) || !runs;
    }
  }
  return stay;
}

/// Notes which operations need what another drain has taken and not made yet. Readers of other
/// values leave those operations in the queue.
void Stream::look_for_waits() {
  for (QueuedOp& op : queue_) {
    op.waits = std::ranges::any_of(op.in, [](const QueuedOp::Input& in) {
      return in.storage->queued() && (in.storage->drain != 0 || in.storage->waits);
    });
    for (const StoragePtr& out : op.out) out->waits = op.waits;
  }
}

/// Looks for the form's plan under a lock, and makes it under none. If two threads make the same
/// plan, both use the one that was added first.
fusion::PlanPtr Stream::plan_of(Batch& batch, bool& known) {
  const TraceSpan span("plan");
  fusion::PlanPtr plan;
  {
    const std::lock_guard lock(plan_mutex_);
    batch.number();
    plan = plans_.find(batch.form);
  }
  known = plan != nullptr;
  if (!known) {
    std::vector<std::string> names;
    for (const QueuedOp& op : batch.ops) names.emplace_back(op.record.name);
    const Limits& limits = runtime_.limits();
    const fusion::FusionLimits fusion{.buffers = static_cast<int>(limits.storage_buffers),
                                      .runtime = &runtime_};
    plan = make_plan(batch.graph(runtime_), std::move(names), fusion);
    if (plan->lasts()) {
      const std::lock_guard lock(plan_mutex_);
      plan = plans_.add(std::move(batch.form), std::move(plan));
    }
  }
  // From here on the plan says what reads what, and only the batch's own list keeps storages.
  for (QueuedOp& op : batch.ops) {
    op.in.clear();
    op.out.clear();
  }
  return plan;
}

DrainReport Stream::last_drain() const {
  const std::lock_guard lock(report_mutex_);
  return last_.plan == nullptr ? last_.counts
                               : report_of(*last_.plan, last_.launches, last_.counts);
}

}  // namespace kiln
