/* PRELU of int8 codes in LiteRT's fixed point. */
#include "fixed_point.h"
#include "walk.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK];
    int32_t a_zero, b_zero, factor, shift, slope_factor, slope_shift, zero_point;
} pg_prelu_of_codes;

static void pg_prelu_s8(const pg_prelu_of_codes *p, const int8_t *left, const int8_t *right, int8_t *out) {
    const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], da = p->a[last], db = p->b[last];
    pg_size index[PG_RANK] = {0};
    do {
        const int8_t *x = left + pg_offset(rank, p->a, index), *y = right + pg_offset(rank, p->b, index);
        for (pg_size i = 0; i < n; i++) {
            const int32_t value = x[i * da] - p->a_zero;
            int32_t code = value >= 0 ? pg_times(value, p->factor, p->shift)
                                      : pg_times(value * (y[i * db] - p->b_zero), p->slope_factor, p->slope_shift);
            code += p->zero_point;
            out[i] = (int8_t)(code < -128 ? -128 : code > 127 ? 127 : code);
        }
        out += n;
    } while (pg_next_row(rank, p->sizes, index));
}
