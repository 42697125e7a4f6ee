/* Local response normalization across channels in float32. */
#include "support.h"

static void pg_lrn_f32(pg_size pixels, pg_size channels, pg_size radius, float bias, float alpha, float beta,
                       const float *in, float *out) {
    for (; pixels > 0; pixels--, in += channels, out += channels)
        for (pg_size c = 0; c < channels; c++) {
            const pg_size end = c + radius + 1 < channels ? c + radius + 1 : channels;
            float sum = 0;
            for (pg_size k = c > radius ? c - radius : 0; k < end; k++) sum += in[k] * in[k];
            out[c] = in[c] * powf(bias + alpha * sum, -beta);
        }
}
