#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/wgsl/reads.hpp"
#include "kiln/kernel/kernel_id.hpp"
#include "kiln/scalar/infer.hpp"

namespace kiln::dispatch::wgsl {

/// An array in a kernel's text.
struct StoredArray {
  std::string name;
  DType dtype = DType::f32;
  bool vec4 = false;  ///< its elements are vec4 of `dtype`
};

/// Declares the array as a storage buffer and adds its slot to `id`.
std::string declare_array(KernelId& id, std::uint32_t group, std::uint32_t binding, Access access,
                          const StoredArray& array);

/// What a kernel begins with that has those declarations: `enable f16; ` where they name the type.
std::string enable_f16(std::string_view declarations);

/// `fn NAME(index: u32, value: T)`, which stores one element, T being the array's storage type;
/// with `four` also `fn NAME4(index: u32, value: vec4<T>)` for four neighbours. In an array of vec4
/// their index divides by four.
std::string plain_store(std::string_view name, const StoredArray& array, bool four);

/// A body as a kernel's text has it.
struct ComputedBody {
  std::string_view op;  ///< begins what is thrown
  const Body& body;
  const BodyTypes& types;
  std::string_view param_prefix;  ///< with a slot's number behind it: that run-time scalar
  std::span<const DType> inputs;
  std::span<const DType> results;
};

/// `fn kiln_compute(v0: T, ...) -> KilnResults`, from elements as they are computed on to members
/// y0, y1, ... as they are stored. `helpers` gets the functions that the text calls; see
/// wgsl_helpers.
std::string compute_function(const ComputedBody& of, std::set<std::string>& helpers);

/// A store that computes what it stores.
struct ComputedStore {
  std::string_view op;  ///< begins what is thrown
  std::string name;     ///< of the function
  DType value = DType::f32;
  const Body& body;  ///< of the value, then of one element of each operand
  const BodyTypes& types;
  std::string_view param_prefix;  ///< with a slot's number behind it: that run-time scalar
  std::vector<StoredArray> operands;
  std::vector<const Reads*> reads;   ///< of the operands: of the first few, then of the next
  std::vector<StoredArray> results;  ///< one a root; all are of vec4, or none
  bool four = false;                 ///< whether NAME4 is wanted
};

/// The same functions as plain_store, and what they use. `helpers` gets the functions that the text
/// calls; see wgsl_helpers.
std::string computed_store(const ComputedStore& store, std::set<std::string>& helpers);

/// Whether computed_store finds the operands of four results at once.
bool reads_by_four(std::span<const Reads* const> reads, bool vec4);

}  // namespace kiln::dispatch::wgsl
