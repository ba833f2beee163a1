#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace kiln::dispatch {

/// How a kernel reads an operand.
struct Loads {
  static constexpr std::int64_t many = std::numeric_limits<std::int32_t>::max();
  /// How often it loads each element through its generated load, about; 0 if it reads the array
  /// itself, so that the load takes no producer.
  std::int64_t times = 0;
  /// It gives the load coordinates, which cost as much in a strided tensor as in a dense one.
  bool by_coordinates = false;

  /// Whether the load takes a producer.
  [[nodiscard]] bool takes() const { return times > 0; }
};

/// What may be fused into an operation's kernel.
struct Fusable {
  int scratch = 0;             ///< storage buffers that it binds besides operands and results
  bool store = false;          ///< the store of its one result takes an epilogue
  std::vector<Loads> loads{};  ///< one for each operand; empty if none takes a producer
};

}  // namespace kiln::dispatch
