#include "kiln/fusion/stream.hpp"

#include <algorithm>
#include <ranges>

#include "kiln/fusion/batch.hpp"
#include "kiln/runtime/trace.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// Set while this thread runs a queue: rules are called then.
thread_local bool draining = false;

class Draining {
 public:
  Draining() {
    if (draining) {
      throw Error(
          "stream: a rule may not read tensors or run operations while the queue runs; it gets "
          "what it may read as arguments");
    }
    draining = true;
  }
  Draining(const Draining&) = delete;
  Draining& operator=(const Draining&) = delete;
  ~Draining() { draining = false; }
};

}  // namespace

std::vector<Value> Stream::append(const OpRecord& record, const Device& device,
                                  std::span<const Value> inputs, std::span<const TensorSpec> out) {
  QueuedOp op{record, {}, {}};
  op.in.reserve(inputs.size());
  for (const Value& v : inputs) {
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
  } else if (full && !draining) {
    drain();
  }
  return values;
}

std::vector<Value> Stream::launch(std::string_view name, const Device& device,
                                  std::span<const Value> inputs, std::span<const TensorSpec> out,
                                  LaunchFunction function) {
  auto call = std::make_shared<const LaunchFunction>(std::move(function));
  return append({lasting_name(std::string(name)), std::move(call)}, device, inputs, out);
}

Value Stream::view(std::string_view op, const Value& value, const Layout& layout) {
  const Storage& storage = *value.handle_->storage;
  dispatch::require_inside([&] { return op; }, layout, storage.dtype, storage.bytes);
  return Value(std::make_shared<const Value::Handle>(value.handle_->runtime, *this,
                                                     value.handle_->storage, layout));
}

void Stream::settle(const Storage& storage) {
  if (storage.state.load(std::memory_order_acquire) == Storage::State::queued) drain();
  if (storage.state.load(std::memory_order_acquire) == Storage::State::failed)
    std::rethrow_exception(storage.error);
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
  const Draining here;
  const std::lock_guard lock(drain_mutex_);
  TraceSpan span("drain");
  Batch batch;
  const std::size_t queued = take(batch);
  span.arg("queued", queued);
  span.arg("dead", queued - batch.ops.size());
  if (batch.ops.empty()) return;
  const RuntimeCounters before = runtime_.counters();
  LastDrain last;
  last.counts.queued = queued;
  last.counts.dead = queued - batch.ops.size();
  try {
    last.plan = plan_of(batch, last.counts.plan_hit);
  } catch (...) {
    for (const QueuedOp& op : batch.ops) {
      for (const StoragePtr& out : op.out) out->fail(std::current_exception());
    }
    return;
  }
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
  queue.swap(queue_);
  queued_bytes_ = 0;
  const std::size_t queued = queue.size();
  for (QueuedOp& op : std::views::reverse(queue)) {
    bool needed = false;
    std::vector<char> held;
    for (const StoragePtr& out : op.out) {
      held.push_back(out->handles.load(std::memory_order_acquire) > 0 ? 1 : 0);
      needed = needed || held.back() != 0 || out->batch == id;
    }
    if (!needed) continue;
    for (const QueuedOp::Input& in : op.in) {
      in.storage->batch = id;  // a later operation reads it
      in.storage->number = -1;
    }
    batch.ops.push_back(std::move(op));
    batch.held.push_back(std::move(held));
  }
  std::ranges::reverse(batch.ops);
  std::ranges::reverse(batch.held);
  return queued;
}

fusion::PlanPtr Stream::plan_of(Batch& batch, bool& known) {
  const TraceSpan span("plan");
  batch.number(batches_);
  auto found = plans_.find(batch.form);
  known = found != plans_.end();
  if (!known) {
    constexpr std::size_t most_plans = 4096;  // a program whose shapes never repeat
    if (plans_.size() >= most_plans) plans_.clear();
    std::vector<std::string_view> names;
    for (const QueuedOp& op : batch.ops) names.push_back(op.record.name);
    const Limits& limits = runtime_.limits();
    const fusion::FusionLimits fusion{.buffers = static_cast<int>(limits.storage_buffers)};
    found = plans_.emplace(batch.form, make_plan(batch.graph(runtime_), names, fusion)).first;
  }
  // From here on the plan says what reads what; the batch's own list alone keeps storages.
  for (QueuedOp& op : batch.ops) {
    op.in.clear();
    op.out.clear();
  }
  return found->second;
}

DrainReport Stream::last_drain() const {
  const std::lock_guard lock(report_mutex_);
  return last_.plan == nullptr ? last_.counts
                               : report_of(*last_.plan, last_.launches, last_.counts);
}

}  // namespace kiln
