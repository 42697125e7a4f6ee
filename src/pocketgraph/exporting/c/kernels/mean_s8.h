/* Means and sums of int8 codes over some dimensions, by way of whole sums. */
#include "codes.h"
#include "reduce.h"

static void pg_sums_s8(const pg_reduced *p, const int8_t *in, int32_t *sums) {
    const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], to = p->to[last];
    pg_size index[PG_RANK] = {0};
    for (pg_size i = 0; i < p->count; i++) sums[i] = 0;
    if (n == 0) return;
    do {
        int32_t *y = sums + pg_offset(rank, p->to, index);
        for (pg_size i = 0; i < n; i++) y[i * to] += in[i];
        in += n;
    } while (pg_next_row(rank, p->sizes, index));
}

static void pg_mean_s8(const pg_reduced *p, int32_t bias, float scale, pg_codes codes, const int8_t *in, int32_t *sums,
                       int8_t *out) {
    pg_sums_s8(p, in, sums);
    for (pg_size i = 0; i < p->count; i++) out[i] = pg_requantized(sums[i] + bias, scale, codes);
}
