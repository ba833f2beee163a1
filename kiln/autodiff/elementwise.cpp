#include <fmt/format.h>

#include <map>

#include "kiln/autodiff/node.hpp"
#include "kiln/dispatch/words.hpp"
#include "kiln/scalar/infer.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

/// What an elementwise node keeps.
struct NodeSource {
  std::string_view op;
  BodyPtr body;
  std::vector<double> params;
};

struct Saved {
  BodyPtr adjoint;  ///< one root for each tracked input, in order
  std::vector<Checkpoint> in;
  Checkpoint out;
};

/// The adjoint with the roots of `wanted` inputs alone. It is built once for each body; up to
/// `most` are kept.
BodyPtr adjoint_of(const BodyPtr& body, std::uint32_t wanted) {
  static std::mutex mutex;
  using Known = std::map<std::pair<BodyPtr, std::uint32_t>, BodyPtr>;
  static Known& known = *new Known;
  constexpr std::size_t most = 4096;  // each keeps its body, too
  const std::lock_guard lock(mutex);
  if (known.size() >= most) known.clear();
  BodyPtr& slot = known[{body, wanted}];
  if (slot == nullptr) {
    const BodyPtr all = adjoint(*body);
    std::vector<std::int32_t> roots;
    for (std::size_t i = 0; i < all->roots.size(); ++i) {
      if ((wanted >> i & 1U) != 0) roots.push_back(all->roots[i]);
    }
    slot = make_body(*all->graph, all->inputs, all->params, roots);
  }
  return slot;
}

bool any_root_uses(const Body& body, std::size_t input) {
  for (std::size_t r = 0; r < body.roots.size(); ++r) {
    if (body.uses(r, static_cast<int>(input))) return true;
  }
  return false;
}

std::shared_ptr<void> save(const void* op, const Saver& saver, std::span<const AnyTensor> in,
                           std::span<const AnyTensor> out) {
  const auto& made = *static_cast<const NodeSource*>(op);
  std::uint32_t wanted = 0;
  for (std::size_t i = 0; i < in.size(); ++i) wanted |= std::uint32_t{in[i].tracked()} << i;
  auto saved = std::make_shared<Saved>();
  saved->adjoint = adjoint_of(made.body, wanted);
  for (std::size_t i = 0; i < in.size(); ++i)
    saved->in.push_back(saver.keep_if(any_root_uses(*saved->adjoint, i), in[i]));
  saved->out = saver.keep_if(any_root_uses(*saved->adjoint, in.size()), out[0]);
  return saved;
}

/// Gradients of all wanted inputs in one launch, over the result's shape.
void backward(const Node& node, std::span<const AnyTensor> grads, std::span<GradSlot> slots) {
  const auto& made = *static_cast<const NodeSource*>(node.attributes.get());
  const auto& saved = *static_cast<const Saved*>(node.saved.get());
  const AnyTensor& grad = grads[0];
  std::vector<Value> in;
  for (const Checkpoint& c : saved.in)
    in.push_back(c.kept() ? c.get().value()
                          : grad.value());  // an input that is not kept is not read
  in.push_back(saved.out.kept() ? saved.out.get().value() : grad.value());
  in.push_back(grad.value());

  std::vector<TensorSpec> specs;
  bool passes_through =
      true;  // every gradient is the incoming one, as for a sum, and needs no launch
  for (std::size_t i = 0, root = 0; i < slots.size(); ++i) {
    if (!slots[i]) continue;
    specs.push_back({grad.shape(), node.in[i].dtype});
    const ExprGraph::Node& what = saved.adjoint->graph->node(saved.adjoint->roots[root++]);
    passes_through = passes_through && what.op == Opcode::input &&
                     what.args[0] == static_cast<std::int32_t>(slots.size()) + 1 &&
                     node.in[i].dtype == grad.dtype();
  }
  std::vector<Value> gradients;
  if (passes_through) {
    gradients.assign(specs.size(), grad.value());
  } else {
    const std::string_view name = lasting_name(fmt::format("{}_backward", made.op));
    gradients =
        record({name, ElementwiseCall{saved.adjoint, made.params}}, *node.device, in, specs);
  }
  for (std::size_t i = 0, k = 0; i < slots.size(); ++i) {
    if (slots[i]) slots[i].set_reduced({gradients[k++], grad.device()});
  }
}

const GradRule rule{.bound = Bound::memory, .save = save, .backward = backward};

}  // namespace

AnyTensor apply_elementwise(std::string_view op, const BodyPtr& body, std::vector<double> params,
                            std::span<const AnyTensor> in) {
  const Device device = common_device(op, {}, in);
  TensorSpec out;
  std::vector<DType> dtypes;
  dtypes.reserve(in.size());
  bool tracked = false;
  for (const AnyTensor& t : in) {
    dtypes.push_back(t.dtype());
    out.shape = broadcast(op, out.shape, t.shape());
    tracked = tracked || t.tracked();
  }
  const BodyTypes types = infer(op, *body, dtypes, dtypes[0]);
  out.dtype = types.roots.front();
  for (std::size_t i = 0; i < params.size(); ++i)
    (void)dispatch::word_of(op, params[i], types.params[i]);  // throws if the dtype lacks it
  std::shared_ptr<const void> attributes;
  if (tracked) attributes = std::make_shared<NodeSource>(NodeSource{op, body, params});
  return run({op, ElementwiseCall{body, std::move(params)}}, device, {&out, 1}, rule, in,
             attributes)
      .front();
}

}  // namespace kiln
