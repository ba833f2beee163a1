// Operations in which many elements become one.
#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

using Reduce = AnyTensor (*)(const AnyTensor&, const AxisList&, Flag);

bool draw_reduction(Draw& d, Step& s, int set, bool needs_elements) {
  const int value = d.pick([&](const Array& a) {
    return takes(set, a.spec.dtype) && a.spec.shape.rank() > 0 &&
           (!needs_elements || a.spec.shape.elements() > 0);
  });
  if (value < 0) return false;
  s.in = {value};
  const int rank = d.at(value).spec.shape.rank();
  const int mask = d.chance(20) ? (1 << rank) - 1 : 1 + d.below((1 << rank) - 1);
  s.ints = {mask, d.below(2)};
  return true;
}

std::vector<AnyTensor> run_reduction(Reduce f, const Step& s, std::span<const AnyTensor> in) {
  const int rank = in[0].rank();
  std::vector<int> axes;
  for (int axis = 0; axis < rank; ++axis) {
    if ((s.ints[0] >> axis & 1) != 0) axes.push_back(axis);
  }
  const bool keep = s.ints[1] != 0;
  if (axes.size() == at(rank)) return one(f(in[0], {}, keep));
  if (axes.size() == 1) return one(f(in[0], axes[0], keep));
  if (axes.size() == 2) return one(f(in[0], {axes[0], axes[1]}, keep));
  return one(f(in[0], {axes[0], axes[1], axes[2]}, keep));
}

using ReduceLine = std::function<Id(Scalars&, DType, const std::vector<Id>&)>;

Operation reduction(std::string name, int set, bool needs_elements, Reduce f, ReduceLine line) {
  return {.name = std::move(name),
          .weight = 12,
          .draw = [=](Draw& d, Step& s) { return draw_reduction(d, s, set, needs_elements); },
          .model =
              [=](Model& m, const Step& s) {
                const Array x = m.at(s.in[0]);
                const auto mask = static_cast<unsigned>(s.ints[0]);
                Array out{.spec = {reduced(x.spec.shape, mask, s.ints[1] != 0), x.spec.dtype}};
                for (const std::vector<Id>& ids : lines(x, mask))
                  out.ids.push_back(line(m.scalars(), x.spec.dtype, ids));
                return std::vector{out};
              },
          .run = [f](Run&, const Step& s, auto in) { return run_reduction(f, s, in); }};
}

Id mean_of(Scalars& s, DType d, const std::vector<Id>& x) {
  if (x.empty()) return s.given(std::numeric_limits<double>::quiet_NaN(), d);
  const Id total = s.sum(DType::f32, x);
  const double n = static_cast<double>(x.size());
  const double error = std::exp2(std::floor(std::log2(n))) == n ? 0 : 1e-7 / n;
  return s.make(Fn::cast, d, s.make(Fn::mul, DType::f32, total, s.given(1 / n, DType::f32, error)));
}

Operation arg(std::string name, AnyTensor (*f)(const AnyTensor&, Integer, Flag), Fn which) {
  return {
      .name = std::move(name),
      .weight = 6,
      .draw =
          [](Draw& d, Step& s) {
            if (!draw_reduction(d, s, numbers, true)) return false;
            s.ints[0] = d.below(d.at(s.in[0]).spec.shape.rank());
            return true;
          },
      .model =
          [=](Model& m, const Step& s) {
            const Array x = m.at(s.in[0]);
            const unsigned mask = 1U << static_cast<unsigned>(s.ints[0]);
            Array out{.spec = {reduced(x.spec.shape, mask, s.ints[1] != 0), DType::i32}};
            for (const std::vector<Id>& ids : lines(x, mask))
              out.ids.push_back(m.scalars().place_of_extreme(which, ids));
            return std::vector{out};
          },
      .run = [f](Run&, const Step& s,
                 auto in) { return one(f(in[0], static_cast<int>(s.ints[0]), s.ints[1] != 0)); }};
}

/// softmax and log_softmax: exp(x - the largest) over its sum, or the difference of logarithms.
std::vector<Array> model_softmax(Model& m, const Step& s, bool logarithm) {
  const Array x = m.at(s.in[0]);
  const DType d = x.spec.dtype;
  Scalars& t = m.scalars();
  Array out{.spec = x.spec, .ids = std::vector<Id>(x.ids.size())};
  Array places{.spec = x.spec};
  for (std::size_t i = 0; i < x.ids.size(); ++i) places.ids.push_back(static_cast<Id>(i));
  for (const std::vector<Id>& line : lines(places, 1U << static_cast<unsigned>(s.ints[0]))) {
    std::vector<Id> ids;
    for (const Id place : line) ids.push_back(x.ids[at(place)]);
    if (ids.empty()) continue;
    const Id most = t.extreme(Fn::largest, d, ids);
    const Id fixed = t.given(t.value(most), d, t.error(most));
    std::vector<Id> moved;
    std::vector<Id> powers;
    for (const Id id : ids) {
      moved.push_back(t.make(Fn::sub, d, id, fixed));
      powers.push_back(t.make(Fn::exp, d, moved.back()));
    }
    const Id total = t.sum(d, powers);
    const Id log_total = t.make(Fn::log, d, total);
    for (std::size_t k = 0; k < line.size(); ++k) {
      out.ids[at(line[k])] = logarithm ? t.make(Fn::sub, d, moved[k], log_total)
                                       : t.make(Fn::div, d, powers[k], total);
    }
  }
  return {out};
}

Operation softmax_op(std::string name, bool logarithm) {
  return {.name = std::move(name),
          .weight = 8,
          .draw =
              [](Draw& d, Step& s) {
                if (!draw_one(floats, 1)(d, s)) return false;
                s.ints = {d.below(d.at(s.in[0]).spec.shape.rank())};
                return true;
              },
          .model = [=](Model& m, const Step& s) { return model_softmax(m, s, logarithm); },
          .run =
              [=](Run&, const Step& s, auto in) {
                const auto axis = static_cast<int>(s.ints[0]);
                return one(logarithm ? log_softmax(in[0], axis) : softmax(in[0], axis));
              }};
}

bool draw_matmul(Draw& d, Step& s) {
  if (!draw_one(floats, 2)(d, s)) return false;
  const Array a = d.at(s.in[0]);
  const Shape& shape = a.spec.shape;
  const auto fits = [&](const Array& b) {
    if (b.spec.dtype != a.spec.dtype || b.device != a.device || b.spec.shape.rank() < 2)
      return false;
    if (b.spec.shape[-2] != shape[-1]) return false;
    for (int axis = 3; axis <= std::min(b.spec.shape.rank(), shape.rank()); ++axis) {
      if (b.spec.shape[-axis] != shape[-axis] && b.spec.shape[-axis] != 1 && shape[-axis] != 1)
        return false;
    }
    return true;
  };
  int b = d.pick(fits);
  if (b < 0 || d.chance(30)) {
    Shape other;
    if (shape.rank() > 2 && d.chance(40)) other.push_back(d.chance(50) ? 1 : shape[-3]);
    other.push_back(shape[-1]);
    other.push_back(d.one_of({1, 2, 3, 5}));
    b = d.input(other, a.spec.dtype, a.device);
  }
  s.in.push_back(b);
  s.ints = {d.below(4), d.below(4)};
  const TensorSpec out = matmul_spec("fuzz", a.spec, d.at(b).spec);
  return out.shape.elements() <= most_elements && out.shape.elements() * shape[-1] <= 2000;
}

/// What comes before an operand of a product, which its loads may compute.
AnyTensor before_product(const AnyTensor& x, std::int64_t way) {
  if (way == 1) return relu(x);
  if (way == 2) return transpose(relu(transpose(x)));
  return way == 3 ? transpose(transpose(x) * 0.5) : x;
}
Array model_before(Scalars& t, Array x, std::int64_t way) {
  const DType dtype = x.spec.dtype;
  for (Id& id : x.ids) {
    if (way == 1 || way == 2) id = t.make(Fn::relu, dtype, id);
    if (way == 3) id = t.make(Fn::mul, dtype, id, t.given(0.5, dtype));
  }
  return x;
}

std::vector<Array> model_matmul(Model& m, const Step& s) {
  Scalars& t = m.scalars();
  const Array a = model_before(t, m.at(s.in[0]), s.ints[0]);
  const Array b = model_before(t, m.at(s.in[1]), s.ints[1]);
  Array out{.spec = matmul_spec("fuzz", a.spec, b.spec)};
  const std::int64_t k = a.spec.shape[-1];
  const int rank = out.spec.shape.rank();
  Shape whole = out.spec.shape;
  for_each_index(out.spec.shape, [&](const auto& index) {
    std::vector<Id> products;
    for (std::int64_t i = 0; i < k; ++i) {
      auto left = index;
      auto right = index;
      left[at(rank - 1)] = i;
      right[at(rank - 2)] = i;
      products.push_back(t.make(Fn::mul, DType::f32, broadcast_element(a, whole, left),
                                broadcast_element(b, whole, right)));
    }
    out.ids.push_back(t.sum(out.spec.dtype, products));
  });
  return {out};
}

bool draw_gather(Draw& d, Step& s) {
  const int value = d.pick([](const Array& a) {
    return a.spec.shape.rank() > 0 && a.spec.dtype != DType::boolean && a.spec.shape.elements() > 0;
  });
  if (value < 0) return false;
  const Array x = d.at(value);
  const int axis = d.below(x.spec.shape.rank());
  Shape shape = x.spec.shape;
  for (std::int64_t& size : std::span(&shape[0], shape.size())) size = d.chance(70) ? size : 1;
  shape[axis] = d.one_of({1, 2, 3, 5});
  if (shape.elements() > most_elements) return false;
  const DType dtype = d.one_of({DType::i32, DType::u32});
  const int from = d.chance(10) ? -1 : 0;  // outside now and then
  const auto to = static_cast<int>(x.spec.shape[axis]) - (d.chance(10) ? 0 : 1);
  s.in = {value, d.input(shape, dtype, x.device, from, to)};
  s.ints = {axis};
  return true;
}

std::vector<Array> model_gather(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  const Array& index = m.at(s.in[1]);
  Scalars& t = m.scalars();
  const auto axis = static_cast<int>(s.ints[0]);
  Array out{.spec = {index.spec.shape, x.spec.dtype}};
  std::size_t flat = 0;
  for_each_index(index.spec.shape, [&](auto where) {
    const Id pick = index.ids[flat++];
    const double chosen = t.value(pick);
    if (t.wild(pick)) {
      out.ids.push_back(t.given(0, x.spec.dtype, std::numeric_limits<double>::infinity()));
    } else if (chosen < 0 || chosen >= static_cast<double>(x.spec.shape[axis])) {
      out.ids.push_back(t.given(
          is_float(x.spec.dtype) ? std::numeric_limits<double>::quiet_NaN() : 0, x.spec.dtype));
    } else {
      where[at(axis)] = static_cast<std::int64_t>(chosen);
      std::int64_t from = 0;
      for (int i = 0; i < x.spec.shape.rank(); ++i) from = from * x.spec.shape[i] + where[at(i)];
      out.ids.push_back(x.ids[at(from)]);
    }
  });
  return {out};
}

bool draw_scatter_add(Draw& d, Step& s) {
  if (!draw_gather(d, s)) return false;
  const TensorSpec x = d.at(s.in[0]).spec;
  const int device = d.at(s.in[0]).device;
  const Shape shape = d.at(s.in[1]).spec.shape;
  const int known = d.pick(
      [&](const Array& a) { return a.spec == TensorSpec{shape, x.dtype} && a.device == device; });
  s.in.push_back(known >= 0 && d.chance(70) ? known : d.input(shape, x.dtype, device));
  return true;
}

std::vector<Array> model_scatter_add(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  const Array& index = m.at(s.in[1]);
  const Array& values = m.at(s.in[2]);
  Scalars& t = m.scalars();
  const auto axis = static_cast<int>(s.ints[0]);
  std::vector<std::vector<Id>> added(x.ids.size());
  std::size_t flat = 0;
  for_each_index(index.spec.shape, [&](auto where) {
    const double chosen = t.value(index.ids[flat]);
    const Id value = values.ids[flat++];
    if (chosen < 0 || chosen >= static_cast<double>(x.spec.shape[axis])) return;
    where[at(axis)] = static_cast<std::int64_t>(chosen);
    std::int64_t to = 0;
    for (int i = 0; i < x.spec.shape.rank(); ++i) to = to * x.spec.shape[i] + where[at(i)];
    added[at(to)].push_back(value);
  });
  Array out{.spec = x.spec};
  const DType d = x.spec.dtype;
  for (std::size_t i = 0; i < x.ids.size(); ++i)
    out.ids.push_back(added[i].empty() ? x.ids[i]
                                       : t.make(Fn::add, d, x.ids[i], t.sum(d, added[i])));
  return {out};
}

bool draw_layer_norm(Draw& d, Step& s) {
  if (!draw_one(floats, 1)(d, s)) return false;
  const Array x = d.at(s.in[0]);
  const Shape last{x.spec.shape[-1]};
  s.in.push_back(d.input(last, x.spec.dtype, x.device, 1, 2));
  s.in.push_back(d.input(last, x.spec.dtype, x.device, -1, 1));
  return true;
}

std::vector<Array> model_layer_norm(Model& m, const Step& s) {
  const Array x = m.at(s.in[0]);
  const DType d = x.spec.dtype;
  Scalars& t = m.scalars();
  Array out{.spec = x.spec};
  const auto n = at(x.spec.shape[-1]);
  for (std::size_t row = 0; n > 0 && row < x.ids.size() / n; ++row) {
    const std::vector<Id> ids(x.ids.begin() + static_cast<std::ptrdiff_t>(row * n),
                              x.ids.begin() + static_cast<std::ptrdiff_t>((row + 1) * n));
    // The row moved by its first element: the mean that is rounded is that of the moved row, which
    // is as large as the first element's distance from the others. The move itself changes nothing,
    // so whatever is unknown of the first element is not once more unknown of the others.
    const Id first = t.given(t.value(ids[0]), d);
    std::vector<Id> moved;
    for (const Id id : ids) moved.push_back(t.make(Fn::sub, d, id, first));
    const Id mean = mean_of(t, d, moved);
    std::vector<Id> centred;
    std::vector<Id> squares;
    for (const Id id : moved) {
      centred.push_back(t.make(Fn::sub, d, id, mean));
      squares.push_back(t.make(Fn::mul, d, centred.back(), centred.back()));
    }
    const Id variance = mean_of(t, d, squares);
    const Id scale =
        t.make(Fn::rsqrt, d,
               t.make(Fn::add, d, variance, t.given(1e-5, d, d == DType::f16 ? 1e-7 : 1e-12)));
    for (std::size_t i = 0; i < n; ++i) {
      const Id normal = t.make(Fn::mul, d, centred[i], scale);
      out.ids.push_back(t.make(Fn::add, d, t.make(Fn::mul, d, normal, m.at(s.in[1]).ids[i]),
                               m.at(s.in[2]).ids[i]));
    }
  }
  return {out};
}

bool draw_cross_entropy(Draw& d, Step& s) {
  const int value = d.pick([](const Array& a) {
    return is_float(a.spec.dtype) && a.spec.shape.rank() == 2 && a.spec.shape.elements() > 0;
  });
  if (value < 0) return false;
  const Array x = d.at(value);
  const auto classes = static_cast<int>(x.spec.shape[1]);
  s.in = {value, d.input({x.spec.shape[0]}, d.one_of({DType::i32, DType::u32}), x.device, 0,
                         d.chance(5) ? classes : classes - 1)};
  return true;
}

std::vector<Array> model_cross_entropy(Model& m, const Step& s) {
  Step along = s;
  along.ints = {1};
  const Array logs = model_softmax(m, along, true)[0];
  const DType d = logs.spec.dtype;
  Scalars& t = m.scalars();
  const std::int64_t classes = logs.spec.shape[1];
  std::vector<Id> parts;
  for (std::int64_t row = 0; row < logs.spec.shape[0]; ++row) {
    const Id label = m.at(s.in[1]).ids[at(row)];
    const auto which = static_cast<std::int64_t>(t.value(label));
    for (std::int64_t c = 0; c < classes; ++c) {
      const Id log = logs.ids[at(row * classes + c)];
      if (which < 0 || which >= classes) {
        // NaN all along: in the loss, and in the gradient of the row.
        parts.push_back(
            t.make(Fn::mul, d, log, t.given(std::numeric_limits<double>::quiet_NaN(), d)));
      } else {
        parts.push_back(c == which ? t.make(Fn::neg, d, log) : t.given(0, d));
      }
    }
  }
  const Id total = t.sum(DType::f32, parts);
  const double share = 1 / static_cast<double>(logs.spec.shape[0]);
  return {{.spec = {{}, d},
           .ids = {t.make(
               Fn::cast, d,
               t.make(Fn::mul, DType::f32, total, t.given(share, DType::f32, share * 1e-7)))}}};
}

bool draw_mse(Draw& d, Step& s) {
  if (!draw_one(floats)(d, s)) return false;
  const Array x = d.at(s.in[0]);
  int other = d.pick([&](const Array& a) { return a.spec == x.spec && a.device == x.device; });
  if (other == s.in[0]) other = d.input(x.spec.shape, x.spec.dtype, x.device);
  s.in.push_back(other);
  return true;
}

std::vector<Array> model_mse(Model& m, const Step& s) {
  const DType d = m.at(s.in[0]).spec.dtype;
  Scalars& t = m.scalars();
  const Array squares = elementwise(m, s.in, d, [&](const std::vector<Id>& x) {
    const Id difference = t.make(Fn::sub, d, x[0], x[1]);
    return t.make(Fn::mul, d, difference, difference);
  });
  return {{.spec = {{}, d}, .ids = {mean_of(t, d, squares.ids)}}};
}

}  // namespace

void add_contractions(std::vector<Operation>& to) {
  const auto extreme = [](Fn which) {
    return
        [which](Scalars& s, DType d, const std::vector<Id>& x) { return s.extreme(which, d, x); };
  };
  to.push_back(
      reduction("sum", numbers, false, sum,
                [](Scalars& s, DType d, const std::vector<Id>& x) { return s.sum(d, x); }));
  to.push_back(reduction("mean", floats, false, mean, mean_of));
  to.push_back(reduction("max", numbers, true, max, extreme(Fn::largest)));
  to.push_back(reduction("min", numbers, true, min, extreme(Fn::smallest)));
  to.push_back(arg("argmax", argmax, Fn::largest));
  to.push_back(arg("argmin", argmin, Fn::smallest));
  to.push_back(softmax_op("softmax", false));
  to.push_back(softmax_op("log_softmax", true));
  to.push_back({"matmul", 20, draw_matmul, model_matmul, [](Run&, const Step& s, auto in) {
                  return one(
                      matmul(before_product(in[0], s.ints[0]), before_product(in[1], s.ints[1])));
                }});
  to.push_back({"gather", 12, draw_gather, model_gather, [](Run&, const Step& s, auto in) {
                  return one(gather(in[0], static_cast<int>(s.ints[0]), in[1]));
                }});
  to.push_back(
      {"scatter_add", 12, draw_scatter_add, model_scatter_add, [](Run&, const Step& s, auto in) {
         return one(scatter_add(in[0], static_cast<int>(s.ints[0]), in[1], in[2]));
       }});
  to.push_back({"layer_norm", 6, draw_layer_norm, model_layer_norm,
                [](Run&, const Step&, auto in) { return one(layer_norm(in[0], in[1], in[2])); }});
  to.push_back({"cross_entropy", 6, draw_cross_entropy, model_cross_entropy,
                [](Run&, const Step&, auto in) { return one(cross_entropy(in[0], in[1])); }});
  to.push_back({"mse", 6, draw_mse, model_mse,
                [](Run&, const Step&, auto in) { return one(mse(in[0], in[1])); }});
}

}  // namespace kiln::fuzz
