#include "vectors_body.h"

/* All channels of one pixel under nine taps, written out for a 3 x 3 kernel. */
static PG_TARGET void PG_NAME(pg_nine_taps_f32)(const float *const *seen, const float *w, const float *bias,
                                                pg_size channels, pg_range range, float *out) {
    const float *const s0 = seen[0], *const s1 = seen[1], *const s2 = seen[2], *const s3 = seen[3];
    const float *const s4 = seen[4], *const s5 = seen[5], *const s6 = seen[6], *const s7 = seen[7];
    const float *const s8 = seen[8];
    pg_size c = 0;
#if PG_LANES > 1
    const PG_V lo = PG_SET(range.lo), hi = PG_SET(range.hi);
    const pg_size whole = channels - channels % PG_LANES; /* GCC warns of the rest of c + PG_LANES <= channels */
    for (; c < whole; c += PG_LANES) {
        const float *const k = w + c;
        PG_V a = PG_FMA(PG_LOAD(s0 + c), PG_LOAD(k), PG_LOAD(bias + c));
        PG_V b = PG_FMA(PG_LOAD(s1 + c), PG_LOAD(k + channels), PG_SET(0.0F));
        a = PG_FMA(PG_LOAD(s2 + c), PG_LOAD(k + 2 * channels), a);
        b = PG_FMA(PG_LOAD(s3 + c), PG_LOAD(k + 3 * channels), b);
        a = PG_FMA(PG_LOAD(s4 + c), PG_LOAD(k + 4 * channels), a);
        b = PG_FMA(PG_LOAD(s5 + c), PG_LOAD(k + 5 * channels), b);
        a = PG_FMA(PG_LOAD(s6 + c), PG_LOAD(k + 6 * channels), a);
        b = PG_FMA(PG_LOAD(s7 + c), PG_LOAD(k + 7 * channels), b);
        a = PG_FMA(PG_LOAD(s8 + c), PG_LOAD(k + 8 * channels), a);
        PG_STORE(out + c, PG_CLAMP(PG_ADD(a, b), lo, hi));
    }
#endif
    for (; c < channels; c++) {
        const float *const k = w + c;
        float a = bias[c] + s0[c] * k[0] + s1[c] * k[channels] + s2[c] * k[2 * channels];
        a += s3[c] * k[3 * channels] + s4[c] * k[4 * channels] + s5[c] * k[5 * channels];
        a += s6[c] * k[6 * channels] + s7[c] * k[7 * channels] + s8[c] * k[8 * channels];
        out[c] = pg_clamp(a, range.lo, range.hi);
    }
}

static PG_TARGET void PG_NAME(pg_depthwise_f32)(const pg_conv *p, pg_range range, const float *in,
                                                const float *weights, const float *bias, const float *zeros,
                                                float *out) {
    const pg_size channels = p->out_c, times = p->out_c / p->in_c;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * p->in_c)
        for (pg_size y = 0; y < p->out_h; y++)
            for (pg_size x = 0; x < p->out_w; x++, out += channels) {
                const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;
                if (times == 1 && p->k_h == 3 && p->k_w == 3) {
                    const float *seen[9];
                    for (pg_size i = 0; i < 3; i++)
                        for (pg_size j = 0; j < 3; j++) {
                            const pg_size row = top + i * p->dilation_h, column = left + j * p->dilation_w;
                            const int outside = row < 0 || row >= p->in_h || column < 0 || column >= p->in_w;
                            seen[3 * i + j] = outside ? zeros : in + (row * p->in_w + column) * channels;
                        }
                    PG_NAME(pg_nine_taps_f32)(seen, weights, bias, channels, range, out);
                    continue;
                }
                for (pg_size c = 0; c < channels; c++) out[c] = bias[c];
                for (pg_size i = 0; i < p->k_h; i++)
                    for (pg_size j = 0; j < p->k_w; j++) {
                        const pg_size row = top + i * p->dilation_h, column = left + j * p->dilation_w;
                        if (row < 0 || row >= p->in_h || column < 0 || column >= p->in_w) continue;
                        const float *const from = in + (row * p->in_w + column) * p->in_c;
                        const float *const w = weights + (i * p->k_w + j) * channels;
                        pg_size c = 0;
                        if (times == 1) {
#if PG_LANES > 1
                            for (; c + PG_LANES <= channels; c += PG_LANES)
                                PG_STORE(out + c, PG_FMA(PG_LOAD(from + c), PG_LOAD(w + c), PG_LOAD(out + c)));
#endif
                            for (; c < channels; c++) out[c] += from[c] * w[c];
                        } else {
                            for (pg_size s = 0; s < p->in_c; s++)
                                for (pg_size q = 0; q < times; q++, c++) out[c] += from[s] * w[c];
                        }
                    }
                for (pg_size c = 0; c < channels; c++) out[c] = pg_clamp(out[c], range.lo, range.hi);
            }
}

#include "vectors_end_body.h"
