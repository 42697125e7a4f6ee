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

/* Sixteen bits of a float and back, rounded to the nearest, of two as near to the even one. A half has 11 digits from
   2^-14 on, and whole multiples of 2^-24 below; a bfloat16 is the first half of a float. */
typedef union {
    float number;
    uint32_t bits;
} pg_bits;
static PG_UNUSED uint16_t pg_half_of(float x) {
    pg_bits a;
    a.number = x;
    const uint32_t sign = a.bits >> 16 & 0x8000U, size = a.bits & 0x7FFFFFFFU;
    if (size > 0x7F800000U) return (uint16_t)(sign | 0x7E00U);
    if (size >= 0x477FF000U) return (uint16_t)(sign | 0x7C00U);
    if (size < 0x38800000U) {
        a.bits = size;
        a.number += 0.5F;
        return (uint16_t)(sign | (a.bits - 0x3F000000U));
    }
    return (uint16_t)(sign | (size + 0xFFFU + (size >> 13 & 1U) - 0x38000000U) >> 13);
}
static PG_UNUSED float pg_of_half(uint16_t x) {
    const uint32_t sign = (uint32_t)(x & 0x8000U) << 16, power = x >> 10 & 31U, digits = x & 0x3FFU;
    pg_bits a;
    if (power == 0) {
        a.number = (float)digits * 5.9604644775390625e-8F;
        a.bits |= sign;
    } else {
        a.bits = sign | (power == 31 ? 0x7F800000U : (power + 112U) << 23) | digits << 13;
    }
    return a.number;
}
static PG_UNUSED uint16_t pg_bfloat16_of(float x) {
    pg_bits a;
    a.number = x;
    if ((a.bits & 0x7FFFFFFFU) > 0x7F800000U) return (uint16_t)(a.bits >> 16 | 0x40U);
    return (uint16_t)((a.bits + 0x7FFFU + (a.bits >> 16 & 1U)) >> 16);
}
static PG_UNUSED float pg_of_bfloat16(uint16_t x) {
    pg_bits a;
    a.bits = (uint32_t)x << 16;
    return a.number;
}
