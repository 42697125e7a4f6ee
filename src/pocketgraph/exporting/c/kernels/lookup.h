/* GATHER, GATHER_ND, SCATTER_ND and ONE_HOT: elements found by index. An index outside counts as the nearest one. */
#include "arithmetic.h"

typedef struct {
    int32_t batches, outer, size, places, inner; /* inner: bytes */
} pg_gathered;

#define PG_GATHER(name, I)                                                                                           \
    static void name(const pg_gathered *p, const void *from, const I *places, void *to) {                            \
        const unsigned char *in = from;                                                                              \
        unsigned char *out = to;                                                                                     \
        for (pg_size b = 0; b < p->batches; b++, places += p->places)                                                \
            for (pg_size o = 0; o < p->outer; o++, in += (pg_size)p->size * p->inner)                                \
                for (pg_size i = 0; i < p->places; i++, out += p->inner) {                                           \
                    const pg_size at = places[i] < 0 ? 0 : places[i] < p->size ? (pg_size)places[i] : p->size - 1;   \
                    memcpy(out, in + at * p->inner, (size_t)p->inner);                                               \
                }                                                                                                    \
    }

typedef struct {
    int32_t count, depth, inner; /* inner: bytes */
    int32_t sizes[8], strides[8];
} pg_points;

#define PG_GATHER_ND(name, I)                                                                                \
    static void name(const pg_points *p, const void *from, const I *places, void *to) {                      \
        unsigned char *out = to;                                                                             \
        for (pg_size i = 0; i < p->count; i++, places += p->depth, out += p->inner) {                        \
            pg_size at = 0;                                                                                  \
            for (pg_size d = 0; d < p->depth; d++) {                                                         \
                const pg_size most = p->sizes[d] - 1, place = (pg_size)places[d];                            \
                at += (place < 0 ? 0 : place > most ? most : place) * p->strides[d];                         \
            }                                                                                                \
            memcpy(out, (const unsigned char *)from + at * p->inner, (size_t)p->inner);                      \
        }                                                                                                    \
    }

/* sum_of: what becomes of two elements a and b that go to the same place. */
#define PG_SCATTER_ND(name, I, T, sum_of)                                                                    \
    static void name(const pg_points *p, pg_size total, const I *places, const T *in, T *out) {              \
        const pg_size inner = p->inner / (pg_size)sizeof(T);                                                 \
        for (pg_size i = 0; i < total; i++) out[i] = 0;                                                      \
        for (pg_size i = 0; i < p->count; i++, places += p->depth, in += inner) {                            \
            pg_size at = 0;                                                                                  \
            int outside = 0;                                                                                 \
            for (pg_size d = 0; d < p->depth; d++) {                                                         \
                outside |= places[d] < 0 || places[d] >= p->sizes[d];                                        \
                at += (pg_size)places[d] * p->strides[d];                                                    \
            }                                                                                                \
            if (outside) continue;                                                                           \
            for (pg_size k = 0; k < inner; k++) {                                                            \
                const T a = out[at * inner + k], b = in[k];                                                  \
                out[at * inner + k] = (T)(sum_of);                                                           \
            }                                                                                                \
        }                                                                                                    \
    }

/* [outer, inner] places give [outer, depth, inner]. */
#define PG_ONE_HOT(name, I, T)                                                                               \
    static void name(pg_size outer, pg_size depth, pg_size inner, const I *places, const T *on,              \
                     const T *off, T *out) {                                                                 \
        for (pg_size o = 0; o < outer; o++, places += inner)                                                 \
            for (pg_size d = 0; d < depth; d++)                                                              \
                for (pg_size i = 0; i < inner; i++) *out++ = (pg_size)places[i] == d ? *on : *off;           \
    }
