#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/kernel/op_table.hpp"
#include "kiln/dispatch/key.hpp"
#include "kiln/kernel/launch.hpp"
#include "kiln/support/error.hpp"

namespace kiln::dispatch {

/// The name of operand number `i`. Throws Error if there are fewer names.
inline std::string_view name_of(std::span<const std::string_view> names, std::size_t i) {
  if (i < names.size()) return names[i];
  throw Error("operand number " + std::to_string(i) + " has no name: the operation names " +
              std::to_string(names.size()));
}

/// Tensors as a kernel rule sees them.
inline std::vector<Operand> operands(std::span<const std::string_view> names,
                                     std::span<const RawTensor> tensors) {
  std::vector<Operand> out;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    out.push_back({name_of(names, i), tensors[i].dtype, tensors[i].layout});
  return out;
}

/// Operands of these specs, dense.
inline std::vector<Operand> operands(std::span<const std::string_view> names,
                                     std::span<const TensorSpec> specs) {
  std::vector<Operand> out;
  for (std::size_t i = 0; i < specs.size(); ++i)
    out.push_back({name_of(names, i), specs[i].dtype, Layout::dense(specs[i].shape)});
  return out;
}

/// Appends to a key everything on which the answer of a kernel rule depends: the operation with its
/// attributes, the operands and the results. Params are left out. `Tensor` has a dtype and a
/// layout.
template <class Tensor>
void append_call(std::string& key, const OpTable& table, const void* op,
                 std::span<const Tensor> inputs, std::span<const TensorSpec> out) {
  append_bytes(key, &table);
  table.append_key(op, key);
  for (const Tensor& t : inputs) {
    append_bytes(key, t.dtype);
    append_layout(key, t.layout);
  }
  for (const TensorSpec& spec : out) append_spec(key, spec);
}

/// The same operands under these names.
inline std::vector<Operand> renamed(std::span<const std::string_view> names,
                                    std::span<const Operand> given) {
  std::vector<Operand> out(given.begin(), given.end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i].name = name_of(names, i);
  return out;
}

}  // namespace kiln::dispatch
