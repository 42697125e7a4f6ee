/* Maxima and averages of windows of int8 codes. */
#include "conv_shape.h"
#include "requantize.h"

static PG_UNUSED void pg_max_pool_s8(const pg_conv *p, int32_t lo, int32_t hi, const int8_t *in, int8_t *out) {
    const pg_size channels = p->in_c;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * channels)
        for (pg_size y = 0; y < p->out_h; y++)
            for (pg_size x = 0; x < p->out_w; x++, out += channels) {
                const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;
                memset(out, -128, (size_t)channels);
                for (pg_size i = 0; i < p->k_h; i++)
                    for (pg_size j = 0; j < p->k_w; j++) {
                        const pg_size row = top + i, column = left + j;
                        if (row < 0 || row >= p->in_h || column < 0 || column >= p->in_w) continue;
                        const int8_t *from = in + (row * p->in_w + column) * channels;
                        for (pg_size c = 0; c < channels; c++) out[c] = from[c] > out[c] ? from[c] : out[c];
                    }
                for (pg_size c = 0; c < channels; c++)
                    out[c] = (int8_t)(out[c] < lo ? lo : out[c] > hi ? hi : out[c]);
            }
}

/* The sum by the count, to the nearest whole number, halves away from zero. */
static PG_UNUSED void pg_average_pool_s8(const pg_conv *p, int32_t lo, int32_t hi, const int8_t *in, int8_t *out) {
    const pg_size channels = p->in_c;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * channels)
        for (pg_size y = 0; y < p->out_h; y++)
            for (pg_size x = 0; x < p->out_w; x++, out += channels) {
                const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;
                for (pg_size c = 0; c < channels; c++) {
                    int32_t sum = 0, count = 0;
                    for (pg_size i = 0; i < p->k_h; i++)
                        for (pg_size j = 0; j < p->k_w; j++) {
                            const pg_size row = top + i, column = left + j;
                            if (row < 0 || row >= p->in_h || column < 0 || column >= p->in_w) continue;
                            sum += in[(row * p->in_w + column) * channels + c];
                            count++;
                        }
                    sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
                    out[c] = (int8_t)(sum < lo ? lo : sum > hi ? hi : sum);
                }
            }
}
