/* Goes over the rows of tensors of up to PG_RANK dimensions; a row is the last dimension. */
#include "support.h"

#define PG_RANK 8

/* The next row: whether there is one. */
static PG_UNUSED int pg_next_row(pg_size rank, const int32_t *sizes, pg_size *index) {
    for (pg_size d = rank - 2; d >= 0; d--) {
        if (++index[d] < sizes[d]) return 1;
        index[d] = 0;
    }
    return 0;
}

static PG_UNUSED pg_size pg_offset(pg_size rank, const int32_t *strides, const pg_size *index) {
    pg_size at = 0;
    for (pg_size d = 0; d + 1 < rank; d++) at += index[d] * strides[d];
    return at;
}
