/* Depthwise convolution in float32: weights lie as [tap][channel]. */
#include "conv_shape.h"
#include "levels.h"

#define PG_LEVEL 0
#include "depthwise_f32_body.h"
#undef PG_LEVEL
#ifdef PG_X86
#define PG_LEVEL 1
#include "depthwise_f32_body.h"
#undef PG_LEVEL
#define PG_LEVEL 2
#include "depthwise_f32_body.h"
#undef PG_LEVEL
#endif

static void pg_depthwise_f32(int level, const pg_conv *p, pg_range range, const float *in, const float *weights,
                             const float *bias, const float *zeros, float *out) {
    PG_AT_LEVEL(level, pg_depthwise_f32, (p, range, in, weights, bias, zeros, out));
}
