#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/scalar/functions.hpp"

namespace kiln {

/// A finished function of `inputs` scalars (and of run-time params) with one or more results.
/// Interned: equal functions are one object, so equality is pointer equality.
struct Body {
  std::shared_ptr<const ExprGraph> graph;
  int inputs = 0;
  int params = 0;
  std::vector<std::int32_t> roots;
  std::string key;  ///< spells the function; equal exactly for equal functions
  /// Of each input, whether it is read at computed places instead of the result's own.
  std::vector<bool> indexed;
  std::uint32_t axes = 0;  ///< bit a: the function has the result's coordinate along axis a
  bool position = false;   ///< whether it has the result's position

  /// Whether result `root` depends on input `slot`.
  [[nodiscard]] bool uses(std::size_t root, int slot) const;
  /// Whether results of equal inputs differ from place to place.
  [[nodiscard]] bool knows_place() const { return axes != 0 || position; }
  /// Whether it reads an input at computed places.
  [[nodiscard]] bool has_index() const;
};
using BodyPtr = std::shared_ptr<const Body>;

/// Finishes a graph. Nodes that no root needs are dropped.
BodyPtr make_body(const ExprGraph& graph, int inputs, int params,
                  std::span<const std::int32_t> roots);

/// Entries of the table that makes equal functions one. For tests: it is bounded by what is in use.
std::size_t bodies_interned();

/// The adjoint of a function of one result. Its inputs are those of `body` [0, n), then body's
/// result (n), then the incoming gradient (n + 1). Its result i is the gradient of input i. It
/// reads the result where it can. If the gradient that comes to an operation is exactly 0, its
/// operands get 0, even where the slope is infinite or NaN; so a branch that was not taken adds
/// nothing. Results may have other dtypes than the inputs: after a cast they have `fallback` if
/// nothing else decides.
BodyPtr adjoint(const Body& body);

/// The dtype of every root, or DTypeError that begins with `op`. Where only literals and params
/// decide, `fallback`.
std::vector<DType> infer_dtypes(std::string_view op, const Body& body,
                                std::span<const DType> inputs, DType fallback = DType::f32);

/// The value of one root in double precision: what generated kernels are checked against.
double evaluate(const Body& body, std::size_t root, std::span<const double> inputs,
                std::span<const double> params = {});

}  // namespace kiln
