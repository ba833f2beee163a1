#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/scalar/expr.hpp"

namespace kiln {

/// The dtypes inside a body, for given input dtypes.
struct BodyTypes {
  /// One for each node. Nothing if only literals and params decide: such a node takes the dtype of
  /// its user.
  std::vector<std::optional<DType>> nodes;
  std::vector<DType> params;  ///< one a param slot; never f16, beside which params are f32
  std::vector<DType> roots;

  [[nodiscard]] DType of(std::int32_t id, DType otherwise) const {
    return nodes[static_cast<std::size_t>(id)].value_or(otherwise);
  }
};

/// Throws DTypeError that begins with `op` for dtypes that differ or that an opcode does not
/// take.
BodyTypes infer(std::string_view op, const Body& body, std::span<const DType> inputs,
                DType fallback);

/// The common dtype of the node's operands: that of its known operands, or `otherwise` if none is
/// known.
DType operand_dtype(const ExprGraph::Node& node, const BodyTypes& types, DType otherwise);

}  // namespace kiln
