#include "@name@.h"

#include <math.h>
#include <string.h>

@kernels@

@parts@
@inputs@
@outputs@
static const unsigned char digest[16] = {@digest@};

#define A(at) ((void *)(arena + (at)))
#define W(at) ((const void *)(weights + (at)))

void @name@_release(@name@ *m) {
@release@}

static @name@_status make_operators(@name@ *m) {
    unsigned char *const arena = m->arena;
    const unsigned char *const weights = m->weights;
    (void)arena;
    (void)weights;
@setup@    return @NAME@_OK;
}

@name@_status @name@_init(@name@ *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    if (first != 1) return @NAME@_BIG_ENDIAN;
    if (!arena || arena_bytes < @NAME@_ARENA_BYTES || (uintptr_t)arena % @NAME@_ALIGNMENT != 0) return @NAME@_BAD_ARENA;
    if (!weights || weights_bytes < @NAME@_WEIGHTS_BYTES) return @NAME@_BAD_WEIGHTS;
    if (memcmp(weights, digest, sizeof digest) != 0) return @NAME@_BAD_WEIGHTS;
    m->arena = arena;
    m->weights = weights;
    m->level = @level@;
    return make_operators(m);
}

void *@name@_input(const @name@ *m, int index) {
    unsigned char *const arena = m->arena;
    (void)arena;
@input_places@    (void)index;
    return 0;
}

const void *@name@_output(const @name@ *m, int index) {
    unsigned char *const arena = m->arena;
    const unsigned char *const weights = m->weights;
    (void)arena;
    (void)weights;
@output_places@    (void)index;
    return 0;
}

void @name@_invoke(const @name@ *m) {
    unsigned char *const arena = m->arena;
    const unsigned char *const weights = m->weights;
    (void)arena;
    (void)weights;
@calls@}
