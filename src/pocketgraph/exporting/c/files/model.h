/* A model as a library in C99. Nothing is allocated, nothing is kept outside of the memory that you give: any number of
   models can run at the same time, each with an arena of its own. */
#ifndef @NAME@_H
#define @NAME@_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the arena must have, and what its address must be a multiple of. */
#define @NAME@_ARENA_BYTES @arena@
#define @NAME@_ALIGNMENT @alignment@
#define @NAME@_WEIGHTS_BYTES @weights@
#define @NAME@_INPUTS @inputs@
#define @NAME@_OUTPUTS @outputs@

typedef enum {
    @NAME@_FLOAT,
    @NAME@_INT8,
    @NAME@_UINT8,
    @NAME@_INT16,
    @NAME@_UINT16,
    @NAME@_INT32,
    @NAME@_UINT32,
    @NAME@_INT64,
    @NAME@_UINT64,
    @NAME@_DOUBLE,
    @NAME@_BOOL /* a byte, 0 or 1 */
} @name@_type;

typedef struct {
    const char *name;
    @name@_type type;
    int rank;
    const int32_t *shape; /* rank sizes, the last one varies fastest */
    size_t bytes;
    float scale; /* a code stands for scale * (code - zero_point); 0: the elements are plain numbers */
    int32_t zero_point;
} @name@_tensor;

extern const @name@_tensor @name@_inputs[];
extern const @name@_tensor @name@_outputs[];

typedef enum {
    @NAME@_OK = 0,
    @NAME@_BAD_ARENA,   /* missing, too small, or its address is no multiple of @NAME@_ALIGNMENT */
    @NAME@_BAD_WEIGHTS, /* missing, too short, or of another model */
    @NAME@_BIG_ENDIAN,  /* the weights are little-endian, this CPU is not */
    @NAME@_NO_OPERATOR  /* XNNPACK, where the library stands on it, does not make an operator on this CPU */
} @name@_status;

typedef struct {
    unsigned char *arena;
    const unsigned char *weights;
    int level; /* which instructions the CPU has */
@operators@} @name@;

/* Sets a model up. Arena and weights must stay as long as it is used; the weights are only read. */
@name@_status @name@_init(@name@ *m, void *arena, size_t arena_bytes, const void *weights, size_t weights_bytes);

/* Gives back what XNNPACK took when the model was set up; without XNNPACK there is nothing to give back. */
void @name@_release(@name@ *m);

/* Where the input with this index is to be written; it stays as it is when the model runs. */
void *@name@_input(const @name@ *m, int index);

/* Runs the model once. */
void @name@_invoke(const @name@ *m);

/* Where the output with this index is, until the model runs again. */
const void *@name@_output(const @name@ *m, int index);

@accessors@
@weights_access@
#ifdef __cplusplus
}
#endif

#endif
