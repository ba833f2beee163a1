#pragma once
#include <cstdint>
#include <vector>

namespace kiln::dispatch {

/// How a kernel reads an operand.
enum class Loads : std::uint8_t {
  closed,    ///< it reads the array itself
  once,      ///< through its generated load, most elements once
  repeated,  ///< through its generated load, each element many times
};

/// What may be fused into an operation's kernel.
struct Fusable {
  int scratch = 0;             ///< storage buffers that it binds besides operands and results
  bool store = false;          ///< the store of its one result takes an epilogue
  std::vector<Loads> loads{};  ///< one for each operand; empty if all are closed
};

}  // namespace kiln::dispatch
