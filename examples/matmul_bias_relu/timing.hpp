#pragma once
#include <cstdint>
#include <string>

#include "problem.hpp"

namespace example {

/// What one call takes.
struct Timing {
  std::string name;
  double seconds = 0;
  double gflops = 0;
  std::uint64_t launches = 0;
  /// Not empty: the result was wrong, or was not computed, and the figures mean nothing.
  std::string fault{};
};

/// What is timed, and where.
struct TimingOptions {
  Sizes sizes;
  kiln::DType dtype = kiln::DType::f32;
  kiln::Device device;
  int iterations = 0;  ///< calls queued before the device is waited for; 0: chosen
};

/// Times a candidate, forward or with its backward pass. Calls are queued without waiting, as many
/// as `iterations` says (0: as many as fill a twentieth of a second) to a round, and a round ends
/// when the device is done; the median round counts. Rounds go on for 0.3 s, and at least three.
/// `seed` makes the inputs: give each row its own, and a result left over in a reused buffer is a
/// wrong one.
Timing time_call(const Candidate& candidate, bool backward, std::uint64_t seed,
                 const TimingOptions& options);

}  // namespace example
