#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/dispatch/raw_tensor.hpp"
#include "kiln/kernel/launch.hpp"

namespace kiln {

class Client;
namespace webgpu {
using kiln::Limits;
}  // namespace webgpu
namespace cpu {
class Input;
class Output;
}  // namespace cpu

/// The rules of one operation without their types. There is one constant table of function pointers
/// for each type of operation. `op` points to its struct, whose fields are the attributes.
struct OpTable {
  std::string_view name;
  std::span<const std::string_view> inputs;
  std::span<const std::string_view> outputs;
  /// Appends to a key what tells the operation from all others, and its attributes; Param fields
  /// are left out.
  void (*append_key)(const void* op, std::string& key) = nullptr;
  /// The addresses of the Param fields, in order.
  void (*params)(const void* op, std::vector<const Param*>& out) = nullptr;
  /// Where the result's elements lie, given where the input's do. Nothing if that takes a dense
  /// input.
  std::optional<Layout> (*view)(const void* op, const Layout& in) = nullptr;
  /// Candidates, best first.
  std::vector<webgpu::Launch> (*webgpu_kernel)(const void* op, std::span<const Operand> in,
                                               std::span<const Operand> out,
                                               const Limits& limits) = nullptr;
  /// Several launches, by hand.
  std::vector<RawTensor> (*webgpu_forward)(const void* op, Client& client,
                                           std::span<const RawTensor> in,
                                           std::span<const TensorSpec> out) = nullptr;

  /// A function of the host.
  void (*cpu_kernel)(const void* op, std::span<const cpu::Input> in,
                     std::span<const cpu::Output> out) = nullptr;
};

namespace dispatch {
/// A number that no other call gets. Each type of operation has one in its keys: the address of its
/// table is used again when the library that it was loaded with is gone.
std::uint64_t next_op_number();
}  // namespace dispatch

}  // namespace kiln
