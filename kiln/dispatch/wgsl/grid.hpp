#pragma once
#include <algorithm>
#include <array>

#include "kiln/kernel/launch.hpp"
#include "kiln/runtime/runtime.hpp"

namespace kiln::dispatch::wgsl {

/// A grid of at least `groups` workgroups. It is folded along y if the adapter takes fewer along x.
/// A kernel numbers them `group.y * groups.x + group.x`; surplus workgroups return at once.
inline std::array<std::uint32_t, 3> folded_grid(std::int64_t groups, const Limits& limits) {
  const std::int64_t most = limits.workgroups;
  return {static_cast<std::uint32_t>(std::min(groups, most)),
          static_cast<std::uint32_t>(ceil_div(groups, most)), 1};
}

}  // namespace kiln::dispatch::wgsl
