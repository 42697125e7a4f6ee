/* Sums, products and extremes over some dimensions; the other ones have stride 0 in none. */
#include "arithmetic.h"
#include "walk.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], to[PG_RANK]; /* strides in the result, 0 along what is reduced */
    int32_t count;                       /* elements of the result */
} pg_reduced;

/* `first` is what nothing gives, `joined` what becomes of the result so far (a) and an element (b). */
#define PG_REDUCE(name, T, first, joined)                                                     \
    static void name(const pg_reduced *p, const T *in, T *out) {                              \
        const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last], to = p->to[last];  \
        pg_size index[PG_RANK] = {0};                                                         \
        for (pg_size i = 0; i < p->count; i++) out[i] = first;                                \
        if (n == 0) return;                                                                   \
        do {                                                                                  \
            T *y = out + pg_offset(rank, p->to, index);                                       \
            if (to == 0) {                                                                    \
                T a = *y;                                                                     \
                for (pg_size i = 0; i < n; i++) {                                             \
                    const T b = in[i];                                                        \
                    a = joined;                                                               \
                }                                                                             \
                *y = a;                                                                       \
            } else {                                                                          \
                for (pg_size i = 0; i < n; i++) {                                             \
                    const T a = y[i * to], b = in[i];                                         \
                    y[i * to] = joined;                                                       \
                }                                                                             \
            }                                                                                 \
            in += n;                                                                          \
        } while (pg_next_row(rank, p->sizes, index));                                         \
    }
