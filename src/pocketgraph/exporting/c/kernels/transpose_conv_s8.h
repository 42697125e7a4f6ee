/* Transposed convolution of int8 codes: weights lie as [tap][input channel][output channel]. */
#include "conv_shape.h"
#include "fixed_point.h"
#include "requantize.h"

#define PG_SUMS 64 /* channels whose sums are kept at a time */
#define PG_EIGHT 8 /* channels that LiteRT's own kernel rounds at once, ties upwards; those left over away from zero */

typedef struct {
    int32_t factor, shift;
} pg_fixed_scale;

/* ``fixed`` has the scales of what LiteRT leaves to its own kernel, which rounds twice; without, there are ``scales``. */
static void pg_transpose_conv_s8(const pg_conv *p, pg_codes codes, int32_t in_zero, const int8_t *in,
                                 const int8_t *weights, const int32_t *bias, const float *scales,
                                 const pg_fixed_scale *fixed, int8_t *out) {
    const pg_size n = p->out_c;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * p->in_c)
        for (pg_size y = 0; y < p->out_h; y++)
            for (pg_size x = 0; x < p->out_w; x++, out += n)
                for (pg_size begin = 0; begin < n; begin += PG_SUMS) {
                    const pg_size count = n - begin < PG_SUMS ? n - begin : PG_SUMS;
                    int32_t sums[PG_SUMS];
                    memcpy(sums, bias + begin, (size_t)count * sizeof *sums);
                    for (pg_size i = 0; i < p->k_h; i++)
                        for (pg_size j = 0; j < p->k_w; j++) {
                            const pg_size down = y + p->pad_t - i, across = x + p->pad_l - j;
                            const pg_size row = down / p->stride_h, column = across / p->stride_w;
                            if (down < 0 || down % p->stride_h != 0 || row >= p->in_h) continue;
                            if (across < 0 || across % p->stride_w != 0 || column >= p->in_w) continue;
                            const int8_t *from = in + (row * p->in_w + column) * p->in_c;
                            const int8_t *w = weights + (i * p->k_w + j) * p->in_c * n + begin;
                            for (pg_size c = 0; c < p->in_c; c++, w += n)
                                for (pg_size k = 0; k < count; k++) sums[k] += (from[c] - in_zero) * w[k];
                        }
                    for (pg_size k = 0; k < count; k++) {
                        const pg_size c = begin + k;
                        if (!fixed) {
                            out[c] = pg_requantized(sums[k], scales[c], codes);
                            continue;
                        }
                        const int upwards = c < n - n % PG_EIGHT;
                        const int32_t code = pg_times_by(sums[k], fixed[c].factor, fixed[c].shift, upwards);
                        const int32_t lo = (int32_t)codes.lo, hi = (int32_t)codes.hi;
                        out[c] = (int8_t)((code < lo ? lo : code > hi ? hi : code) + codes.zero_point);
                    }
                }
}
