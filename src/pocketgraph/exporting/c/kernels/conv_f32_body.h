#include "vectors_body.h"

#if PG_LANES > 1

#if PG_LANES == 16
#define PG_EACH(X, i) X(i, 0)
#elif PG_LANES == 8
#define PG_EACH(X, i) X(i, 0) X(i, 1)
#else
#define PG_EACH(X, i) X(i, 0) X(i, 1) X(i, 2) X(i, 3)
#endif

#define PG_POINT(i) const float *r##i = seen[i];
#define PG_NEXT(i) r##i = seen[i];
#define PG_WEIGHT(i, j) const PG_V w##j = PG_LOAD(w + j * PG_LANES);
#define PG_BIAS(i, j) const PG_V b##j = PG_LOAD(bias + j * PG_LANES);
#define PG_BEGIN_(i, j) PG_V c##i##_##j = b##j;
#define PG_BEGIN(i) PG_EACH(PG_BEGIN_, i)
#define PG_STEP_(i, j) c##i##_##j = PG_FMA(a, w##j, c##i##_##j);
#define PG_STEP(i)                   \
    {                                \
        const PG_V a = PG_SET(r##i[k]); \
        PG_EACH(PG_STEP_, i)         \
    }
#define PG_END_(i, j) PG_STORE(to[i] + j * PG_LANES, PG_CLAMP(c##i##_##j, lo, hi));
#define PG_END(i) PG_EACH(PG_END_, i)

#define PG_TILE(name, count, ROWS)                                                                                 \
    static PG_TARGET void name(const float *const *seen, pg_size taps, pg_size depth, const float *w,              \
                               const float *bias, pg_range range, float *const *to) {                              \
        const PG_V lo = PG_SET(range.lo), hi = PG_SET(range.hi);                                                   \
        PG_EACH(PG_BIAS, 0)                                                                                        \
        ROWS(PG_BEGIN)                                                                                             \
        for (pg_size t = 0; t < taps; t++, seen += count) {                                                        \
            ROWS(PG_POINT)                                                                                         \
            for (pg_size k = 0; k < depth; k++, w += PG_PANEL) {                                                   \
                PG_EACH(PG_WEIGHT, 0)                                                                              \
                ROWS(PG_STEP)                                                                                      \
            }                                                                                                      \
        }                                                                                                          \
        ROWS(PG_END)                                                                                               \
    }

#if PG_TILE_ROWS == 12
PG_TILE(PG_NAME(pg_tile_f32), 12, PG_ROWS_12)
PG_TILE(PG_NAME(pg_low_tile_f32), 4, PG_ROWS_4)
#define PG_LOW_ROWS 4
#elif PG_TILE_ROWS == 6
PG_TILE(PG_NAME(pg_tile_f32), 6, PG_ROWS_6)
PG_TILE(PG_NAME(pg_low_tile_f32), 2, PG_ROWS_2)
#define PG_LOW_ROWS 2
#else
PG_TILE(PG_NAME(pg_tile_f32), 2, PG_ROWS_2)
#define PG_LOW_ROWS 0
#endif

/* One pixel: sums of every fourth product at a time, so that additions need not wait for each other. */
static PG_TARGET void PG_NAME(pg_row_f32)(const float *const *seen, pg_size taps, pg_size depth, const float *w,
                                          const float *bias, pg_range range, float *const *to) {
    const PG_V lo = PG_SET(range.lo), hi = PG_SET(range.hi);
    PG_V c[4][PG_PANEL / PG_LANES];
    for (pg_size j = 0; j < PG_PANEL / PG_LANES; j++) {
        c[0][j] = PG_LOAD(bias + j * PG_LANES);
        c[1][j] = c[2][j] = c[3][j] = PG_SET(0.0F);
    }
    for (pg_size t = 0; t < taps; t++) {
        const float *r = seen[t];
        pg_size left = depth;
        for (; left >= 4; left -= 4, r += 4, w += 4 * PG_PANEL)
            for (pg_size q = 0; q < 4; q++)
                for (pg_size j = 0; j < PG_PANEL / PG_LANES; j++)
                    c[q][j] = PG_FMA(PG_SET(r[q]), PG_LOAD(w + q * PG_PANEL + j * PG_LANES), c[q][j]);
        for (; left > 0; left--, r++, w += PG_PANEL)
            for (pg_size j = 0; j < PG_PANEL / PG_LANES; j++)
                c[0][j] = PG_FMA(PG_SET(*r), PG_LOAD(w + j * PG_LANES), c[0][j]);
    }
    for (pg_size j = 0; j < PG_PANEL / PG_LANES; j++) {
        const PG_V sum = PG_ADD(PG_ADD(c[0][j], c[1][j]), PG_ADD(c[2][j], c[3][j]));
        PG_STORE(to[0] + j * PG_LANES, PG_CLAMP(sum, lo, hi));
    }
}

#undef PG_EACH
#undef PG_POINT
#undef PG_NEXT
#undef PG_WEIGHT
#undef PG_BIAS
#undef PG_BEGIN_
#undef PG_BEGIN
#undef PG_STEP_
#undef PG_STEP
#undef PG_END_
#undef PG_END
#undef PG_TILE

#else

#define PG_LOW_ROWS 0

/* Four pixels by four channels of the panel at a time, which is what the registers of a plain CPU hold. */
static void PG_NAME(pg_tile_f32)(const float *const *seen, pg_size taps, pg_size depth, const float *w,
                                 const float *bias, pg_range range, float *const *to) {
    for (pg_size n = 0; n < PG_PANEL; n += 4) {
        float c[PG_TILE_ROWS][4];
        const float *panel = w + n;
        for (pg_size r = 0; r < PG_TILE_ROWS; r++)
            for (pg_size j = 0; j < 4; j++) c[r][j] = bias[n + j];
        for (pg_size t = 0; t < taps; t++) {
            const float *const *rows = seen + t * PG_TILE_ROWS;
            for (pg_size k = 0; k < depth; k++, panel += PG_PANEL)
                for (pg_size r = 0; r < PG_TILE_ROWS; r++)
                    for (pg_size j = 0; j < 4; j++) c[r][j] += rows[r][k] * panel[j];
        }
        for (pg_size r = 0; r < PG_TILE_ROWS; r++)
            for (pg_size j = 0; j < 4; j++) to[r][n + j] = pg_clamp(c[r][j], range.lo, range.hi);
    }
}

static void PG_NAME(pg_row_f32)(const float *const *seen, pg_size taps, pg_size depth, const float *w,
                                const float *bias, pg_range range, float *const *to) {
    float c[PG_PANEL];
    for (pg_size j = 0; j < PG_PANEL; j++) c[j] = bias[j];
    for (pg_size t = 0; t < taps; t++)
        for (pg_size k = 0; k < depth; k++, w += PG_PANEL)
            for (pg_size j = 0; j < PG_PANEL; j++) c[j] += seen[t][k] * w[j];
    for (pg_size j = 0; j < PG_PANEL; j++) to[0][j] = pg_clamp(c[j], range.lo, range.hi);
}

#endif

static PG_TARGET void PG_NAME(pg_conv_f32)(const pg_conv *p, pg_range range, const float *in, const float *weights,
                                           const float *bias, const float *zeros, float *patch, float *out) {
    const float *seen[PG_MOST_TAPS * PG_MOST_ROWS];
    float spare[PG_MOST_ROWS][PG_PANEL];
    const pg_size pixels = (pg_size)p->out_h * p->out_w, depth = p->in_c / p->groups, wide = p->out_c / p->groups;
    const pg_size taps = p->patch ? 1 : p->k_h * p->k_w, length = (pg_size)p->k_h * p->k_w * depth;
    const pg_size panels = (wide + PG_PANEL - 1) / PG_PANEL;
    for (pg_size b = 0; b < p->batch; b++, in += (pg_size)p->in_h * p->in_w * p->in_c, out += pixels * p->out_c)
        for (pg_size g = 0; g < p->groups; g++)
            for (pg_size block = 0; block < panels; block += p->panels) {
                const pg_size end = block + p->panels < panels ? block + p->panels : panels;
                for (pg_size first = 0; first < pixels;) {
                    const pg_size left = pixels - first;
                    const pg_size rows = left == 1                                        ? 1
                                         : PG_LOW_ROWS > 0 && left <= PG_LOW_ROWS ? PG_LOW_ROWS
                                                                                  : PG_TILE_ROWS;
                    const pg_size count = left < rows ? left : rows;
                    if (p->patch)
                        pg_conv_patch_f32(p, in + g * depth, zeros, depth, length, first, count, rows, patch, seen);
                    else
                        pg_conv_rows_f32(p, in + g * depth, zeros, first, count, rows, seen);
                    for (pg_size n = block; n < end; n++) {
                        const pg_size columns = wide - n * PG_PANEL < PG_PANEL ? wide - n * PG_PANEL : PG_PANEL;
                        const float *w = weights + (g * panels + n) * length * PG_PANEL;
                        const float *add = bias + (g * panels + n) * PG_PANEL;
                        float *to[PG_MOST_ROWS], *corner = out + first * p->out_c + g * wide + n * PG_PANEL;
                        for (pg_size r = 0; r < rows; r++)
                            to[r] = columns < PG_PANEL ? spare[r] : corner + (r < count ? r : count - 1) * p->out_c;
                        const pg_size inner = p->patch ? length : depth;
                        if (rows == 1)
                            PG_NAME(pg_row_f32)(seen, taps, inner, w, add, range, to);
#if PG_LOW_ROWS > 0
                        else if (rows == PG_LOW_ROWS)
                            PG_NAME(pg_low_tile_f32)(seen, taps, inner, w, add, range, to);
#endif
                        else
                            PG_NAME(pg_tile_f32)(seen, taps, inner, w, add, range, to);
                        if (columns < PG_PANEL)
                            for (pg_size r = 0; r < count; r++)
                                for (pg_size j = 0; j < columns; j++) corner[r * p->out_c + j] = spare[r][j];
                    }
                    first += count;
                }
            }
}

#undef PG_LOW_ROWS
#include "vectors_end_body.h"
