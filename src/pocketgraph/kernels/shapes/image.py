"""Shape rules of image, detection and audio ops."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import merge_dim, of_rank, product, window
from pocketgraph.kernels.shapes.rules import Call, shape_rule


@shape_rule("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "ExtractGlimpse")
def resize(call: Call) -> Shape:
    batch, _, _, channels = of_rank(call.shape(0), 4)
    height, width = of_rank(call.as_shape(1), 2)
    return Shape((batch, height, width, channels))


@shape_rule("CropAndResize")
def crop_and_resize(call: Call) -> Shape:
    channels = of_rank(call.shape(0), 4)[3]
    boxes = merge_dim(of_rank(call.shape(1), 2)[0], of_rank(call.shape(2), 1)[0])
    height, width = of_rank(call.as_shape(3), 2)
    return Shape((boxes, height, width, channels))


@shape_rule("ExtractImagePatches")
def extract_patches(call: Call) -> Shape:
    batch, *space, channels = of_rank(call.shape(0), 4)
    sizes, strides, rates = call.attr("ksizes"), call.attr("strides"), call.attr("rates")
    padding = call.attr("padding")
    out = [window(space[i - 1], sizes[i], strides[i], padding, dilation=rates[i]) for i in (1, 2)]
    return Shape((batch, *out, product(channels, sizes[1], sizes[2])))


@shape_rule("DrawBoundingBoxes", "DrawBoundingBoxesV2", "AdjustContrast")
def same_image(call: Call) -> Shape:
    return call.shape(0)


@shape_rule("DecodeJpeg", "DecodePng", "DecodeBmp", "DecodeAndCropJpeg")
def decode_image(call: Call) -> Shape:
    return Shape((None, None, call.attr("channels", 0) or None))


@shape_rule("DecodeGif")
def decode_gif(call: Call) -> Shape:
    return Shape((None, None, None, 3))


@shape_rule("EncodeJpeg", "EncodePng", "ReadFile", "StringFormat")
def one_string(call: Call) -> Shape:
    return SCALAR


@shape_rule("DecodeRaw")
def decode_raw(call: Call) -> Shape:
    shape = call.shape(0)
    return UNKNOWN if shape.dims is None else Shape((*shape.dims, None))


@shape_rule("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps")
def non_max_suppression(call: Call) -> Shape:
    return Shape((None,))


@shape_rule("NonMaxSuppressionV4")
def non_max_suppression_padded(call: Call) -> Sequence[Shape]:
    padded = call.attr("pad_to_max_output_size", False)
    return [Shape((call.integer(2) if padded else None,)), SCALAR]


@shape_rule("NonMaxSuppressionV5")
def non_max_suppression_soft(call: Call) -> Sequence[Shape]:
    size = Shape((call.integer(2) if call.attr("pad_to_max_output_size", False) else None,))
    return [size, size, SCALAR]


@shape_rule("CombinedNonMaxSuppression")
def combined_non_max_suppression(call: Call) -> Sequence[Shape]:
    batch, each = of_rank(call.shape(0), 4)[0], call.integer(2)
    classes, limit = of_rank(call.shape(1), 3)[2], call.integer(3)
    count = limit
    if call.attr("pad_per_class", False):
        count = None if None in (each, classes, limit) else min(limit or 0, (each or 0) * (classes or 0))
    return [Shape((batch, count, 4)), Shape((batch, count)), Shape((batch, count)), Shape((batch,))]


@shape_rule("AudioSpectrogram")
def spectrogram(call: Call) -> Shape:
    samples, channels = of_rank(call.shape(0), 2)
    size, stride = int(call.attr("window_size")), int(call.attr("stride"))
    frames = None if samples is None else max(0, 1 + (samples - size) // stride) if samples >= size else 0
    return Shape((channels, frames, 1 + _power_of_two(size) // 2))


@shape_rule("AudioMicrofrontend")
def microfrontend(call: Call) -> Shape:
    (samples,) = of_rank(call.shape(0), 1)
    rate = int(call.attr("sample_rate", 16000))
    size, step = (int(call.attr(f"window_{n}", d)) * rate // 1000 for n, d in (("size", 25), ("step", 10)))
    stride, around = int(call.attr("frame_stride", 1)), call.attr("left_context", 0) + call.attr("right_context", 0)
    width = call.attr("num_channels", 32) * (1 + around)
    if samples is None or step < 1 or stride < 1:
        return Shape((None, width))
    frames = (samples - size) // step + 1 if samples >= size else 0
    return Shape((-(-frames // stride), width))


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


@shape_rule("Mfcc")
def mfcc(call: Call) -> Shape:
    channels, frames, _ = of_rank(call.shape(0), 3)
    return Shape((channels, frames, call.attr("dct_coefficient_count", 13)))


@shape_rule("DecodeWav")
def decode_wav(call: Call) -> Sequence[Shape]:
    samples, channels = call.attr("desired_samples", -1), call.attr("desired_channels", -1)
    return [Shape((samples if samples >= 0 else None, channels if channels >= 0 else None)), SCALAR]
