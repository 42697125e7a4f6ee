/* Products of whole numbers by a real number, as LiteRT's own kernels have them: the real number is
   factor * 2^(shift - 31), and rounding happens twice, at 2^31 and at the shift. */
#include "support.h"

static PG_UNUSED int32_t pg_high(int32_t x, int32_t factor, int32_t left) {
    const int64_t product = (int64_t)((uint64_t)x << left) * factor;
    const int64_t nudged = product + (product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30));
    return (int32_t)(nudged / ((int64_t)1 << 31));
}

/* Of two equally near numbers the one away from zero, or the upper one. */
static PG_UNUSED int32_t pg_times_by(int32_t x, int32_t factor, int32_t shift, int upwards) {
    const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    const int32_t high = pg_high(x, factor, left), mask = (int32_t)(((int64_t)1 << right) - 1);
    const int32_t rest = high & mask, half = (mask >> 1) + (high < 0 && !upwards);
    const int32_t down = high >= 0 ? high >> right : ~(~high >> right);
    return down + (rest > half);
}

static PG_UNUSED int32_t pg_times(int32_t x, int32_t factor, int32_t shift) { return pg_times_by(x, factor, shift, 0); }
