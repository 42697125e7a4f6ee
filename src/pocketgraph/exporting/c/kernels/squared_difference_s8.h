/* Squared differences of int8 codes in LiteRT's fixed point: both operands with 7 bits more, on the coarser one's scale. */
#include "fixed_point.h"
#include "walk.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK];
    int32_t a_zero, b_zero, a_factor, a_shift, b_factor, b_shift, factor, shift, zero_point, lo, hi;
} pg_difference_of_codes;

static void pg_squared_difference_s8(const pg_difference_of_codes *p, const int8_t *left, const int8_t *right,
                                     int8_t *out) {
    const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], da = p->a[last], db = p->b[last];
    pg_size index[PG_RANK] = {0};
    do {
        const int8_t *x = left + pg_offset(rank, p->a, index), *y = right + pg_offset(rank, p->b, index);
        for (pg_size i = 0; i < n; i++) {
            const int32_t difference = pg_times((x[i * da] - p->a_zero) * 128, p->a_factor, p->a_shift) -
                                       pg_times((y[i * db] - p->b_zero) * 128, p->b_factor, p->b_shift);
            const int32_t code = pg_times(difference * difference, p->factor, p->shift) + p->zero_point;
            out[i] = (int8_t)(code < p->lo ? p->lo : code > p->hi ? p->hi : code);
        }
        out += n;
    } while (pg_next_row(rank, p->sizes, index));
}
