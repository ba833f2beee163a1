#pragma once
#include <array>
#include <span>
#include <string_view>

#include "kiln/scalar/expr.hpp"

namespace kiln {

/// The dtypes that an opcode takes.
enum class Domain : std::uint8_t { any, numeric, floating, integer, boolean };

/// Everything about one opcode.
struct OpcodeRow {
  Opcode op;
  std::string_view name;
  int arity;
  Domain domain;
  /// As WGSL: $a, $b, $c stand for the operands, $t for the operand's type.
  std::string_view wgsl;
  double (*evaluate)(const std::array<double, 3>& in, DType to);
  /// Sets out[i] to the gradient of operand i, given the operands, the result and the result's
  /// gradient.
  void (*adjoint)(std::array<Expr, 3>& in, const Expr& self, const Expr& g,
                  std::array<Expr, 3>& out);
};

const OpcodeRow& row(Opcode op);

/// The ids of the node's operands: none for those that have only a number.
std::span<const std::int32_t> operands(const ExprGraph::Node& node);

}  // namespace kiln
