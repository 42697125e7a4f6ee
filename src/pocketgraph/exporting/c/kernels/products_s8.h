/* Products of int8 codes. */
#include "codes.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK];
    int32_t a_zero, b_zero;
    float scale;
    pg_codes codes;
} pg_product_of_codes;

static void pg_mul_s8(const pg_product_of_codes *p, const int8_t *left, const int8_t *right, int8_t *out) {
    const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], da = p->a[last], db = p->b[last];
    pg_size index[PG_RANK] = {0};
    do {
        const int8_t *x = left + pg_offset(rank, p->a, index), *y = right + pg_offset(rank, p->b, index);
        for (pg_size i = 0; i < n; i++)
            out[i] = pg_requantized((x[i * da] - p->a_zero) * (y[i * db] - p->b_zero), p->scale, p->codes);
        out += n;
    } while (pg_next_row(rank, p->sizes, index));
}
