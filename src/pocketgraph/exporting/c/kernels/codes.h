/* Codes and the numbers that they stand for, tables of codes, and arithmetic on codes. */
#include "requantize.h"
#include "walk.h"

static PG_UNUSED void pg_quantize_s8(pg_size n, float per_step, pg_codes codes, const float *in, int8_t *out) {
    for (pg_size i = 0; i < n; i++)
        out[i] = (int8_t)(pg_nearest_int(pg_clamp(in[i] * per_step, codes.lo, codes.hi)) + codes.zero_point);
}

#define PG_DEQUANTIZE(name, T)                                                                     \
    static void name(pg_size n, float step, int32_t zero_point, const T *in, float *out) {         \
        for (pg_size i = 0; i < n; i++) out[i] = (float)(in[i] - zero_point) * step;               \
    }

/* What each of the 256 codes becomes, from -128 on. */
static PG_UNUSED void pg_table_s8(pg_size n, const int8_t *table, const int8_t *in, int8_t *out) {
    for (pg_size i = 0; i < n; i++) out[i] = table[in[i] + 128];
}
