/* Products of computed matrices in float32: [rows, depth] by [depth, columns], or by [columns, depth] when turned. */
#include "conv_shape.h"
#include "walk.h"

typedef struct {
    int32_t rank; /* of the batch and one more, whose size is 1 */
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK];
    int32_t rows, columns, depth, turned_a, turned_b;
} pg_product;

static PG_UNUSED void pg_matmul_f32(const pg_product *p, pg_range range, const float *left, const float *right,
                                    const float *bias, float *out) {
    const pg_size m = p->rows, n = p->columns, depth = p->depth;
    const pg_size row = p->turned_a ? 1 : depth, step = p->turned_a ? m : 1;
    pg_size index[PG_RANK] = {0};
    do {
        const float *a = left + pg_offset(p->rank, p->a, index), *b = right + pg_offset(p->rank, p->b, index);
        for (pg_size i = 0; i < m; i++, out += n) {
            for (pg_size j = 0; j < n; j++) out[j] = bias ? bias[j] : 0;
            for (pg_size k = 0; k < depth && !p->turned_b; k++) {
                const float x = a[i * row + k * step];
                for (pg_size j = 0; j < n; j++) out[j] += x * b[k * n + j];
            }
            for (pg_size j = 0; j < n && p->turned_b; j++) {
                float sum = 0;
                for (pg_size k = 0; k < depth; k++) sum += a[i * row + k * step] * b[j * depth + k];
                out[j] += sum;
            }
            for (pg_size j = 0; j < n; j++) out[j] = pg_clamp(out[j], range.lo, range.hi);
        }
    } while (pg_next_row(p->rank, p->sizes, index));
}
