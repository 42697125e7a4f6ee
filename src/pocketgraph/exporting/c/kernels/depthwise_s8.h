/* Depthwise convolution of int8 codes: weights lie as [tap][channel], biases have the input's zero point worked in. */
#include "conv_shape.h"
#include "levels.h"
#include "requantize.h"

#define PG_BLOCK 64 /* channels whose sums are kept at a time */

#define PG_LEVEL 0
#include "depthwise_s8_body.h"
#undef PG_LEVEL
#ifdef PG_X86
#define PG_LEVEL 1
#include "depthwise_s8_body.h"
#undef PG_LEVEL
#define PG_LEVEL 2
#include "depthwise_s8_body.h"
#undef PG_LEVEL
#endif

static void pg_depthwise_s8(int level, const pg_conv *p, pg_codes codes, const int8_t *in, const int8_t *weights,
                            const int32_t *bias, const float *scales, const int8_t *outside, int8_t *out) {
    PG_AT_LEVEL(level, pg_depthwise_s8, (p, codes, in, weights, bias, scales, outside, out));
}
