/* Softmax and its logarithm along rows of float32. */
#include "support.h"

static PG_UNUSED void pg_softmax_f32(pg_size rows, pg_size n, float beta, const float *in, float *out) {
    for (; rows > 0; rows--, in += n, out += n) {
        float most = in[0], sum = 0;
        for (pg_size i = 1; i < n; i++) most = in[i] > most ? in[i] : most;
        for (pg_size i = 0; i < n; i++) sum += out[i] = expf((in[i] - most) * beta);
        for (pg_size i = 0; i < n; i++) out[i] /= sum;
    }
}

static PG_UNUSED void pg_log_softmax_f32(pg_size rows, pg_size n, const float *in, float *out) {
    for (; rows > 0; rows--, in += n, out += n) {
        float most = in[0], sum = 0;
        for (pg_size i = 1; i < n; i++) most = in[i] > most ? in[i] : most;
        for (pg_size i = 0; i < n; i++) sum += expf(in[i] - most);
        sum = logf(sum);
        for (pg_size i = 0; i < n; i++) out[i] = in[i] - most - sum;
    }
}
