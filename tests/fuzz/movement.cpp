// Views, and what joins tensors.
#include "fuzz/operation_support.hpp"

namespace kiln::fuzz {
namespace {

/// An array of `shape` whose element at each index is x's at `from(index)`.
template <class F>
Array viewed(const Array& x, const Shape& shape, F from) {
  Array out{.spec = {shape, x.spec.dtype}};
  const Shape& own = x.spec.shape;
  for_each_index(shape, [&](const auto& index) {
    const std::array<std::int64_t, max_rank> there = from(index);
    std::int64_t flat = 0;
    for (int axis = 0; axis < own.rank(); ++axis) flat = flat * own[axis] + there[at(axis)];
    out.ids.push_back(x.ids[at(flat)]);
  });
  return out;
}

bool draw_reshape(Draw& d, Step& s) {
  if (!draw_one(all_dtypes)(d, s)) return false;
  const Shape& from = d.at(s.in[0]).spec.shape;
  std::int64_t left = from.elements();
  Shape to;
  if (left == 0) {
    to = from.rank() < 4 && d.chance(50) ? Shape{0} : from;
  } else {
    while (to.rank() < 3 && d.chance(70)) {
      const std::int64_t factor = d.one_of({1, 2, 3, 4, 5});
      if (left % factor != 0) continue;
      to.push_back(factor);
      left /= factor;
    }
    to.push_back(left);
  }
  s.shape = to;
  for (const std::int64_t size : to) s.ints.push_back(size);
  return true;
}

std::vector<Array> model_reshape(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  return {{.spec = {s.shape, x.spec.dtype}, .ids = x.ids}};
}

bool draw_permute(Draw& d, Step& s) {
  if (!draw_one(all_dtypes, 2)(d, s)) return false;
  const int rank = d.at(s.in[0]).spec.shape.rank();
  for (int axis = 0; axis < rank; ++axis) s.ints.push_back(axis);
  for (int axis = rank - 1; axis > 0; --axis)
    std::swap(s.ints[at(axis)], s.ints[at(d.below(axis + 1))]);
  return true;
}

std::vector<Array> model_permute(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  Shape shape;
  for (const std::int64_t axis : s.ints) shape.push_back(x.spec.shape[static_cast<int>(axis)]);
  return {viewed(x, shape, [&](const auto& index) {
    std::array<std::int64_t, max_rank> from{};
    for (std::size_t i = 0; i < s.ints.size(); ++i) from[at(s.ints[i])] = index[i];
    return from;
  })};
}

std::vector<AnyTensor> run_permute(Run&, const Step& s, std::span<const AnyTensor> in) {
  const std::vector<int> axes(s.ints.begin(), s.ints.end());
  return one(permute(in[0], axes));
}

bool draw_slice(Draw& d, Step& s) {
  if (!draw_one(all_dtypes, 1)(d, s)) return false;
  const Shape& shape = d.at(s.in[0]).spec.shape;
  const int axis = d.below(shape.rank());
  const auto size = static_cast<int>(shape[axis]);
  const int begin = d.below(size + 1);
  // Seldom empty.
  const int end = std::min(size + 2, begin + (d.chance(95) ? 1 : 0) + d.below(size + 1));
  s.ints = {axis, size > 0 && d.chance(95) ? std::min(begin, size - 1) : begin, 0,
            d.one_of({1, 1, 2, 3})};
  s.ints[2] = std::max<std::int64_t>(end, s.ints[1]);
  return true;
}

std::vector<Array> model_slice(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  const auto axis = static_cast<int>(s.ints[0]);
  Shape shape = x.spec.shape;
  shape[axis] = (std::min(s.ints[2], shape[axis]) - s.ints[1] + s.ints[3] - 1) / s.ints[3];
  return {viewed(x, shape, [&](auto index) {
    index[at(axis)] = s.ints[1] + index[at(axis)] * s.ints[3];
    return index;
  })};
}

std::vector<AnyTensor> run_slice(Run&, const Step& s, std::span<const AnyTensor> in) {
  return one(slice(in[0], static_cast<int>(s.ints[0]), s.ints[1], s.ints[2], s.ints[3]));
}

bool draw_broadcast(Draw& d, Step& s) {
  if (!draw_one(all_dtypes)(d, s)) return false;
  const Shape& from = d.at(s.in[0]).spec.shape;
  if (from.rank() < 4 && d.chance(60)) s.shape.push_back(d.one_of({1, 2, 3}));
  for (const std::int64_t size : from)
    s.shape.push_back(size == 1 && d.chance(60) ? d.one_of({2, 3, 4}) : size);
  for (const std::int64_t size : s.shape) s.ints.push_back(size);
  return s.shape.elements() <= most_elements;
}

std::vector<Array> model_broadcast(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  Array out{.spec = {s.shape, x.spec.dtype}};
  for_each_index(
      s.shape, [&](const auto& index) { out.ids.push_back(broadcast_element(x, s.shape, index)); });
  return {out};
}

bool draw_unsqueeze(Draw& d, Step& s) {
  const int value = d.pick([](const Array& a) { return a.spec.shape.rank() < 4; });
  if (value < 0) return false;
  s.in = {value};
  s.ints = {d.below(d.at(value).spec.shape.rank() + 1)};
  return true;
}

std::vector<Array> model_unsqueeze(Model& m, const Step& s) {
  const Array& x = m.at(s.in[0]);
  Shape shape;
  for (int axis = 0; axis <= x.spec.shape.rank(); ++axis) {
    if (axis == s.ints[0]) shape.push_back(1);
    if (axis < x.spec.shape.rank()) shape.push_back(x.spec.shape[axis]);
  }
  return {{.spec = {shape, x.spec.dtype}, .ids = x.ids}};
}

bool draw_concat(Draw& d, Step& s) {
  if (!draw_one(all_dtypes, 1)(d, s)) return false;
  const Array first = d.at(s.in[0]);
  const int axis = d.below(first.spec.shape.rank());
  s.ints = {axis};
  std::int64_t total = first.spec.shape.elements();
  for (int more = 1 + d.below(2); more > 0; --more) {
    int other = d.pick([&](const Array& a) {
      if (a.spec.dtype != first.spec.dtype || a.device != first.device ||
          a.spec.shape.rank() != first.spec.shape.rank())
        return false;
      Shape like = a.spec.shape;
      like[axis] = first.spec.shape[axis];
      return like == first.spec.shape;
    });
    if (d.chance(20)) {
      Shape shape = first.spec.shape;
      shape[axis] = d.one_of({0, 1, 2});
      other = d.input(shape, first.spec.dtype, first.device);
    }
    if (other < 0) return false;
    s.in.push_back(other);
    total += d.at(other).spec.shape.elements();
  }
  return total <= most_elements;
}

std::vector<Array> model_concat(Model& m, const Step& s) {
  const auto axis = static_cast<int>(s.ints[0]);
  Array out{.spec = m.at(s.in[0]).spec};
  out.spec.shape[axis] = 0;
  for (const int i : s.in) out.spec.shape[axis] += m.at(i).spec.shape[axis];
  for_each_index(out.spec.shape, [&](auto index) {
    std::size_t part = 0;
    while (index[at(axis)] >= m.at(s.in[part]).spec.shape[axis])
      index[at(axis)] -= m.at(s.in[part++]).spec.shape[axis];
    const Array& from = m.at(s.in[part]);
    out.ids.push_back(broadcast_element(from, from.spec.shape, index));
  });
  return {out};
}

}  // namespace

void add_movement(std::vector<Operation>& to) {
  to.push_back({"reshape", 14, draw_reshape, model_reshape,
                [](Run&, const Step& s, auto in) { return one(reshape(in[0], s.shape)); }});
  to.push_back({"permute", 10, draw_permute, model_permute, run_permute});
  to.push_back({"transpose", 10,
                [](Draw& d, Step& s) {
                  if (!draw_one(all_dtypes, 2)(d, s)) return false;
                  const int rank = d.at(s.in[0]).spec.shape.rank();
                  for (int axis = 0; axis < rank; ++axis) s.ints.push_back(axis);
                  std::swap(s.ints[at(rank - 1)], s.ints[at(rank - 2)]);
                  return true;
                },
                model_permute, [](Run&, const Step&, auto in) { return one(transpose(in[0])); }});
  to.push_back({"slice", 16, draw_slice, model_slice, run_slice});
  to.push_back({"broadcast_to", 12, draw_broadcast, model_broadcast,
                [](Run&, const Step& s, auto in) { return one(broadcast_to(in[0], s.shape)); }});
  to.push_back({"unsqueeze", 8, draw_unsqueeze, model_unsqueeze, [](Run&, const Step& s, auto in) {
                  return one(unsqueeze(in[0], static_cast<int>(s.ints[0])));
                }});
  to.push_back({"concat", 12, draw_concat, model_concat, [](Run&, const Step& s, auto in) {
                  return one(concat(in, static_cast<int>(s.ints[0])));
                }});
}

}  // namespace kiln::fuzz
