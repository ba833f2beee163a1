#include "kiln/scalar/infer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kiln/scalar/opcode_table.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

bool gives_bool(Opcode op) {
  return row(op).domain == Domain::boolean || op == Opcode::equal || op == Opcode::less ||
         op == Opcode::less_equal || op == Opcode::is_nan || op == Opcode::is_inf;
}

bool takes(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::any:
      return true;
    case Domain::numeric:
      return dtype != DType::boolean;
    case Domain::floating:
      return is_float(dtype);
    case Domain::integer:
      return dtype == DType::i32 || dtype == DType::u32;
    case Domain::boolean:
      return dtype == DType::boolean;
  }
  return false;
}

/// Whether the dtype has the literal. A float dtype has any, rounded.
bool represents(DType dtype, double value) {
  switch (dtype) {
    case DType::i32:
      return value == std::trunc(value) && std::abs(value + 0.5) < 2147483648.0;
    case DType::u32:
      return value == std::trunc(value) && value >= 0 && value < 4294967296.0;
    case DType::boolean:
      return value == 0 || value == 1;
    default:
      return true;
  }
}

/// The dtype in which numbers of that dtype are computed. A param beside f16 operands is f32.
DType computed(DType dtype) { return dtype == DType::f16 ? DType::f32 : dtype; }

std::string_view describe(Domain domain) {
  switch (domain) {
    case Domain::any:
      return "any dtype";
    case Domain::numeric:
      return "f32, f16, i32 or u32";
    case Domain::floating:
      return "f32 or f16";
    case Domain::integer:
      return "i32 or u32";
    case Domain::boolean:
      return "bool";
  }
  return "";
}

bool is_place(Opcode op) {
  return op == Opcode::coordinate || op == Opcode::position || op == Opcode::index ||
         op == Opcode::element || op == Opcode::load;
}

class Inference {
 public:
  Inference(std::string_view op, const Body& body, DType fallback)
      : op_(op), body_(body), fallback_(fallback) {
    types_.nodes.resize(body.graph->nodes().size());
    types_.params.assign(static_cast<std::size_t>(body.params), computed(fallback));
    set_.resize(types_.params.size());
  }

  BodyTypes run(std::span<const DType> inputs) && {
    for (std::size_t i = 0; i < types_.nodes.size(); ++i) {
      const ExprGraph::Node& node = body_.graph->nodes()[i];
      if (node.op == Opcode::input) {
        types_.nodes[i] = inputs[static_cast<std::size_t>(node.args[0])];
      } else if ((node.op == Opcode::param || node.op == Opcode::constant) &&
                 node.dtype != DType::f32) {
        settle(static_cast<std::int32_t>(i), node.dtype);
        types_.nodes[i] = node.dtype;
      } else if (node.op != Opcode::param && node.op != Opcode::constant) {
        types_.nodes[i] = result(node);
      }
    }
    for (const std::int32_t root : body_.roots) {
      settle(root, fallback_);
      types_.roots.push_back(types_.of(root, fallback_));
    }
    return std::move(types_);
  }

 private:
  std::optional<DType> known(const ExprGraph::Node& node, std::size_t first) const {
    std::optional<DType> found;
    for (const std::int32_t arg : operands(node).subspan(first)) {
      const auto dtype = types_.nodes[static_cast<std::size_t>(arg)];
      if (dtype && found && *dtype != *found) {
        throw DTypeError(
            fmt::format("{}: {} takes operands of one dtype, got {} and {}; cast one of them", op_,
                        row(node.op).name, to_string(*found), to_string(*dtype)));
      }
      if (dtype) found = dtype;
    }
    return found;
  }

  /// The dtype of a place, or of what is read there.
  std::optional<DType> placed(const ExprGraph::Node& node) {
    if (node.op == Opcode::coordinate) return DType::i32;
    if (node.op == Opcode::position) return DType::u32;
    if (node.op != Opcode::index) return types_.nodes[static_cast<std::size_t>(node.args[0])];
    settle(node.args[0], DType::i32);
    return DType::i32;
  }

  std::optional<DType> result(const ExprGraph::Node& node) {
    if (is_place(node.op)) return placed(node);
    const std::size_t first = node.op == Opcode::select ? 1 : 0;
    auto dtype = known(node, first);
    if (!dtype && (gives_bool(node.op) || node.op == Opcode::cast))
      dtype = DType::f32;  // as the printers write it
    if (dtype) {
      require_taken(node.op, *dtype);
      for (const std::int32_t arg : operands(node).subspan(first)) settle(arg, *dtype);
    }
    if (node.op == Opcode::select) {
      const auto condition = types_.nodes[static_cast<std::size_t>(node.args[0])];
      if (condition != DType::boolean) {
        throw DTypeError(fmt::format("{}: the condition must be bool, got {}", op_,
                                     condition ? to_string(*condition) : "a number"));
      }
    }
    if (node.op == Opcode::cast) return node.dtype;
    if (node.op == Opcode::cast_back) return std::nullopt;
    if (gives_bool(node.op)) return DType::boolean;
    return dtype;
  }

  void require_taken(Opcode op, DType dtype) const {
    if (!takes(row(op).domain, dtype)) {
      throw DTypeError(fmt::format("{}: {} takes {}, got {}", op_, row(op).name,
                                   describe(row(op).domain), to_string(dtype)));
    }
    if (op == Opcode::neg && dtype == DType::u32) {
      throw DTypeError(fmt::format("{}: neg takes f32, f16 or i32, got u32", op_));
    }
  }

  /// Gives the literals and params of an undecided subtree the dtype of its user.
  void settle(std::int32_t id, DType dtype) {
    if (types_.nodes[static_cast<std::size_t>(id)]) return;
    const ExprGraph::Node& node = body_.graph->node(id);
    if (node.op == Opcode::constant && !represents(dtype, node.value)) {
      throw DTypeError(
          fmt::format("{}: the literal {} is no {}", op_, node.value, to_string(dtype)));
    }
    if (node.op == Opcode::param) {
      const auto slot = static_cast<std::size_t>(node.args[0]);
      dtype = computed(dtype);
      if (set_[slot] && types_.params[slot] != dtype) {
        throw DTypeError(fmt::format("{}: one Param is used both as {} and as {}", op_,
                                     to_string(types_.params[slot]), to_string(dtype)));
      }
      types_.params[slot] = dtype;
      set_[slot] = true;
    }
    if (node.op == Opcode::param || node.op == Opcode::constant) return;
    require_taken(node.op, dtype);
    for (const std::int32_t arg : operands(node)) settle(arg, dtype);
  }

  std::string_view op_;
  const Body& body_;
  DType fallback_;
  BodyTypes types_;
  std::vector<bool> set_;
};

}  // namespace

BodyTypes infer(std::string_view op, const Body& body, std::span<const DType> inputs,
                DType fallback) {
  return Inference(op, body, fallback).run(inputs);
}

std::vector<DType> infer_dtypes(std::string_view op, const Body& body,
                                std::span<const DType> inputs, DType fallback) {
  return infer(op, body, inputs, fallback).roots;
}

DType operand_dtype(const ExprGraph::Node& node, const BodyTypes& types, DType otherwise) {
  for (const std::int32_t arg : operands(node).subspan(node.op == Opcode::select ? 1 : 0)) {
    if (const auto dtype = types.nodes[static_cast<std::size_t>(arg)]) return *dtype;
  }
  return otherwise;
}

}  // namespace kiln
