#include "kiln/dispatch/wgsl/reads.hpp"

#include "kiln/dispatch/kernel_cache.hpp"

namespace kiln::dispatch::wgsl {
namespace {

CoalescedView broadcast(const Shape& shape, std::span<const Layout> operands) {
  std::vector<Layout> seen;
  seen.reserve(operands.size());
  for (const Layout& layout : operands) seen.push_back(layout.broadcast_to(shape));
  return coalesce(shape, seen);
}

}  // namespace

Reads::Reads(std::string_view prefix, const Shape& shape, std::span<const Layout> operands)
    : Reads(prefix, broadcast(shape, operands), {}) {}

Reads::Reads(std::string_view prefix, const Shape& shape, std::span<const Layout> operands,
             const KnownPlaces& places)
    : Reads(prefix, coalesce(shape, operands, places.by_four()), places) {}

Reads::Reads(std::string_view prefix, CoalescedView view, const KnownPlaces& places)
    : prefix_(prefix),
      view_(std::move(view)),
      places_(places),
      places_prefix_(fmt::format("{}g", prefix)) {
  const auto needed = [&](std::size_t axis) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (steps(i, axis)) return true;
    }
    return false;
  };
  while (outermost_ < view_.rank && !needed(outermost_)) ++outermost_;
}

bool Reads::steps(std::size_t i, std::size_t axis) const {
  return has_coordinates(view_.access[i]) && view_.strides[i][axis] != 0;
}

void Reads::append_key(std::string& key) const {
  append_bytes(key, view_.rank);
  append_bytes(key, view_.width);
  for (std::size_t i = 0; i < view_.access.size(); ++i) {
    append_bytes(key, view_.access[i]);
    for (std::size_t axis = 0; axis < view_.rank; ++axis) append_bytes(key, steps(i, axis));
  }
  append_bytes(key, places_.used);
  append_bytes(key, places_.axes.rank);
}

std::string Reads::coordinates(std::string_view index) const {
  std::string text = wgsl::coordinates(index, prefix_, view_.rank, outermost_);
  if (places_.used == 0) return text;
  return text + wgsl::coordinates(index, places_prefix_, places_.axes.rank, places_.outermost);
}

std::string Reads::position(std::size_t i, int lane, std::string_view index) const {
  std::string text = fmt::format("params.{}o{}", prefix_, i);
  const Access4 access = view_.access[i];
  if (access == Access4::linear || access == Access4::linear_quad)
    text += fmt::format(" + {}", index);
  for (std::size_t axis = 0; axis < view_.rank; ++axis) {
    if (steps(i, axis)) text += step(prefix_, i, axis);
  }
  if (lane == 0 || access == Access4::single || access == Access4::repeat) return text;
  text += fmt::format(" + {}u", lane);
  if (access == Access4::strided)
    text += fmt::format(" * params.{}s{}_{}", prefix_, i, view_.rank - 1);
  return text;
}

}  // namespace kiln::dispatch::wgsl
