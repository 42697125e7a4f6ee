/* Transposed convolution in float32: weights lie as [tap][input channel][output channel]. */
#include "conv_shape.h"

static PG_UNUSED void pg_transpose_conv_f32(const pg_conv *p, pg_range range, const float *in, const float *weights,
                                            const float *bias, float *out) {
    const pg_size pixels = (pg_size)p->out_h * p->out_w, n = p->out_c;
    for (pg_size b = 0; b < p->batch; b++, out += pixels * n) {
        for (pg_size i = 0; i < pixels; i++) memcpy(out + i * n, bias, (size_t)n * sizeof(float));
        for (pg_size y = 0; y < p->in_h; y++)
            for (pg_size x = 0; x < p->in_w; x++, in += p->in_c)
                for (pg_size i = 0; i < p->k_h; i++)
                    for (pg_size j = 0; j < p->k_w; j++) {
                        const pg_size row = y * p->stride_h - p->pad_t + i, column = x * p->stride_w - p->pad_l + j;
                        if (row < 0 || row >= p->out_h || column < 0 || column >= p->out_w) continue;
                        float *to = out + (row * p->out_w + column) * n;
                        const float *w = weights + (i * p->k_w + j) * p->in_c * n;
                        for (pg_size c = 0; c < p->in_c; c++, w += n)
                            for (pg_size k = 0; k < n; k++) to[k] += in[c] * w[k];
                    }
        for (pg_size i = 0; i < pixels * n; i++) out[i] = pg_clamp(out[i], range.lo, range.hi);
    }
}
