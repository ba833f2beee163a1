#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"
#include "kiln/dispatch/wgsl/reads.hpp"
#include "kiln/dispatch/wgsl/store_text.hpp"
#include "kiln/scalar/infer.hpp"

namespace kiln::dispatch::wgsl {

/// The epilogue that a launch names, see Epilogue. Its operands are the kernel's own.
struct LaunchEpilogue {
  BodyPtr body;  ///< of the value, then of one element of each operand
  std::vector<StoredArray> operands;
  std::vector<bool> store_alone;  ///< of each operand: whether only the store reads it
  Reads reads;
};

/// How a kernel calls a store.
struct StoreCall {
  std::string name;    ///< of the function
  StoredArray result;  ///< where values go if there is no fused epilogue
  bool four = false;   ///< whether four adjacent elements are stored at once, too
};

/// The store of a result. It applies nothing, the launch's epilogue, a fused one, or both one after
/// the other.
///
///     const Store store(op, {shape, DType::f32}, epilogue);  // at every launch
///     store.append_key(key);                                 // shapes and params are not in it
///     words = store.words(types);
///
///     const Store store(op, {shape, DType::f32}, epilogue, call, own);  // once a kernel
///     types = store.types();
///     store.add_numbers(metadata, types);
///     text += store.declare_inputs(id, 0, next) + store.declare_results(id, 1, next);
///     text += store.functions(types, helpers);  // fn NAME(index: u32, value: T)
class Store {
 public:
  /// `value` is the result as the kernel has it. `fused` may be null. It must fit, see
  /// require_fits, and outlive this.
  Store(std::string_view op, const TensorSpec& value, const FusedEpilogue* fused,
        StoreCall call = {}, std::optional<LaunchEpilogue> own = std::nullopt);

  /// Whether values are stored unchanged.
  [[nodiscard]] bool plain() const { return fused_ == nullptr && !own_; }
  /// The tensors that the kernel binds besides its own operands, in the order of declare_inputs.
  [[nodiscard]] std::span<const RawTensor> inputs() const;
  /// The results that the store writes. If nothing is fused, that is the kernel's own.
  [[nodiscard]] std::vector<DType> results() const;
  /// The body that is fused; null if there is none.
  [[nodiscard]] BodyPtr fused_body() const { return fused_ == nullptr ? nullptr : fused_->body; }

  /// Appends everything on which the text depends, except the call and the launch's epilogue. That
  /// has the fused body's address, so keep the body with the key.
  void append_key(std::string& key) const;
  /// The dtypes inside the composed body; empty for a plain store. Throws DTypeError that begins
  /// with the operation's name.
  [[nodiscard]] BodyTypes types() const;
  /// Adds the store's numbers. Those of the fused epilogue are the last. Gives the word of the
  /// first of them.
  std::size_t add_numbers(Metadata& metadata, const BodyTypes& types) const;
  /// The fused epilogue's numbers, in the same order.
  [[nodiscard]] std::vector<std::uint32_t> words(const BodyTypes& types) const;

  /// Whether the array of an operand of the launch's epilogue is of vec4 for the store's sake.
  [[nodiscard]] bool reads_in_vec4(std::string_view name) const;
  /// Declare arrays in `group`, with binding numbers from `next` on.
  [[nodiscard]] std::string declare_inputs(KernelId& id, std::uint32_t group,
                                           std::uint32_t& next) const;
  [[nodiscard]] std::string declare_results(KernelId& id, std::uint32_t group,
                                            std::uint32_t& next) const;
  /// The functions that apply the epilogues and store elements of the result; see plain_store.
  /// `helpers` gets the functions that the text calls.
  [[nodiscard]] std::string functions(const BodyTypes& types, std::set<std::string>& helpers) const;

 private:
  template <class Sink>
  void each_fused_number(const BodyTypes& types, Sink sink) const;
  [[nodiscard]] std::vector<const Reads*> reads() const;
  [[nodiscard]] BodyPtr body() const;
  [[nodiscard]] std::vector<DType> operand_dtypes() const;
  [[nodiscard]] std::vector<StoredArray> fused_arrays() const;
  [[nodiscard]] std::vector<StoredArray> result_arrays() const;

  std::string_view op_;
  DType value_;
  const FusedEpilogue* fused_;
  std::optional<Reads> fused_reads_;
  StoreCall call_;
  std::optional<LaunchEpilogue> own_;
  bool by_four_ = false;  ///< operands of four results are found at once
};

}  // namespace kiln::dispatch::wgsl
