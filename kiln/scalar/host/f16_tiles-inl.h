// Loads, stores and gathers of f16 for each target that a file is compiled for. No include guard:
// see below.
#if defined(KILN_SCALAR_F16_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_SCALAR_F16_TILES_INL_H_
#undef KILN_SCALAR_F16_TILES_INL_H_
#else
#define KILN_SCALAR_F16_TILES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kiln/scalar/host/simd_functions-inl.h"
#include "kiln/scalar/host/tile_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln {
namespace HWY_NAMESPACE {

using Half = hn::Rebind<hwy::float16_t, hn::ScalableTag<float>>;

inline void load_f16(const TileArg* from, void* to, std::size_t n) {
  const hn::ScalableTag<float> d;
  const Half half;
  const auto* in = elements<hwy::float16_t>(from[0]);
  auto* out = static_cast<float*>(to);
  const std::size_t step = hn::Lanes(d);
  HWY_ALIGN hwy::float16_t padded[most_lanes] = {};
  HWY_ALIGN float last[most_lanes];
  if (from[0].uniform) {
    padded[0] = in[0];
    hn::Store(hn::PromoteTo(d, hn::Load(half, padded)), d, last);
    for (std::size_t i = 0; i < n; ++i) out[i] = last[0];
    return;
  }
  std::size_t i = 0;
  for (; i + step <= n; i += step)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, in + i)), d, out + i);
  for (std::size_t k = 0; i + k < n; ++k) padded[k] = in[i + k];
  hn::Store(hn::PromoteTo(d, hn::Load(half, padded)), d, last);
  for (std::size_t k = 0; i + k < n; ++k) out[i + k] = last[k];
}

inline void store_f16(const TileArg* from, void* to, std::size_t n) {
  const hn::ScalableTag<float> d;
  const Half half;
  auto* out = static_cast<hwy::float16_t*>(to);
  const std::size_t step = hn::Lanes(d);
  // Rounded first, so that no target can round in another way. The rest is exact.
  with_operand(d, from[0], [&](const auto& x) HWY_ATTR {
    std::size_t i = 0;
    for (; i + step <= n; i += step)
      hn::StoreU(hn::DemoteTo(half, RoundF16(d, x.at(i))), half, out + i);
    if (i == n) return;
    HWY_ALIGN hwy::float16_t last[most_lanes];
    hn::Store(hn::DemoteTo(half, RoundF16(d, x.rest(i, n - i))), half, last);
    for (std::size_t k = 0; i + k < n; ++k) out[i + k] = last[k];
  });
}

inline void copy_f16(const TileArg* from, void* to, std::size_t n) {
  std::memcpy(to, from[0].data, n * sizeof(hwy::float16_t));
}

inline void gather_f16(const TileArg* from, void* to, std::size_t n) {
  const hn::ScalableTag<float> d;
  const Half half;
  const auto* array = elements<hwy::float16_t>(from[0]);
  const std::uint32_t* at = elements<std::uint32_t>(from[1]);
  const std::uint32_t first = at[0];
  auto* out = static_cast<float*>(to);
  HWY_ALIGN hwy::float16_t some[most_lanes] = {};
  HWY_ALIGN float wide[most_lanes];
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const std::size_t count = std::min(n - i, hn::Lanes(d));
    for (std::size_t k = 0; k < count; ++k) some[k] = array[from[1].uniform ? first : at[i + k]];
    hn::Store(hn::PromoteTo(d, hn::Load(half, some)), d, wide);
    for (std::size_t k = 0; k < count; ++k) out[i + k] = wide[k];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kiln
HWY_AFTER_NAMESPACE();

#endif
