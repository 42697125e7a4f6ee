/* Convolution and fully connected layers in float32, as a product of pixels by panels of PG_PANEL output channels.

   Weights lie as [group][panel][tap][input channel][PG_PANEL], biases as [group][panel][PG_PANEL], both filled up with
   zeros. A tile is some pixels by one panel; what a pixel sees under each tap is found by a pointer, outside of the
   picture to zeros, so that nothing is copied unless pixels have very few channels. */
#include "conv_rows.h"

PG_CONV_ROWS(pg_conv_rows_f32, float)
PG_CONV_PATCH(pg_conv_patch_f32, float)

#define PG_LEVEL 0
#include "conv_f32_body.h"
#undef PG_LEVEL
#ifdef PG_X86
#define PG_LEVEL 1
#include "conv_f32_body.h"
#undef PG_LEVEL
#define PG_LEVEL 2
#include "conv_f32_body.h"
#undef PG_LEVEL
#endif

static void pg_conv_f32(int level, const pg_conv *p, pg_range range, const float *in, const float *weights,
                        const float *bias, const float *zeros, float *patch, float *out) {
    PG_AT_LEVEL(level, pg_conv_f32, (p, range, in, weights, bias, zeros, patch, out));
}
