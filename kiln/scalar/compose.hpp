#pragma once
#include <functional>
#include <span>
#include <vector>

#include "kiln/scalar/expr.hpp"

namespace kiln {

/// What a function that is copied in gets in place of the places that it knows.
struct Places {
  std::span<const std::int32_t> coordinates{};  ///< one for each axis; none: it keeps its own
  /// The element of input `slot` at an index, -1 for one without axes. Null, or -1: it is read.
  std::function<std::int32_t(int slot, std::int32_t index)> element{};
};

/// Composes functions into one. Values that pass from one to the next get the dtype that they would
/// have in memory, so an f16 is rounded as if it had been stored.
///
///     Composer c;  // of one input and one param, in f16
///     const auto mean = c.add("scale", *scale, {{c.input(0)}}, half, {{0}}, half);
///     const auto out = c.add("relu", *relu, mean, half, {}, half);
///     BodyPtr both = c.finish(1, 1, out);
class Composer {
 public:
  /// The composed function's input `slot`.
  std::int32_t input(int slot) { return graph_.input(slot).id(); }

  /// Copies a function in. Its input i becomes `inputs[i]`, a value of dtype `dtypes[i]`, and its
  /// param j becomes slot `params[j]` of the composed function. Returns one value for each result,
  /// of dtype `out[r]`. Throws DTypeError that begins with `op` for dtypes that it does not take.
  std::vector<std::int32_t> add(std::string_view op, const Body& body,
                                std::span<const std::int32_t> inputs, std::span<const DType> dtypes,
                                std::span<const int> params, std::span<const DType> out,
                                const Places& places = {});

  /// The same without dtypes: results keep theirs, and inputs that the function does not use may be
  /// -1.
  std::vector<std::int32_t> copy(const Body& body, std::span<const std::int32_t> inputs,
                                 std::span<const int> params, const Places& places = {});
  /// The node in the composed function.
  std::int32_t intern(const ExprGraph::Node& node) { return graph_.intern(node); }
  [[nodiscard]] const ExprGraph::Node& node(std::int32_t id) const { return graph_.node(id); }

  /// How many expressions it has so far.
  [[nodiscard]] int size() const { return static_cast<int>(graph_.nodes().size()); }
  /// The function of `inputs` and `params` with these results.
  [[nodiscard]] BodyPtr finish(int inputs, int params, std::span<const std::int32_t> roots) const {
    return make_body(graph_, inputs, params, roots);
  }

 private:
  ExprGraph graph_;
};

}  // namespace kiln
