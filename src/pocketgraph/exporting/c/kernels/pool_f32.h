/* Maxima and averages of windows in float32; what lies outside of the picture does not count, and no NaN is a maximum:
   they begin at the lowest number, as TensorFlow's do. */
#include "conv_shape.h"

static PG_UNUSED void pg_pool_f32(const pg_conv *p, pg_range range, int is_mean, const float *in, float *out) {
    const pg_size channels = p->in_c;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * channels)
        for (pg_size y = 0; y < p->out_h; y++)
            for (pg_size x = 0; x < p->out_w; x++, out += channels) {
                const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;
                float count = 0;
                for (pg_size c = 0; c < channels; c++) out[c] = is_mean ? 0 : -3.402823466e38F;
                for (pg_size i = 0; i < p->k_h; i++)
                    for (pg_size j = 0; j < p->k_w; j++) {
                        const pg_size row = top + i, column = left + j;
                        if (row < 0 || row >= p->in_h || column < 0 || column >= p->in_w) continue;
                        const float *from = in + (row * p->in_w + column) * channels;
                        if (is_mean)
                            for (pg_size c = 0; c < channels; c++) out[c] += from[c];
                        else
                            for (pg_size c = 0; c < channels; c++) out[c] = from[c] > out[c] ? from[c] : out[c];
                        count += 1;
                    }
                if (is_mean)
                    for (pg_size c = 0; c < channels; c++) out[c] /= count;
                for (pg_size c = 0; c < channels; c++) out[c] = pg_clamp(out[c], range.lo, range.hi);
            }
}
