// Leaves, gradients, and what leaves the graph.
#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

Array untracked(Model& m, const Array& from) {
  Array out{.spec = from.spec, .device = from.device, .fate = from.fate};
  Scalars& t = m.scalars();
  for (const Id id : from.ids) out.ids.push_back(t.given(t.value(id), t.dtype(id), t.error(id)));
  return out;
}

bool draw_leaf(Draw& d, Step& s) {
  const int value = d.pick([](const Array& a) {
    return is_float(a.spec.dtype) && a.leaves.empty() && a.spec.shape.elements() > 0;
  });
  if (value < 0) return false;
  s.in = {value};
  return true;
}

std::vector<Array> model_leaf(Model& m, const Step& s) {
  Array out = untracked(m, m.at(s.in[0]));
  for (Id& id : out.ids) id = m.scalars().leaf(id);
  out.is_leaf = true;
  out.leaves = {static_cast<int>(m.values().size())};
  return {out};
}

bool draw_vjp(Draw& d, Step& s) {
  const auto tracked = [](const Array& a) { return !a.leaves.empty(); };
  const int first = d.pick(tracked);
  if (first < 0) return false;
  const int device = d.at(first).device;
  std::vector<int> outs{first};
  if (d.chance(40)) {
    const int second = d.pick([&](const Array& a) { return tracked(a) && a.device == device; });
    if (second != first) outs.push_back(second);
  }
  std::vector<int> seeds;
  std::set<int> leaves;
  for (const int out : outs) {
    const Array array = d.at(out);
    leaves.insert(array.leaves.begin(), array.leaves.end());
    const auto fits = [&](const Array& a) { return a.spec == array.spec && a.device == device; };
    // What failed most of all: everything below it has to say so.
    int seed = d.chance(30) ? d.pick([&](const Array& a) { return fits(a) && a.fate.fails; }) : -1;
    if (seed < 0 && d.chance(15) && !array.ids.empty()) {
      const int fine = d.input(array.spec.shape, array.spec.dtype, device, -2, 2);
      d.append({.op = &operation("failing"), .in = {fine}, .ints = {d.below(5), d.below(1000)}});
      seed = d.model().steps().back().first;
    }
    if (seed < 0 && d.chance(50)) seed = d.pick(fits);
    if (seed < 0) seed = d.input(array.spec.shape, array.spec.dtype, device, -2, 2);
    seeds.push_back(seed);
  }
  const int other = d.pick([&](const Array& a) { return a.is_leaf && a.device == device; });
  if (other >= 0 && d.chance(20)) leaves.insert(other);
  s.ints = {std::ssize(outs), std::ssize(leaves)};
  s.in = outs;
  s.in.insert(s.in.end(), seeds.begin(), seeds.end());
  s.in.insert(s.in.end(), leaves.begin(), leaves.end());
  return true;
}

/// What may go wrong between `leaf` and the results: steps through which its gradient comes.
/// Whether all of them read what comes in: a sum over nothing does not, nor does a slope that is 0
/// throughout.
Fate fate_between(const Model& m, int leaf, std::span<const int> outs, bool* reads) {
  Fate fate;
  std::vector<int> open(outs.begin(), outs.end());
  std::set<int> seen;
  while (!open.empty()) {
    const int value = open.back();
    open.pop_back();
    const Array& array = m.at(value);
    if (!array.leaves.contains(leaf) || array.is_leaf || !seen.insert(value).second) continue;
    const Step& step = m.maker(value);
    if (step.op->fails_backward)
      fate.join({.fails = true, .causes = {step.op->fails_backward(step)}});
    *reads = *reads && !array.ids.empty() && !step.op->flat;
    for (const int near : step.in) {
      Fate below = m.at(near).fate;
      below.may_fail = below.may_fail || below.fails;
      below.fails = false;
      fate.join(below);
      open.push_back(near);
    }
    Fate own = array.fate;
    own.may_fail = own.may_fail || own.fails;
    own.fails = false;
    fate.join(own);
  }
  return fate;
}

std::vector<Array> model_vjp_of(Model& m, std::span<const int> outs, std::span<const Array> seeds,
                                std::span<const int> leaves) {
  Scalars& t = m.scalars();
  std::vector<std::pair<Id, Id>> pairs;
  std::set<int> reached;
  for (std::size_t k = 0; k < outs.size(); ++k) {
    const Array& out = m.at(outs[k]);
    reached.insert(out.leaves.begin(), out.leaves.end());
    for (std::size_t i = 0; i < out.ids.size(); ++i)
      pairs.emplace_back(out.ids[i], seeds[k].ids[i]);
  }
  std::vector<Array> results;
  for (const int leaf : leaves) {
    const Array marked = m.at(leaf);
    Array gradient{.spec = marked.spec, .absent = !reached.contains(leaf), .device = marked.device};
    for (const Id id : t.gradients(pairs, marked.ids))
      gradient.ids.push_back(t.given(t.value(id), t.dtype(id), t.error(id)));
    bool reads = true;
    gradient.fate = fate_between(m, leaf, outs, &reads);
    for (std::size_t k = 0; k < outs.size(); ++k) {
      if (m.at(outs[k]).leaves.contains(leaf)) gradient.fate.join(seeds[k].fate);
    }
    if (gradient.fate.fails && !reads) {
      gradient.fate.fails = false;
      gradient.fate.may_fail = true;
    }
    if (gradient.absent) gradient.fate = {};
    results.push_back(std::move(gradient));
  }
  return results;
}

std::vector<Array> model_vjp(Model& m, const Step& s) {
  const auto n = static_cast<std::size_t>(s.ints[0]);
  const std::span<const int> in(s.in);
  std::vector<Array> seeds;
  for (const int seed : in.subspan(n, n)) seeds.push_back(m.at(seed));
  return model_vjp_of(m, in.first(n), seeds, in.subspan(2 * n));
}

std::vector<AnyTensor> gradients_in(Run& run, const Step& s, const Gradients& found,
                                    std::span<const AnyTensor> leaves) {
  std::vector<AnyTensor> out;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const bool absent = run.program().at(s.first + static_cast<int>(i)).absent;
    if (found.contains(leaves[i]) == absent) {
      run.complain(absent ? "there is a gradient of what nothing depends on"
                          : "a gradient is missing");
      out.emplace_back();
    } else {
      out.push_back(absent ? AnyTensor() : found.of(leaves[i]));
    }
  }
  return out;
}

std::vector<AnyTensor> run_vjp(Run& run, const Step& s, std::span<const AnyTensor> in) {
  const auto n = static_cast<std::size_t>(s.ints[0]);
  return gradients_in(run, s, vjp(in.first(n), in.subspan(n, n)), in.subspan(2 * n));
}

bool draw_backward(Draw& d, Step& s) {
  const int loss = d.pick([](const Array& a) { return !a.leaves.empty() && a.ids.size() == 1; });
  if (loss < 0) return false;
  s.in = {loss};
  s.in.insert(s.in.end(), d.at(loss).leaves.begin(), d.at(loss).leaves.end());
  return true;
}

std::vector<Array> model_backward(Model& m, const Step& s) {
  const TensorSpec spec = m.at(s.in[0]).spec;
  const std::vector<Array> seed{{.spec = spec, .ids = {m.scalars().given(1, spec.dtype)}}};
  const std::span<const int> in(s.in);
  return model_vjp_of(m, in.first(1), seed, in.subspan(1));
}

}  // namespace

void add_gradients(std::vector<Operation>& to) {
  to.push_back({.name = "require_grad",
                .weight = 45,
                .draw = draw_leaf,
                .model = model_leaf,
                .run =
                    [](Run& run, const Step& s, auto in) {
                      // Gradients come on a device without autodiff.
                      const Device& device = run.device(run.program().at(s.first).device);
                      return one(in[0].to(device).require_grad());
                    },
                .plain = false});
  to.push_back(
      {.name = "detach",
       .weight = 6,
       .draw = draw_one(all_dtypes),
       .model = [](Model& m, const Step& s) { return std::vector{untracked(m, m.at(s.in[0]))}; },
       .run = [](Run&, const Step&, auto in) { return one(in[0].detach()); },
       .plain = false});
  to.push_back({.name = "vjp",
                .weight = 60,
                .draw = draw_vjp,
                .model = model_vjp,
                .run = run_vjp,
                .plain = false});
  to.push_back(
      {.name = "backward",
       .weight = 12,
       .draw = draw_backward,
       .model = model_backward,
       .run = [](Run& run, const Step& s,
                 auto in) { return gradients_in(run, s, in[0].backward(), in.subspan(1)); },
       .plain = false});
}

}  // namespace kiln::fuzz
