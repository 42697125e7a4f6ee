/* Products of computed matrices of int8 codes: [rows, depth] by [depth, columns], or by [columns, depth] when turned.
   LiteRT leaves those whose right codes count from zero to XNNPACK, and rounds the others in its own fixed point. */
#include "fixed_point.h"
#include "requantize.h"
#include "walk.h"

typedef struct {
    int32_t rank; /* of the batch and one more, whose size is 1 */
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK];
    int32_t rows, columns, depth, turned_a, turned_b, a_zero, b_zero, factor, shift;
    float scale;
    pg_codes codes;
} pg_matrices_of_codes;

static void pg_matmul_s8(const pg_matrices_of_codes *p, const int8_t *left, const int8_t *right, int8_t *out) {
    const pg_size m = p->rows, n = p->columns, depth = p->depth;
    const pg_size row = p->turned_a ? 1 : depth, step = p->turned_a ? m : 1;
    const pg_size column = p->turned_b ? depth : 1, down = p->turned_b ? 1 : n;
    pg_size index[PG_RANK] = {0};
    do {
        const int8_t *a = left + pg_offset(p->rank, p->a, index), *b = right + pg_offset(p->rank, p->b, index);
        for (pg_size i = 0; i < m; i++)
            for (pg_size j = 0; j < n; j++) {
                int32_t sum = 0, code;
                for (pg_size k = 0; k < depth; k++)
                    sum += (a[i * row + k * step] - p->a_zero) * (b[j * column + k * down] - p->b_zero);
                code = p->b_zero ? pg_times(sum, p->factor, p->shift) + p->codes.zero_point
                                 : pg_requantized(sum, p->scale, p->codes);
                *out++ = (int8_t)(code < -128 ? -128 : code > 127 ? 127 : code);
            }
    } while (pg_next_row(p->rank, p->sizes, index));
}
