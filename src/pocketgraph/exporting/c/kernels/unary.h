/* One result for each element. */
#include "arithmetic.h"

#define PG_UNARY(name, T, R, result)                                       \
    static void name(pg_size n, const T *in, R *out) {                     \
        for (pg_size i = 0; i < n; i++) {                                  \
            const T a = in[i];                                             \
            out[i] = (R)(result);                                          \
        }                                                                  \
    }

#define PG_UNARY_BY(name, T, R, result)                                    \
    static void name(pg_size n, T b, const T *in, R *out) {                \
        for (pg_size i = 0; i < n; i++) {                                  \
            const T a = in[i];                                             \
            out[i] = (R)(result);                                          \
        }                                                                  \
    }
