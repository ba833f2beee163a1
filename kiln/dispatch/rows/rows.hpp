#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/coalesced_axes.hpp"
#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/dispatch/reduction/reduction.hpp"
#include "kiln/scalar/expr.hpp"
#include "kiln/support/axes.hpp"

namespace kiln::dispatch {

/// A reduction of each row.
struct Fold {
  Combine combine = Combine::sum;  ///< any but argmax and argmin
  double scale = 1;
  DType element = DType::f32;  ///< of what is combined
  DType value = DType::f32;    ///< of the result; it is rounded as if it had been stored
  bool operator==(const Fold&) const = default;
};

/// Reductions and elementwise work over the same rows: those of `shape` along `axes`. A softmax has
/// two folds, max and sum, and one result.
struct RowsCall {
  std::string_view op;
  Shape shape;  ///< every input broadcasts to it
  Axes axes;
  /// Its inputs are an element of each operand, then the value of each fold. Its roots are the
  /// element that each fold combines, then the results. A fold's element depends on earlier folds
  /// alone.
  BodyPtr body;
  std::vector<double> params{};  ///< run-time scalars of the body
  std::vector<Fold> folds;
  /// Dense results with an element for each of `shape`, in its order, or with one for each row.
  std::vector<TensorSpec> out;

  /// Whether that result has an element for each of `shape`.
  [[nodiscard]] bool is_full(std::size_t result) const {
    return out[result].shape.elements() == shape.elements();
  }
};

/// Of the inputs over the whole shape, then of the results with an element for each.
std::vector<Layout> layouts_of(const RowsCall& call, std::span<const RawTensor> inputs);
/// The axes of a row, or, if `reduced` is false, those of the rows.
CoalescedAxes axes_of(const RowsCall& call, std::span<const Layout> layouts, bool reduced);

/// Whether the runtime computes that in one launch. Of the inputs it sees dtypes and layouts; they
/// need no buffers.
bool takes_rows(Runtime& runtime, const RowsCall& call, std::span<const RawTensor> inputs);

/// Computes what takes_rows() has allowed. The shape has at least one element. The order of
/// additions depends on shape and strides alone. Throws errors that begin with `call.op`.
std::vector<RawTensor> run_rows(const RowsCall& call, const std::shared_ptr<Runtime>& runtime,
                                std::span<const RawTensor> inputs);

}  // namespace kiln::dispatch
