"""What layers of networks, pictures and boxes may be given."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType
from random_graphs.growth import Growth, UnfitError
from random_graphs.rules import SPATIAL, Given, index, rule


@rule("Softmax", "LogSoftmax")
def softmax(g: Growth) -> Given:
    return [g.tensor(g.types["T"], least=1)], {}


@rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(g: Growth) -> Given:
    x = g.nonempty(g.types["T"], 2)
    return [x, g.ordinary(g.types["T"], g.shape(x), 0, 1)], {}


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(g: Growth) -> Given:
    x = g.nonempty(g.types["T"], 2)
    rows, classes = g.shape(x)
    return [x, g.source(g.rng.integers(0, classes, rows), g.types["Tlabels"])], {}


@rule("BiasAdd", "BiasAddV1")
def bias(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=2)
    layout = g.pick([b"NHWC", b"NCHW"]) if len(g.shape(x)) > 2 else b"NHWC"
    return [x, g.like(g.types["T"], (g.shape(x)[1 if layout == b"NCHW" else -1],))], {"data_format": layout}


@rule("BiasAddGrad")
def bias_grad(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=2)
    return [x], {"data_format": g.pick([b"NHWC", b"NCHW"]) if len(g.shape(x)) > 2 else b"NHWC"}


def image(g: Growth, dtype: DType, layout: bytes = b"NHWC", channels: int | None = None, least: int = 1) -> str:
    n, h, w, c = g.int(1, 2), g.int(least, 8), g.int(least, 8), channels or g.int(1, 5)
    return g.new(dtype, (n, h, w, c) if layout == b"NHWC" else (n, c, h, w))


def windowed(g: Growth, height: int, width: int, layout: bytes, explicit: bool = False) -> dict[str, Any]:
    padding = g.pick([b"SAME", b"VALID"] + ([b"EXPLICIT"] if explicit else []))
    sh, sw = g.pick([(1, 1), (2, 2), (1, 2), (3, 1)])
    at = SPATIAL[layout]
    strides = [1, 1, 1, 1]
    strides[at[0]], strides[at[1]] = sh, sw
    pads = [0] * 8
    if padding == b"EXPLICIT":
        for axis in at:
            pads[2 * axis], pads[2 * axis + 1] = g.int(0, 2), g.int(0, 2)
    return {"padding": padding, "strides": tuple(strides), "data_format": layout,
            "explicit_paddings": tuple(pads) if padding == b"EXPLICIT" else ()}  # fmt: skip


@rule("Conv2D", "DepthwiseConv2dNative")
def conv(g: Growth) -> Given:
    x = image(g, g.types["T"], least=4)
    _, h, w, c = g.shape(x)
    kh, kw = g.int(1, 4), g.int(1, 4)
    depth, out = c, g.int(1, 4)
    attrs = windowed(g, h, w, b"NHWC", explicit=True)
    if g.op == "Conv2D":
        groups = g.pick([d for d in range(1, c + 1) if c % d == 0]) if g.chance(0.2) else 1
        depth, out = c // groups, out * groups
    elif attrs["strides"][1] != attrs["strides"][2]:
        attrs["strides"] = (1, 1, 1, 1)
    if g.chance(0.25):
        attrs["dilations"] = (1, g.int(1, 2), g.int(1, 2), 1)
        attrs["strides"] = (1, 1, 1, 1)
    return [x, g.new(g.types["T"], (kh, kw, depth, out))], attrs


@rule("Conv2DBackpropInput")
def conv_back(g: Growth) -> Given:
    h, w, c, out, kh, kw = (g.int(4, 8), g.int(4, 8), g.int(1, 4), g.int(1, 4), g.int(1, 3), g.int(1, 3))
    attrs = windowed(g, h, w, b"NHWC")
    sh, sw = attrs["strides"][1:3]
    same = attrs["padding"] == b"SAME"
    oh, ow = (-(-h // sh), -(-w // sw)) if same else (-(-(h - kh + 1) // sh), -(-(w - kw + 1) // sw))
    return [g.const([2, h, w, c]), g.new(g.types["T"], (kh, kw, c, out)), g.new(g.types["T"], (2, oh, ow, out))], attrs


@rule("AvgPool", "MaxPool", "MaxPoolV2", "MaxPoolWithArgmax")
def pool(g: Growth) -> Given:
    x = image(g, g.types["T"], least=4)
    height, width = g.shape(x)[1:3]
    attrs = windowed(g, height, width, b"NHWC")
    attrs.pop("explicit_paddings")
    ksize = (1, g.int(1, 4), g.int(1, 4), 1)
    return [x, g.const(ksize), g.const(attrs["strides"])], attrs | {"ksize": ksize}


@rule("Conv3D")
def conv3d(g: Growth) -> Given:
    x = g.new(g.types["T"], [g.int(1, 2), *(g.int(3, 5) for _ in range(3)), g.int(1, 3)])
    f = g.new(g.types["T"], [*(g.int(1, 3) for _ in range(3)), g.shape(x)[-1], g.int(1, 3)])
    return [x, f], {"strides": (1, g.int(1, 2), g.int(1, 2), g.int(1, 2), 1), "padding": g.pick([b"SAME", b"VALID"])}


@rule("AvgPool3D", "MaxPool3D")
def pool3d(g: Growth) -> Given:
    x = g.new(g.types["T"], [g.int(1, 2), *(g.int(3, 5) for _ in range(3)), g.int(1, 3)])
    size = (1, g.int(1, 3), g.int(1, 3), g.int(1, 3), 1)
    return [x], {
        "ksize": size,
        "strides": (1, g.int(1, 2), g.int(1, 2), g.int(1, 2), 1),
        "padding": g.pick([b"SAME", b"VALID"]),
    }


@rule("Dilation2D")
def dilation(g: Growth) -> Given:
    x = image(g, g.types["T"], least=5)
    f = g.new(g.types["T"], (g.int(1, 3), g.int(1, 3), g.shape(x)[-1]))
    return [x, f], {
        "strides": (1, g.int(1, 2), g.int(1, 2), 1),
        "rates": (1, g.int(1, 2), 1, 1),
        "padding": g.pick([b"SAME", b"VALID"]),
    }


@rule("ExtractImagePatches")
def patches(g: Growth) -> Given:
    return [image(g, g.types["T"], least=5)], {
        "ksizes": (1, g.int(1, 3), g.int(1, 3), 1), "strides": (1, g.int(1, 3), g.int(1, 2), 1),
        "rates": (1, g.int(1, 2), g.int(1, 2), 1), "padding": g.pick([b"SAME", b"VALID"])}  # fmt: skip


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(g: Growth) -> Given:
    x = image(g, g.types["T"], least=2)
    c, kind = g.shape(x)[-1], g.types.get("U", g.types["T"])
    training = g.chance()
    size = 0 if training else c
    statistics = [g.ordinary(kind, (size,), -1, 1), g.ordinary(kind, (size,), 0.1, 2)]
    return [x, g.new(kind, (c,)), g.new(kind, (c,)), *statistics], {"is_training": training, "epsilon": 1e-3}


@rule("BatchNormWithGlobalNormalization")
def old_batch_norm(g: Growth) -> Given:
    x, kind = image(g, g.types["T"]), g.types["T"]
    c = g.shape(x)[-1]
    rest = [g.new(kind, (c,)), g.ordinary(kind, (c,), 0.1, 2), g.new(kind, (c,)), g.new(kind, (c,))]
    return [x, *rest], {"variance_epsilon": 1e-3, "scale_after_normalization": g.chance()}


@rule("LRN")
def lrn(g: Growth) -> Given:
    return [image(g, g.types["T"])], {
        "depth_radius": g.int(0, 5),
        "bias": g.pick([1.0, 2.0]),
        "alpha": g.pick([1.0, 1e-2]),
        "beta": g.pick([0.5, 0.75, 1.0]),
    }


@rule("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")
def resize(g: Growth) -> Given:
    corners = g.chance(0.4)
    attrs = {"align_corners": corners, "half_pixel_centers": not corners and g.chance()}
    return [image(g, g.types["T"]), g.const([g.int(1, 12), g.int(1, 12)])], attrs


RESAMPLING = (b"lanczos1", b"lanczos3", b"lanczos5", b"gaussian", b"box", b"triangle", b"keyscubic", b"mitchellcubic")


@rule("ScaleAndTranslate", "ScaleAndTranslateGrad")
def scale_translate(g: Growth) -> Given:
    kind, real = g.types["T"], DType.named("float")
    given = [g.ordinary(real, (2,), 0.3, 3), g.ordinary(real, (2,), -3, 3)]
    attrs = {"kernel_type": g.pick(RESAMPLING), "antialias": g.chance()}
    x = image(g, kind)
    if g.op == "ScaleAndTranslate":
        return [x, g.const([g.int(1, 9), g.int(1, 9)]), *given], attrs
    n, _, _, c = g.shape(x)
    return [g.new(real, (n, g.int(1, 9), g.int(1, 9), c)), x, *given], attrs


@rule("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective(g: Growth) -> Given:
    x, real = image(g, g.types["dtype"]), DType.named("float")
    near_one = g.rng.standard_normal((g.pick([1, g.shape(x)[0]]), 8)) * [0.2, 0.2, 2, 0.2, 0.2, 2, 0.02, 0.02]
    near_one += [1, 0, 0, 0, 1, 0, 0, 0]
    inputs = [x, g.source(near_one, real), g.const([g.int(1, 9), g.int(1, 9)]), g.const(g.pick([0.0, 2.5]), real)]
    return inputs, {"interpolation": g.pick([b"NEAREST", b"BILINEAR"]),
                    "fill_mode": g.pick([b"CONSTANT", b"REFLECT", b"WRAP", b"NEAREST"])}  # fmt: skip


@rule("CropAndResize")
def crop(g: Growth) -> Given:
    count = g.int(0, 4)
    x = image(g, g.types["T"])
    boxes = g.ordinary(DType.named("float"), (count, 4), -0.3, 1.3)
    places = g.source(g.rng.integers(0, g.shape(x)[0], count), DType.named("int32"))
    return [x, boxes, places, g.const([g.int(1, 6), g.int(1, 6)])], {
        "method": g.pick([b"bilinear", b"nearest"]),
        "extrapolation_value": 0.5,
    }


@rule("DepthToSpace", "SpaceToDepth")
def depth_space(g: Growth) -> Given:
    block = g.int(2, 3)
    n, h, w, c = g.int(1, 2), block * g.int(1, 3), block * g.int(1, 3), block * block * g.int(1, 2)
    return [g.new(g.types["T"], (n, h, w, c))], {"block_size": block}


@rule("SpaceToBatchND")
def space_to_batch(g: Growth) -> Given:
    m = g.int(1, 2)
    block, pads = [g.int(1, 3) for _ in range(m)], [[g.int(0, 2), g.int(0, 2)] for _ in range(m)]
    spatial = [b * g.int(2, 3) - sum(p) for b, p in zip(block, pads, strict=True)]
    if min(spatial) < 1:
        raise UnfitError
    return [g.new(g.types["T"], [g.int(1, 2), *spatial, *(g.int(1, 3) for _ in range(g.int(0, 1)))]),
            g.const(block, index(g, "Tblock_shape")), g.const(pads, index(g, "Tpaddings"))], {}  # fmt: skip


@rule("BatchToSpaceND")
def batch_to_space(g: Growth) -> Given:
    m = g.int(1, 2)
    block = [g.int(1, 3) for _ in range(m)]
    crops = [[g.int(0, 1), g.int(0, 1)] for _ in range(m)]
    spatial = [g.int(3, 4) for _ in range(m)]
    return [g.new(g.types["T"], [int(np.prod(block)) * g.int(1, 2), *spatial, g.int(1, 2)]),
            g.const(block, index(g, "Tblock_shape")), g.const(crops, index(g, "Tcrops"))], {}  # fmt: skip


@rule("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
def suppression(g: Growth) -> Given:
    count, kind = g.int(0, 12), g.types.get("T", DType.named("float"))
    threshold = g.types.get("T_threshold", kind)
    inputs = [g.ordinary(kind, (count, 4), 0, 1), g.ordinary(kind, (count,), 0, 1), g.const(g.int(0, 12))]
    inputs += [g.ordinary(threshold, (), 0, 1), g.ordinary(threshold, (), 0, 0.5), g.const(g.pick([0.0, 0.5]), kind)]
    return inputs, {"iou_threshold": 0.5, "pad_to_max_output_size": g.chance()}


@rule("RGBToHSV", "HSVToRGB")
def colour(g: Growth) -> Given:
    return [g.ordinary(g.types["T"], [g.int(1, 4) for _ in range(g.int(0, 3))] + [3], 0, 1)], {}


@rule("AdjustContrastv2", "AdjustHue", "AdjustSaturation")
def adjust(g: Growth) -> Given:
    x = g.ordinary(g.types["T"], [g.int(1, 4) for _ in range(g.int(2, 3))] + [3], 0, 1)
    return [
        x,
        g.ordinary(DType.named("float"), (), -0.9, 0.9)
        if g.op == "AdjustHue"
        else g.ordinary(DType.named("float"), (), 0, 2),
    ], {}
