/* The weights are a file beside the program. @name@_map maps it into memory (where there is no such thing, reads it) and
   gives its address, 0 when that fails; @name@_unmap gives the memory back. Without files, put its bytes wherever you
   like, flash for instance, and give their address to @name@_init. */
const void *@name@_map(const char *path, size_t *bytes);
void @name@_unmap(const void *weights, size_t bytes);
