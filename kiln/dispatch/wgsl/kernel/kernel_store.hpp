#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/wgsl/epilogue_code.hpp"

namespace kiln::dispatch::wgsl {

/// Whether the kernel's own text reads the operand, or names it at all.
bool mentions_operand(const webgpu::Launch& launch, std::string_view name);

/// The generated store of an operation's first output: it applies the epilogue of the launch, then
/// the fused one. Both are optional.
class KernelStore {
 public:
  /// `in` are the operands with the layouts they will have; `fused` may be null. All must
  /// outlive this. Throws KernelError for an epilogue whose operands are no inputs of the output's
  /// shape, and DTypeError for a body that does not take the dtypes.
  KernelStore(const OpTable& table, const webgpu::Launch& launch, std::span<const Operand> in,
              const Operand& out, const EpilogueCode* fused);
  KernelStore(const KernelStore&) = delete;
  KernelStore& operator=(const KernelStore&) = delete;

  /// Whether values are stored unchanged.
  [[nodiscard]] bool plain() const { return body_ == nullptr; }
  /// Of operands that only the store reads: whether their array is of vec4.
  [[nodiscard]] bool reads_in_vec4(std::string_view name) const;
  /// The dtypes inside all that is done to a value; empty for a plain store.
  [[nodiscard]] const BodyTypes& types() const { return types_; }

  /// Adds the store's numbers; those of the epilogue are the last, and the first of them is given.
  std::size_t add_numbers(Metadata& metadata) const;
  /// Declares what the epilogue reads besides the operation's operands.
  [[nodiscard]] std::string declare_inputs(KernelId& id, std::uint32_t group,
                                           std::uint32_t& next_binding) const;
  /// Declares where results go, from `next_binding` on, and the functions that bring them there.
  /// `array` is the output's own, which is not there if there is an epilogue.
  [[nodiscard]] std::string text(KernelId& id, std::uint32_t group, std::uint32_t& next_binding,
                                 const StoredArray& array, std::set<std::string>& helpers) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void find_operands(std::span<const Operand> in);
  void put_together();
  [[nodiscard]] StoredArray array_of(std::size_t operand) const;

  const OpTable& table_;
  const webgpu::Launch& launch_;
  const Operand& out_;
  const EpilogueCode* fused_;
  std::vector<const Operand*> operands_;  ///< of the launch's own epilogue
  std::optional<Reads> own_;
  std::vector<const Reads*> reads_;
  BodyPtr body_;
  BodyTypes types_;
  bool four_ = false;     ///< the kernel stores four values at once
  bool vec4_ = false;     ///< results are arrays of vec4
  bool by_four_ = false;  ///< operands of four results are found at once
};

}  // namespace kiln::dispatch::wgsl
