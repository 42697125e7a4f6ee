/* Copies elements from some places to others: what TRANSPOSE, SLICE, PAD, TILE, SPACE_TO_DEPTH and others are. T has the
   size of an element, and may be of another type: memcpy is what compilers then do not move behind the next reader. */
#include "walk.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], from[PG_RANK], to[PG_RANK]; /* strides in elements */
} pg_places;

#define PG_COPY(name, T)                                                                     \
    static void name(const pg_places *p, const T *in, T *out) {                              \
        const pg_size rank = p->rank, last = rank - 1, n = p->sizes[last];                   \
        const pg_size from = p->from[last], to = p->to[last];                                \
        pg_size index[PG_RANK] = {0};                                                        \
        do {                                                                                 \
            const T *x = in + pg_offset(rank, p->from, index);                               \
            T *y = out + pg_offset(rank, p->to, index);                                      \
            if (from == 1 && to == 1)                                                        \
                memcpy(y, x, (size_t)n * sizeof(T));                                         \
            else                                                                             \
                for (pg_size i = 0; i < n; i++) memcpy(y + i * to, x + i * from, sizeof(T)); \
        } while (pg_next_row(rank, p->sizes, index));                                        \
    }

#define PG_FILL(name, T)                                           \
    static void name(T value, pg_size n, T *out) {                 \
        for (pg_size i = 0; i < n; i++) out[i] = value;            \
    }
