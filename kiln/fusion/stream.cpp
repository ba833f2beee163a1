#include "kiln/fusion/stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "kiln/fusion/batch.hpp"
#include "kiln/runtime/queue_run.hpp"
#include "kiln/runtime/trace.hpp"
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
    (void)v.shape().elements();  // throws where 64 bits cannot count them
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
    drain();
    for (const Value& v : values) settle(*v.handle_->storage);
  } else if (full && QueueRun::current() == nullptr) {
    drain();
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
  if (storage.state.load(std::memory_order_acquire) == Storage::State::queued) drain();
  const Storage::State state = storage.state.load(std::memory_order_acquire);
  if (state == Storage::State::failed) std::rethrow_exception(storage.error);
  if (state == Storage::State::queued)
    throw Error("stream: a tensor's operation neither ran nor failed");
}

void Stream::handle_gone() {
  if (handles_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Nobody can read anything any more: what is queued would only hold memory, and the runtime.
  std::vector<QueuedOp> dropped;
  const std::lock_guard lock(queue_mutex_);
  if (handles_.load(std::memory_order_acquire) != 0) return;
  dropped.swap(queue_);
  queued_bytes_ = 0;
}

void Stream::drain() {
  if (QueueRun::current() != nullptr) {
    throw Error(
        "stream: a rule may not read tensors or run operations while the queue runs; it gets "
        "what it may read as arguments");
  }
  QueueRun run;  // ends after the lock
  const QueueRun::Scope here(&run);
  const std::lock_guard lock(drain_mutex_);
  TraceSpan span("drain");
  Batch batch;
  const std::size_t queued = take(batch);
  span.arg("queued", queued);
  span.arg("dead", queued - batch.ops.size());
  if (batch.ops.empty()) return;
  try {
    run_batch(batch, queued, span);
  } catch (...) {
    // Of the queue's own work; what goes wrong with an operation is kept with its results.
    batch.fail(named_exception("stream", "running the queue"));
  }
}

void Stream::run_batch(Batch& batch, std::size_t queued, TraceSpan& span) {
  const RuntimeCounters before = runtime_.counters();
  LastDrain last;
  last.counts.queued = queued;
  last.counts.dead = queued - batch.ops.size();
  last.plan = plan_of(batch, last.counts.plan_hit);
  span.arg("plan_hit", last.counts.plan_hit ? 1 : 0);
  Execution execution(runtime_, batch, *last.plan);
  execution.run();
  const RuntimeCounters after = runtime_.counters();
  last.launches = execution.launches();
  last.counts.in_place = execution.in_place();
  last.counts.launches = after.launches - before.launches;
  last.counts.allocations = after.allocated + after.reused - before.allocated - before.reused;
  const std::lock_guard report(report_mutex_);
  last.counts.plan_hits = last_.counts.plan_hits + (last.counts.plan_hit ? 1 : 0);
  last.counts.plan_misses = last_.counts.plan_misses + (last.counts.plan_hit ? 0 : 1);
  last_ = std::move(last);
}

/// Takes the queue, less what nobody can read any more; gives how many were queued.
std::size_t Stream::take(Batch& batch) {
  std::vector<QueuedOp> queue;
  const std::uint64_t id = ++batches_;
  const std::lock_guard lock(queue_mutex_);
  batch.ops.reserve(queue_.size());  // nothing throws once the operations are out of the queue
  queue.swap(queue_);
  queued_bytes_ = 0;
  const std::size_t queued = queue.size();
  for (QueuedOp& op : std::views::reverse(queue)) {
    bool needed = false;
    for (const StoragePtr& out : op.out) {
      out->held = out->handles.load(std::memory_order_acquire) > 0;
      needed = needed || out->held || out->batch == id;
    }
    if (!needed) continue;
    for (const QueuedOp::Input& in : op.in) {
      in.storage->batch = id;  // a later operation reads it
      in.storage->number = -1;
    }
    batch.ops.push_back(std::move(op));
  }
  std::ranges::reverse(batch.ops);
  return queued;
}

fusion::PlanPtr Stream::plan_of(Batch& batch, bool& known) {
  const TraceSpan span("plan");
  batch.number(batches_);
  fusion::PlanPtr plan = plans_.find(batch.form);
  known = plan != nullptr;
  if (!known) {
    std::vector<std::string> names;
    for (const QueuedOp& op : batch.ops) names.emplace_back(op.record.name);
    const Limits& limits = runtime_.limits();
    const fusion::FusionLimits fusion{.buffers = static_cast<int>(limits.storage_buffers)};
    plan = make_plan(batch.graph(runtime_), std::move(names), fusion);
    plans_.add(std::move(batch.form), plan);
  }
  // From here on the plan says what reads what; the batch's own list alone keeps storages.
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
