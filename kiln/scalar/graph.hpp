#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/scalar/opcode.hpp"
#include "kiln/support/argument.hpp"
#include "kiln/support/dtype.hpp"

namespace kiln {

class Expr;

/// A number that changes from call to call, such as a learning rate, as a field of an operation. It
/// is passed to the kernel at launch. It is in no cache key and in no kernel's text, so a new value
/// never compiles anything. Beside f16 operands it is f32; they are computed in f32, too.
///
///     struct Scale {
///       static constexpr std::string_view name = "scale";
///       Param by;
///       Expr body(Expr x) const { return x * by; }
///     };
///     apply(Scale{0.5}, tensor({2.0, 4.0}));   // [1, 2]
class Param {
 public:
  constexpr Param() = default;
  /// From a number.
  template <NumberType T>
  constexpr Param(T value)  // NOLINT(google-explicit-constructor): a number is one
      : value_(static_cast<double>(value)) {}
  constexpr Param(const Number& number) : value_(number) {}  // NOLINT(google-explicit-constructor)

  /// The number, for rules that run at every call, such as `cpu_kernel`. Throws Error in `body` and
  /// `webgpu_kernel`, whose answer is kept for all numbers; use the Param itself there.
  ///
  ///     Param(0.5).value();   // [0.5]
  [[nodiscard]] double value() const;

 private:
  double value_ = 0;
};

namespace detail {

/// While it lives, this thread is in a rule whose answer is kept for every value of the Params:
/// reading one throws.
class KeptForEveryParam {
 public:
  KeptForEveryParam(std::string_view op, std::string_view rule);
  ~KeptForEveryParam();
  /// The operation of the rule in which this thread is; "body" outside of rules.
  static std::string_view op();
  KeptForEveryParam(const KeptForEveryParam&) = delete;
  KeptForEveryParam& operator=(const KeptForEveryParam&) = delete;

 private:
  friend class kiln::Param;
  std::string_view op_;
  std::string_view rule_;
  const KeptForEveryParam* outer_;
};

}  // namespace detail

/// A hash-consed graph of scalar operations: equal subexpressions have equal ids, and operands come
/// before their users.
class ExprGraph {
 public:
  /// One operation, or one that has no operands: an input, a Param or a literal.
  struct Node {
    Opcode op = Opcode::constant;
    std::array<std::int32_t, 3> args{
        -1, -1,
        -1};  ///< node ids; args[0] of `input`, `param`: the slot; of `coordinate`: the axis
    double value = 0;  ///< of `constant`
    /// Of `cast`: the target; of `param` and `constant`: f32, or the one it must have.
    DType dtype = DType::f32;
    /// Tells constants apart by their bits: -0 is not 0, and NaN equals itself.
    friend bool operator==(const Node& a, const Node& b) {
      return a.op == b.op && a.args == b.args && a.dtype == b.dtype &&
             std::bit_cast<std::uint64_t>(a.value) == std::bit_cast<std::uint64_t>(b.value);
    }
  };

  ExprGraph() = default;
  /// `params`: the addresses of the operation's Param fields, in slot order.
  explicit ExprGraph(std::vector<const Param*> params) : params_(std::move(params)) {}

  /// The id of the node, added if it is new. Exact identities, x * 1, x / 1 and x - 0, are
  /// simplified.
  std::int32_t intern(Node node);
  /// The id of an expression of this graph, or of a literal or Param brought into it.
  std::int32_t place(const Expr& expr);
  /// The expression of an input, and that of a node.
  Expr input(int slot);
  Expr expr(std::int32_t id);

  /// All nodes, and one by its id.
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const Node& node(std::int32_t id) const {
    return nodes_[static_cast<std::size_t>(id)];
  }

 private:
  [[nodiscard]] std::int32_t simplified(const Node& node) const;
  [[nodiscard]] bool is_constant(std::int32_t id, double value) const;

  std::vector<Node> nodes_;
  struct Hash {
    std::size_t operator()(const Node& node) const;
  };
  std::unordered_map<Node, std::int32_t, Hash> ids_;
  std::vector<const Param*> params_;
};

/// A scalar expression: what the `body` of an elementwise operation is written in.
///
///     struct Silu {
///       static constexpr std::string_view name = "silu";
///       static Expr body(Expr x) { return x * sigmoid(x); }
///     };
///     apply(Silu{}, tensor({-1.0, 1.0}));   // [-0.268941, 0.731059]
///
/// Literals become part of the kernel's text; a number that changes from call to call must be a
/// Param field. Other numbers do not compile.
class Expr {
 public:
  /// From a literal, or from a Param field.
  ///
  ///     struct Line {
  ///       static constexpr std::string_view name = "line";
  ///       Param slope;
  ///       Expr body(Expr x) const { return slope * x + 0.5; }
  ///     };
  ///     apply(Line{2}, tensor({1.0, 3.0}));   // [2.5, 6.5]
  template <NumberType T>
  consteval Expr(T value)  // NOLINT(google-explicit-constructor): literals
      : value_(static_cast<double>(value)) {}
  Expr(const Param& param) : param_(&param) {}  // NOLINT(google-explicit-constructor)

  /// No expression, for those that write adjoints.
  [[nodiscard]] static Expr none() { return {nullptr, none_id}; }
  /// Where it stands in which graph; a literal and a Param are in none.
  [[nodiscard]] bool in_graph() const { return graph_ != nullptr; }
  [[nodiscard]] std::int32_t id() const { return id_; }
  [[nodiscard]] ExprGraph* graph() const { return graph_; }

 private:
  friend class ExprGraph;
  static constexpr std::int32_t none_id = -2;
  constexpr Expr(ExprGraph* graph, std::int32_t id) : graph_(graph), id_(id) {}

  ExprGraph* graph_ = nullptr;
  std::int32_t id_ = -1;
  double value_ = 0;
  const Param* param_ = nullptr;
};

namespace detail {
/// The node of an operation on expressions of one graph. Throws Error unless one of them is in one.
Expr make_expr(Opcode op, std::span<const Expr> args, DType dtype = DType::f32);
inline Expr unary(Opcode op, const Expr& x) { return make_expr(op, std::array{x}); }
inline Expr binary(Opcode op, const Expr& a, const Expr& b) {
  return make_expr(op, std::array{a, b});
}
}  // namespace detail

}  // namespace kiln
