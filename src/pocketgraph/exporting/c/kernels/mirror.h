/* MIRROR_PAD: borders from the tensor's own content. T has the size of an element; see copy.h for memcpy. */
#include "walk.h"

typedef struct {
    int32_t rank, edge; /* edge: 1 where the outermost element is repeated (SYMMETRIC) */
    int32_t sizes[PG_RANK], inner[PG_RANK], before[PG_RANK], strides[PG_RANK];
} pg_mirrored;

static PG_UNUSED pg_size pg_mirrored_place(pg_size at, pg_size size, pg_size edge) {
    if (at < 0) return -at - edge;
    return at >= size ? 2 * size - 2 - at + edge : at;
}

#define PG_MIRROR(name, T)                                                                                            \
    static void name(const pg_mirrored *p, const T *in, T *out) {                                                     \
        const pg_size rank = p->rank, last = rank - 1;                                                                \
        pg_size index[PG_RANK] = {0};                                                                                 \
        do {                                                                                                          \
            const T *x = in;                                                                                          \
            for (pg_size d = 0; d < last; d++)                                                                        \
                x += pg_mirrored_place(index[d] - p->before[d], p->inner[d], p->edge) * p->strides[d];                \
            for (pg_size i = 0; i < p->sizes[last]; i++, out++) {                                                     \
                const pg_size at = pg_mirrored_place(i - p->before[last], p->inner[last], p->edge);                   \
                memcpy(out, x + at, sizeof(T));                                                                       \
            }                                                                                                         \
        } while (pg_next_row(rank, p->sizes, index));                                                                 \
    }
