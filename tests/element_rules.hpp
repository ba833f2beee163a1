#pragma once
/// Operations that say where their elements come from, for the tests of such.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/queued.hpp"

namespace kiln::element_rules {

using queued::drained;
using queued::expect_same_as_eager;
using queued::In;
using queued::lazy;
using test::make;
using test::make_wave;
using test::message_of;
using test::values;

/// 0, 1, 2, ... in that dtype.
inline AnyTensor counted(const Shape& shape, DType dtype = DType::f32) {
  std::vector<float> numbers(static_cast<std::size_t>(shape.elements()));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return cast(make(numbers, shape, lazy()), dtype);
}

inline std::vector<float> iota(std::int64_t n) { return values(counted({n})); }

struct Flip {
  static constexpr std::string_view name = "flip";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Autodiff, Cube, Fusion>;
  int axis;

  static TensorSpec output(const TensorSpec& x) { return x; }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(axis, at.size(axis) - 1 - at[axis]));
  }
  struct Saved {};
  static Saved save(const Saver&, const AnyTensor&, const AnyTensor&) { return {}; }
  void backward(const Saved&, const AnyTensor& grad, Grads<1>& grads) const {
    grads.slots[0].set(apply(*this, grad));
  }
};
static_assert(Extension<Flip>);

struct Roll {
  static constexpr std::string_view name = "roll";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  Param by;
  int axis;

  static TensorSpec output(const TensorSpec& x) { return x; }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(axis, mod(at[axis] - by, at.size(axis))));
  }
};
static_assert(Extension<Roll>);

struct Pad {
  static constexpr std::string_view name = "pad";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  int axis;
  int before;
  int after;
  Param fill;

  TensorSpec output(const TensorSpec& x) const {
    TensorSpec out = x;
    out.shape[axis] += before + after;
    return out;
  }
  Expr element(const At& at, const Elements& x) const {
    return x(at.with(axis, at[axis] - at.number(before))).or_else(fill);
  }
};
static_assert(Extension<Pad>);

struct Tril {
  static constexpr std::string_view name = "tril";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return select(at[-1] <= at[-2], x(at), 0);
  }
};
static_assert(Extension<Tril>);

struct OneHot {
  static constexpr std::string_view name = "one_hot";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  int classes;
  TensorSpec output(const TensorSpec& x) const {
    TensorSpec out{x.shape, DType::f32};
    out.shape.push_back(classes);
    return out;
  }
  static Expr element(const At& at, const Elements& x) {
    return select(cast(x(at.without(-1)), DType::i32) == at[-1], 1, 0);
  }
};
static_assert(Extension<OneHot>);

/// Rows of `table` by numbers; 0 for a number that names no row.
struct Gather {
  static constexpr std::string_view name = "gather_rows";
  static constexpr std::array inputs = {"table", "rows"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& table, const TensorSpec& rows) {
    return {{rows.shape[0], table.shape[1]}, table.dtype};
  }
  static Expr element(const At& at, const Elements& table, const Elements& rows) {
    return table(rows(at[0]), at[1]);
  }
};
static_assert(Extension<Gather>);

/// [channels, height, width] to [channels * kernel^2, windows].
struct Im2col {
  static constexpr std::string_view name = "im2col";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  int kernel;
  int pad;

  TensorSpec output(const TensorSpec& x) const {
    const std::int64_t less = 2 * pad - kernel + 1;
    return {{x.shape[0] * kernel * kernel, (x.shape[1] + less) * (x.shape[2] + less)}, x.dtype};
  }
  Expr element(const At& at, const Elements& x) const {
    const Expr k = at.number(kernel);
    const Expr wide = x.size(2) + at.number(2 * pad - kernel + 1);
    const Expr row = floor_div(at[1], wide) + mod(floor_div(at[0], k), k) - at.number(pad);
    const Expr col = mod(at[1], wide) + mod(at[0], k) - at.number(pad);
    return x(floor_div(at[0], k * k), row, col);
  }
};
static_assert(Extension<Im2col>);

struct Concat {
  static constexpr std::string_view name = "concat_two";
  static constexpr std::array inputs = {"a", "b"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  int axis;
  TensorSpec output(const TensorSpec& a, const TensorSpec& b) const {
    TensorSpec out = a;
    out.shape[axis] += b.shape[axis];
    return out;
  }
  Expr element(const At& at, const Elements& a, const Elements& b) const {
    return a(at).or_else(b(at.with(axis, at[axis] - a.size(axis))));
  }
};
static_assert(Extension<Concat>);

struct Arange {
  static constexpr std::string_view name = "arange_by_rule";
  static constexpr std::array<std::string_view, 0> inputs{};
  using layers = Layers<Cube, Fusion>;
  std::int64_t count;
  Param start;
  Param step;
  TensorSpec output() const { return {{count}, DType::f32}; }
  Expr element(const At& at) const { return start + step * cast(at[0], DType::f32); }
};
static_assert(Extension<Arange>);

/// The number of each element, and of the one that its coordinates name.
struct Position {
  static constexpr std::string_view name = "position";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return {x.shape, DType::u32}; }
  static Expr element(const At& at, const Elements&) { return at.position(); }
};

/// x at every second row and the mean of two neighbours: reads in place and elsewhere.
struct Neighbours {
  static constexpr std::string_view name = "neighbours";
  static constexpr std::array inputs = {"x"};
  using layers = Layers<Default<Autodiff>, Cube, Fusion>;
  static TensorSpec output(const TensorSpec& x) { return x; }
  static Expr element(const At& at, const Elements& x) {
    return x(at.with(-1, at[-1] - 1)) + x(at) * 2 + x(at.with(-1, at[-1] + 1));
  }
};

}  // namespace kiln::element_rules
