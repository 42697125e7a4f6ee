/* Convolution and fully connected layers of int8 codes.

   As conv_f32.h, with weights as [group][panel][tap][input channel / 4][PG_PANEL][4], filled up with zeros. Biases have
   the input's zero point worked in. `shifted` is what makes up for codes that are taken as 128 more than they are, as
   the instructions of some CPUs want them. Rows may be read up to three bytes past their end. */
#include "conv_rows.h"
#include "requantize.h"

PG_CONV_ROWS(pg_conv_rows_s8, int8_t)
PG_CONV_PATCH(pg_conv_patch_s8, int8_t)

static PG_UNUSED int32_t pg_four(const int8_t *codes) {
    int32_t word;
    memcpy(&word, codes, sizeof word);
    return word;
}

#define PG_LEVEL 0
#include "conv_s8_body.h"
#undef PG_LEVEL
#ifdef PG_X86
#define PG_LEVEL 1
#include "conv_s8_body.h"
#undef PG_LEVEL
#define PG_LEVEL 3
#include "conv_s8_body.h"
#undef PG_LEVEL
#endif

static void pg_conv_s8(int level, const pg_conv *p, pg_codes codes, const int8_t *in, const int8_t *weights,
                       const int32_t *bias, const int32_t *shifted, const float *scales, const int8_t *outside,
                       int8_t *patch, int8_t *out) {
    (void)level;
#ifdef PG_X86
    if (level >= PG_AVX512VNNI) {
        pg_conv_s8_vnni(p, codes, in, weights, shifted, scales, outside, patch, out);
        return;
    }
    if (level >= PG_AVX2) {
        pg_conv_s8_avx2(p, codes, in, weights, bias, scales, outside, patch, out);
        return;
    }
#else
    (void)shifted;
#endif
    pg_conv_s8_base(p, codes, in, weights, bias, scales, outside, patch, out);
}
