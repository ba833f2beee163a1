// Gradients of scalars: what each operation sends back to its operands.
#include <cmath>

#include "fuzz/functions.hpp"
#include "fuzz/scalars.hpp"

namespace kiln::fuzz {

template <class Send>
void Scalars::send_to_extremes(Id id, Id g, const Send& send) {
  const Node node = nodes_[at(id)];
  const auto operands = many(node);
  const std::vector<Id> of(operands.begin(), operands.end());
  const double best = node.value;
  bool known = !std::isinf(node.error) && !std::isnan(best);
  double ties = 0;
  for (const Id o : of) {
    const double off = error(o) + node.error;
    const bool near = std::abs(value(o) - best) <= off;
    known = known && !(near && off > 0 && of.size() > 1);
    ties += near ? 1 : 0;
  }
  for (const Id o : of) {
    if (!known) {
      send(o, anything(dtype(o)));
    } else if (value(o) == best) {
      send(o, ties == 1 ? g : make(Fn::div, node.dtype, g, given(ties, node.dtype)));
    } else {
      send(o, given(0, dtype(o)));
    }
  }
}

template <class Send>
void Scalars::send_back(Id id, Id g, const Send& send) {
  const Node n = nodes_[at(id)];
  const DType d = n.dtype;
  const auto constant = [&](double v) { return given(v, d); };
  const auto mul = [&](Id x, Id y) { return make(Fn::mul, d, x, y); };
  const auto zero_or = [&](bool wanted) { return wanted ? g : given(0, d); };
  const auto scaled = [&](double slope, double off) {
    return mul(g, given(slope, d, off + 8 * (unit(d) + 1e-5) * std::abs(slope)));
  };
  if (const auto f = smooth(n.fn)) {
    const double x = value(n.a);
    const bool inside = x - error(n.a) > f->low && x + error(n.a) < f->high;
    if (!inside) return send(n.a, anything(d));
    return send(n.a, scaled(f->slope(x), spread(f->slope, x, error(n.a))));
  }
  switch (n.fn) {
    case Fn::add:
      send(n.a, g);
      return send(n.b, g);
    case Fn::sub:
      send(n.a, g);
      return send(n.b, make(Fn::neg, d, g));
    case Fn::mul:
      send(n.a, mul(g, n.b));
      return send(n.b, mul(g, n.a));
    case Fn::div: {
      const Id share = make(Fn::div, d, g, n.b);
      send(n.a, share);
      return send(n.b, make(Fn::neg, d, mul(share, id)));
    }
    case Fn::neg:
      return send(n.a, make(Fn::neg, d, g));
    case Fn::abs:
      if (std::abs(value(n.a)) <= error(n.a) && error(n.a) > 0) return send(n.a, anything(d));
      if (value(n.a) == 0) return send(n.a, constant(0));
      return send(n.a, value(n.a) < 0 ? make(Fn::neg, d, g) : g);
    case Fn::exp:
      return send(n.a, mul(g, id));
    case Fn::log:
      return send(n.a, make(Fn::div, d, g, n.a));
    case Fn::sqrt:
      return send(n.a, make(Fn::div, d, mul(g, constant(0.5)), id));
    case Fn::rsqrt:
      return send(n.a, mul(mul(g, constant(-0.5)), mul(mul(id, id), id)));
    case Fn::tanh:
      return send(n.a, mul(g, make(Fn::sub, d, constant(1), mul(id, id))));
    case Fn::sigmoid:
      return send(n.a, mul(g, mul(id, make(Fn::sub, d, constant(1), id))));
    case Fn::relu: {
      const double x = value(n.a);
      if (std::isnan(x) || (error(n.a) > 0 && std::abs(x) <= error(n.a)))
        return send(n.a, anything(d));
      return send(n.a, zero_or(x > 0));
    }
    case Fn::erf: {
      const Id bell = make(Fn::exp, d, make(Fn::neg, d, mul(n.a, n.a)));
      return send(n.a, mul(g, mul(given(1.1283791670955126, d, 1e-3 * unit(d)), bell)));
    }
    case Fn::pow: {
      const Id less = make(Fn::pow, d, n.a, make(Fn::sub, d, n.b, constant(1)));
      send(n.a, value(n.b) == 0 ? anything(d) : mul(g, mul(n.b, less)));
      return send(n.b, mul(g, mul(id, make(Fn::log, d, n.a))));
    }
    case Fn::min:
    case Fn::max: {
      const double apart = value(n.a) - value(n.b);
      const double off = error(n.a) + error(n.b);
      if (std::isnan(apart) || (off > 0 && std::abs(apart) <= off)) {
        send(n.a, anything(d));
        return send(n.b, anything(d));
      }
      const Id half = apart == 0 ? mul(g, constant(0.5)) : g;
      const bool first = n.fn == Fn::max ? apart >= 0 : apart <= 0;
      const bool second = n.fn == Fn::max ? apart <= 0 : apart >= 0;
      send(n.a, first ? half : constant(0));
      return send(n.b, second ? half : constant(0));
    }
    case Fn::atan2: {
      const double square = value(n.a) * value(n.a) + value(n.b) * value(n.b);
      const double off = 4 * (error(n.a) + error(n.b)) / square;
      send(n.a, scaled(value(n.b) / square, off));
      return send(n.b, scaled(-value(n.a) / square, off));
    }
    case Fn::floor:
    case Fn::ceil:
    case Fn::round:
    case Fn::trunc:
    case Fn::sign:
      return send(n.a, constant(0));
    case Fn::select:
      send(n.b, wild(n.a) ? anything(d) : zero_or(value(n.a) != 0));
      return send(n.c, wild(n.a) ? anything(d) : zero_or(value(n.a) == 0));
    case Fn::cast:
      return send(n.a, g);
    case Fn::sum: {
      const auto operands = many(n);
      const std::vector<Id> of(operands.begin(), operands.end());
      for (const Id o : of) send(o, g);
      return;
    }
    case Fn::largest:
    case Fn::smallest:
      return send_to_extremes(id, g, send);
    default:
      return;
  }
}

std::vector<Id> Scalars::gradients(std::span<const std::pair<Id, Id>> outs_and_seeds,
                                   std::span<const Id> leaves) {
  std::vector<std::vector<Id>> arrived(nodes_.size());
  for (const auto& [out, seed] : outs_and_seeds) {
    if (tracked(out)) arrived[at(out)].push_back(of_dtype(seed, dtype(out)));
  }
  // What arrives is stored between operations, and each part of it is rounded there.
  const auto settle = [&](Id id) {
    const std::vector<Id>& parts = arrived[at(id)];
    const DType d = dtype(id);
    if (parts.size() == 1) return of_dtype(parts[0], d);
    return push_many(Fn::sum, d, parts, added(d, d, parts));
  };
  for (std::size_t i = arrived.size(); i-- > 0;) {
    const auto id = static_cast<Id>(i);
    if (arrived[i].empty() || nodes_[i].fn == Fn::leaf) continue;
    const Id whole = settle(id);
    const bool known = !std::isnan(value(whole));
    const bool zero = value(whole) == 0 && error(whole) == 0;  // and 0 stays, whatever the slope
    send_back(id, whole, [&](Id to, Id g) {
      if (!tracked(to)) return;
      if (zero) return arrived[at(to)].push_back(given(0, dtype(to)));
      // A derivative at a NaN, or times one, is nobody's promise.
      arrived[at(to)].push_back(known && !std::isnan(value(g)) ? of_dtype(g, dtype(to))
                                                               : anything(dtype(to)));
    });
  }
  std::vector<Id> out;
  for (const Id leaf : leaves)
    out.push_back(arrived[at(leaf)].empty() ? given(0, dtype(leaf)) : settle(leaf));
  return out;
}

}  // namespace kiln::fuzz
