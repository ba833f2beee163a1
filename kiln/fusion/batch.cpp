#include "kiln/fusion/batch.hpp"

#include <algorithm>

#include "kiln/dispatch/kernel/kernel_op.hpp"
#include "kiln/dispatch/key.hpp"
#include "kiln/fusion/passes/rewrite.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/support/overload.hpp"
#include "kiln/support/rule_error.hpp"

namespace kiln {
namespace {

using namespace fusion;
using dispatch::append_bytes;
using dispatch::append_layout;
using dispatch::append_spec;

/// Numbers the storages and scalars of a batch.
class Numbering {
 public:
  explicit Numbering(Batch& batch) : batch_(batch) {}

  void run() && {
    for (QueuedOp& op : batch_.ops) add(op);
  }

 private:
  std::string& form() { return batch_.form; }

  void add(QueuedOp& op) {
    batch_.slots.emplace_back();
    form() += static_cast<char>(op.record.call.index());
    append_bytes(form(), op.in.size());
    append_bytes(form(), op.out.size());
    std::visit(Overload{
                   [&](const ElementwiseCall& call) {
                     append_bytes(form(), call.body.get());
                     for (const double value : call.params) add_param(value);
                     append_bytes(form(), call.at_places);
                     for (const double value : call.numbers) append_bytes(form(), value);
                   },
                   [&](const Reduction& reduction) {
                     append_bytes(form(), reduction.combine);
                     append_bytes(form(), reduction.axes.to_ulong());
                     append_bytes(form(), double{reduction.scale});
                   },
                   [&](const RuleCall& call) {
                     append_bytes(form(), call.table);
                     call.table->append_key(call.op.get(), form());
                     std::vector<const Param*> params;
                     call.table->params(call.op.get(), params);
                     for (const Param* param : params) add_param(param->value());
                   },
                   [&](const LaunchCall& call) {
                     append_bytes(form(), call->name.size());
                     form() += call->name;
                   },
               },
               op.record.call);
    // Other names last as long as the process, so the address is enough.
    if (!std::holds_alternative<LaunchCall>(op.record.call))
      append_bytes(form(), op.record.name.data());
    for (QueuedOp::Input& input : op.in) add_input(input);
    op.first_out = static_cast<std::int32_t>(batch_.values.size());
    for (const StoragePtr& out : op.out) {
      assign(out, true);
      append_spec(form(), {out->shape, out->dtype});
      append_bytes(form(), out->held);
    }
  }

  /// Every scalar has a number of its own, whatever its value. If equal scalars shared one, the
  /// form would change when their values differ, and another plan would be made.
  void add_param(double value) {
    batch_.slots.back().push_back(static_cast<std::int32_t>(batch_.params.size()));
    batch_.params.push_back(value);
  }

  void assign(const StoragePtr& storage, bool made) {
    storage->batch = batch_.drain;
    storage->number = static_cast<std::int32_t>(batch_.values.size());
    batch_.values.push_back(storage);
    batch_.made.push_back(made ? 1 : 0);
  }

  void add_input(QueuedOp::Input& input) {
    if (input.storage->batch != batch_.drain) {
      assign(input.storage, false);
      append_bytes(form(), input.storage->dtype);
    }
    input.number = input.storage->number;
    append_bytes(form(), input.number);
    append_layout(form(), input.layout);
  }

  Batch& batch_;
};

/// Makes the graph of a numbered batch.
class Drawing {
 public:
  Drawing(const Batch& batch, Runtime& runtime) : batch_(batch), runtime_(runtime) {}

  Graph run() && {
    for (const StoragePtr& storage : batch_.values)
      graph_.values.push_back({{storage->shape, storage->dtype}, true, false});
    for (std::size_t i = 0; i < batch_.ops.size(); ++i) add(i);
    return std::move(graph_);
  }

 private:
  void add(std::size_t i) {
    const QueuedOp& op = batch_.ops[i];
    Node node;
    node.records = {static_cast<std::int32_t>(i)};
    for (const QueuedOp::Input& input : op.in) node.in.push_back({input.number, input.layout});
    std::vector<TensorSpec> out;
    for (const StoragePtr& made : op.out) {
      node.out.push_back(op.first_out + static_cast<std::int32_t>(out.size()));
      ValueInfo& info = graph_.values[at(node.out.back())];
      info.given = false;
      info.held = made->held;
      out.push_back(info.spec);
    }
    try {
      node.work = std::visit(
          Overload{
              [&](const ElementwiseCall& call) { return elementwise(i, call, node, out); },
              [&](const Reduction& reduction) { return reduce(reduction, node, out); },
              [&](const RuleCall& call) { return rule(i, call, node, out); },
              [&](const LaunchCall&) { return Work{by_itself(i, out)}; },
          },
          op.record.call);
      const auto* call = std::get_if<ElementwiseCall>(&op.record.call);
      if (call != nullptr && call->at_places)
        read_in_place(graph_, node, static_cast<int>(runtime_.limits().storage_buffers));
    } catch (...) {
      Call alone = by_itself(i, out);
      alone.fault = named_exception(op.record.name, {});
      node.work = std::move(alone);
    }
    graph_.nodes.push_back(std::move(node));
  }

  using Work = decltype(Node::work);

  Work elementwise(std::size_t i, const ElementwiseCall& call, Node& node,
                   const std::vector<TensorSpec>& out) {
    Elementwise work{{call.body, {}}, out[0].shape};
    std::vector<DType> dtypes;
    for (Use& use : node.in) {
      use.indexed = call.at_places;
      if (!use.indexed) use.layout = use.layout.broadcast_to(work.shape);
      dtypes.push_back(graph_.spec(use.value).dtype);
    }
    const BodyTypes types = infer(batch_.ops[i].record.name, *call.body, dtypes, out[0].dtype);
    for (std::size_t p = 0; p < types.params.size(); ++p) {
      const std::size_t given = call.params.size();
      work.body.params.push_back(
          p < given ? ParamUse{batch_.slots[i][p], types.params[p]}
                    : ParamUse{--known_numbers_, types.params[p], call.numbers[p - given]});
    }
    return work;
  }

  Work reduce(const Reduction& reduction, const Node& node,
              const std::vector<TensorSpec>& out) const {
    return Reduce{reduction, {}, node.in[0].layout.shape, graph_.spec(node.in[0].value).dtype,
                  out[0],    {}};
  }

  Work rule(std::size_t i, const RuleCall& call, const Node& node,
            const std::vector<TensorSpec>& out) const {
    Call work{.record = static_cast<std::int32_t>(i), .identity = {}, .results = out};
    append_bytes(work.identity, call.table);
    call.table->append_key(call.op.get(), work.identity);
    for (const std::int32_t slot : batch_.slots[i]) append_bytes(work.identity, slot);
    work.takes = takes(call, node, out);
    return work;
  }

  /// What may be fused into the operation's kernel.
  dispatch::Fusable takes(const RuleCall& call, const Node& node,
                          const std::vector<TensorSpec>& out) const {
    std::vector<Operand> in;
    for (const Use& use : node.in) in.push_back({{}, graph_.spec(use.value).dtype, use.layout});
    return dispatch::fusable(*call.table, call.op.get(), runtime_, in, out);
  }

  /// A call that is never fused.
  static Call by_itself(std::size_t i, const std::vector<TensorSpec>& out) {
    return Call{.record = static_cast<std::int32_t>(i), .identity = {}, .results = out};
  }

  const Batch& batch_;
  Runtime& runtime_;
  Graph graph_;
  std::int32_t known_numbers_ = -1;  ///< each of them is another param, whatever its value
};

}  // namespace

void Batch::number() { Numbering(*this).run(); }

Graph Batch::graph(Runtime& runtime) const { return Drawing(*this, runtime).run(); }

void Batch::fail(const std::exception_ptr& cause) const {
  const auto fail_one = [&](const StoragePtr& of) {
    if (of != nullptr && of->queued()) of->fail(cause);
  };
  for (const QueuedOp& op : ops) std::ranges::for_each(op.out, fail_one);
  for (std::size_t v = 0; v < made.size(); ++v) {
    if (made[v] != 0) fail_one(values[v]);  // what other drains make is not ours
  }
}

}  // namespace kiln
