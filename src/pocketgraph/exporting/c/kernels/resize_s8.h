/* Bilinear resizing of int8 codes, as XNNPACK has it: shares in 2048ths. */
#include "resize_f32.h"

static PG_UNUSED void pg_resize_place(pg_size at, pg_size in, pg_size out, const pg_resized *p, pg_size *low,
                                      pg_size *high, int32_t *share) {
    const float scale = pg_resize_scale(in, out, p->align_corners);
    const float offset = p->half_pixel_centers ? 0.5F * scale - 0.5F : 0.0F;
    float place = (float)at * scale + offset;
    place = place < 0 ? 0 : place > (float)(in - 1) ? (float)(in - 1) : place;
    *low = (pg_size)place;
    *high = *low + 1 < in ? *low + 1 : in - 1;
    *share = (int32_t)rintf((place - (float)*low) * 2048.0F);
}

static void pg_resize_bilinear_s8(const pg_resized *p, const int8_t *in, int8_t *out) {
    const pg_size channels = p->channels, stride = p->in_w * channels;
    for (pg_size b = 0; b < p->batch; b++, in += p->in_h * stride)
        for (pg_size y = 0; y < p->out_h; y++) {
            pg_size top, bottom;
            int32_t v;
            pg_resize_place(y, p->in_h, p->out_h, p, &top, &bottom, &v);
            for (pg_size x = 0; x < p->out_w; x++, out += channels) {
                pg_size left, right;
                int32_t u;
                pg_resize_place(x, p->in_w, p->out_w, p, &left, &right, &u);
                const int8_t *a = in + top * stride + left * channels, *b1 = in + top * stride + right * channels;
                const int8_t *c = in + bottom * stride + left * channels, *d = in + bottom * stride + right * channels;
                for (pg_size k = 0; k < channels; k++) {
                    const int32_t above = a[k] * 2048 + (b1[k] - a[k]) * u;
                    const int32_t below = c[k] * 2048 + (d[k] - c[k]) * u;
                    const int32_t sum = above * 2048 + (below - above) * v + 0x200000;
                    out[k] = (int8_t)(sum >= 0 ? sum >> 22 : ~(~sum >> 22));
                }
            }
        }
}
