/* Softmax of int8 codes, as LiteRT's own kernel has it: exponentials from a table of floats. */
#include "support.h"

/* `table` has the exponential of each distance from the row's largest code, 0 to 255. Results have the step 1/256. */
static void pg_softmax_s8(pg_size rows, pg_size n, const float *table, const int8_t *in, int8_t *out) {
    for (; rows > 0; rows--, in += n, out += n) {
        int32_t most = -128;
        float sum = 0;
        for (pg_size i = 0; i < n; i++) most = in[i] > most ? in[i] : most;
        for (pg_size i = 0; i < n; i++) sum += table[most - in[i]];
        const float factor = 1.0F / (sum * (1.0F / 256.0F));
        for (pg_size i = 0; i < n; i++) {
            const int32_t code = (int32_t)(table[most - in[i]] * factor + 0.5F) - 128;
            out[i] = (int8_t)(code > 127 ? 127 : code);
        }
    }
}
