"""Gradients of layers: convolutions, pools, normalizations, activations and losses."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient
from pocketgraph.errors import GraphError
from pocketgraph.graph.attr import POOLING
from pocketgraph.graph.dtype import FLOAT, INT64

Pair = tuple[str, str]
LAYER = ("strides", "padding", "explicit_paddings", "data_format", "dilations", "use_cudnn_on_gpu")
"""Not a trait: the attributes that convolutions share with their gradients."""


BY_INPUT_AND_FILTER = {
    "Conv2D": ("Conv2DBackpropInput", "Conv2DBackpropFilter"),
    "DepthwiseConv2dNative": ("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
    "Conv3D": ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
}
"""Not a trait: the ops that compute a convolution's two gradients."""
TRANSPOSED = {by_input: (by_filter, op) for op, (by_input, by_filter) in BY_INPUT_AND_FILTER.items()}
"""Not a trait: transposed convolutions, which is what the gradients of convolutions by their inputs are."""
BY_FILTER = {by_filter: (by_input, op) for op, (by_input, by_filter) in BY_INPUT_AND_FILTER.items()}
"""Not a trait: the gradients of convolutions by their filters."""


@gradient(*BY_INPUT_AND_FILTER)
def convolution(op: NodeGradient) -> Pair:
    image, filters = op.inputs
    by_input, by_filter = BY_INPUT_AND_FILTER[op.node.op]
    attrs = op.attrs(*LAYER)
    return (
        op.add(by_input, op.shape(image), filters, op.grad, **attrs),
        op.add(by_filter, image, op.shape(filters), op.grad, **attrs),
    )


@gradient(*TRANSPOSED)
def transposed_convolution(op: NodeGradient) -> tuple[None, str, str]:
    _, filters, image = op.inputs
    by_filter, forward = TRANSPOSED[op.node.op]
    attrs = op.attrs(*LAYER)
    return (
        None,
        op.add(by_filter, op.grad, op.shape(filters), image, **attrs),
        op.add(forward, op.grad, filters, **attrs),
    )


@gradient(*BY_FILTER)
def convolution_by_filter(op: NodeGradient) -> tuple[str, None, str]:
    image, _, gradient_of_layer = op.inputs
    by_input, forward = BY_FILTER[op.node.op]
    layer = op.attrs(*LAYER)
    return (
        op.add(by_input, op.shape(image), op.grad, gradient_of_layer, **layer),
        None,
        op.add(forward, image, op.grad, **layer),
    )


@gradient("Dilation2D")
def dilation(op: NodeGradient) -> Pair:
    layer = op.attrs("strides", "rates", "padding")
    return (
        op.add("Dilation2DBackpropInput", *op.inputs, op.grad, **layer),
        op.add("Dilation2DBackpropFilter", *op.inputs, op.grad, **layer),
    )


@gradient("QuantizeAndDequantizeV4")
def quantization_inside_range(op: NodeGradient) -> tuple[str, str, str]:
    """Straight through, inside the range; a range of its own gets what lies beyond it."""
    found = op.add("QuantizeAndDequantizeV4Grad", op.grad, *op.inputs, **op.attrs("axis"))
    return found, f"{found}:1", f"{found}:2"


@gradient("BiasAddGrad")
def bias_add_grad(op: NodeGradient) -> str:
    """Each number for all that were summed to it."""
    return op.add("BiasAdd", op.zeros(op.inputs[0]), op.grad, **op.attrs("data_format"))


gradient("BiasAdd", "BiasAddV1")(lambda op: (op.grad, op.add("BiasAddGrad", op.grad, **op.attrs("data_format"))))


@gradient("MaxPool", "MaxPool3D")
def max_pool(op: NodeGradient) -> str:
    return op.add(f"{op.node.op}Grad", op.inputs[0], op.output(), op.grad, **op.attrs(*POOLING))


SECOND = {
    "MaxPoolGrad": "MaxPoolGradGrad", "MaxPoolGradGrad": "MaxPoolGrad", "MaxPoolGradV2": "MaxPoolGradGradV2",
    "MaxPoolGradGradV2": "MaxPoolGradV2", "MaxPool3DGrad": "MaxPool3DGradGrad", "MaxPool3DGradGrad": "MaxPool3DGrad",
}  # fmt: skip
"""Not a trait: what hands a gradient on to the largest pixels, and what takes those of one; each is the other's own."""


@gradient(*SECOND)
def max_pool_grad(op: NodeGradient) -> tuple[None, None, str]:
    """By the gradient that it hands on: which pixels are the largest does not change."""
    image, pooled, _, *window = op.inputs
    if op.attr("padding") == "EXPLICIT":
        raise GraphError("of explicit paddings it has no gradient here")
    layer = op.attrs("ksize", "strides", "padding", "data_format")
    return None, None, op.add(SECOND[op.node.op], image, pooled, op.grad, *window, **layer)


@gradient("MaxPoolV2")
def max_pool_by_tensors(op: NodeGradient) -> str:
    image, ksize, strides = op.inputs
    return op.add("MaxPoolGradV2", image, op.output(), op.grad, ksize, strides, **op.attrs("padding", "data_format"))


@gradient("MaxPoolWithArgmax")
def max_pool_with_argmax(op: NodeGradient) -> str:
    layer = op.attrs("ksize", "strides", "padding", "include_batch_in_index")
    return op.add("MaxPoolGradWithArgmax", op.inputs[0], op.grad, op.output(1), **layer)


@gradient("AvgPool", "AvgPool3D")
def average_pool(op: NodeGradient) -> str:
    return op.add(f"{op.node.op}Grad", op.shape_of_input(0), op.grad, **op.attrs(*POOLING))


gradient("AvgPoolGrad", "AvgPool3DGrad")(
    lambda op: (None, op.add(op.node.op.removesuffix("Grad"), op.grad, **op.attrs(*POOLING)))
)


@gradient("FractionalMaxPool", "FractionalAvgPool")
def fractional_pool(op: NodeGradient) -> str:
    rows, columns = op.output(1), op.output(2)
    if op.node.op == "FractionalMaxPool":
        ends = [op.inputs[0], op.output(), op.grad]
    else:
        ends = [op.cast(op.shape_of_input(0), INT64), op.grad]
    return op.add(f"{op.node.op}Grad", *ends, rows, columns, **op.attrs("overlapping"))


TO_LAST, TO_SECOND = (0, 2, 3, 1), (0, 3, 1, 2)
"""The orders in which channels come last, and second again."""


@gradient("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(op: NodeGradient) -> tuple[str, str, str]:
    """While it is trained, of the batch's own mean and variance; else of the given ones, which are constants then."""
    image, scale, _, mean, variance = op.inputs
    version = op.node.op.removeprefix("FusedBatchNorm")
    is_training, layout = bool(op.attr("is_training")), op.attr("data_format")
    grad = op.grad
    reserved = [op.output(3), op.output(4)] if is_training else [mean, variance]
    if version == "V3":
        reserved.append(op.output(5))
    moved = not is_training and layout == "NCHW"
    if moved:
        image, grad = (op.add("Transpose", ref, op.const(TO_LAST)) for ref in (image, grad))
        layout = "NHWC"
    found = op.add(
        f"FusedBatchNormGrad{version}", grad, image, scale, *reserved,
        epsilon=op.attr("epsilon"), data_format=layout.encode(), is_training=is_training,
    )  # fmt: skip
    by_image = op.add("Transpose", found, op.const(TO_SECOND)) if moved else found
    return by_image, f"{found}:1", f"{found}:2"


@gradient("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(op: NodeGradient) -> list[str | None]:
    """Of ``γ r P(dy)``, ``Σ dy n`` and ``Σ dy``, by dy, x and γ: r is 1/σ, n is x normalized, and P takes away the mean
    and the part along n; P is nothing where mean and variance are given."""
    dy, x, scale, mean, variance = (op.cast(ref, FLOAT) for ref in op.inputs[:5])
    layout, rank = str(op.attr("data_format")), len(str(op.attr("data_format")))
    channels = layout.index("C")
    axes = op.const([axis for axis in range(rank) if axis != channels])
    each = op.const([-1 if axis == channels else 1 for axis in range(rank)])
    by_image = op.cast(op.grad, FLOAT)
    by_scale, by_offset, scale = (op.add("Reshape", ref, each) for ref in (op.grad_of(1), op.grad_of(2), scale))
    trained = bool(op.attr("is_training"))

    def average(ref: str) -> str:
        return op.add("Mean", ref, axes, keep_dims=True)

    if trained:
        mean = average(x)
        variance = average(op.add("SquaredDifference", x, mean))
    else:
        mean, variance = op.add("Reshape", mean, each), op.add("Reshape", variance, each)
    epsilon = op.builder.const(op.attr("epsilon"), FLOAT)
    inverse = op.add("Rsqrt", op.add("Add", variance, epsilon))
    normal = op.mul(op.add("Sub", x, mean), inverse)

    def projected(ref: str) -> str:
        if not trained:
            return ref
        along = op.mul(normal, average(op.mul(ref, normal)))
        return op.add("Sub", op.add("Sub", ref, average(ref)), along)

    slope, moved = op.mul(scale, inverse), projected(dy)
    by_dy = op.add("Add", op.mul(slope, projected(by_image)), op.add("Add", op.mul(by_scale, normal), by_offset))
    by_normal = op.mul(by_scale, dy)
    if trained:
        shared = [op.mul(ref, average(op.mul(other, normal))) for ref, other in ((by_image, dy), (dy, by_image))]
        by_normal = op.add("Sub", by_normal, op.mul(slope, op.add("Add", *shared)))
    by_x = op.mul(inverse, projected(by_normal))
    weighted = op.mul(by_image, moved)
    if trained:
        by_x = op.add("Sub", by_x, op.mul(slope, inverse, normal, average(weighted)))
    by_slope = op.add("Sum", op.mul(inverse, weighted), axes)
    kinds = map(op.dtype_of_input, range(3))
    return [op.cast(ref, kind) for ref, kind in zip((by_dy, by_x, by_slope), kinds, strict=True)]


@gradient("BatchNormWithGlobalNormalization")
def batch_norm(op: NodeGradient) -> list[str | None]:
    image, mean, variance, _, gamma = op.inputs
    found = op.add(
        "BatchNormWithGlobalNormalizationGrad", image, mean, variance, gamma, op.grad,
        **op.attrs("variance_epsilon", "scale_after_normalization"),
    )  # fmt: skip
    return [found, *(f"{found}:{port}" for port in range(1, 5))]


@gradient("LRN")
def local_response_normalization(op: NodeGradient) -> str:
    layer = op.attrs("depth_radius", "bias", "alpha", "beta")
    return op.add("LRNGrad", op.grad, op.inputs[0], op.output(), **layer)


@gradient("BlockLSTM", "BlockLSTMV2")
def block_lstm(op: NodeGradient) -> list[str | None]:
    outputs = [op.output(port) for port in range(7)]
    backwards = op.node.op.replace("LSTM", "LSTMGrad")
    found = op.add(backwards, *op.inputs, *outputs, op.grad_of(1), op.grad_of(6), **op.attrs("use_peephole"))
    return [None, found, *(f"{found}:{port}" for port in range(1, 8))]


gradient("Relu", "Relu6", "Elu", "Selu")(lambda op: op.add(f"{op.node.op}Grad", op.grad, op.output()))
gradient("LeakyRelu")(lambda op: op.add("LeakyReluGrad", op.grad, op.inputs[0], **op.attrs("alpha")))
gradient("Softplus", "Softsign")(lambda op: op.add(f"{op.node.op}Grad", op.grad, op.inputs[0]))
gradient("ReluGrad", "Relu6Grad")(lambda op: (op.add(op.node.op, op.grad, op.inputs[1]), op.zeros(op.inputs[1])))


@gradient("LeakyReluGrad")
def leaky_relu_grad(op: NodeGradient) -> tuple[str, str]:
    return op.add("LeakyReluGrad", op.grad, op.inputs[1], **op.attrs("alpha")), op.zeros(op.inputs[1])


@gradient("EluGrad", "SeluGrad")
def elu_grad(op: NodeGradient) -> tuple[str, str]:
    """Of dy times what y says of the slope: below 0 it rises with y as y itself does."""
    dy, y = op.inputs
    by_y = op.add("Select", op.add("Less", y, op.number(0)), op.mul(op.grad, dy), op.zeros(y))
    return op.add(op.node.op, op.grad, y), by_y


@gradient("SoftplusGrad")
def softplus_grad(op: NodeGradient) -> tuple[str, str]:
    """Of ``dy sigmoid(x)``: by x, ``dy / (exp(-x) + 2 + exp(x))``."""
    dy, x = op.inputs
    both = op.add("Add", op.add("Exp", op.add("Neg", x)), op.add("Exp", x))
    slope = op.add("RealDiv", op.mul(op.grad, dy), op.add("Add", both, op.number(2)))
    return op.add("SoftplusGrad", op.grad, x), slope


@gradient("Softmax")
def softmax(op: NodeGradient) -> str:
    weighted = op.add("Sum", op.mul(op.grad, op.output()), op.const([-1]), keep_dims=True)
    return op.mul(op.add("Sub", op.grad, weighted), op.output())


@gradient("LogSoftmax")
def log_softmax(op: NodeGradient) -> str:
    total = op.add("Sum", op.grad, op.const([-1]), keep_dims=True)
    return op.add("Sub", op.grad, op.mul(total, op.add("Exp", op.output())))


@gradient("FakeQuantWithMinMaxArgs")
def fake_quantization(op: NodeGradient) -> str:
    """Straight through, inside the range."""
    layer = op.attrs("min", "max", "num_bits", "narrow_range")
    return op.add("FakeQuantWithMinMaxArgsGradient", op.grad, op.inputs[0], **layer)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quantization_by_tensors(op: NodeGradient) -> tuple[str, str, str]:
    found = op.add(f"{op.node.op}Gradient", op.grad, *op.inputs, **op.attrs("num_bits", "narrow_range"))
    return found, f"{found}:1", f"{found}:2"


gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")(lambda op: op.grad)


@gradient("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(op: NodeGradient) -> tuple[str, str]:
    logits = op.inputs[0]
    each = op.add("ExpandDims", op.grad, op.const(-1))
    by_logits = _and_of_the_slope(op, op.mul(each, op.output(1)), logits)
    return by_logits, op.mul(each, op.add("Neg", op.add("LogSoftmax", logits)))


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(op: NodeGradient) -> str:
    each = op.add("ExpandDims", op.grad, op.const(-1))
    return _and_of_the_slope(op, op.mul(each, op.output(1)), op.inputs[0])


def _and_of_the_slope(op: NodeGradient, by_logits: str, logits: str) -> str:
    """With what comes through the second output, the softmax less the labels, where somebody uses it."""
    slope = op.grads[1]
    if slope is None:
        return by_logits
    softmax = op.add("Softmax", logits)
    weighted = op.add("Sum", op.mul(slope, softmax), op.const([-1]), keep_dims=True)
    return op.add("Add", by_logits, op.mul(op.add("Sub", slope, weighted), softmax))


@gradient("CTCLoss")
def ctc_loss(op: NodeGradient) -> str:
    each = op.add("ExpandDims", op.add("ExpandDims", op.grad, op.const(0)), op.const(2))
    return op.mul(each, op.output(1))
