#pragma once
/// The table through which shared code calls the code of each kind of runtime.
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/kernel/fusable.hpp"
#include "kiln/dispatch/kernel/languages.hpp"
#include "kiln/dispatch/reduction/reduction.hpp"
#include "kiln/dispatch/rows/rows.hpp"
#include "kiln/kernel/source_template.hpp"

namespace kiln::dispatch {

/// Elementwise work whose results are allocated.
struct ElementwiseWork {
  std::string_view op;
  const BodyPtr& body;
  std::span<const double> params;
  std::span<const RawTensor> inputs;
  std::span<const RawTensor> results;
  const Shape& shape;
  std::span<const Layout> layouts;  ///< of that shape: the inputs', then the results'
  /// For each input the number of the result that has its buffer; else -1. Empty if there is none.
  std::span<const std::int32_t> overwritten_by{};
};

/// A kernel that declares its own bindings, ready to compile.
struct RawKernel {
  KernelId id;
  RenderedSource source;  ///< for messages: where lines of `id.source` come from
};

/// The functions by which a kind of runtime does its work. There is one constant for each kind. The
/// functions get runtimes of that kind only.
struct Backend {
  /// How many tensors one elementwise work may have.
  std::size_t (*most_operands)(const Runtime& runtime);
  /// Computes elements, of which there is at least one.
  void (*run_elementwise)(Runtime& runtime, const ElementwiseWork& work);
  /// Reduces to `results`, which are allocated and hold at least one element each; see
  /// dispatch::run_reduction.
  void (*run_reduction)(const std::shared_ptr<Runtime>& runtime, const ReductionCall& call,
                        std::span<const RawTensor> inputs, const TensorSpec& out,
                        const FusedEpilogue* epilogue, std::span<const RawTensor> results);
  /// See dispatch::takes_rows; there is at least one element.
  bool (*takes_rows)(Runtime& runtime, const RowsCall& call, std::span<const RawTensor> inputs);
  /// Computes the results, which are allocated; see dispatch::run_rows.
  void (*run_rows)(const std::shared_ptr<Runtime>& runtime, const RowsCall& call,
                   std::span<const RawTensor> inputs, std::span<const RawTensor> results);
  /// Whether the operation has a rule for this kind of runtime.
  bool (*has_rule)(const OpTable& table);
  /// The language of rules that are not asked: functions, and launches by hand.
  Language language;
  /// Whether the rule is asked for its languages.
  bool (*asks_rule)(const OpTable& table);
  /// Asks it. `runtime` may be null, which stands for what every device of the kind promises.
  /// Throws what the rule throws.
  std::vector<Language> (*languages)(const OpTable& table, const void* op, Runtime* runtime,
                                     std::span<const Described> inputs,
                                     std::span<const TensorSpec> out) = nullptr;
  /// Runs that rule; see dispatch::run_kernel.
  std::vector<RawTensor> (*run_kernel)(const std::shared_ptr<Runtime>& runtime,
                                       const OpTable& table, const void* op,
                                       std::span<const RawTensor> inputs,
                                       std::span<const TensorSpec> out,
                                       const FusedEpilogue* epilogue,
                                       std::span<const FusedProducer> producers);
  /// See dispatch::fusable.
  Fusable (*fusable)(const OpTable& table, const void* op, Runtime& runtime,
                     std::span<const Operand> inputs, std::span<const TensorSpec> out);
  /// A kernel with the storage buffers that it declares. Throws KernelError that begins with `op`.
  /// Null if the runtime takes no source.
  RawKernel (*raw_kernel)(std::string_view op, const KernelSource& source,
                          const std::array<std::uint32_t, 3>& workgroup,
                          std::span<const RawTensor> buffers) = nullptr;
};

/// The backend of the runtime's kind.
const Backend& backend_of(const Runtime& runtime);
/// All backends.
std::span<const Backend* const> all_backends();

}  // namespace kiln::dispatch
