/* Sums and differences of int8 codes, as XNNPACK has them: each code times a whole number that stands for its step,
   then shifted to the result's step. */
#include "codes.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK];
    int32_t bias, a_factor, b_factor, shift, zero_point, lo, hi;
} pg_sum_of_codes;

static void pg_add_s8(const pg_sum_of_codes *p, const int8_t *left, const int8_t *right, int8_t *out) {
    const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], da = p->a[last], db = p->b[last];
    pg_size index[PG_RANK] = {0};
    do {
        const int8_t *x = left + pg_offset(rank, p->a, index), *y = right + pg_offset(rank, p->b, index);
        for (pg_size i = 0; i < n; i++) {
            const int32_t sum = p->bias + x[i * da] * p->a_factor + y[i * db] * p->b_factor;
            /* a shift to the right that rounds down, also below zero */
            const int32_t code = (sum >= 0 ? sum >> p->shift : ~(~sum >> p->shift)) + p->zero_point;
            out[i] = (int8_t)(code < p->lo ? p->lo : code > p->hi ? p->hi : code);
        }
        out += n;
    } while (pg_next_row(rank, p->sizes, index));
}
