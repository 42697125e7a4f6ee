"""Shape rules of WAV files, spectrograms and features of sound."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import of_rank
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule


@shape_rule("AudioSpectrogram")
def spectrogram(call: ShapeCall) -> Shape:
    samples, channels = of_rank(call.shape(0), 2)
    size, stride = int(call.attr("window_size")), int(call.attr("stride"))
    frames = None if samples is None else max(0, 1 + (samples - size) // stride) if samples >= size else 0
    return Shape((channels, frames, 1 + (1 << max(0, size - 1).bit_length()) // 2))


@shape_rule("AudioMicrofrontend")
def microfrontend(call: ShapeCall) -> Shape:
    (samples,) = of_rank(call.shape(0), 1)
    rate = int(call.attr("sample_rate", 16000))
    size, step = (int(call.attr(f"window_{n}", d)) * rate // 1000 for n, d in (("size", 25), ("step", 10)))
    stride, around = int(call.attr("frame_stride", 1)), call.attr("left_context", 0) + call.attr("right_context", 0)
    width = call.attr("num_channels", 32) * (1 + around)
    if samples is None or step < 1 or stride < 1:
        return Shape((None, width))
    frames = (samples - size) // step + 1 if samples >= size else 0
    return Shape((-(-frames // stride), width))


@shape_rule("Mfcc")
def mfcc(call: ShapeCall) -> Shape:
    channels, frames, _ = of_rank(call.shape(0), 3)
    return Shape((channels, frames, call.attr("dct_coefficient_count", 13)))


@shape_rule("DecodeWav")
def decode_wav(call: ShapeCall) -> Sequence[Shape]:
    samples, channels = call.attr("desired_samples", -1), call.attr("desired_channels", -1)
    return [Shape((samples if samples >= 0 else None, channels if channels >= 0 else None)), SCALAR]
