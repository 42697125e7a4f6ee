/* GATHER, GATHER_ND, SCATTER_ND, ONE_HOT and REVERSE_SEQUENCE: elements found by index. An index outside counts as the
   nearest one. */
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

typedef struct {
    int32_t outer, first, between, second, inner; /* inner: bytes */
    int32_t is_first;                             /* whether steps are the first of the two axes, samples the second */
} pg_reversed;

/* Of each sample its first steps, as many as its length says, from the last one to the first. */
#define PG_REVERSE_SEQUENCE(name, I)                                                                         \
    static void name(const pg_reversed *p, const void *from, const I *lengths, void *to) {                   \
        const unsigned char *in = from;                                                                      \
        unsigned char *out = to;                                                                             \
        const pg_size steps = p->is_first ? p->first : p->second;                                            \
        const pg_size all = (pg_size)p->first * p->between * p->second * p->inner;                           \
        for (pg_size o = 0; o < p->outer; o++, in += all)                                                    \
            for (pg_size i = 0; i < p->first; i++)                                                           \
                for (pg_size m = 0; m < p->between; m++)                                                     \
                    for (pg_size j = 0; j < p->second; j++, out += p->inner) {                               \
                        const I length = lengths[p->is_first ? j : i];                                       \
                        const pg_size n = length < 0 ? 0 : length < steps ? (pg_size)length : steps;         \
                        const pg_size step = p->is_first ? i : j, at = step < n ? n - 1 - step : step;       \
                        const pg_size a = p->is_first ? at : i, b = p->is_first ? j : at;                    \
                        memcpy(out, in + ((a * p->between + m) * p->second + b) * p->inner, (size_t)p->inner); \
                    }                                                                                        \
    }

/* [outer, inner] places give [outer, depth, inner]. */
#define PG_ONE_HOT(name, I, T)                                                                               \
    static void name(pg_size outer, pg_size depth, pg_size inner, const I *places, const T *on,              \
                     const T *off, T *out) {                                                                 \
        for (pg_size o = 0; o < outer; o++, places += inner)                                                 \
            for (pg_size d = 0; d < depth; d++)                                                              \
                for (pg_size i = 0; i < inner; i++) *out++ = (pg_size)places[i] == d ? *on : *off;           \
    }
