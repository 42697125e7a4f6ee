/* What the example and the test have in common: memory, weights and files. */
#ifndef @NAME@_COMMON_H
#define @NAME@_COMMON_H

#include "@name@.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An arena may as well be static; here its address is rounded up in memory that is as much larger. */
static inline int set_up(@name@ *m, void **memory, const char *path) {
    size_t bytes = @NAME@_WEIGHTS_BYTES;
    @name@_status status;
    const size_t size = @NAME@_ARENA_BYTES + @NAME@_ALIGNMENT;
    unsigned char *arena = malloc(size);
    const void *weights = @open_weights@;
    *memory = arena;
    (void)path;
    if (!arena || !weights) {
        fprintf(stderr, weights ? "no memory\n" : "the weights cannot be read\n");
        return 0;
    }
    memset(arena, 0xA5, size);
    arena += (@NAME@_ALIGNMENT - (uintptr_t)arena % @NAME@_ALIGNMENT) % @NAME@_ALIGNMENT;
    status = @name@_init(m, arena, @NAME@_ARENA_BYTES, weights, bytes);
    if (status != @NAME@_OK) fprintf(stderr, "@name@_init: status %d\n", (int)status);
    return status == @NAME@_OK;
}

static inline int read_file(const char *path, void *to, size_t bytes) {
    FILE *file = fopen(path, "rb");
    const size_t got = file ? fread(to, 1, bytes, file) : 0;
    const int more = file && got == bytes ? fgetc(file) : EOF;
    if (file) fclose(file);
    if (got == bytes && more == EOF) return 1;
    fprintf(stderr, "%s: not a file of %lu bytes\n", path, (unsigned long)bytes);
    return 0;
}

#endif
