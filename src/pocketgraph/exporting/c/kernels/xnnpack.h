/* Layers and pools by XNNPACK's operators. They are made when the model is set up and bound to places in the arena then;
   running one allocates nothing. */
#include "conv_shape.h"
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
#define PG_SIZES(p) (size_t)(p)->batch, (size_t)(p)->in_h, (size_t)(p)->in_w
#define PG_CHANNELS(p) (size_t)(p)->in_c, (size_t)(p)->in_c, (size_t)(p)->in_c
#define PG_GROUPS(p)                                                                                              \
    (uint32_t)(p)->groups, (size_t)((p)->in_c / (p)->groups), (size_t)((p)->out_c / (p)->groups),                 \
        (size_t)(p)->in_c, (size_t)(p)->out_c

/* Two interfaces. As of 2022 (Debian 12) an operator is set up with sizes and places at once. As of 2024 (Debian 13) it
   is given sizes first, and says what memory it wants to work in, which is none for these. */
#ifdef XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER
#define PG_CACHES 0, 0,
#define PG_POOLED(p)
#define pg_xnn_create_conv_s8 xnn_create_convolution2d_nhwc_qs8_qc8w

static PG_UNUSED int pg_xnn_bind_conv_f32(xnn_operator_t op, const pg_conv *p, const float *in, float *out) {
    size_t memory = 0, alignment = 0;
    return xnn_reshape_convolution2d_nhwc_f32(op, PG_SIZES(p), &memory, &alignment, 0, 0, 0) == xnn_status_success &&
           memory == 0 && xnn_setup_convolution2d_nhwc_f32(op, 0, in, out) == xnn_status_success;
}

static PG_UNUSED int pg_xnn_bind_conv_s8(xnn_operator_t op, const pg_conv *p, const int8_t *in, int8_t *out) {
    size_t memory = 0, alignment = 0;
    return xnn_reshape_convolution2d_nhwc_qs8_qc8w(op, PG_SIZES(p), &memory, &alignment, 0, 0, 0) ==
               xnn_status_success &&
           memory == 0 && xnn_setup_convolution2d_nhwc_qs8_qc8w(op, 0, in, out) == xnn_status_success;
}

static PG_UNUSED int pg_xnn_bind_max_pool(xnn_operator_t op, const pg_conv *p, const float *in, float *out) {
    return xnn_reshape_max_pooling2d_nhwc_f32(op, PG_SIZES(p), PG_CHANNELS(p), 0, 0, 0) == xnn_status_success &&
           xnn_setup_max_pooling2d_nhwc_f32(op, in, out) == xnn_status_success;
}

static PG_UNUSED int pg_xnn_bind_average_pool(xnn_operator_t op, const pg_conv *p, const float *in, float *out) {
    size_t memory = 0, alignment = 0;
    return xnn_reshape_average_pooling2d_nhwc_f32(op, PG_SIZES(p), PG_CHANNELS(p), &memory, &alignment, 0, 0, 0) ==
               xnn_status_success &&
           memory == 0 && xnn_setup_average_pooling2d_nhwc_f32(op, 0, in, out) == xnn_status_success;
}
#else
#define PG_CACHES
#define PG_POOLED(p) PG_CHANNELS(p),
#define pg_xnn_create_conv_s8 xnn_create_convolution2d_nhwc_qc8
#define PG_BIND(name, setup, type)                                                                        \
    static PG_UNUSED int name(xnn_operator_t op, const pg_conv *p, const type *in, type *out) {           \
        return setup(op, PG_SIZES(p), in, out, 0) == xnn_status_success;                                  \
    }
PG_BIND(pg_xnn_bind_conv_f32, xnn_setup_convolution2d_nhwc_f32, float)
PG_BIND(pg_xnn_bind_conv_s8, xnn_setup_convolution2d_nhwc_qc8, int8_t)
PG_BIND(pg_xnn_bind_max_pool, xnn_setup_max_pooling2d_nhwc_f32, float)
PG_BIND(pg_xnn_bind_average_pool, xnn_setup_average_pooling2d_nhwc_f32, float)
#endif

static PG_UNUSED int pg_xnn_conv_f32(void **op, const pg_conv *p, pg_range range, uint32_t flags, const float *in,
                                     const float *weights, const float *bias, float *out) {
    xnn_operator_t made = 0;
    const enum xnn_status status =
        xnn_create_convolution2d_nhwc_f32(PG_BORDERS(p), PG_STEPS(p), PG_DILATIONS(p), PG_GROUPS(p), weights, bias,
                                          range.lo, range.hi, flags, PG_CACHES &made);
    *op = made;
    return status == xnn_status_success && pg_xnn_bind_conv_f32(made, p, in, out);
}

/* What codes stand for: `steps` has one for each output channel. */
typedef struct {
    int32_t in_zero, out_zero, lo, hi;
    float in_step, out_step;
} pg_steps;

static PG_UNUSED int pg_xnn_conv_s8(void **op, const pg_conv *p, const pg_steps *s, uint32_t flags, const int8_t *in,
                                    const int8_t *weights, const int32_t *bias, const float *steps, int8_t *out) {
    xnn_operator_t made = 0;
    const enum xnn_status status = pg_xnn_create_conv_s8(
        PG_BORDERS(p), PG_STEPS(p), PG_DILATIONS(p), PG_GROUPS(p), (int8_t)s->in_zero, s->in_step, steps, weights, bias,
        (int8_t)s->out_zero, s->out_step, (int8_t)s->lo, (int8_t)s->hi, flags, PG_CACHES &made);
    *op = made;
    return status == xnn_status_success && pg_xnn_bind_conv_s8(made, p, in, out);
}

static PG_UNUSED int pg_xnn_max_pool_f32(void **op, const pg_conv *p, pg_range range, const float *in, float *out) {
    xnn_operator_t made = 0;
    const enum xnn_status status = xnn_create_max_pooling2d_nhwc_f32(PG_BORDERS(p), PG_STEPS(p), PG_DILATIONS(p),
                                                                     PG_POOLED(p) range.lo, range.hi, 0, &made);
    *op = made;
    return status == xnn_status_success && pg_xnn_bind_max_pool(made, p, in, out);
}

static PG_UNUSED int pg_xnn_average_pool_f32(void **op, const pg_conv *p, pg_range range, const float *in, float *out) {
    xnn_operator_t made = 0;
    const enum xnn_status status = xnn_create_average_pooling2d_nhwc_f32(PG_BORDERS(p), PG_STEPS(p), PG_POOLED(p) range.lo,
                                                                         range.hi, 0, &made);
    *op = made;
    return status == xnn_status_success && pg_xnn_bind_average_pool(made, p, in, out);
}

static PG_UNUSED void pg_xnn_run(void *op) { (void)xnn_run_operator((xnn_operator_t)op, 0); }
