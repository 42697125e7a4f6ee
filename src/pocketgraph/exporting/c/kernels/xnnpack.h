/* Layers, pools and sums by XNNPACK's operators. They are made when the model is set up and bound to places in the arena
   then; running one allocates nothing. */
#include "conv_shape.h"
#include "requantize.h"
#include <xnnpack.h>

static PG_UNUSED uint32_t pg_rest(int32_t in, int32_t out, int32_t kernel, int32_t stride, int32_t dilation,
                                  int32_t before) {
    const int32_t rest = (out - 1) * stride + (kernel - 1) * dilation + 1 - in - before;
    return rest > 0 ? (uint32_t)rest : 0;
}

#define PG_BORDERS(p)                                                                                             \
    (uint32_t)(p)->pad_t, pg_rest((p)->in_w, (p)->out_w, (p)->k_w, (p)->stride_w, (p)->dilation_w, (p)->pad_l),   \
        pg_rest((p)->in_h, (p)->out_h, (p)->k_h, (p)->stride_h, (p)->dilation_h, (p)->pad_t), (uint32_t)(p)->pad_l
#define PG_STEPS(p) (uint32_t)(p)->k_h, (uint32_t)(p)->k_w, (uint32_t)(p)->stride_h, (uint32_t)(p)->stride_w
#define PG_DILATIONS(p) (uint32_t)(p)->dilation_h, (uint32_t)(p)->dilation_w
#define PG_GROUPS(p)                                                                                              \
    (uint32_t)(p)->groups, (size_t)((p)->in_c / (p)->groups), (size_t)((p)->out_c / (p)->groups),                 \
        (size_t)(p)->in_c, (size_t)(p)->out_c

static PG_UNUSED int pg_xnn_conv_f32(void **op, const pg_conv *p, pg_range range, uint32_t flags, const float *in,
                                     const float *weights, const float *bias, float *out) {
    xnn_operator_t made = 0;
    enum xnn_status status =
        xnn_create_convolution2d_nhwc_f32(PG_BORDERS(p), PG_STEPS(p), PG_DILATIONS(p), PG_GROUPS(p), weights, bias,
                                          range.lo, range.hi, flags, &made);
    *op = made;
    if (status == xnn_status_success)
        status = xnn_setup_convolution2d_nhwc_f32(made, (size_t)p->batch, (size_t)p->in_h, (size_t)p->in_w, in, out, 0);
    return status == xnn_status_success;
}

/* What codes stand for: `steps` has one for each output channel. */
typedef struct {
    int32_t in_zero, out_zero, lo, hi;
    float in_step, out_step;
} pg_steps;

static PG_UNUSED int pg_xnn_conv_s8(void **op, const pg_conv *p, const pg_steps *s, uint32_t flags, const int8_t *in,
                                    const int8_t *weights, const int32_t *bias, const float *steps, int8_t *out) {
    xnn_operator_t made = 0;
    enum xnn_status status = xnn_create_convolution2d_nhwc_qc8(
        PG_BORDERS(p), PG_STEPS(p), PG_DILATIONS(p), PG_GROUPS(p), (int8_t)s->in_zero, s->in_step, steps, weights, bias,
        (int8_t)s->out_zero, s->out_step, (int8_t)s->lo, (int8_t)s->hi, flags, &made);
    *op = made;
    if (status == xnn_status_success)
        status = xnn_setup_convolution2d_nhwc_qc8(made, (size_t)p->batch, (size_t)p->in_h, (size_t)p->in_w, in, out, 0);
    return status == xnn_status_success;
}

static PG_UNUSED int pg_xnn_max_pool_f32(void **op, const pg_conv *p, pg_range range, const float *in, float *out) {
    xnn_operator_t made = 0;
    enum xnn_status status =
        xnn_create_max_pooling2d_nhwc_f32(PG_BORDERS(p), PG_STEPS(p), PG_DILATIONS(p), (size_t)p->in_c, (size_t)p->in_c,
                                          (size_t)p->in_c, range.lo, range.hi, 0, &made);
    *op = made;
    if (status == xnn_status_success)
        status = xnn_setup_max_pooling2d_nhwc_f32(made, (size_t)p->batch, (size_t)p->in_h, (size_t)p->in_w, in, out, 0);
    return status == xnn_status_success;
}

static PG_UNUSED int pg_xnn_average_pool_f32(void **op, const pg_conv *p, pg_range range, const float *in, float *out) {
    xnn_operator_t made = 0;
    enum xnn_status status =
        xnn_create_average_pooling2d_nhwc_f32(PG_BORDERS(p), PG_STEPS(p), (size_t)p->in_c, (size_t)p->in_c,
                                              (size_t)p->in_c, range.lo, range.hi, 0, &made);
    *op = made;
    if (status == xnn_status_success)
        status =
            xnn_setup_average_pooling2d_nhwc_f32(made, (size_t)p->batch, (size_t)p->in_h, (size_t)p->in_w, in, out, 0);
    return status == xnn_status_success;
}

static PG_UNUSED int pg_xnn_add_f32(void **op, pg_size size, pg_range range, const float *a, const float *b,
                                    float *out) {
    xnn_operator_t made = 0;
    const size_t shape[1] = {(size_t)size};
    enum xnn_status status = xnn_create_add_nd_f32(range.lo, range.hi, 0, &made);
    *op = made;
    if (status == xnn_status_success) status = xnn_setup_add_nd_f32(made, 1, shape, 1, shape, a, b, out, 0);
    return status == xnn_status_success;
}

static PG_UNUSED void pg_xnn_run(void *op) { (void)xnn_run_operator((xnn_operator_t)op, 0); }
