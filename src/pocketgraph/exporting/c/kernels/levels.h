/* Which instructions the CPU has: the same kernels are compiled for each level and chosen when the model is set up.
   PG_PLAIN leaves all but the first level out. */
#include "support.h"

#if defined(__GNUC__) && defined(__x86_64__) && !defined(PG_PLAIN)
#define PG_X86 1
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__) && !defined(PG_PLAIN)
#define PG_NEON 1
#include <arm_neon.h>
#endif

#define PG_AVX2 1
#define PG_AVX512 2
#define PG_AVX512VNNI 3

/* Levels above this one are left alone, for tests. */
#ifndef PG_MOST_LEVEL
#define PG_MOST_LEVEL PG_AVX512VNNI
#endif

static PG_UNUSED int pg_level(void) {
    int level = 0;
#ifdef PG_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) level = PG_AVX2;
    if (level && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        level = __builtin_cpu_supports("avx512vnni") ? PG_AVX512VNNI : PG_AVX512;
#endif
    return level < PG_MOST_LEVEL ? level : PG_MOST_LEVEL;
}

/* Calls the form of a kernel that was compiled for the level: PG_AT_LEVEL(level, pg_add_s8, (p, left, right, out)); */
#ifdef PG_X86
#define PG_AT_LEVEL(level, kernel, arguments) \
    ((level) >= PG_AVX512 ? kernel##_avx512 arguments                 \
     : (level) == PG_AVX2 ? kernel##_avx2 arguments                   \
                          : kernel##_base arguments)
#else
#define PG_AT_LEVEL(level, kernel, arguments) ((void)(level), kernel##_base arguments)
#endif
