#include "vectors_body.h"

static PG_TARGET void PG_NAME(pg_add_s8)(const pg_sum_of_codes *p, const int8_t *left, const int8_t *right,
                                         int8_t *out) {
    const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], da = p->a[last], db = p->b[last];
    const int32_t bias = p->bias, fa = p->a_factor, fb = p->b_factor, shift = p->shift, zero = p->zero_point;
    const int32_t lo = p->lo, hi = p->hi;
    pg_size index[PG_RANK] = {0};
    do {
        const int8_t *x = left + pg_offset(rank, p->a, index), *y = right + pg_offset(rank, p->b, index);
        if (da == 1 && db == 1) {
            for (pg_size i = 0; i < n; i++) {
                const int32_t code = ((bias + x[i] * fa + y[i] * fb) >> shift) + zero; /* rounds down below zero too */
                out[i] = (int8_t)(code < lo ? lo : code > hi ? hi : code);
            }
        } else {
            for (pg_size i = 0; i < n; i++) {
                const int32_t code = ((bias + x[i * da] * fa + y[i * db] * fb) >> shift) + zero;
                out[i] = (int8_t)(code < lo ? lo : code > hi ? hi : code);
            }
        }
        out += n;
    } while (pg_next_row(rank, p->sizes, index));
}

#include "vectors_end_body.h"
