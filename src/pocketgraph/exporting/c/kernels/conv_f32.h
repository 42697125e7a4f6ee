/* Convolution and fully connected layers in float32, as a product of pixels by panels of PG_PANEL output channels.

   Weights lie as [group][panel][tap][input channel][PG_PANEL], biases as [group][panel][PG_PANEL], both filled up with
   zeros. A tile is some pixels by one panel; what a pixel sees under each tap is found by a pointer, outside of the
   picture to zeros, so that nothing is copied unless pixels have very few channels. */
#include "conv_shape.h"
#include "levels.h"

#define PG_PANEL 16
#define PG_MOST_ROWS 12
#define PG_MOST_TAPS 64

#define PG_ROWS_1(X) X(0)
#define PG_ROWS_2(X) PG_ROWS_1(X) X(1)
#define PG_ROWS_4(X) PG_ROWS_2(X) X(2) X(3)
#define PG_ROWS_6(X) PG_ROWS_4(X) X(4) X(5)
#define PG_ROWS_12(X) PG_ROWS_6(X) X(6) X(7) X(8) X(9) X(10) X(11)

/* What `count` pixels from number `first` on see, tap by tap, `rows` pointers each; the last pixel stands for missing
   ones. */
static void pg_conv_rows_f32(const pg_conv *p, const float *in, const float *zeros, pg_size first, pg_size count,
                             pg_size rows, const float **seen) {
    if (p->k_h * p->k_w == 1 && p->stride_h == 1 && p->stride_w == 1 && p->pad_t == 0 && p->pad_l == 0 &&
        p->out_w == p->in_w) {
        for (pg_size r = 0; r < rows; r++) seen[r] = in + (first + (r < count ? r : count - 1)) * p->in_c;
        return;
    }
    pg_size y = first / p->out_w, x = first % p->out_w;
    for (pg_size r = 0; r < rows; r++) {
        const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;
        const float **at = seen + r;
        for (pg_size i = 0; i < p->k_h; i++) {
            const pg_size row = top + i * p->dilation_h;
            const int outside = row < 0 || row >= p->in_h;
            for (pg_size j = 0; j < p->k_w; j++, at += rows) {
                const pg_size column = left + j * p->dilation_w;
                *at = outside || column < 0 || column >= p->in_w ? zeros : in + (row * p->in_w + column) * p->in_c;
            }
        }
        if (r + 1 < count && ++x == p->out_w) {
            x = 0;
            y++;
        }
    }
}

/* The same copied side by side into `patch`, k_h * k_w * depth elements for each pixel. */
static void pg_conv_patch_f32(const pg_conv *p, const float *in, pg_size depth, pg_size first, pg_size count,
                              pg_size rows, float *patch, const float **seen) {
    const pg_size length = p->k_h * p->k_w * depth;
    pg_size y = first / p->out_w, x = first % p->out_w;
    for (pg_size r = 0; r < count; r++) {
        const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;
        float *at = patch + r * length;
        for (pg_size i = 0; i < p->k_h; i++) {
            const pg_size row = top + i * p->dilation_h;
            const int outside = row < 0 || row >= p->in_h;
            if (!outside && p->dilation_w == 1 && depth == p->in_c && left >= 0 && left + p->k_w <= p->in_w) {
                const float *from = in + (row * p->in_w + left) * p->in_c;
                for (pg_size c = 0; c < p->k_w * depth; c++) at[c] = from[c];
                at += p->k_w * depth;
                continue;
            }
            for (pg_size j = 0; j < p->k_w; j++, at += depth) {
                const pg_size column = left + j * p->dilation_w;
                if (outside || column < 0 || column >= p->in_w)
                    for (pg_size c = 0; c < depth; c++) at[c] = 0;
                else
                    for (pg_size c = 0; c < depth; c++) at[c] = in[(row * p->in_w + column) * p->in_c + c];
            }
        }
        seen[r] = patch + r * length;
        if (++x == p->out_w) {
            x = 0;
            y++;
        }
    }
    for (pg_size r = count; r < rows; r++) seen[r] = seen[count - 1];
}

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
    (void)level;
#ifdef PG_X86
    if (level >= PG_AVX512) {
        pg_conv_f32_avx512(p, range, in, weights, bias, zeros, patch, out);
        return;
    }
    if (level == PG_AVX2) {
        pg_conv_f32_avx2(p, range, in, weights, bias, zeros, patch, out);
        return;
    }
#endif
    pg_conv_f32_base(p, range, in, weights, bias, zeros, patch, out);
}
