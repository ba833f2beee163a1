// Loops over tiles, for each target that a file is compiled for. No include guard: see below.
#if defined(KILN_SCALAR_TILE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_SCALAR_TILE_LOOPS_INL_H_
#undef KILN_SCALAR_TILE_LOOPS_INL_H_
#else
#define KILN_SCALAR_TILE_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include "kiln/scalar/host/tile_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace kiln {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t most_lanes = 64;  // of 32 bits, of any target

template <class T>
const T* elements(const TileArg& arg) {
  return static_cast<const T*>(arg.data);
}

/// Vectors of an operand: loaded as the loop goes, or one for all.
template <bool uniform, class D>
class TileOperand {
 public:
  using T = hn::TFromD<D>;
  TileOperand(D d, const TileArg& arg)
      : d_(d), data_(elements<T>(arg)), all_(hn::Set(d, data_[0])) {}
  HWY_INLINE hn::Vec<D> at(std::size_t i) const {
    if constexpr (uniform) {
      return all_;
    } else {
      return hn::LoadU(d_, data_ + i);
    }
  }
  /// The last vector, of `count` elements. Nothing beyond them is read.
  HWY_INLINE hn::Vec<D> rest(std::size_t i, std::size_t count) const {
    if constexpr (uniform) {
      return all_;
    } else {
      HWY_ALIGN T padded[most_lanes];
      hn::Store(all_, d_, padded);
      for (std::size_t k = 0; k < count; ++k) padded[k] = data_[i + k];
      return hn::Load(d_, padded);
    }
  }

 private:
  D d_;
  const T* data_;
  hn::Vec<D> all_;
};

/// Calls f with the operand in the form that it has.
template <class D, class F>
HWY_INLINE void with_operand(D d, const TileArg& arg, const F& f) {
  if (arg.uniform) {
    f(TileOperand<true, D>(d, arg));
  } else {
    f(TileOperand<false, D>(d, arg));
  }
}

/// Stores f(vectors at i) over the tile. The last vector is stored element by element.
template <class DTo, class F, class... A>
HWY_INLINE void loop(DTo d, void* to, std::size_t n, const F& f, const A&... args) {
  using T = hn::TFromD<DTo>;
  T* out = static_cast<T*>(to);
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= n; i += step) hn::StoreU(f(args.at(i)...), d, out + i);
  if (i == n) return;
  HWY_ALIGN T last[most_lanes];
  hn::Store(f(args.rest(i, n - i)...), d, last);
  for (std::size_t k = 0; i + k < n; ++k) out[i + k] = last[k];
}

/// The tile kernel that applies f(d, x) to vectors of D; it gives vectors of DTo.
template <class D, class DTo, class F>
TileKernel unary(F) {
  return [](const TileArg* from, void* to, std::size_t n) HWY_ATTR {
    const D d;
    with_operand(d, from[0], [&](const auto& a) HWY_ATTR {
      loop(DTo(), to, n, [&](auto x) HWY_ATTR { return F()(d, x); }, a);
    });
  };
}

/// The same of f(d, a, b).
template <class D, class DTo, class F>
TileKernel binary(F) {
  return [](const TileArg* from, void* to, std::size_t n) HWY_ATTR {
    const D d;
    with_operand(d, from[0], [&](const auto& a) HWY_ATTR {
      with_operand(d, from[1], [&](const auto& b) HWY_ATTR {
        loop(DTo(), to, n, [&](auto x, auto y) HWY_ATTR { return F()(d, x, y); }, a, b);
      });
    });
  };
}

/// The same of f(d, a, b, c).
template <class D, class F>
TileKernel ternary(F) {
  return [](const TileArg* from, void* to, std::size_t n) HWY_ATTR {
    const D d;
    with_operand(d, from[0], [&](const auto& a) HWY_ATTR {
      with_operand(d, from[1], [&](const auto& b) HWY_ATTR {
        with_operand(d, from[2], [&](const auto& c) HWY_ATTR {
          const auto f = [&](auto x, auto y, auto z) HWY_ATTR { return F()(d, x, y, z); };
          loop(d, to, n, f, a, b, c);
        });
      });
    });
  };
}

}  // namespace HWY_NAMESPACE
}  // namespace kiln
HWY_AFTER_NAMESPACE();

#endif
