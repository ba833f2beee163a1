#pragma once
/// Numbers of which it is known how far a right implementation may be from them.
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kiln/support/dtype.hpp"

namespace kiln::fuzz {

/// The nearest number that a float dtype has; others as they are.
double rounded(double value, DType dtype);

/// Half the distance of neighbours near 1, in a float dtype.
double unit(DType dtype);

/// A scalar of a tape, by its place.
using Id = std::int32_t;

enum class Fn : std::uint8_t {
  given,
  leaf,
  add,
  sub,
  mul,
  div,
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  tanh,
  sigmoid,
  relu,
  erf,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  exp2,
  log2,
  log1p,
  expm1,
  atan2,
  floor,
  ceil,
  round,
  trunc,
  sign,
  pow,
  min,
  max,
  select,
  cast,
  is_nan,
  is_inf,
  floor_div,
  mod,
  shift_left,
  shift_right,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  equal,
  less,
  less_equal,
  logical_not,
  logical_and,
  logical_or,
  sum,      // of many
  largest,  // of many
  smallest  // of many
};

/// Scalar operations in double precision, each with a bound of what rounding in its dtype may do.
/// An error of 0 means that only this very number is right; an infinite one that anything is, since
/// a jump, a pole or an overflow is too near.
class Scalars {
 public:
  Id given(double value, DType dtype, double error = 0);
  /// The same number, as the start of gradients.
  Id leaf(Id of);
  Id make(Fn fn, DType dtype, Id a, Id b = -1, Id c = -1);
  /// Added up in f32 in any order, then rounded to `dtype`.
  Id sum(DType dtype, std::span<const Id> of);
  /// The largest or smallest: equal ones share the gradient.
  Id extreme(Fn which, DType dtype, std::span<const Id> of);
  /// The place of the first largest or smallest; a NaN counts as both.
  Id place_of_extreme(Fn which, std::span<const Id> of);

  [[nodiscard]] double value(Id id) const { return nodes_[at(id)].value; }
  [[nodiscard]] double error(Id id) const { return nodes_[at(id)].error; }
  [[nodiscard]] DType dtype(Id id) const { return nodes_[at(id)].dtype; }
  /// Nothing is known of it.
  [[nodiscard]] bool wild(Id id) const;

  /// The derivatives of sum(out * seed) by each leaf, of the leaf's dtype.
  std::vector<Id> gradients(std::span<const std::pair<Id, Id>> outs_and_seeds,
                            std::span<const Id> leaves);

 private:
  struct Node {
    Fn fn = Fn::given;
    DType dtype = DType::f32;
    bool tracked = false;
    Id a = -1;  ///< of many: where they begin in many_
    Id b = -1;  ///< of many: how many
    Id c = -1;
    double value = 0;
    double error = 0;
  };
  struct Number {
    double value = 0;
    double error = 0;
  };
  static std::size_t at(Id id) { return static_cast<std::size_t>(id); }
  [[nodiscard]] Number compute(Fn fn, DType dtype, Id a, Id b, Id c) const;
  [[nodiscard]] Number added(DType dtype, DType inside, std::span<const Id> of) const;
  [[nodiscard]] bool tracked(Id id) const { return id >= 0 && nodes_[at(id)].tracked; }
  [[nodiscard]] std::span<const Id> many(const Node& node) const {
    return std::span(many_).subspan(at(node.a), at(node.b));
  }
  Id push(const Node& node);
  Id push_many(Fn fn, DType dtype, std::span<const Id> of, Number number);
  Id of_dtype(Id id, DType dtype) {
    return this->dtype(id) == dtype ? id : make(Fn::cast, dtype, id);
  }
  Id anything(DType dtype);
  /// What arrives at the operands of node `id` when `g` arrives at it.
  template <class Send>
  void send_back(Id id, Id g, const Send& send);
  template <class Send>
  void send_to_extremes(Id id, Id g, const Send& send);

  std::vector<Node> nodes_;
  std::vector<Id> many_;
};

}  // namespace kiln::fuzz
