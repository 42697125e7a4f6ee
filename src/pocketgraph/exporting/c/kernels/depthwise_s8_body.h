#include "vectors_body.h"

static PG_TARGET void PG_NAME(pg_nine_taps_s8)(const int8_t *const *seen, const int8_t *restrict w,
                                               const int32_t *restrict bias, const float *restrict scales,
                                               pg_size channels, pg_codes codes, int8_t *restrict out) {
    const int8_t *const s0 = seen[0], *const s1 = seen[1], *const s2 = seen[2], *const s3 = seen[3];
    const int8_t *const s4 = seen[4], *const s5 = seen[5], *const s6 = seen[6], *const s7 = seen[7];
    const int8_t *const s8 = seen[8];
    const int8_t *const w1 = w + channels, *const w2 = w1 + channels, *const w3 = w2 + channels;
    const int8_t *const w4 = w3 + channels, *const w5 = w4 + channels, *const w6 = w5 + channels;
    const int8_t *const w7 = w6 + channels, *const w8 = w7 + channels;
    for (pg_size c = 0; c < channels; c++) {
        const int32_t sum = bias[c] + s0[c] * w[c] + s1[c] * w1[c] + s2[c] * w2[c] + s3[c] * w3[c] + s4[c] * w4[c] +
                            s5[c] * w5[c] + s6[c] * w6[c] + s7[c] * w7[c] + s8[c] * w8[c];
        out[c] = pg_requantized(sum, scales[c], codes);
    }
}

static PG_TARGET void PG_NAME(pg_depthwise_s8)(const pg_conv *p, pg_codes codes, const int8_t *in,
                                               const int8_t *weights, const int32_t *bias, const float *scales,
                                               const int8_t *outside, int8_t *out) {
    const pg_size channels = p->out_c, times = p->out_c / p->in_c;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * p->in_c)
        for (pg_size y = 0; y < p->out_h; y++)
            for (pg_size x = 0; x < p->out_w; x++, out += channels) {
                const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;
                if (times == 1 && p->k_h == 3 && p->k_w == 3) {
                    const int8_t *seen[9];
                    for (pg_size i = 0; i < 3; i++)
                        for (pg_size j = 0; j < 3; j++) {
                            const pg_size row = top + i * p->dilation_h, column = left + j * p->dilation_w;
                            const int is_out = row < 0 || row >= p->in_h || column < 0 || column >= p->in_w;
                            seen[3 * i + j] = is_out ? outside : in + (row * p->in_w + column) * channels;
                        }
                    PG_NAME(pg_nine_taps_s8)(seen, weights, bias, scales, channels, codes, out);
                    continue;
                }
                for (pg_size begin = 0; begin < channels; begin += PG_BLOCK) {
                    const pg_size n = channels - begin < PG_BLOCK ? channels - begin : PG_BLOCK;
                    int32_t sums[PG_BLOCK];
                    for (pg_size c = 0; c < n; c++) sums[c] = bias[begin + c];
                    for (pg_size i = 0; i < p->k_h; i++)
                        for (pg_size j = 0; j < p->k_w; j++) {
                            const pg_size row = top + i * p->dilation_h, column = left + j * p->dilation_w;
                            const int is_out = row < 0 || row >= p->in_h || column < 0 || column >= p->in_w;
                            const int8_t *from = is_out ? outside : in + (row * p->in_w + column) * p->in_c;
                            const int8_t *w = weights + (i * p->k_w + j) * channels + begin;
                            if (times == 1)
                                for (pg_size c = 0; c < n; c++) sums[c] += from[begin + c] * w[c];
                            else
                                for (pg_size c = 0; c < n; c++) sums[c] += from[(begin + c) / times] * w[c];
                        }
                    for (pg_size c = 0; c < n; c++)
                        out[begin + c] = pg_requantized(sums[c], scales[begin + c], codes);
                }
            }
}

#include "vectors_end_body.h"
