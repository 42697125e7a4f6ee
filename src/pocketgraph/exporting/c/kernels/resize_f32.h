/* Resizing of pictures in float32. */
#include "support.h"

typedef struct {
    int32_t batch, in_h, in_w, out_h, out_w, channels, align_corners, half_pixel_centers;
} pg_resized;

static PG_UNUSED float pg_resize_scale(pg_size in, pg_size out, int align_corners) {
    return align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

static PG_UNUSED void pg_resize_ends(float at, pg_size size, pg_size *low, pg_size *high, float *share) {
    const pg_size floor = (pg_size)floorf(at);
    *low = floor < 0 ? 0 : floor;
    *high = floor + 1 < size ? floor + 1 : size - 1;
    if (*low > *high) *low = *high;
    *share = at - (float)*low;
}

static PG_UNUSED void pg_resize_bilinear_f32(const pg_resized *p, const float *in, float *out) {
    const float down = pg_resize_scale(p->in_h, p->out_h, p->align_corners);
    const float across = pg_resize_scale(p->in_w, p->out_w, p->align_corners);
    const float middle = p->half_pixel_centers ? 0.5F : 0.0F;
    const pg_size channels = p->channels, stride = p->in_w * channels;
    for (pg_size b = 0; b < p->batch; b++, in += p->in_h * stride)
        for (pg_size y = 0; y < p->out_h; y++) {
            pg_size top, bottom;
            float v;
            pg_resize_ends(((float)y + middle) * down - middle, p->in_h, &top, &bottom, &v);
            for (pg_size x = 0; x < p->out_w; x++, out += channels) {
                pg_size left, right;
                float u;
                pg_resize_ends(((float)x + middle) * across - middle, p->in_w, &left, &right, &u);
                const float *a = in + top * stride + left * channels, *b1 = in + top * stride + right * channels;
                const float *c = in + bottom * stride + left * channels, *d = in + bottom * stride + right * channels;
                for (pg_size k = 0; k < channels; k++)
                    out[k] = a[k] * (1 - v) * (1 - u) + c[k] * v * (1 - u) + b1[k] * (1 - v) * u + d[k] * v * u;
            }
        }
}
