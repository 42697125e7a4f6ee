/* Sums and differences of int8 codes, as XNNPACK has them: each code times a whole number that stands for its step,
   then shifted to the result's step. */
#include "codes.h"
#include "levels.h"

typedef struct {
    int32_t rank;
    int32_t sizes[PG_RANK], a[PG_RANK], b[PG_RANK];
    int32_t bias, a_factor, b_factor, shift, zero_point, lo, hi;
} pg_sum_of_codes;

#define PG_LEVEL 0
#include "sums_s8_body.h"
#undef PG_LEVEL
#ifdef PG_X86
#define PG_LEVEL 1
#include "sums_s8_body.h"
#undef PG_LEVEL
#define PG_LEVEL 2
#include "sums_s8_body.h"
#undef PG_LEVEL
#endif

static void pg_add_s8(int level, const pg_sum_of_codes *p, const int8_t *left, const int8_t *right, int8_t *out) {
    PG_AT_LEVEL(level, pg_add_s8, (p, left, right, out));
}
