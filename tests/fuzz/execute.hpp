#pragma once
/// Running a program with kiln, and comparing what it gives with what the model says.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/program.hpp"
#include "kiln/runtime/device.hpp"

namespace kiln::fuzz {

/// One way to run it.
struct Way {
  bool eager = false;
  Checkpointing checkpointing = Checkpointing::keep;
};
std::string to_string(const Way& way);

/// What was looked at, over all programs.
struct Tally {
  std::atomic<std::uint64_t> elements = 0;  ///< compared
  std::atomic<std::uint64_t> exact = 0;     ///< of those, to the last bit
  std::atomic<std::uint64_t> unknown = 0;   ///< passed over, as nothing is known of them
  std::atomic<std::uint64_t> failures = 0;  ///< values that gave their reader the right cause
};

/// A program on its way.
class Run {
 public:
  Run(const Model& program, std::span<const Device> devices, const Way& way, Tally& tally);

  /// What went wrong first; empty if nothing.
  std::string run();

  [[nodiscard]] const Device& device(int which) const {
    return devices_[static_cast<std::size_t>(which)];
  }
  [[nodiscard]] std::span<const Device> devices() const { return devices_; }
  [[nodiscard]] const Model& program() const { return program_; }
  /// Compares a value with the model's, now.
  void check(int value);
  /// Starts to read a value, which is compared at the end.
  void check_later(int value);
  /// Notes that something is not as it must be.
  void complain(const std::string& what);
  [[nodiscard]] const AnyTensor& tensor(int value) const {
    return tensors_[static_cast<std::size_t>(value)];
  }

 private:
  void step(std::size_t number);
  void look_at_results(const Step& step);
  void finish_later();
  void compare(int value, const std::vector<double>& actual);
  void met(int value, const std::string& message);
  [[nodiscard]] std::string operands_gone(const Step& step) const;

  struct Pending {
    int value;
    std::function<std::vector<double>()> get;
  };

  const Model& program_;
  std::vector<Device> devices_;
  Way way_;
  Tally& tally_;
  std::vector<AnyTensor> tensors_;
  std::vector<char> there_;
  std::vector<std::size_t> last_use_;
  std::vector<Pending> pending_;
  std::string complaint_;
  std::string now_;
};

}  // namespace kiln::fuzz
