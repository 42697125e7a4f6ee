/* What convolutions look at: `count` pixels from number `first` on, tap by tap. */
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

/* `rows` pointers for each tap, to `outside` where a tap is not over the picture; the last pixel stands for missing
   ones. */
#define PG_CONV_ROWS(name, T)                                                                                        \
    static void name(const pg_conv *p, const T *in, const T *outside, pg_size first, pg_size count, pg_size rows,    \
                     const T **seen) {                                                                               \
        if (p->k_h * p->k_w == 1 && p->stride_h == 1 && p->stride_w == 1 && p->pad_t == 0 && p->pad_l == 0 &&        \
            p->out_w == p->in_w) {                                                                                   \
            for (pg_size r = 0; r < rows; r++) seen[r] = in + (first + (r < count ? r : count - 1)) * p->in_c;       \
            return;                                                                                                  \
        }                                                                                                            \
        pg_size y = first / p->out_w, x = first % p->out_w;                                                          \
        for (pg_size r = 0; r < rows; r++) {                                                                         \
            const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;                       \
            const T **at = seen + r;                                                                                 \
            for (pg_size i = 0; i < p->k_h; i++) {                                                                   \
                const pg_size row = top + i * p->dilation_h;                                                         \
                const int is_out = row < 0 || row >= p->in_h;                                                        \
                for (pg_size j = 0; j < p->k_w; j++, at += rows) {                                                   \
                    const pg_size column = left + j * p->dilation_w;                                                 \
                    if (is_out || column < 0 || column >= p->in_w)                                                   \
                        *at = outside;                                                                               \
                    else                                                                                             \
                        *at = in + (row * p->in_w + column) * p->in_c;                                               \
                }                                                                                                    \
            }                                                                                                        \
            if (r + 1 < count && ++x == p->out_w) {                                                                  \
                x = 0;                                                                                               \
                y++;                                                                                                 \
            }                                                                                                        \
        }                                                                                                            \
    }

/* The same copied side by side into `patch`, `length` elements for each pixel. */
#define PG_CONV_PATCH(name, T)                                                                                       \
    static void name(const pg_conv *p, const T *in, const T *outside, pg_size depth, pg_size length, pg_size first,  \
                     pg_size count, pg_size rows, T *patch, const T **seen) {                                        \
        pg_size y = first / p->out_w, x = first % p->out_w;                                                          \
        for (pg_size r = 0; r < count; r++) {                                                                        \
            const pg_size top = y * p->stride_h - p->pad_t, left = x * p->stride_w - p->pad_l;                       \
            T *at = patch + r * length;                                                                              \
            seen[r] = at;                                                                                            \
            for (pg_size i = 0; i < p->k_h; i++) {                                                                   \
                const pg_size row = top + i * p->dilation_h;                                                         \
                const int is_out = row < 0 || row >= p->in_h;                                                        \
                if (!is_out && p->dilation_w == 1 && depth == p->in_c && left >= 0 && left + p->k_w <= p->in_w) {    \
                    const T *from = in + (row * p->in_w + left) * p->in_c;                                           \
                    for (pg_size c = 0; c < p->k_w * depth; c++) at[c] = from[c];                                    \
                    at += p->k_w * depth;                                                                            \
                    continue;                                                                                        \
                }                                                                                                    \
                for (pg_size j = 0; j < p->k_w; j++, at += depth) {                                                  \
                    const pg_size column = left + j * p->dilation_w;                                                 \
                    const T *from = outside;                                                                         \
                    if (!is_out && column >= 0 && column < p->in_w) from = in + (row * p->in_w + column) * p->in_c;  \
                    for (pg_size c = 0; c < depth; c++) at[c] = from[c];                                             \
                }                                                                                                    \
            }                                                                                                        \
            for (; at < patch + (r + 1) * length; at++) *at = 0;                                                     \
            if (++x == p->out_w) {                                                                                   \
                x = 0;                                                                                               \
                y++;                                                                                                 \
            }                                                                                                        \
        }                                                                                                            \
        for (pg_size r = count; r < rows; r++) seen[r] = seen[count - 1];                                            \
    }
