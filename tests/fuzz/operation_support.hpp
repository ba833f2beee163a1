#pragma once
/// What the families of operations share.
#include <algorithm>

#include "fuzz/execute.hpp"
#include "fuzz/program.hpp"
#include "kiln/kiln.hpp"

namespace kiln::fuzz {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Sets of dtypes.
enum Takes : std::uint8_t { floats = 1, integers = 2, booleans = 4, numbers = 3, all_dtypes = 7 };
inline bool takes(int set, DType dtype) {
  const int kind = is_float(dtype) ? floats : dtype == DType::boolean ? booleans : integers;
  return (set & kind) != 0;
}

/// Calls f(index) for every index of `shape`, in row-major order.
template <class F>
void for_each_index(const Shape& shape, F f) {
  std::array<std::int64_t, max_rank> index{};
  for (std::int64_t flat = 0; flat < shape.elements(); ++flat) {
    std::int64_t rest = flat;
    for (int axis = shape.rank(); axis-- > 0; rest /= shape[axis])
      index[at(axis)] = rest % shape[axis];
    f(index);
  }
}

/// The element at `index`, of which `array` may lack leading axes and have others of size 1.
inline Id broadcast_element(const Array& array, const Shape& shape,
                            const std::array<std::int64_t, max_rank>& index) {
  std::int64_t flat = 0;
  const Shape& own = array.spec.shape;
  for (int axis = 0; axis < own.rank(); ++axis) {
    const std::int64_t coordinate = index[at(axis + shape.rank() - own.rank())];
    flat = flat * own[axis] + (own[axis] == 1 ? 0 : coordinate);
  }
  return array.ids[at(flat)];
}

/// f of the operands' elements, at every place of the shape to which they broadcast.
template <class F>
Array elementwise(Model& m, const std::vector<int>& operands, DType dtype, F f) {
  Array out;
  for (const int i : operands)
    out.spec.shape = broadcast("fuzz", out.spec.shape, m.at(i).spec.shape);
  out.spec.dtype = dtype;
  for_each_index(out.spec.shape, [&](const auto& index) {
    std::vector<Id> x;
    for (const int i : operands) x.push_back(broadcast_element(m.at(i), out.spec.shape, index));
    out.ids.push_back(f(x));
  });
  return out;
}

/// Draws one operand of those dtypes.
inline std::function<bool(Draw&, Step&)> draw_one(int set, int min_rank = 0) {
  return [=](Draw& d, Step& s) {
    const int value = d.pick([&](const Array& a) {
      return takes(set, a.spec.dtype) && a.spec.shape.rank() >= min_rank;
    });
    if (value < 0) return false;
    s.in = {value};
    return true;
  };
}

inline std::vector<AnyTensor> one(const AnyTensor& tensor) { return {tensor}; }

/// The elements of every line along the axes of `mask`, in order of the results.
inline std::vector<std::vector<Id>> lines(const Array& x, unsigned mask) {
  Shape kept;
  for (int axis = 0; axis < x.spec.shape.rank(); ++axis)
    kept.push_back((mask >> axis & 1U) != 0 ? 1 : x.spec.shape[axis]);
  std::vector<std::vector<Id>> out(at(kept.elements()));
  std::size_t flat = 0;
  for_each_index(x.spec.shape, [&](const auto& index) {
    std::int64_t to = 0;
    for (int axis = 0; axis < kept.rank(); ++axis)
      to = to * kept[axis] + (kept[axis] == 1 ? 0 : index[at(axis)]);
    out[at(to)].push_back(x.ids[flat++]);
  });
  return out;
}

inline Shape reduced(const Shape& shape, unsigned mask, bool keepdim) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if ((mask >> axis & 1U) == 0) {
      out.push_back(shape[axis]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

}  // namespace kiln::fuzz
