#include "kiln/scalar/wgsl/wgsl.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kiln/scalar/opcode_table.hpp"
#include "kiln/scalar/wgsl/cancelling.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

// In parentheses if negative, so that a "-" before it stays an operator of its own.
std::string literal(std::string_view op, double value, DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return value != 0 ? "true" : "false";
    case DType::i32:
      if (value == -2147483648.0) return "(-2147483647i - 1i)";  // 2147483648i is past the largest
      return fmt::format(fmt::runtime(value < 0 ? "({}i)" : "{}i"),
                         static_cast<std::int64_t>(value));
    case DType::u32:
      return fmt::format("{}u", static_cast<std::uint64_t>(value));
    default:
      break;
  }
  const auto single = static_cast<float>(value);
  if (!std::isfinite(single)) {
    throw KernelError(
        fmt::format("{}: the literal {} cannot be written in WGSL; pass it as a Param", op, value));
  }
  return std::signbit(single) ? fmt::format("({}f)", single) : fmt::format("{}f", single);
}

std::string cast_text(DType from, DType to, const std::string& x) {
  // Not f32(f16(x)): compilers drop both conversions.
  if (to == DType::f16)
    return fmt::format("kiln_round_f16({})", is_float(from) ? x : fmt::format("f32({})", x));
  // Compilers take "!=" as an ordered comparison, in which a NaN is not true.
  if (to == DType::boolean)
    return from == DType::boolean ? x : fmt::format("!({0} == {1}(0))", x, wgsl_compute_type(from));
  if (to == DType::i32 && is_float(from)) return fmt::format("kiln_i32({})", x);
  if (to == DType::u32 && is_float(from)) return fmt::format("kiln_u32({})", x);
  // The nearest number, not the same bits.
  if (to == DType::i32 && from == DType::u32) return fmt::format("i32(min({}, 2147483647u))", x);
  if (to == DType::u32 && from == DType::i32) return fmt::format("u32(max({}, 0i))", x);
  return fmt::format("{}({})", wgsl_compute_type(to), x);
}

class Printer {
 public:
  Printer(std::string_view op, const Body& body, const BodyTypes& types,
          std::span<const std::string> inputs, std::string_view param_prefix,
          std::string_view temp_prefix)
      : op_(op),
        body_(body),
        types_(types),
        inputs_(inputs),
        param_prefix_(param_prefix),
        temp_prefix_(temp_prefix),
        may_cancel_(may_cancel(*body.graph)) {}

  WgslBody run() && {
    const auto& nodes = body_.graph->nodes();
    names_.resize(nodes.size());
    out_.lines.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!types_.nodes[i]) continue;  // printed where it is used, in its user's dtype
      if (nodes[i].op == Opcode::input) {
        names_[i] = inputs_[static_cast<std::size_t>(nodes[i].args[0])];
        continue;
      }
      if (nodes[i].op == Opcode::param) {
        names_[i] = param(nodes[i]);
        continue;
      }
      if (nodes[i].op == Opcode::index) continue;  // its user is replaced by a load
      names_[i] = fmt::format("{}{}", temp_prefix_, i);
      out_.lines[i] = fmt::format("  let {} = {};\n", names_[i], text(nodes[i], *types_.nodes[i]));
      out_.statements += out_.lines[i];
    }
    for (std::size_t r = 0; r < body_.roots.size(); ++r)
      out_.results.push_back(operand(body_.roots[r], types_.roots[r]));
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string param(const ExprGraph::Node& node) const {
    const std::string name = fmt::format("{}{}", param_prefix_, node.args[0]);
    const bool is_bool = types_.params[static_cast<std::size_t>(node.args[0])] == DType::boolean;
    return is_bool ? wgsl_load(DType::boolean, name) : name;
  }

  std::string operand(std::int32_t id, DType wanted) {
    if (types_.nodes[static_cast<std::size_t>(id)]) return names_[static_cast<std::size_t>(id)];
    const ExprGraph::Node& node = body_.graph->node(id);
    if (node.op == Opcode::constant) return literal(op_, node.value, wanted);
    if (node.op == Opcode::param) return param(node);
    return text(node, wanted);
  }

  [[nodiscard]] bool is_zero(std::int32_t id) const {
    const ExprGraph::Node& node = body_.graph->node(id);
    return node.op == Opcode::constant && node.value == 0;
  }

  /// Whether a float operation's operand is hidden from compilers. They simplify what both operands
  /// have in common, and zeros, by algebra that is wrong for NaN, infinity and rounding. To hide
  /// one operand is enough.
  [[nodiscard]] bool hides(const ExprGraph::Node& node, std::size_t slot) const {
    const bool arithmetic = node.op == Opcode::add || node.op == Opcode::sub ||
                            node.op == Opcode::mul || node.op == Opcode::div;
    if (arithmetic && is_zero(node.args[slot])) return true;
    const auto id = static_cast<std::size_t>(&node - body_.graph->nodes().data());
    return slot + 1 == operands(node).size() && may_cancel_[id] != 0;
  }

  [[nodiscard]] std::string_view pattern_of(const ExprGraph::Node& node, DType dtype) const {
    // WGSL refuses a division by a literal 0. As of any 0, the result is the dividend.
    if (node.op == Opcode::div && !is_float(dtype) && is_zero(node.args[1])) return "$a";
    // For a literal count in [0, 31] no helper has to look for others.
    const auto is_literal_count = [&](const ExprGraph::Node& count) {
      return count.op == Opcode::constant && count.value >= 0 && count.value <= 31;
    };
    if (node.op == Opcode::shift_left && is_literal_count(body_.graph->node(node.args[1])))
      return "($a << u32($b))";
    if (node.op == Opcode::shift_right && is_literal_count(body_.graph->node(node.args[1])))
      return "($a >> u32($b))";
    return row(node.op).wgsl;
  }

  std::string text(const ExprGraph::Node& node, DType dtype) {
    if (node.op == Opcode::constant) return literal(op_, node.value, dtype);
    if (node.op == Opcode::coordinate) return fmt::format("{}{}", wgsl_coordinate, node.args[0]);
    if (node.op == Opcode::position) return std::string(wgsl_position);
    if (node.op == Opcode::load) {
      const std::string array = operand(node.args[0], dtype);
      return wgsl_load(dtype, fmt::format("{}[{}]", array, operand(node.args[1], DType::u32)));
    }
    if (node.op == Opcode::element)
      throw KernelError(fmt::format("{}: this kernel cannot read elements at coordinates", op_));
    const DType meet = operand_dtype(node, types_,
                                     node.op == Opcode::cast   ? DType::f32
                                     : dtype == DType::boolean ? DType::f32
                                                               : dtype);
    std::string out =
        node.op == Opcode::cast ? cast_text(meet, node.dtype, operand(node.args[0], meet)) : "";
    const std::string_view pattern = pattern_of(node, meet);
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] != '$') {
        out += pattern[i];
        continue;
      }
      const char what = pattern[++i];
      if (what == 't') {
        out += wgsl_compute_type(meet);
      } else {
        const auto slot = static_cast<std::size_t>(what - 'a');
        const bool condition = node.op == Opcode::select && slot == 0;
        const std::string value = operand(node.args[slot], condition ? DType::boolean : meet);
        const bool hidden = is_float(meet) && hides(node, slot);
        if (hidden) out_.helpers.emplace(wgsl_hide);
        out += hidden ? fmt::format("{}({})", wgsl_hide, value) : value;
      }
    }
    if (out.starts_with("kiln_")) add_wgsl_helper(out.substr(0, out.find('(')), out_.helpers);
    return out;
  }

  std::string_view op_;
  const Body& body_;
  const BodyTypes& types_;
  std::span<const std::string> inputs_;
  std::string_view param_prefix_;
  std::string_view temp_prefix_;
  std::vector<char> may_cancel_;  ///< of each node
  std::vector<std::string> names_;
  WgslBody out_;
};

}  // namespace

std::string_view wgsl_storage_type(DType dtype) {
  return dtype == DType::boolean ? "u32" : to_string(dtype);
}

std::string_view wgsl_compute_type(DType dtype) {
  return dtype == DType::f16 ? "f32" : to_string(dtype);
}

std::string wgsl_load(DType dtype, std::string_view stored) {
  if (dtype == DType::f16) return fmt::format("f32({})", stored);
  if (dtype == DType::boolean) return fmt::format("({} != 0u)", stored);
  return std::string(stored);
}

std::string wgsl_store(DType from, DType to, std::string_view value) {
  if (to == DType::boolean) return fmt::format("u32({})", cast_text(from, to, std::string(value)));
  if (to == DType::f16) return fmt::format("f16({})", value);
  return from == to ? std::string(value) : fmt::format("{}({})", wgsl_compute_type(to), value);
}

std::string wgsl_rounded(DType dtype, std::string_view value, std::set<std::string>& helpers) {
  if (dtype != DType::f16) return std::string(value);
  helpers.insert("kiln_round_f16");
  return fmt::format("kiln_round_f16({})", value);
}

WgslBody print_wgsl(std::string_view op, const Body& body, const BodyTypes& types,
                    std::span<const std::string> inputs, std::string_view param_prefix,
                    std::string_view temp_prefix) {
  return Printer(op, body, types, inputs, param_prefix, temp_prefix).run();
}

}  // namespace kiln
