#pragma once
/// Shows that what an operation computes is what its reference says.
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/check/checked_op.hpp"
#include "kiln/check/report.hpp"
#include "kiln/ops/create/create.hpp"
#include "kiln/runtime/device.hpp"

namespace kiln {

/// Input shapes to try, one for each input of the operation.
///
///     const CheckCase one = {"broadcast lhs", {{1, 5, 7}, {3, 7, 6}, {3, 5, 6}}, 7};
struct CheckCase {
  std::string name;
  std::vector<Shape> inputs;
  /// How many terms are added up for one element of the result, such as the K of a matrix product:
  /// tolerances grow with its square root.
  Integer length = 1;
  /// Only values, shapes and memory are compared: for results of many elements.
  Flag brief = false;
};

/// What check_op is about to check; reported before each case.
struct CheckProgress {
  std::string_view op;
  DType dtype = DType::f32;
  std::string adapter;
  std::string_view test_case;
  std::size_t done = 0;  ///< cases in this dtype on this device
  std::size_t total = 0;
};

/// The values of an input: drawn evenly from [low, high). Set `dtype` for an input that does not
/// have the dtype being checked, such as indices; if it is no float it gets whole numbers.
struct InputValues {
  Number low = -2;
  Number high = 2;
  std::optional<DType> dtype{};
};

/// Two numbers agree if |a - b| <= absolute + relative * |b|, both times the root of the number of
/// terms that were added up.
struct Tolerance {
  Number absolute = 0;
  Number relative = 0;
};

/// Where, on what and how closely check_op compares.
struct CheckOptions {
  std::vector<Device> devices;
  std::vector<CheckCase> cases;
  /// Empty: f32, and f16 where the adapter has it.
  std::vector<DType> dtypes{};
  /// By position; inputs beyond the end get the default.
  std::vector<InputValues> inputs{};
  Tolerance f32{1e-5, 1e-5};
  /// Against a reference in f32.
  Tolerance f16{2e-3, 2e-3};
  /// False: only values are checked.
  Flag gradients = true;
  /// Elements of each input and case whose gradient is compared with finite differences.
  Integer difference_samples = 4;
  Seed seed = 1;
  /// Shapes that the operation must refuse: in the call, with its name, on every route.
  std::vector<CheckCase> refused{};
  /// Where the reference is computed. Empty: on another runtime than the checked one, so that a
  /// fault of one runtime cannot hide: the host, and for the host a GPU if there is one.
  std::optional<Device> reference_device{};
  /// Called before each case, for programs that show progress.
  std::function<void(const CheckProgress&)> progress{};
};

/// Checks an operation on every device, in every dtype and case:
///
/// - values and all gradients against the reference (f16 against the reference in f32), also with
///   one input tracked alone, and gradients against finite differences of the reference;
/// - the result's shape and dtype against the output rule, and the rule against the reference;
/// - the same from strided inputs: transposed, sliced and broadcast views; so are incoming
///   gradients;
/// - one NaN in each input: it must appear exactly where the reference has it, forward and
///   backward;
/// - each Param of the operation at another value, and the operation with the attributes of
///   `others`, against their own references, and back again: nothing may be kept of earlier
///   values;
/// - the cases of `refused` are refused by the call: queued, eager, and with the fallback
///   allowed;
/// - both checkpointing strategies, and one tensor as two inputs where shapes allow;
/// - memory: every element of an output is written, nothing outside is; inputs stay unchanged.
///
/// The reference is computed on another runtime if possible (otherwise a note says so), and that of
/// a body in double precision on the host.
///
/// The operation needs a rule `reference` or `body`. Gradients are checked if it has them. Faults
/// of the operation are not thrown; they are in the report. Throws Error for options without a
/// device or a case, and for a case with the wrong number of inputs.
///
///     struct Silu {
///       static constexpr std::string_view name = "silu";
///       static Expr body(Expr x) { return x * sigmoid(x); }
///     };
///     const CheckReport report =
///         check_op(Silu{}, {.devices = {device}, .cases = elementwise_cases(1)});
///     EXPECT_TRUE(report.passed()) << report.table();
///
/// Attributes vary by giving the operation with others:
///
///     struct Scale {
///       static constexpr std::string_view name = "scale";
///       float by = 1;
///       AnyTensor reference(const AnyTensor& x) const { return x * by; }
///       using layers = Layers<Default<Cube>>;
///     };
///     const CheckOptions options = {.devices = {device}, .cases = {{"one", {{3}}}}};
///     check_op(Scale{2}, options, {Scale{3}}).passed();   // [true]
template <class Op>
CheckReport check_op(const Op& op, const CheckOptions& options,
                     std::initializer_list<Op> others = {});

/// The same with a function of the inputs as the reference.
///
///     struct Square {
///       static constexpr std::string_view name = "square";
///       static Expr body(Expr x) { return x * x; }
///     };
///     const CheckOptions options = {.devices = {device}, .cases = {{"one", {{3}}}}};
///     const auto cube = [](const AnyTensor& x) { return x * x * x; };
///     check_op(Square{}, cube, options).passed();   // [false]
template <class Op, class Reference>
CheckReport check_op(const Op& op, const Reference& reference, const CheckOptions& options);

/// The same for anything that turns tensors into tensors, such as a public function; there is no
/// output rule to compare then. `op.run` and `op.reference` must be set.
///
///     const CheckedOp twice = {.name = "twice",
///                              .inputs = {"x"},
///                              .run = [](auto in) { return std::vector{in[0] + in[0]}; },
///                              .reference = [](auto in) { return std::vector{2 * in[0]}; }};
///     const CheckOptions options = {.devices = {device}, .cases = elementwise_cases(1)};
///     check_function(twice, options).passed();   // [true]
CheckReport check_function(const CheckedOp& op, const CheckOptions& options);

/// Cases for an operation of lhs [..., M, K], rhs [..., K, N] and, if `bias`, a bias of the
/// result's shape: sizes that are no multiple of a tile, more than one tile, broadcast on each
/// side, square, empty, K = 0, and a batch whose grid folds. Of ranks 2 to 4, or of one rank alone.
///
///     matmul_cases(false, 2)[0].inputs.size();   // [2]
std::vector<CheckCase> matmul_cases(Flag bias = true, Integer rank = 0);

/// Cases for an elementwise operation of `inputs` inputs; where there are several, each broadcasts
/// in turn.
///
///     elementwise_cases(3)[0].inputs.size();   // [3]
std::vector<CheckCase> elementwise_cases(Integer inputs);

template <class Op>
CheckReport check_op(const Op& op, const CheckOptions& options, std::initializer_list<Op> others) {
  return check_function(check::erase_with(op, others), options);
}

template <class Op, class Reference>
CheckReport check_op(const Op& op, const Reference& reference, const CheckOptions& options) {
  return check_function(check::erase(op, reference), options);
}

}  // namespace kiln
