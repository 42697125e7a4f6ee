/* SELECT_V2: elements of one tensor where a condition holds, of another one elsewhere. */
#include "walk.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], c[PG_RANK], a[PG_RANK], b[PG_RANK];
} pg_choice;

#define PG_SELECT(name, T)                                                                                       \
    static void name(const pg_choice *p, const uint8_t *where, const T *left, const T *right, T *out) {          \
        const pg_size rank = p->rank, last = rank - 1;                                                           \
        const pg_size dc = p->c[last], da = p->a[last], db = p->b[last];                                         \
        pg_size index[PG_RANK] = {0};                                                                            \
        do {                                                                                                     \
            const uint8_t *c = where + pg_offset(rank, p->c, index);                                             \
            const T *x = left + pg_offset(rank, p->a, index), *y = right + pg_offset(rank, p->b, index);         \
            for (pg_size i = 0; i < p->sizes[last]; i++) *out++ = c[i * dc] ? x[i * da] : y[i * db];             \
        } while (pg_next_row(rank, p->sizes, index));                                                            \
    }
