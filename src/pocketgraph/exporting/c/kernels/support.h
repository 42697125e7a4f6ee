/* What every kernel stands on: sizes, attributes, and the arithmetic of activations. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef ptrdiff_t pg_size;

#if defined(__GNUC__)
#define PG_UNUSED __attribute__((unused))
#else
#define PG_UNUSED
#endif

/* NaN stays NaN, as in the graph. */
static PG_UNUSED float pg_clamp(float x, float lo, float hi) {
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}
