/* Vectors of floats at PG_LEVEL: a panel of PG_PANEL columns is PG_PER_PANEL of them, a tile has PG_TILE_ROWS rows. */
#if defined(PG_X86) && PG_LEVEL == 2
#define PG_NAME(name) name##_avx512
#define PG_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define PG_LANES 16
#define PG_V __m512
#define PG_LOAD(p) _mm512_loadu_ps(p)
#define PG_STORE(p, v) _mm512_storeu_ps(p, v)
#define PG_SET(x) _mm512_set1_ps(x)
#define PG_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define PG_ADD(a, b) _mm512_add_ps(a, b)
#define PG_CLAMP(v, lo, hi) _mm512_min_ps(hi, _mm512_max_ps(lo, v))
#define PG_TILE_ROWS 12
#elif defined(PG_X86) && PG_LEVEL == 1
#define PG_NAME(name) name##_avx2
#define PG_TARGET __attribute__((target("avx2,fma")))
#define PG_LANES 8
#define PG_V __m256
#define PG_LOAD(p) _mm256_loadu_ps(p)
#define PG_STORE(p, v) _mm256_storeu_ps(p, v)
#define PG_SET(x) _mm256_set1_ps(x)
#define PG_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define PG_ADD(a, b) _mm256_add_ps(a, b)
#define PG_CLAMP(v, lo, hi) _mm256_min_ps(hi, _mm256_max_ps(lo, v))
#define PG_TILE_ROWS 6
#elif defined(PG_X86)
#define PG_NAME(name) name##_base
#define PG_TARGET
#define PG_LANES 4
#define PG_V __m128
#define PG_LOAD(p) _mm_loadu_ps(p)
#define PG_STORE(p, v) _mm_storeu_ps(p, v)
#define PG_SET(x) _mm_set1_ps(x)
#define PG_FMA(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define PG_ADD(a, b) _mm_add_ps(a, b)
#define PG_CLAMP(v, lo, hi) _mm_min_ps(hi, _mm_max_ps(lo, v))
#define PG_TILE_ROWS 2
#elif defined(PG_NEON)
#define PG_NAME(name) name##_base
#define PG_TARGET
#define PG_LANES 4
#define PG_V float32x4_t
#define PG_LOAD(p) vld1q_f32(p)
#define PG_STORE(p, v) vst1q_f32(p, v)
#define PG_SET(x) vdupq_n_f32(x)
#define PG_FMA(a, b, c) vfmaq_f32(c, a, b)
#define PG_ADD(a, b) vaddq_f32(a, b)
#define PG_CLAMP(v, lo, hi) vminq_f32(hi, vmaxq_f32(lo, v))
#define PG_TILE_ROWS 6
#else
#define PG_NAME(name) name##_base
#define PG_TARGET
#define PG_LANES 1
#define PG_TILE_ROWS 4
#endif
