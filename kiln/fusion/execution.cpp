#include <fmt/format.h>

#include <algorithm>

#include "kiln/dispatch/elementwise/elementwise.hpp"
#include "kiln/dispatch/kernel/check_results.hpp"
#include "kiln/dispatch/kernel/client.hpp"
#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/fusion/batch.hpp"
#include "kiln/fusion/passes/rewrite.hpp"
#include "kiln/fusion/stream.hpp"
#include "kiln/runtime/queue_run.hpp"
#include "kiln/runtime/trace.hpp"
#include "kiln/support/overload.hpp"
#include "kiln/support/rule_error.hpp"

namespace kiln {

using namespace fusion;

Execution::Execution(Stream& stream, Runtime& runtime, Batch& batch, const Plan& plan,
                     QueueRun& run)
    : stream_(stream),
      shared_(runtime.shared_from_this()),
      batch_(batch),
      plan_(plan),
      run_(run),
      copies_(batch.values.size()),
      launches_(plan.graph.nodes.size()) {
  for (const auto& [copy, original] : plan.graph.copies) {
    if (plan.source.values[at(copy)].held) copies_[at(original)].push_back(copy);
  }
}

void Execution::run() {
  std::uint64_t before = run_.launches();
  for (std::size_t n = 0; n < plan_.graph.nodes.size(); ++n) {
    TraceSpan span(plan_.names[n]);
    run_.begin(plan_.names[n]);
    if (await_inputs(n)) run_block(n);
    for (const std::int32_t value : plan_.last_read[n]) end(value);
    const std::uint64_t now = run_.launches();
    launches_[n] = now - before;
    before = now;
    if (!span.recorded()) continue;
    const BlockBytes bytes = block_bytes(plan_, n);
    span.arg("bytes_read", bytes.read);
    span.arg("bytes_written", bytes.written);
    span.arg("launches", launches_[n]);
  }
  for (std::size_t v = 0; v < batch_.values.size(); ++v) {
    if (plan_.source.values[v].held && batch_.values[v] != nullptr)
      end(static_cast<std::int32_t>(v));
  }
}

/// Waits for what the block reads from other drains. Those began earlier, and their operations need
/// nothing that came later. So drains never wait for each other in a circle. False if one of them
/// does nothing for too long: the block has failed then.
bool Execution::await_inputs(std::size_t n) {
  const Node& node = plan_.graph.nodes[n];
  for (const Use& use : node.in) {
    if (batch_.made[at(use.value)] != 0 || !storage(use.value)->queued()) continue;
    const TraceSpan span("wait for another thread");
    std::exception_ptr& given_up = given_up_[stream_.drain_of(*storage(use.value))];
    try {
      if (!given_up) stream_.await(plan_.names[n], *storage(use.value));
    } catch (...) {
      given_up = std::current_exception();
    }
    if (given_up) {
      fail(node.out, given_up);
      return false;
    }
  }
  return true;
}

/// Ends a value that this drain does not read any more.
void Execution::end(std::int32_t value) {
  StoragePtr& storage = batch_.values[at(value)];
  if (batch_.made[at(value)] != 0 && storage->queued())
    storage->fail(std::make_exception_ptr(Error("stream: an operation gave no result")));
  storage.reset();
}

void Execution::run_block(std::size_t n) {
  const Node& node = plan_.graph.nodes[n];
  if (plan_.faults.has(n) && !faults_are_errors()) return run_alone(n, nullptr);
  if (const auto* call = std::get_if<Call>(&node.work); call != nullptr && call->fault != nullptr)
    return run_alone(n, call->fault);
  overwriting_ = false;
  std::exception_ptr cause;
  bool intact = true;  // the block has not changed what it reads
  try {
    std::vector<RawTensor> results = compute(n);
    for (RawTensor& result : results) result = dispatch::make_dense(result);
    for (std::size_t i = 0; i < results.size(); ++i) publish(node.out[i], results[i].buffer);
    return;
  } catch (const Error&) {
    cause = std::current_exception();  // before anything was written
  } catch (...) {
    intact = !overwriting_;
    cause = named_exception(plan_.names[n], {});
  }
  if (intact && node.records.size() > 1) return run_alone(n, cause);
  fail(node.out, cause);
}

RawTensor Execution::input(const Use& use) const {
  const std::int32_t value = plan_.original[at(use.value)];
  BufferPtr elements;
  std::exception_ptr error;
  if (const auto made = alone_.find(value); made != alone_.end()) {
    elements = made->second.elements;
    error = made->second.error;
  } else if (const Storage* from = storage(value)) {
    elements = from->buffer;
    error = from->error;
  }
  if (error) std::rethrow_exception(error);
  if (elements == nullptr) throw Error("stream: an input of an operation has been freed");
  return {shared_, std::move(elements), plan_.source.spec(value).dtype, use.layout};
}

std::vector<RawTensor> Execution::inputs(std::span<const Use> uses) const {
  std::vector<RawTensor> out;
  out.reserve(uses.size());
  for (const Use& use : uses) out.push_back(input(use));
  return out;
}

std::vector<double> Execution::params(const BoundBody& body) const {
  std::vector<double> out;
  out.reserve(body.params.size());
  for (const ParamUse& param : body.params)
    out.push_back(param.number < 0 ? param.value : batch_.params[at(param.number)]);
  return out;
}

std::vector<RawTensor> Execution::compute(std::size_t n) {
  return std::visit(Overload{
                        [&](const Elementwise& work) { return elementwise(n, work); },
                        [&](const Reduce& work) { return reduce(n, work); },
                        [&](const Call& work) { return call(n, work); },
                        [&](const Rows& work) { return rows(n, work); },
                    },
                    plan_.graph.nodes[n].work);
}

std::vector<RawTensor> Execution::elementwise(std::size_t n, const Elementwise& work) {
  const Node& node = plan_.graph.nodes[n];
  const std::vector<std::int32_t> in_place = reusable_inputs(n);
  const std::vector<RawTensor> in = inputs(node.in);
  overwriting_ = std::ranges::any_of(in_place, [](std::int32_t i) { return i >= 0; });
  auto results =
      dispatch::run_elementwise(plan_.names[n], shared_, work.body.body, params(work.body), in,
                                work.shape, dtypes_of(plan_.graph, node.out), in_place);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (in_place[r] >= 0 && results[r].buffer == in[at(in_place[r])].buffer) ++in_place_;
  }
  return results;
}

/// For each result an input that nobody reads any more, whose buffer the result may take; else -1.
std::vector<std::int32_t> Execution::reusable_inputs(std::size_t n) const {
  const Node& node = plan_.graph.nodes[n];
  const auto reads = [&](std::int32_t value) {
    return std::ranges::count(node.in, value, &Use::value);
  };
  const auto ours_alone = [&](std::int32_t value) {
    const StoragePtr& s = batch_.values[at(value)];
    if (s.use_count() != 1 || s->handles != 0 || s->buffer.use_count() != 1) return false;
    // use_count() gives no order among threads. To make a copy and drop it does: what other threads
    // did with theirs is over.
    (void)StoragePtr(s);
    (void)BufferPtr(s->buffer);
    return !s->buffer->frozen();
  };
  std::vector<char> taken(node.in.size());
  std::vector<std::int32_t> out;
  for (const std::int32_t result : node.out) {
    const TensorSpec& spec = plan_.graph.spec(result);
    const Layout dense = Layout::dense(spec.shape);
    const auto fits = [&](std::size_t i) {
      const Use& use = node.in[i];
      return taken[i] == 0 && !use.indexed && use.layout == dense &&
             plan_.graph.spec(use.value).dtype == spec.dtype && reads(use.value) == 1 &&
             std::ranges::find(plan_.last_read[n], use.value) != plan_.last_read[n].end() &&
             ours_alone(use.value);
    };
    std::size_t i = 0;
    while (i < node.in.size() && !fits(i)) ++i;
    if (i < node.in.size()) taken[i] = 1;
    out.push_back(i < node.in.size() ? static_cast<std::int32_t>(i) : -1);
  }
  return out;
}

std::optional<dispatch::FusedEpilogue> Execution::epilogue_of(const Node& node,
                                                              const NodeEpilogue& epilogue) {
  if (epilogue.body.body == nullptr) return std::nullopt;
  return dispatch::FusedEpilogue{epilogue.body.body, params(epilogue.body),
                                 inputs(std::span(node.in).subspan(epilogue.first)),
                                 dtypes_of(plan_.graph, node.out)};
}

std::vector<RawTensor> Execution::reduce(std::size_t n, const Reduce& work) {
  const Node& node = plan_.graph.nodes[n];
  const auto epilogue = epilogue_of(node, work.epilogue);
  const std::size_t before = epilogue ? work.epilogue.first : node.in.size();
  const dispatch::ReductionCall call{plan_.names[n],   work.reduction,      work.shape,
                                     work.before.body, params(work.before), work.dtype};
  return dispatch::run_reduction(call, shared_, inputs(std::span(node.in).first(before)),
                                 work.result, epilogue ? &*epilogue : nullptr);
}

std::vector<RawTensor> Execution::rows(std::size_t n, const Rows& work) {
  const Node& node = plan_.graph.nodes[n];
  return dispatch::run_rows(rows_call(plan_.graph, node, work, plan_.names[n], params(work.body)),
                            shared_, inputs(node.in));
}

std::vector<RawTensor> Execution::call(std::size_t n, const Call& work) {
  const Node& node = plan_.graph.nodes[n];
  const auto epilogue = epilogue_of(node, work.epilogue);
  if (!epilogue && work.producers.empty()) return compute_record(work.record);
  const auto& rule = std::get<RuleCall>(batch_.ops[at(work.record)].record.call);
  const std::vector<dispatch::FusedProducer> producers = producers_of(node, work);
  return dispatch::run_kernel(*rule.table, rule.op.get(), shared_, operands_of(node, work),
                              work.results, epilogue ? &*epilogue : nullptr, producers);
}

std::vector<dispatch::FusedProducer> Execution::producers_of(const Node& node,
                                                             const Call& work) const {
  std::vector<dispatch::FusedProducer> out;
  for (const NodeProducer& p : work.producers) {
    out.push_back({p.operand, p.body.body, params(p.body),
                   inputs(std::span(node.in).subspan(p.first, p.count))});
  }
  return out;
}

/// The operands of a call. Those that a producer makes have no buffer.
std::vector<RawTensor> Execution::operands_of(const Node& node, const Call& work) const {
  std::vector<RawTensor> out;
  auto producer = work.producers.begin();
  std::size_t next = 0;
  for (const Use& use : plan_.source.nodes[at(work.record)].in) {
    if (producer != work.producers.end() && producer->operand == out.size()) {
      out.push_back({shared_, nullptr, plan_.source.spec(use.value).dtype, use.layout});
      ++producer;
    } else {
      out.push_back(input(node.in[next++]));
    }
  }
  return out;
}

/// Computes one operation as it was queued.
std::vector<RawTensor> Execution::compute_record(std::int32_t record) {
  const OpRecord& op = batch_.ops[at(record)].record;
  const Node& node = plan_.source.nodes[at(record)];
  std::vector<TensorSpec> out;
  for (const std::int32_t value : node.out) out.push_back(plan_.source.spec(value));
  const std::vector<RawTensor> in = inputs(node.in);
  return std::visit(
      Overload{
          [&](const ElementwiseCall& call) {
            if (call.at_places) std::rethrow_exception(std::get<Call>(node.work).fault);
            return dispatch::run_elementwise(op.name, shared_, call.body, call.params, in,
                                             out[0].shape, dtypes_of(plan_.source, node.out));
          },
          [&](const Reduction& reduction) {
            return std::vector{dispatch::run_reduction(op.name, reduction, in[0], out[0])};
          },
          [&](const RuleCall& call) {
            return dispatch::run_kernel(*call.table, call.op.get(), shared_, in, out);
          },
          [&](const LaunchCall& call) {
            Client client(shared_, op.name);
            constexpr std::string_view rule = "the launching function";
            std::vector<RawTensor> results =
                in_rule(op.name, rule, [&] { return call->function(client, in); });
            dispatch::check_results({op.name, {}, rule}, shared_, results, out);
            return results;
          },
      },
      op.call);
}

void Execution::publish(std::int32_t value, const BufferPtr& elements) {
  const auto give = [&](std::int32_t to) {
    if (Storage* of = storage(to); of != nullptr) of->publish(elements);
  };
  give(value);
  for (const std::int32_t copy : copies_[at(value)]) give(copy);
}

void Execution::fail(std::span<const std::int32_t> values, const std::exception_ptr& cause) {
  for (const std::int32_t value : values) {
    if (Storage* of = storage(value); of != nullptr) of->fail(cause);
    for (const std::int32_t copy : copies_[at(value)]) {
      if (Storage* of = storage(copy); of != nullptr) of->fail(cause);
    }
  }
}

}  // namespace kiln
