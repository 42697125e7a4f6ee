/* The shape of a convolution: what slides where. Rows lie in_row elements apart, pixels in_c, taps dilation pixels. */
#include "support.h"

typedef struct {
    int32_t batch, in_h, in_w, in_c, out_h, out_w, out_c;
    int32_t k_h, k_w, stride_h, stride_w, dilation_h, dilation_w, pad_t, pad_l;
    int32_t groups;
    int32_t patch;  /* whether the pixels under the kernel are copied side by side first */
    int32_t panels; /* of weights, that stay in the cache together */
} pg_conv;

typedef struct {
    float lo, hi;
} pg_range;
