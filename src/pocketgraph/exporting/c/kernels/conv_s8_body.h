#define PG_POINT(i) const int8_t *r##i = seen[i];
#if PG_LEVEL == 3
#define PG_NAME(name) name##_vnni
#define PG_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define PG_TILE_ROWS 12
#define PG_ROWS PG_ROWS_12
#define PG_BEGIN(i) __m512i c##i = b;
#define PG_STEP(i) \
    c##i = _mm512_dpbusd_epi32(c##i, _mm512_xor_si512(_mm512_set1_epi32(pg_four(r##i + k)), high), w);
#define PG_END(i) _mm512_storeu_si512(sums[i], c##i);
#define PG_TILE(name, count, ROWS)                                                                             \
    static PG_TARGET void name(const int8_t *const *seen, pg_size taps, pg_size depth, const int8_t *weights,  \
                               const int32_t *bias, int32_t (*sums)[PG_PANEL]) {                               \
        const __m512i high = _mm512_set1_epi8(-128), b = _mm512_loadu_si512(bias);                             \
        ROWS(PG_BEGIN)                                                                                         \
        for (pg_size t = 0; t < taps; t++, seen += count) {                                                    \
            ROWS(PG_POINT)                                                                                     \
            for (pg_size k = 0; k < depth; k += 4, weights += 4 * PG_PANEL) {                                  \
                const __m512i w = _mm512_loadu_si512(weights);                                                 \
                ROWS(PG_STEP)                                                                                  \
            }                                                                                                  \
        }                                                                                                      \
        ROWS(PG_END)                                                                                           \
    }
#elif PG_LEVEL == 1
#define PG_NAME(name) name##_avx2
#define PG_TARGET __attribute__((target("avx2,fma")))
#define PG_TILE_ROWS 2
#define PG_ROWS PG_ROWS_2
#define PG_BEGIN(i) __m256i c##i##_0 = zero, c##i##_1 = zero, c##i##_2 = zero, c##i##_3 = zero;
#define PG_STEP(i)                                                                     \
    {                                                                                  \
        const __m256i a = _mm256_cvtepi8_epi16(_mm_set1_epi32(pg_four(r##i + k)));     \
        c##i##_0 = _mm256_add_epi32(c##i##_0, _mm256_madd_epi16(a, w0));               \
        c##i##_1 = _mm256_add_epi32(c##i##_1, _mm256_madd_epi16(a, w1));               \
        c##i##_2 = _mm256_add_epi32(c##i##_2, _mm256_madd_epi16(a, w2));               \
        c##i##_3 = _mm256_add_epi32(c##i##_3, _mm256_madd_epi16(a, w3));               \
    }
/* Each channel's sum lies in two neighbouring lanes. */
#define PG_PAIR(i, u, v, at)                                                                                   \
    _mm256_storeu_si256((__m256i *)(void *)(sums[i] + at),                                                     \
                        _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(bias + at)),       \
                                         _mm256_permute4x64_epi64(_mm256_hadd_epi32(c##i##_##u, c##i##_##v), 0xD8)));
#define PG_END(i) PG_PAIR(i, 0, 1, 0) PG_PAIR(i, 2, 3, 8)
#define PG_WIDE(n) _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(weights + 16 * n)))
#define PG_TILE(name, count, ROWS)                                                                             \
    static PG_TARGET void name(const int8_t *const *seen, pg_size taps, pg_size depth, const int8_t *weights,  \
                               const int32_t *bias, int32_t (*sums)[PG_PANEL]) {                               \
        const __m256i zero = _mm256_setzero_si256();                                                           \
        ROWS(PG_BEGIN)                                                                                         \
        for (pg_size t = 0; t < taps; t++, seen += count) {                                                    \
            ROWS(PG_POINT)                                                                                     \
            for (pg_size k = 0; k < depth; k += 4, weights += 4 * PG_PANEL) {                                  \
                const __m256i w0 = PG_WIDE(0), w1 = PG_WIDE(1), w2 = PG_WIDE(2), w3 = PG_WIDE(3);              \
                ROWS(PG_STEP)                                                                                  \
            }                                                                                                  \
        }                                                                                                      \
        ROWS(PG_END)                                                                                           \
    }
#else
#define PG_NAME(name) name##_base
#define PG_TARGET
#if defined(PG_NEON) && defined(__ARM_FEATURE_DOTPROD)
#define PG_TILE_ROWS 6
#define PG_ROWS PG_ROWS_6
#define PG_BEGIN(i)                                                                                            \
    int32x4_t c##i##_0 = vld1q_s32(bias), c##i##_1 = vld1q_s32(bias + 4), c##i##_2 = vld1q_s32(bias + 8),      \
              c##i##_3 = vld1q_s32(bias + 12);
#define PG_STEP(i)                                                           \
    {                                                                        \
        const int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(pg_four(r##i + k))); \
        c##i##_0 = vdotq_s32(c##i##_0, w0, a);                               \
        c##i##_1 = vdotq_s32(c##i##_1, w1, a);                               \
        c##i##_2 = vdotq_s32(c##i##_2, w2, a);                               \
        c##i##_3 = vdotq_s32(c##i##_3, w3, a);                               \
    }
#define PG_END(i)                        \
    vst1q_s32(sums[i], c##i##_0);        \
    vst1q_s32(sums[i] + 4, c##i##_1);    \
    vst1q_s32(sums[i] + 8, c##i##_2);    \
    vst1q_s32(sums[i] + 12, c##i##_3);
#define PG_TILE(name, count, ROWS)                                                                             \
    static void name(const int8_t *const *seen, pg_size taps, pg_size depth, const int8_t *weights,            \
                     const int32_t *bias, int32_t (*sums)[PG_PANEL]) {                                         \
        ROWS(PG_BEGIN)                                                                                         \
        for (pg_size t = 0; t < taps; t++, seen += count) {                                                    \
            ROWS(PG_POINT)                                                                                     \
            for (pg_size k = 0; k < depth; k += 4, weights += 4 * PG_PANEL) {                                  \
                const int8x16_t w0 = vld1q_s8(weights), w1 = vld1q_s8(weights + 16);                           \
                const int8x16_t w2 = vld1q_s8(weights + 32), w3 = vld1q_s8(weights + 48);                      \
                ROWS(PG_STEP)                                                                                  \
            }                                                                                                  \
        }                                                                                                      \
        ROWS(PG_END)                                                                                           \
    }
#else
#define PG_TILE_ROWS 2
#define PG_ROWS PG_ROWS_2
#define PG_TILE(name, count, ROWS)                                                                             \
    static void name(const int8_t *const *seen, pg_size taps, pg_size depth, const int8_t *weights,            \
                     const int32_t *bias, int32_t (*sums)[PG_PANEL]) {                                         \
        for (pg_size i = 0; i < count; i++) memcpy(sums[i], bias, PG_PANEL * sizeof *bias);                    \
        for (pg_size t = 0; t < taps; t++, seen += count)                                                      \
            for (pg_size k = 0; k < depth; k += 4, weights += 4 * PG_PANEL)                                    \
                for (pg_size i = 0; i < count; i++) {                                                          \
                    const int8_t *a = seen[i] + k;                                                             \
                    const int32_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];                                  \
                    for (pg_size j = 0; j < PG_PANEL; j++) {                                                   \
                        const int8_t *w = weights + 4 * j;                                                     \
                        sums[i][j] += a0 * w[0] + a1 * w[1] + a2 * w[2] + a3 * w[3];                           \
                    }                                                                                          \
                }                                                                                              \
    }
#endif
#endif

/* The codes of one pixel in a panel. */
static PG_TARGET void PG_NAME(pg_panel_s8)(const int32_t *sums, const float *scales, pg_codes codes, int8_t *to) {
#if PG_LEVEL == 3
    const __m512 lo = _mm512_set1_ps(codes.lo), hi = _mm512_set1_ps(codes.hi);
    const __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sums)), _mm512_loadu_ps(scales));
    const __m512i code = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_min_ps(hi, _mm512_max_ps(lo, x))),
                                          _mm512_set1_epi32(codes.zero_point));
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(code));
#else
    for (pg_size j = 0; j < PG_PANEL; j++) to[j] = pg_requantized(sums[j], scales[j], codes);
#endif
}

PG_TILE(PG_NAME(pg_tile_s8), PG_TILE_ROWS, PG_ROWS)
PG_TILE(PG_NAME(pg_row_s8), 1, PG_ROWS_1)

static PG_TARGET void PG_NAME(pg_conv_s8)(const pg_conv *p, pg_codes codes, const int8_t *in, const int8_t *weights,
                                          const int32_t *bias, const float *scales, const int8_t *outside,
                                          int8_t *patch, int8_t *out) {
    const int8_t *seen[PG_MOST_TAPS * PG_MOST_ROWS];
    int32_t sums[PG_MOST_ROWS][PG_PANEL];
    const pg_size pixels = (pg_size)p->out_h * p->out_w, depth = p->in_c / p->groups, wide = p->out_c / p->groups;
    const pg_size taps = p->patch ? 1 : p->k_h * p->k_w;
    const pg_size inner = ((p->patch ? p->k_h * p->k_w * depth : depth) + 3) / 4 * 4, length = taps * inner;
    const pg_size panels = (wide + PG_PANEL - 1) / PG_PANEL;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * p->in_c, out += pixels * p->out_c)
        for (pg_size g = 0; g < p->groups; g++)
            for (pg_size block = 0; block < panels; block += p->panels) {
                const pg_size end = block + p->panels < panels ? block + p->panels : panels;
                for (pg_size first = 0; first < pixels;) {
                    const pg_size left = pixels - first, rows = left == 1 ? 1 : PG_TILE_ROWS;
                    const pg_size count = left < rows ? left : rows;
                    if (p->patch)
                        pg_conv_patch_s8(p, in + g * depth, outside, depth, inner, first, count, rows, patch, seen);
                    else
                        pg_conv_rows_s8(p, in + g * depth, outside, first, count, rows, seen);
                    for (pg_size n = block; n < end; n++) {
                        const pg_size columns = wide - n * PG_PANEL < PG_PANEL ? wide - n * PG_PANEL : PG_PANEL;
                        const pg_size panel = g * panels + n;
                        const float *scale = scales + panel * PG_PANEL;
                        int8_t *to = out + first * p->out_c + g * wide + n * PG_PANEL;
                        if (rows == 1)
                            PG_NAME(pg_row_s8)(seen, taps, inner, weights + panel * length * PG_PANEL,
                                               bias + panel * PG_PANEL, sums);
                        else
                            PG_NAME(pg_tile_s8)(seen, taps, inner, weights + panel * length * PG_PANEL,
                                                bias + panel * PG_PANEL, sums);
                        for (pg_size r = 0; r < count; r++, to += p->out_c) {
                            int8_t spare[PG_PANEL];
                            PG_NAME(pg_panel_s8)(sums[r], scale, codes, columns == PG_PANEL ? to : spare);
                            if (columns < PG_PANEL) memcpy(to, spare, (size_t)columns);
                        }
                    }
                    first += count;
                }
            }
}

#undef PG_POINT
#undef PG_NAME
#undef PG_TARGET
#undef PG_TILE_ROWS
#undef PG_ROWS
#undef PG_BEGIN
#undef PG_STEP
#undef PG_PAIR
#undef PG_END
#undef PG_WIDE
#undef PG_TILE
