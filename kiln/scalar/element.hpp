#pragma once
/// What a rule `element` works with: the place of the element that it computes, and the operands.
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/scalar/expr.hpp"
#include "kiln/support/shape.hpp"

namespace kiln {

namespace detail {
class ElementRule;
}  // namespace detail

/// The place of the element that a rule `element` computes: one coordinate, an i32, for each axis
/// of the result. Places that follow from it say where operands are read.
///
///     struct Flip {
///       static constexpr std::string_view name = "flip";
///       static constexpr std::array inputs = {"x"};
///       using layers = Layers<Cube, Fusion>;
///       int axis;
///       static TensorSpec output(const TensorSpec& x) { return x; }
///       Expr element(const At& at, const Elements& x) const {
///         return x(at.with(axis, at.size(axis) - 1 - at[axis]));
///       }
///     };
///     apply(Flip{0}, tensor({1.0, 2.0, 3.0}));   // [3, 2, 1]
///
/// A negative axis counts from the end. Throws ShapeError that begins with the operation's name for
/// an axis that is not there.
class At {
 public:
  /// How many coordinates there are.
  [[nodiscard]] int rank() const { return static_cast<int>(coordinates_.size()); }
  /// The coordinate along `axis`.
  [[nodiscard]] Expr operator[](int axis) const;
  /// The result's size along `axis`, an i32. It is a number of the launch, so another size compiles
  /// nothing.
  [[nodiscard]] Expr size(int axis) const;
  /// The number of the result's element in dense order, a u32, whatever was changed in this place.
  [[nodiscard]] Expr position() const;
  /// A whole number that only the call knows, such as a field of the operation, as an i32. Another
  /// one compiles nothing.
  ///
  ///     struct Marked {
  ///       static constexpr std::string_view name = "marked";
  ///       static constexpr std::array inputs = {"x"};
  ///       using layers = Layers<Cube, Fusion>;
  ///       std::int64_t count;
  ///       TensorSpec output(const TensorSpec& x) const { return {{x.shape[0], count}, x.dtype}; }
  ///       Expr element(const At& at, const Elements& x) const {
  ///         const Expr is_last = at[at.rank() - 1] == at.number(count - 1);
  ///         return x(at.without(1)) + select(is_last, cast(at.position(), DType::f32), 0);
  ///       }
  ///     };
  ///     apply(Marked{2}, tensor({10.0, 20.0}));   // [10, 11, 20, 23]
  [[nodiscard]] Expr number(std::int64_t value) const;

  /// The place with another coordinate along `axis`, without it, or with one more there.
  ///
  ///     struct LastRow {
  ///       static constexpr std::string_view name = "last_row";
  ///       static constexpr std::array inputs = {"x"};
  ///       using layers = Layers<Cube, Fusion>;
  ///       static TensorSpec output(const TensorSpec& x) { return {{x.shape[1]}, x.dtype}; }
  ///       static Expr element(const At& at, const Elements& x) {
  ///         const Expr last = x(at.insert(0, x.size(0) - 1));
  ///         return x.dtype() == DType::f32 && x.rank() == 2 ? last : -last;
  ///       }
  ///     };
  ///     apply(LastRow{}, tensor({{1.0, 2.0}, {3.0, 4.0}}));   // [3, 4]
  [[nodiscard]] At with(int axis, const Expr& coordinate) const;
  [[nodiscard]] At without(int axis) const;
  [[nodiscard]] At insert(int axis, const Expr& coordinate) const;

 private:
  friend class detail::ElementRule;
  friend class Elements;
  At(detail::ElementRule& rule, std::vector<Expr> coordinates)
      : rule_(&rule), coordinates_(std::move(coordinates)) {}
  [[nodiscard]] std::size_t normalized(int axis, int rank) const;

  detail::ElementRule* rule_;
  std::vector<Expr> coordinates_;
};

/// An operand's element at a place. Outside of the operand it is 0, or what `or_else` says.
///
///     struct Next {
///       static constexpr std::string_view name = "next";
///       static constexpr std::array inputs = {"x"};
///       using layers = Layers<Cube, Fusion>;
///       static TensorSpec output(const TensorSpec& x) { return x; }
///       static Expr element(const At& at, const Elements& x) {
///         const Element next = x(at[0] + 1);
///         return next.or_else(7) + select(next.inside(), 10, 0);
///       }
///     };
///     apply(Next{}, tensor({1.0, 2.0, 3.0}));   // [12, 13, 7]
class Element : public Expr {
 public:
  /// The element, or `fill` outside of the operand.
  [[nodiscard]] Expr or_else(const Expr& fill) const;
  /// Whether the place is inside of the operand, a bool.
  [[nodiscard]] Expr inside() const { return inside_; }

 private:
  friend class detail::ElementRule;
  Element(const Expr& value, const Expr& there, const Expr& inside)
      : Expr(value), there_(there), inside_(inside) {}

  Expr there_;  ///< valid where `inside_`
  Expr inside_;
};

/// An operand of a rule `element`. It is read at any place, by coordinates of i32; literals and
/// Params become that. A coordinate below 0, or not below the size, is outside: nothing is read
/// there, and the element is 0.
///
///     struct Shifted {
///       static constexpr std::string_view name = "shifted";
///       static constexpr std::array inputs = {"x"};
///       using layers = Layers<Cube, Fusion>;
///       static TensorSpec output(const TensorSpec& x) { return x; }
///       static Expr element(const At& at, const Elements& x) { return x(at[0] - 1).or_else(-1); }
///     };
///     apply(Shifted{}, tensor({1.0, 2.0, 3.0}));   // [-1, 1, 2]
class Elements {
 public:
  /// Its rank, dtype, and size along `axis`, an i32; see At::size and At::insert.
  ///
  ///     struct Sizes {
  ///       static constexpr std::string_view name = "sizes";
  ///       static constexpr std::array inputs = {"x"};
  ///       using layers = Layers<Cube, Fusion>;
  ///       static TensorSpec output(const TensorSpec&) { return {{2}, DType::i32}; }
  ///       static Expr element(const At& at, const Elements& x) {
  ///         const int rank = x.dtype() == DType::f32 ? x.rank() : 0;
  ///         return select(at[0] == 0, x.size(0), x.size(rank - 1));
  ///       }
  ///     };
  ///     apply(Sizes{}, tensor({{1.0, 2.0, 3.0}}));   // [1, 3]
  [[nodiscard]] int rank() const;
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] Expr size(int axis) const;

  /// The element at a place, or at these coordinates. Throws ShapeError that begins with the
  /// operation's name unless there is one for each axis.
  [[nodiscard]] Element operator()(const At& at) const;
  [[nodiscard]] Element operator()(const Expr& a = Expr::none(), const Expr& b = Expr::none(),
                                   const Expr& c = Expr::none(), const Expr& d = Expr::none(),
                                   const Expr& e = Expr::none(), const Expr& f = Expr::none(),
                                   const Expr& g = Expr::none(),
                                   const Expr& h = Expr::none()) const;

 private:
  friend class detail::ElementRule;
  Elements(detail::ElementRule& rule, std::size_t operand) : rule_(&rule), operand_(operand) {}

  detail::ElementRule* rule_;
  std::size_t operand_;
};

namespace detail {

/// What a rule `element` gave: a function of its operands, all read at indices. Its params are
/// those of the operation, then `numbers`, which follow from shapes and attributes.
struct ElementBody {
  BodyPtr body;
  std::vector<double> numbers;
};

/// Runs one rule `element`. At and Elements belong to it.
class ElementRule {
 public:
  /// `params`: the operation's own. Throws ShapeError that begins with `op` for an axis that is too
  /// long to be counted by an i32.
  ElementRule(std::string_view op, std::vector<const Param*> params, const TensorSpec& out,
              std::span<const TensorSpec> in, std::span<const std::string_view> names);
  ElementRule(const ElementRule&) = delete;  // places point to it
  ElementRule& operator=(const ElementRule&) = delete;
  ~ElementRule() = default;

  At at();
  Elements operand(std::size_t i) { return {*this, i}; }
  ElementBody finish(const Expr& result);

 private:
  friend class kiln::At;
  friend class kiln::Elements;

  Element read(std::size_t operand, const std::vector<Expr>& coordinates);
  Expr number(double value);
  /// The size along an axis, one number however often it is asked. Operand -1 is the result.
  Expr size(std::ptrdiff_t operand, int axis);
  std::int32_t coordinate(const Expr& expr);
  Expr truth(bool value);
  [[nodiscard]] bool is_inside(std::int32_t coordinate, std::int64_t size) const;
  [[nodiscard]] std::string name_of(std::size_t operand) const;

  std::string_view op_;
  int params_;
  ExprGraph graph_;
  TensorSpec out_;
  std::vector<TensorSpec> in_;
  std::vector<std::string_view> names_;
  std::vector<double> numbers_;
  std::vector<std::pair<std::pair<std::ptrdiff_t, int>, std::int32_t>> sizes_;
};

}  // namespace detail
}  // namespace kiln
