/* Writes rows into an array, from the first of the starts on, or where they still fit. */
#include "support.h"

static void pg_update_rows(const int32_t *starts, pg_size most, pg_size row, pg_size bytes, const void *rows, void *array) {
    const pg_size asked = starts[0], at = asked < 0 ? 0 : asked > most ? most : asked;
    memcpy((unsigned char *)array + at * row, rows, (size_t)bytes);
}
