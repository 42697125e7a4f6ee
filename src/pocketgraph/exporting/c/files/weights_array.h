/* The weights, @NAME@_WEIGHTS_BYTES of them, are part of the library. */
extern const uint64_t @name@_weights[];
