#pragma once
/// Which instruction sets kiln's vector code is compiled for. A file that uses
/// <hwy/foreach_target.h> includes this before any header of Highway. On x86 that leaves SSE4,
/// AVX2, AVX-512 and plain code for older processors. More would lengthen builds and gain nothing.

// The lowest eight bits are the targets after AVX3 on x86. Releases of Highway differ in how many
// of them have names.
#ifdef KILN_FEW_SIMD_TARGETS  // AVX2 and plain code, for builds that take very long for each
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | 0xFF)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | 0xFF)
#endif
