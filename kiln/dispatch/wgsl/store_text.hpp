#pragma once
/// Stores as text: the functions through which a kernel writes its results.
#include <optional>
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
  bool vec4 = false;    ///< its elements are vec4 of `dtype`
  bool atomic = false;  ///< its elements are atomics of `dtype`
};

/// The element with the number `index`, an expression, in the array.
std::string element_of(const StoredArray& array, std::string_view index);

/// Declares the array as a storage buffer and adds its slot to `id`.
std::string declare_array(KernelId& id, std::uint32_t group, std::uint32_t binding, Access access,
                          const StoredArray& array);

/// The first text of a kernel with those declarations: `enable f16; ` if they name the type.
std::string enable_f16(std::string_view declarations);

/// `fn NAME(index: u32, value: T)`, which stores one element; T is the array's storage type. With
/// `four` also `fn NAME4(index: u32, value: vec4<T>)`, which stores four adjacent elements. In an
/// array of vec4 the index must be a multiple of four.
std::string plain_store(std::string_view name, const StoredArray& array, bool four);

/// How often one call of NAME4 stores four adjacent elements. All loads come before the first
/// store, so that they are under way together. A step past the end loads valid elements.
struct StoreSteps {
  int count = 1;
  std::uint32_t apart = 0;  ///< from one step's index to the next one's
  std::string_view end{};   ///< a u32 expression: how many elements there are
};

/// A store that applies a body to the value before it writes.
struct ComputedStore {
  std::string_view op;         ///< what errors begin with
  std::string name;            ///< of the function
  std::optional<DType> value;  ///< what the kernel hands over; none if no kernel comes before
  const Body& body;            ///< of the value, then of one element of each operand
  const BodyTypes& types;
  std::string_view param_prefix;  ///< with a slot's number after it: that run-time scalar
  std::vector<StoredArray> operands;
  /// How the operands are read, group by group. After them may come the places of the results;
  /// without those results are dense.
  std::vector<const Reads*> reads;
  std::vector<StoredArray> results;  ///< one for each root; of dense ones all are of vec4, or none
  bool one = true;                   ///< whether NAME is wanted
  bool four = false;                 ///< whether NAME4 is wanted
  StoreSteps steps{};
};

/// The same functions as plain_store, and what they use. Without a value they take only the index.
/// `helpers` gets the functions that the text calls; see wgsl_helpers.
std::string computed_store(const ComputedStore& store, std::set<std::string>& helpers);

/// Whether NAME4 finds the operands of four results at once. For that the index must always be a
/// multiple of four, which `aligned` says, and all `reads` must be by_four().
bool reads_by_four(std::span<const Reads* const> reads, bool aligned);

}  // namespace kiln::dispatch::wgsl
