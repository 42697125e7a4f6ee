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

typedef struct {
    int32_t outer, first, middle, second, inner; /* inner: bytes */
    int32_t turned;                              /* whether the steps are the first axis, and rows the second */
} pg_sequences;

/* The first of its steps turned round, in each row; so many that ``lengths`` says. */
#define PG_REVERSE_SEQUENCE(name, I)                                                                        \
    static void name(const pg_sequences *p, const void *from, const I *lengths, void *to) {                 \
        const unsigned char *in = from;                                                                     \
        unsigned char *out = to;                                                                            \
        for (pg_size o = 0; o < p->outer; o++)                                                              \
            for (pg_size i = 0; i < p->first; i++)                                                          \
                for (pg_size m = 0; m < p->middle; m++)                                                     \
                    for (pg_size j = 0; j < p->second; j++, out += p->inner) {                              \
                        const pg_size row = p->turned ? j : i, step = p->turned ? i : j;                    \
                        const pg_size length = (pg_size)lengths[row];                                       \
                        const pg_size at = step < length ? length - 1 - step : step;                        \
                        const pg_size a = p->turned ? at : i, b = p->turned ? j : at;                       \
                        const pg_size place = ((o * p->first + a) * p->middle + m) * p->second + b;         \
                        memcpy(out, in + place * p->inner, (size_t)p->inner);                               \
                    }                                                                                       \
    }
