#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/epilogue.hpp"
#include "kiln/dispatch/wgsl/metadata.hpp"
#include "kiln/dispatch/wgsl/reads.hpp"
#include "kiln/dispatch/wgsl/store.hpp"
#include "kiln/scalar/infer.hpp"

namespace kiln::dispatch::wgsl {

/// An epilogue of one result, as the kernel that makes the result has it.
///
///     const EpilogueCode code(op, epilogue, {shape, DType::f32});
///     code.append_key(key);                              // shapes and params are not in the text
///     prepared->types = code.types();                    // once a kernel
///     code.add_numbers(metadata, prepared->types);       // to declare, and at every launch
///     text += code.declare_inputs(id, 0, 1) + code.declare_results(id, 1, 0);
///     text += code.store("store", prepared->types, helpers);  // fn store(index: u32, value: T)
class EpilogueCode {
 public:
  /// `value` is the result as it is before; `epilogue` fits it, see require_fits, and must outlive
  /// this.
  EpilogueCode(std::string_view op, const FusedEpilogue& epilogue, const TensorSpec& value);

  [[nodiscard]] const FusedEpilogue& epilogue() const { return epilogue_; }
  [[nodiscard]] const Reads& reads() const { return reads_; }
  /// The dtypes inside the body. Throws DTypeError that begins with the operation's name.
  [[nodiscard]] BodyTypes types() const;

  /// Appends all that the text depends on. It has the body's address: keep the body with the key.
  void append_key(std::string& key) const;
  /// The epilogue's numbers, as named members of `params`.
  void add_numbers(Metadata& metadata, const BodyTypes& types) const;
  /// The same numbers, in the same order.
  [[nodiscard]] std::vector<std::uint32_t> words(const BodyTypes& types) const;

  /// Declares the inputs' arrays with binding numbers from `first` on; their buffers are bound in
  /// the order of epilogue().inputs. `vec4`: where the results' arrays are of vec4.
  [[nodiscard]] std::string declare_inputs(KernelId& id, std::uint32_t group, std::uint32_t first,
                                           bool vec4 = false) const;
  /// Declares the results' arrays in the same way, in the order of epilogue().out.
  [[nodiscard]] std::string declare_results(KernelId& id, std::uint32_t group, std::uint32_t first,
                                            bool vec4 = false) const;
  /// `fn NAME(index: u32, value: T)`: finishes and stores the result's element `index`, T being the
  /// result's storage type. `helpers` gets the functions that the text calls.
  [[nodiscard]] std::string store(std::string_view name, const BodyTypes& types,
                                  std::set<std::string>& helpers) const;

  /// The arrays that the declarations declare.
  [[nodiscard]] std::vector<StoredArray> inputs(bool vec4) const;
  [[nodiscard]] std::vector<StoredArray> results(bool vec4) const;
  /// What the names of the params' numbers begin with in a text.
  static constexpr std::string_view param_prefix = "params.kiln_p";

 private:
  /// Calls sink(name, type, word) for every number.
  template <class Sink>
  void each_number(const BodyTypes& types, Sink sink) const;

  std::string_view op_;
  const FusedEpilogue& epilogue_;
  DType value_;
  Reads reads_;
};

}  // namespace kiln::dispatch::wgsl
