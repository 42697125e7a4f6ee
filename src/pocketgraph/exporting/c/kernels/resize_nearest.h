/* Resizing of pictures by their nearest pixels, of any element type. */
#include "resize_f32.h"

static PG_UNUSED pg_size pg_nearest(pg_size at, pg_size in, pg_size out, int align_corners, int half_pixel_centers) {
    const float place = ((float)at + (half_pixel_centers ? 0.5F : 0.0F)) * pg_resize_scale(in, out, align_corners);
    const pg_size whole = (pg_size)(align_corners ? roundf(place) : floorf(place));
    return whole < in ? (whole < 0 ? 0 : whole) : in - 1;
}

static void pg_resize_nearest(const pg_resized *p, pg_size bytes, const void *from, void *to) {
    const unsigned char *in = from;
    unsigned char *out = to;
    const pg_size pixel = p->channels * bytes;
    for (pg_size b = 0; b < p->batch; b++, in += p->in_h * p->in_w * pixel)
        for (pg_size y = 0; y < p->out_h; y++) {
            const pg_size row = pg_nearest(y, p->in_h, p->out_h, p->align_corners, p->half_pixel_centers);
            for (pg_size x = 0; x < p->out_w; x++, out += pixel) {
                const pg_size column = pg_nearest(x, p->in_w, p->out_w, p->align_corners, p->half_pixel_centers);
                memcpy(out, in + (row * p->in_w + column) * pixel, (size_t)pixel);
            }
        }
}
