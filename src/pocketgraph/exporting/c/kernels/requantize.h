/* From sums of products of codes to codes, as LiteRT does it on CPUs (XNNPACK): the sum as a float times a float scale,
   to the nearest whole number, of two equally near ones to the even one. */
#include "support.h"

typedef struct {
    int32_t zero_point;
    float lo, hi; /* the ends of the codes less the zero point */
} pg_codes;

/* Adding 1.5 * 2^23 and taking it away leaves no digits behind the point. */
static PG_UNUSED int32_t pg_nearest_int(float x) { return (int32_t)((x + 12582912.0F) - 12582912.0F); }

static PG_UNUSED int8_t pg_requantized(int32_t sum, float scale, pg_codes codes) {
    return (int8_t)(pg_nearest_int(pg_clamp((float)sum * scale, codes.lo, codes.hi)) + codes.zero_point);
}
