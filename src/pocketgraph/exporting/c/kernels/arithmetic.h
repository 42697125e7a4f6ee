/* Arithmetic on single numbers that C leaves undefined or has no word for. */
#include "support.h"

static PG_UNUSED int32_t pg_add_int32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
static PG_UNUSED int32_t pg_sub_int32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
static PG_UNUSED int32_t pg_mul_int32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
static PG_UNUSED int64_t pg_add_int64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static PG_UNUSED int64_t pg_sub_int64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static PG_UNUSED int64_t pg_mul_int64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* Whole division towards zero; 0 where nothing can be divided. */
static PG_UNUSED int64_t pg_div_int64(int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? pg_sub_int64(0, a) : a / b;
}
static PG_UNUSED int64_t pg_floor_mod_int64(int64_t a, int64_t b) {
    const int64_t left = b == 0 || b == -1 ? 0 : a % b;
    return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}
static PG_UNUSED int64_t pg_floor_div_int64(int64_t a, int64_t b) {
    return pg_div_int64(pg_sub_int64(a, pg_floor_mod_int64(a, b)), b);
}
static PG_UNUSED int32_t pg_div_int32(int32_t a, int32_t b) { return (int32_t)pg_div_int64(a, b); }
static PG_UNUSED int32_t pg_floor_div_int32(int32_t a, int32_t b) { return (int32_t)pg_floor_div_int64(a, b); }
static PG_UNUSED int32_t pg_floor_mod_int32(int32_t a, int32_t b) { return (int32_t)pg_floor_mod_int64(a, b); }
static PG_UNUSED int64_t pg_power_int64(int64_t a, int64_t b) {
    int64_t result = 1;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    for (; b > 0; b /= 2, a = pg_mul_int64(a, a))
        if (b % 2 == 1) result = pg_mul_int64(result, a);
    return result;
}
static PG_UNUSED int32_t pg_power_int32(int32_t a, int32_t b) { return (int32_t)pg_power_int64(a, b); }

static PG_UNUSED float pg_floor_mod_float(float a, float b) {
    const float left = fmodf(a, b);
    return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}
static PG_UNUSED float pg_sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
static PG_UNUSED float pg_sign(float x) { return x > 0 ? 1.0F : x < 0 ? -1.0F : x; }
static PG_UNUSED float pg_erf_gelu(float x) { return 0.5F * x * (1.0F + erff(x * 0.70710678118654752440F)); }
static PG_UNUSED float pg_tanh_gelu(float x) {
    return 0.5F * x * (1.0F + tanhf(0.79788456080286535588F * (x + 0.044715F * x * x * x)));
}

/* Numbers as whole ones: cut off behind the point, kept between the ends of the type. */
static PG_UNUSED int32_t pg_int32_of(float x) {
    return x >= 2147483648.0F ? INT32_MAX : x > -2147483648.0F ? (int32_t)x : INT32_MIN;
}
static PG_UNUSED int64_t pg_int64_of(float x) {
    return x >= 9223372036854775808.0F ? INT64_MAX : x > -9223372036854775808.0F ? (int64_t)x : INT64_MIN;
}
static PG_UNUSED int32_t pg_between(float x, float lo, float hi) {
    return x >= hi ? (int32_t)hi : x > lo ? (int32_t)x : (int32_t)lo;
}
