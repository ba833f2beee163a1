#pragma once
/// Which instruction sets kiln's vector code is compiled for. A file that goes through
/// <hwy/foreach_target.h> includes this before anything of Highway's: on x86, SSE4, AVX2 and
/// AVX-512 remain, besides the plain code for older processors. The others would add to the time
/// and size of a build and bring kiln's functions nothing.

// The lowest eight bits are what comes after AVX3 on x86; releases of Highway differ in how many of
// them have names.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | 0xFF)
