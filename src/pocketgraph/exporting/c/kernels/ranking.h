/* ARG_MAX, ARG_MIN, TOPK_V2 and CUMSUM, along one dimension of [outer, n, inner]. */
#include "arithmetic.h"

#define PG_ARG(name, T, I, is_better)                                                                        \
    static void name(pg_size outer, pg_size n, pg_size inner, const T *in, I *out) {                         \
        for (pg_size o = 0; o < outer; o++, in += n * inner)                                                 \
            for (pg_size i = 0; i < inner; i++) {                                                            \
                pg_size best = 0;                                                                            \
                for (pg_size k = 1; k < n; k++) {                                                            \
                    const T a = in[k * inner + i], b = in[best * inner + i];                                 \
                    if (is_better) best = k;                                                                 \
                }                                                                                            \
                *out++ = (I)best;                                                                            \
            }                                                                                                \
    }

/* The k largest in falling order; of equal ones the first comes first. */
#define PG_TOPK(name, T)                                                                                     \
    static void name(pg_size rows, pg_size n, pg_size k, const T *in, T *values, int32_t *places) {          \
        for (pg_size r = 0; r < rows; r++, in += n, values += k, places += k) {                              \
            pg_size held = 0;                                                                                \
            for (pg_size i = 0; i < n; i++) {                                                                \
                pg_size at = held < k ? held++ : k;                                                          \
                if (at == k) {                                                                               \
                    if (k == 0 || !(in[i] > values[k - 1])) continue;                                        \
                    at = k - 1;                                                                              \
                }                                                                                            \
                for (; at > 0 && in[i] > values[at - 1]; at--) {                                             \
                    values[at] = values[at - 1];                                                             \
                    places[at] = places[at - 1];                                                             \
                }                                                                                            \
                values[at] = in[i];                                                                          \
                places[at] = (int32_t)i;                                                                     \
            }                                                                                                \
        }                                                                                                    \
    }

/* sum_of: what becomes of two elements a and b. */
#define PG_CUMSUM(name, T, sum_of)                                                                           \
    static void name(pg_size outer, pg_size n, pg_size inner, int exclusive, int reverse, const T *in,       \
                     T *out) {                                                                               \
        for (pg_size o = 0; o < outer; o++, in += n * inner, out += n * inner)                               \
            for (pg_size i = 0; i < inner; i++) {                                                            \
                T a = 0;                                                                                     \
                for (pg_size k = 0; k < n; k++) {                                                            \
                    const pg_size at = (reverse ? n - 1 - k : k) * inner + i;                                \
                    const T b = in[at], next = (T)(sum_of);                                                  \
                    out[at] = exclusive ? a : next;                                                          \
                    a = next;                                                                                \
                }                                                                                            \
            }                                                                                                \
    }
