/* Softmax of int8 codes, and its logarithm, as LiteRT's own kernels have them: exponentials from a table of floats. */
#include "requantize.h"

/* The sum of a row's exponentials. `table` has that of each distance from the row's largest code, 0 to 255. */
static PG_UNUSED float pg_exponentials_s8(pg_size n, const float *table, const int8_t *in, int32_t *most) {
    float sum = 0;
    *most = -128;
    for (pg_size i = 0; i < n; i++) *most = in[i] > *most ? in[i] : *most;
    for (pg_size i = 0; i < n; i++) sum += table[*most - in[i]];
    return sum;
}

/* Results have the step 1/256. */
static PG_UNUSED void pg_softmax_s8(pg_size rows, pg_size n, const float *table, const int8_t *in, int8_t *out) {
    for (; rows > 0; rows--, in += n, out += n) {
        int32_t most;
        const float factor = 1.0F / (pg_exponentials_s8(n, table, in, &most) * (1.0F / 256.0F));
        for (pg_size i = 0; i < n; i++) {
            const int32_t code = (int32_t)(table[most - in[i]] * factor + 0.5F) - 128;
            out[i] = (int8_t)(code > 127 ? 127 : code);
        }
    }
}

/* Results have the step 1/16, and 127 stands for zero. */
static PG_UNUSED void pg_log_softmax_s8(pg_size rows, pg_size n, float step, const float *table, const int8_t *in,
                                        int8_t *out) {
    for (; rows > 0; rows--, in += n, out += n) {
        int32_t most;
        const float sum = pg_exponentials_s8(n, table, in, &most);
        const float largest = (step * (float)most + logf(sum)) / 0.0625F;
        for (pg_size i = 0; i < n; i++) {
            const float code = step / 0.0625F * (float)in[i] - largest;
            out[i] = (int8_t)(pg_nearest_int(pg_clamp(code, -255.0F, 0)) + 127);
        }
    }
}
