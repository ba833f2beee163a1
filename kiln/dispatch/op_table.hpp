#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/support/error.hpp"

namespace kiln {

namespace webgpu {
using kiln::Limits;
class Client;
}  // namespace webgpu
namespace cpu {
class Input;
class Output;
}  // namespace cpu

/// The rules of one operation with their types erased: one constant of function pointers a type.
/// `op` points to the operation's struct, whose fields are its attributes.
struct OpTable {
  std::string_view name;
  std::span<const std::string_view> inputs;
  std::span<const std::string_view> outputs;
  /// Spells the attributes, Param fields left out.
  void (*append_key)(const void* op, std::string& key) = nullptr;
  /// The addresses of the Param fields, in order.
  void (*params)(const void* op, std::vector<const Param*>& out) = nullptr;
  /// Where the result's elements lie, given where the input's do; nothing where that takes a dense
  /// input.
  std::optional<Layout> (*view)(const void* op, const Layout& in) = nullptr;
  /// Candidates, best first.
  std::vector<webgpu::Launch> (*webgpu_kernel)(const void* op, std::span<const Operand> in,
                                               std::span<const Operand> out,
                                               const Limits& limits) = nullptr;
  /// Several launches, by hand.
  std::vector<RawTensor> (*webgpu_forward)(const void* op, webgpu::Client& client,
                                           std::span<const RawTensor> in,
                                           std::span<const TensorSpec> out) = nullptr;

  /// A function of the host.
  void (*cpu_kernel)(const void* op, std::span<const cpu::Input> in,
                     std::span<const cpu::Output> out) = nullptr;
};

namespace dispatch {

/// Who made results, for messages about them.
struct MadeBy {
  std::string_view op;
  std::span<const std::string_view> outputs;  ///< names; may be fewer than results
  std::string_view rule;
};

/// Throws KernelError, DeviceError, ShapeError or DTypeError where `results` are not `promised`.
void check_results(const MadeBy& by, const std::shared_ptr<Runtime>& runtime,
                   std::span<const RawTensor> results, std::span<const TensorSpec> promised);

/// A tensor whose elements do not matter.
struct Described {
  DType dtype;
  const Layout* layout;
};

/// Whether the operation has a kernel for these operands in a language that `runtime` accepts, or
/// needs none. Asks its kernel rule once for each key; where that throws, the operation itself is
/// to say why.
bool has_kernel_for(const OpTable& table, const void* op, Runtime& runtime,
                    std::span<const Described> inputs, std::span<const TensorSpec> out);
/// Whether has_kernel_for would ask it: only then it looks at `inputs` and `out`.
bool asks_kernel_rule(const OpTable& table, const Runtime& runtime);
/// The languages it has kernels in for these operands, for a message. Asks its kernel rule.
std::vector<Language> languages_offered(const OpTable& table, const void* op,
                                        const Runtime& runtime, std::span<const Described> inputs,
                                        std::span<const TensorSpec> out);

/// The error of an operation none of whose kernels is written in a language that `runtime` accepts:
/// both sides, and the ways out.
UnsupportedError no_accepted_kernel(std::string_view op, const Runtime& runtime,
                                    std::span<const Language> offered);

struct Finish;

/// Runs an operation's kernel, the first that is written in a language of the runtime's and does
/// not decline, or its forward. Results of a forward are compared with `out`, all before any is
/// given back. Throws KernelError, UnsupportedError, ShapeError, DTypeError or OutOfMemoryError
/// that begins with the operation's name.
///
/// With a finish `out` is the one result before it, which is not kept: the results are those of the
/// finish. Throws KernelError for an operation that takes none.
std::vector<RawTensor> run_kernel(const OpTable& table, const void* op,
                                  const std::shared_ptr<Runtime>& runtime,
                                  std::span<const RawTensor> inputs,
                                  std::span<const TensorSpec> out, const Finish* finish = nullptr);

/// How many storage buffers the operation's launch binds, its output among them, where a finish may
/// be applied by its store; nothing where it may not: several launches, several outputs, an output
/// that is read back or zeroed, a kernel in SPIR-V, no kernel that takes these operands. A finish
/// takes one more for each input, and one for each result but the first. Asks the operation's
/// kernel rule; the names of `inputs` do not matter.
std::optional<int> takes_finish(const OpTable& table, const void* op, const Runtime& runtime,
                                std::span<const Operand> inputs, std::span<const TensorSpec> out);

}  // namespace dispatch
}  // namespace kiln
