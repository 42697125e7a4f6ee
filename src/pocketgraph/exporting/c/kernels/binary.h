/* One result for each pair of elements of two tensors that stretch to a common shape. */
#include "arithmetic.h"
#include "walk.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK]; /* strides in elements, 0 where a tensor is stretched */
} pg_pair;

#define PG_BINARY(name, T, R, result)                                                                                 \
    static void name(const pg_pair *p, const T *left, const T *right, R *out) {                                       \
        const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], da = p->a[last], db = p->b[last];          \
        pg_size index[PG_RANK] = {0};                                                                                 \
        do {                                                                                                          \
            const T *x = left + pg_offset(rank, p->a, index), *y = right + pg_offset(rank, p->b, index);              \
            if (da == 1 && db == 1) {                                                                                 \
                for (pg_size i = 0; i < n; i++) {                                                                     \
                    const T a = x[i], b = y[i];                                                                       \
                    out[i] = result;                                                                                  \
                }                                                                                                     \
            } else if (da == 1 && db == 0) {                                                                          \
                const T b = *y;                                                                                       \
                for (pg_size i = 0; i < n; i++) {                                                                     \
                    const T a = x[i];                                                                                 \
                    out[i] = result;                                                                                  \
                }                                                                                                     \
            } else {                                                                                                  \
                for (pg_size i = 0; i < n; i++) {                                                                     \
                    const T a = x[i * da], b = y[i * db];                                                             \
                    out[i] = result;                                                                                  \
                }                                                                                                     \
            }                                                                                                         \
            out += n;                                                                                                 \
        } while (pg_next_row(rank, p->sizes, index));                                                                 \
    }
