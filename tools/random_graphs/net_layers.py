"""Layers of random networks in either layout: what a block of a trained network is written with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from random_graphs.programs import FLOAT, INT, Program

ACTIVATIONS = (
    "Relu", "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Sigmoid", "Tanh", "Softplus", "Softsign", "prelu",
    "prelu_cut", "leaky_max", "leaky_sum", "swish", "hard_swish", "hard_sigmoid", "gelu", "mish", "clip",
    "clip_by_value",
)  # fmt: skip

WINDOWS = ((1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (5, 5), (2, 2), (1, 3), (3, 1), (4, 3), (7, 7))


@dataclass
class Map:
    """A feature map: where it comes from, and its sizes whatever its layout."""

    ref: str
    n: int
    h: int
    w: int
    c: int


class Layers:
    """Writes layers into a program, all in one layout.

    Attributes:
        p: the program.
        nchw: whether channels come before rows and columns.
    """

    def __init__(self, p: Program, nchw: bool) -> None:
        self.p = p
        self.nchw = nchw
        self.layout = b"NCHW" if nchw else b"NHWC"

    def op(self, op: str, inputs: Sequence[str], **attrs: Any) -> str:
        return self.p.add(op, inputs, T=FLOAT, **attrs)

    def number(self, value: Any) -> str:
        return self.p.const(value, FLOAT)

    def weights(self, *shape: int, fan_in: int = 1) -> str:
        return self.number(self.p.rng.standard_normal(shape) / np.sqrt(max(fan_in, 1)))

    def uniform(self, low: float, high: float, *shape: int) -> str:
        return self.number(self.p.rng.uniform(low, high, shape))

    def shape(self, x: Map) -> list[int]:
        return [x.n, x.c, x.h, x.w] if self.nchw else [x.n, x.h, x.w, x.c]

    def four(self, n: Any, h: Any, w: Any, c: Any) -> tuple[Any, ...]:
        return (n, c, h, w) if self.nchw else (n, h, w, c)

    def spatial(self) -> list[int]:
        return [2, 3] if self.nchw else [1, 2]

    def by_channel(self, low: float, high: float, c: int) -> str:
        """One number a channel, in a shape that broadcasts over a map."""
        if self.nchw:
            return self.uniform(low, high, *self.p.pick([(c, 1, 1), (1, c, 1, 1)]))
        return self.uniform(low, high, *self.p.pick([(c,), (c,), (1, 1, 1, c), (1, c)]))

    # Convolutions

    def padding(self, x: Map, kh: int, kw: int, explicit: bool = True) -> tuple[dict[str, Any], tuple[int, ...] | None]:
        """Attributes, and the pads (top, bottom, left, right) when they are written out."""
        fits = x.h >= kh and x.w >= kw
        kind = self.p.pick([b"SAME", b"SAME", *([b"VALID"] if fits else []), *([b"EXPLICIT"] if explicit else [])])
        if kind != b"EXPLICIT":
            return {"padding": kind}, None
        pads = tuple(self.p.int(0, k // 2) if fits else k for k in (kh, kh, kw, kw))
        wanted = self.four((0, 0), pads[:2], pads[2:], (0, 0))
        return {"padding": kind, "explicit_paddings": tuple(v for pair in wanted for v in pair)}, pads

    @staticmethod
    def reached(size: int, window: int, stride: int, padding: bytes, pads: tuple[int, ...]) -> int:
        if padding == b"SAME":
            return -(-size // stride)
        return (size + sum(pads) - window) // stride + 1

    def conv(self, x: Map, out: int | None = None, size: int | None = None, depthwise: bool = False) -> Map:
        p = self.p
        kh, kw = (size, size) if size else p.pick(WINDOWS)
        stride = (1, 1) if size else p.pick([(1, 1), (1, 1), (2, 2), (2, 2), (3, 3)])
        if not depthwise and not size and p.chance(0.1):
            stride = p.pick([(1, 2), (2, 1)])
        dilates = stride == (1, 1) and not size and not depthwise  # TensorFlow's CPU kernel dilates no depthwise ones
        rates = p.pick([(2, 2), (1, 2), (3, 2), (2, 1)]) if dilates and p.chance(0.2) else (1, 1)
        window = tuple((k - 1) * r + 1 for k, r in zip((kh, kw), rates, strict=True))
        attrs, pads = self.padding(x, *window)
        pads = pads or (0, 0, 0, 0)
        h = self.reached(x.h, window[0], stride[0], attrs["padding"], pads[:2])
        w = self.reached(x.w, window[1], stride[1], attrs["padding"], pads[2:])
        attrs |= {
            "strides": self.four(1, stride[0], stride[1], 1),
            "dilations": self.four(1, rates[0], rates[1], 1),
            "data_format": self.layout,
        }
        if depthwise:
            times = p.pick([1, 1, 1, 2, 3])
            weights = self.weights(kh, kw, x.c, times, fan_in=kh * kw)
            return Map(self.op("DepthwiseConv2dNative", [x.ref, weights], **attrs), x.n, h, w, x.c * times)
        out = out or p.pick([1, 2, 3, 4, 6, 8, 12, 16, 24, 33])
        groups = p.pick([g for g in range(1, x.c + 1) if x.c % g == 0]) if p.chance(0.1) else 1
        out = -(-out // groups) * groups
        weights = self.weights(kh, kw, x.c // groups, out, fan_in=kh * kw * x.c // groups)
        return Map(self.op("Conv2D", [x.ref, weights], **attrs), x.n, h, w, out)

    def padded_conv(self, x: Map) -> Map:
        """Pad, then a convolution of its own without padding, as tf.slim's fixed_padding writes it."""
        p, k = self.p, self.p.pick([3, 3, 5, 7])
        before, after = p.pick([((k - 1) // 2, k // 2), (p.int(0, k), p.int(0, k))])
        op = p.pick(["Pad", "Pad", "PadV2", "MirrorPad"])
        if op == "MirrorPad":
            before, after = min(before, x.h - 1, x.w - 1), min(after, x.h - 1, x.w - 1)
        pads = p.const(self.four((0, 0), (before, after), (before, after), (0, 0)))
        more = {"MirrorPad": {"mode": p.pick([b"REFLECT", b"SYMMETRIC"])}}.get(op, {})
        inputs = [x.ref, pads, *([self.number(p.pick([0.0, 0.5, -1.0]))] if op == "PadV2" else [])]
        padded = Map(self.op(op, inputs, Tpaddings=INT, **more), x.n, x.h + before + after, x.w + before + after, x.c)
        if padded.h < k or padded.w < k:
            return padded
        stride, depthwise = p.pick([1, 2, 2]), p.chance(0.4)
        out = x.c if depthwise else p.pick([3, 8, 16])
        attrs = {"strides": self.four(1, stride, stride, 1), "padding": b"VALID", "data_format": self.layout}
        shape = (k, k, x.c, 1) if depthwise else (k, k, x.c, out)
        weights = self.weights(*shape, fan_in=k * k * (1 if depthwise else x.c))
        ref = self.op("DepthwiseConv2dNative" if depthwise else "Conv2D", [padded.ref, weights], **attrs)
        return Map(ref, x.n, (padded.h - k) // stride + 1, (padded.w - k) // stride + 1, out)

    def batched_dilation(self, x: Map) -> Map:
        """SpaceToBatchND, a convolution, BatchToSpaceND: how TensorFlow 1 wrote dilated convolutions."""
        p, k, rate = self.p, 3, self.p.int(2, 3)
        reach = rate * (k - 1)
        same = p.chance(0.7)
        if not same and min(x.h, x.w) <= reach:
            same = True
        before = reach // 2 if same else 0
        first = [before, before]
        last = [(-(size + before + (reach - before if same else 0))) % rate for size in (x.h, x.w)]
        crops = [[0, extra] for extra in last]
        pads = [[b, (reach - b if same else 0) + extra] for b, extra in zip(first, last, strict=True)]
        depthwise = p.chance(0.4)
        out = x.c if depthwise else p.pick([2, 5, 8, 16])
        spread = p.add("SpaceToBatchND", [x.ref, p.const([rate, rate]), p.const(pads)],
                       T=FLOAT, Tblock_shape=INT, Tpaddings=INT)  # fmt: skip
        weights = self.weights(k, k, x.c, 1 if depthwise else out, fan_in=k * k * (1 if depthwise else x.c))
        attrs = {"strides": (1, 1, 1, 1), "padding": b"VALID", "data_format": b"NHWC"}
        y = self.op("DepthwiseConv2dNative" if depthwise else "Conv2D", [spread, weights], **attrs)
        if p.chance():
            y = self.op("BiasAdd", [y, self.weights(out)], data_format=b"NHWC")
        back = p.add("BatchToSpaceND", [y, p.const([rate, rate]), p.const(crops)],
                     T=FLOAT, Tblock_shape=INT, Tcrops=INT)  # fmt: skip
        lost = 0 if same else reach
        return Map(back, x.n, x.h - lost, x.w - lost, out)

    def transposed(self, x: Map) -> Map:
        p, k, s = self.p, self.p.pick([2, 3, 4, 5]), self.p.pick([1, 2, 2, 3])
        same = p.chance(0.6)
        h, w = (x.h * s, x.w * s) if same else ((x.h - 1) * s + k, (x.w - 1) * s + k)
        if same and p.chance(0.3):
            h, w = h - p.int(0, s - 1), w - p.int(0, s - 1)
        elif not same and p.chance(0.3):
            h, w = h + p.int(0, s - 1), w + p.int(0, s - 1)
        out = p.pick([1, 3, 4, 8, 16])
        weights = self.weights(k, k, out, x.c, fan_in=k * k * x.c // (s * s) or 1)
        attrs = {"strides": self.four(1, s, s, 1), "padding": b"SAME" if same else b"VALID", "data_format": self.layout}
        sizes = p.const(self.four(x.n, h, w, out))
        if p.chance(0.3):  # the batch is read from the input, as Keras does it
            whole = p.add("Shape", [x.ref], T=FLOAT, out_type=INT)
            bounds = [p.const([v]) for v in (0, 1, 1)]
            batch = p.add("StridedSlice", [whole, *bounds], T=INT, Index=INT, shrink_axis_mask=1)
            parts = [batch, *(p.const(v) for v in self.four(x.n, h, w, out)[1:])]
            sizes = p.add("Pack", parts, T=INT, N=4, axis=0)
        return Map(self.op("Conv2DBackpropInput", [sizes, weights, x.ref], **attrs), x.n, h, w, out)

    # What follows a convolution

    def shifted(self, x: Map) -> Map:
        """A bias, a batch norm or what folding has left of one."""
        p = self.p
        kind = p.pick(["bias", "bias", "add", "norm", "norm", "norm", "scale", "old_norm", "sub", "div", "none"])
        ref = x.ref
        if kind == "bias":
            ref = self.op("BiasAdd", [ref, self.weights(x.c)], data_format=self.layout)
        elif kind in ("add", "sub"):
            pair = [ref, self.by_channel(-1, 1, x.c)]
            ref = self.op(p.pick(["Add", "AddV2"]) if kind == "add" else "Sub",
                          pair[::-1] if p.chance(0.3) else pair)  # fmt: skip
        elif kind == "norm":
            ref = self.batch_norm(ref, x.c)
        elif kind in ("scale", "div"):
            ref = self.op("Mul" if kind == "scale" else "RealDiv", [ref, self.by_channel(0.5, 2, x.c)])
            ref = self.op("AddV2", [self.by_channel(-1, 1, x.c), ref])
        elif kind == "old_norm":
            factor = self.op("Rsqrt", [self.op("AddV2", [self.by_channel(0.3, 2, x.c), self.number(1e-3)])])
            factor = self.op("Mul", [factor, self.by_channel(0.5, 2, x.c)])
            shift = self.op("Sub", [self.by_channel(-1, 1, x.c), self.op("Mul", [self.by_channel(-1, 1, x.c), factor])])
            ref = self.op("AddV2", [self.op("Mul", [ref, factor]), shift])
        return Map(ref, x.n, x.h, x.w, x.c)

    def batch_norm(self, ref: str, c: int) -> str:
        op = self.p.pick(["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
        numbers = [self.uniform(0.5, 1.5, c), self.uniform(-1, 1, c), self.uniform(-1, 1, c), self.uniform(0.3, 2, c)]
        more = {} if op == "FusedBatchNorm" else {"U": FLOAT}
        return self.op(
            op, [ref, *numbers], is_training=False, epsilon=self.p.pick([1e-3, 1e-5]), data_format=self.layout, **more
        )

    def activation(self, x: Map, kind: str = "") -> Map:
        p, ref = self.p, x.ref
        kind = kind or p.pick(ACTIVATIONS)
        slope = self.number(p.pick([0.1, 0.2, 0.01]))
        if kind == "LeakyRelu":
            ref = self.op(kind, [ref], alpha=p.pick([0.2, 0.1, 0.01]))
        elif kind == "prelu":
            part = self.op("Mul", [self.by_channel(-0.3, 0.5, x.c), self.op("Sub", [ref, self.op("Abs", [ref])])])
            ref = self.op("Add", [self.op("Relu", [ref]), self.op("Mul", [part, self.number(0.5)])])
        elif kind == "prelu_cut":
            below = self.op("Relu", [self.op("Neg", [ref])])
            part = self.op("Mul", [self.op("Neg", [self.by_channel(-0.3, 0.5, x.c)]), below])
            ref = self.op("AddV2", [self.op("Relu", [ref]), part])
        elif kind == "leaky_max":
            ref = self.op("Maximum", [self.op("Mul", [ref, slope]), ref])
        elif kind == "leaky_sum":
            ref = self.op(
                "Sub", [self.op("Relu", [ref]), self.op("Mul", [slope, self.op("Relu", [self.op("Neg", [ref])])])]
            )
        elif kind == "swish":
            ref = self.op("Mul", [ref, self.op("Sigmoid", [ref])])
        elif kind in ("hard_swish", "hard_sigmoid"):
            part = self.op("Relu6", [self.op("AddV2", [ref, self.number(3.0)])])
            part = (
                self.op("Mul", [part, self.number(1 / 6)])
                if p.chance()
                else self.op("RealDiv", [part, self.number(6.0)])
            )
            ref = self.op("Mul", [ref, part]) if kind == "hard_swish" else part
        elif kind == "gelu":
            part = self.op("Erf", [self.op("Mul", [ref, self.number(0.70710678)])])
            ref = self.op("Mul", [self.op("Mul", [self.number(0.5), ref]), self.op("AddV2", [self.number(1.0), part])])
        elif kind == "mish":
            ref = self.op("Mul", [ref, self.op("Tanh", [self.op("Softplus", [ref])])])
        elif kind == "clip":
            low, high = p.pick([(0.0, 6.0), (-1.0, 1.0), (0.0, 1.0), (-0.5, 2.0)])
            ref = self.op("Minimum", [self.op("Maximum", [ref, self.number(low)]), self.number(high)])
        elif kind == "clip_by_value":
            ref = self.op("ClipByValue", [ref, self.number(p.pick([0.0, -1.0])), self.number(p.pick([1.0, 6.0]))])
        else:
            ref = self.op(kind, [ref])
        return Map(ref, x.n, x.h, x.w, x.c)

    # Pools, sizes and mixtures

    def pool(self, x: Map) -> Map:
        p = self.p
        kh, kw = p.pick([(2, 2), (3, 3), (3, 3), (2, 3), (5, 5), (1, 2)])
        sh, sw = p.pick([(1, 1), (2, 2), (2, 2), (3, 2)])
        padding = b"VALID" if x.h >= kh and x.w >= kw and p.chance() else b"SAME"
        attrs = {"ksize": self.four(1, kh, kw, 1), "strides": self.four(1, sh, sw, 1), "padding": padding}
        ref = self.op(p.pick(["MaxPool", "AvgPool"]), [x.ref], data_format=self.layout, **attrs)
        h, w = self.reached(x.h, kh, sh, padding, (0,)), self.reached(x.w, kw, sw, padding, (0,))
        return Map(ref, x.n, h, w, x.c)

    def overall(self, x: Map, op: str = "Mean", keep: bool = True) -> str:
        axes = self.p.const(self.spatial())
        return self.p.add(op, [x.ref, axes], T=FLOAT, Tidx=INT, keep_dims=keep)

    def squeezed(self, x: Map) -> Map:
        """Squeeze and excitation: channels weighed by what is in the whole picture."""
        few = max(1, x.c // 2)
        small = Map(self.overall(x), x.n, 1, 1, x.c)
        small = self.activation(self.shifted(self.conv(small, few, 1)), "Relu")
        gate = self.activation(
            self.conv(Map(small.ref, x.n, 1, 1, small.c), x.c, 1), self.p.pick(["Sigmoid", "hard_sigmoid"])
        )
        if gate.c != x.c or gate.h != 1 or gate.w != 1:
            return x
        return Map(self.op("Mul", [x.ref, gate.ref]), x.n, x.h, x.w, x.c)

    def instance_norm(self, x: Map) -> Map:
        mean = self.overall(x)
        spread = self.overall(Map(self.op("SquaredDifference", [x.ref, mean]), x.n, x.h, x.w, x.c))
        factor = self.op("Rsqrt", [self.op("AddV2", [spread, self.number(1e-3)])])
        y = self.op("Mul", [self.op("Sub", [x.ref, mean]), factor])
        y = self.op("AddV2", [self.op("Mul", [y, self.by_channel(0.5, 1.5, x.c)]), self.by_channel(-1, 1, x.c)])
        return Map(y, x.n, x.h, x.w, x.c)

    def normalized(self, x: Map) -> Map:
        """To length 1 over the channels."""
        square = self.p.add("Sum", [self.op("Square", [x.ref]), self.p.const(1 if self.nchw else self.p.pick([3, -1]))],
                            T=FLOAT, Tidx=INT, keep_dims=True)  # fmt: skip
        length = self.op("Rsqrt", [self.op("Maximum", [square, self.number(1e-6)])])
        return Map(self.op("Mul", [x.ref, length]), x.n, x.h, x.w, x.c)

    def shuffled(self, x: Map) -> Map:
        """Channels of groups mixed, as ShuffleNet does."""
        p = self.p
        groups = p.pick([g for g in (2, 3, 4) if x.c % g == 0] or [1])
        sizes = [x.n, groups, x.c // groups, x.h, x.w] if self.nchw else [x.n, x.h, x.w, groups, x.c // groups]
        order = [0, 2, 1, 3, 4] if self.nchw else [0, 1, 2, 4, 3]
        y = p.add("Reshape", [x.ref, p.const(sizes)], T=FLOAT, Tshape=INT)
        y = p.add("Transpose", [y, p.const(order)], T=FLOAT, Tperm=INT)
        return Map(p.add("Reshape", [y, p.const(self.shape(x))], T=FLOAT, Tshape=INT), x.n, x.h, x.w, x.c)

    def resized(self, x: Map) -> Map:
        """Only where channels come last; TensorFlow resizes nothing else."""
        p = self.p
        h, w = p.pick([(x.h * 2, x.w * 2), (p.int(1, 20), p.int(1, 20)), (max(1, x.h // 2), max(1, x.w // 2))])
        corners = p.chance(0.3)
        op = p.pick(["ResizeBilinear", "ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"])
        more = {} if op == "ResizeArea" else {"half_pixel_centers": not corners and p.chance()}
        ref = self.op(op, [x.ref, p.const([h, w])], align_corners=corners, **more)
        return Map(ref, x.n, h, w, x.c)

    def blocks(self, x: Map) -> Map:
        p, size = self.p, 2
        if x.c % 4 == 0 and p.chance():
            ref = self.op("DepthToSpace", [x.ref], block_size=size, data_format=b"NHWC")
            return Map(ref, x.n, x.h * 2, x.w * 2, x.c // 4)
        if x.h % 2 or x.w % 2:
            return self.cropped(x)
        ref = self.op("SpaceToDepth", [x.ref], block_size=size, data_format=b"NHWC")
        return Map(ref, x.n, x.h // 2, x.w // 2, x.c * 4)

    def cropped(self, x: Map) -> Map:
        p = self.p
        top, left = p.int(0, x.h // 2), p.int(0, x.w // 2)
        sh, sw = p.pick([(1, 1), (1, 1), (2, 2), (1, 2)])
        h, w = -(-(x.h - top) // sh), -(-(x.w - left) // sw)
        begin, end = self.four(0, top, left, 0), self.four(0, 0, 0, 0)
        ref = p.add("StridedSlice", [x.ref, p.const(begin), p.const(end), p.const(self.four(1, sh, sw, 1))],
                    T=FLOAT, Index=INT, end_mask=15)  # fmt: skip
        return Map(ref, x.n, h, w, x.c)

    def parted(self, x: Map) -> list[Map]:
        """The channels in two parts."""
        p, axis = self.p, 1 if self.nchw else 3
        if x.c % 2 == 0 and p.chance(0.7):
            name = p.add("Split", [p.const(axis), x.ref], T=FLOAT, num_split=2)
            sizes = [x.c // 2, x.c // 2]
        else:
            first = p.int(1, max(1, x.c - 1))
            sizes = [first, x.c - first]
            name = p.add("SplitV", [x.ref, p.const(sizes), p.const(axis)], T=FLOAT, Tlen=INT, num_split=2)
        return [Map(name if n == 0 else f"{name}:1", x.n, x.h, x.w, c) for n, c in enumerate(sizes) if c]

    def joined(self, maps: Sequence[Map]) -> Map:
        if len(maps) == 1:
            return maps[0]
        axis = 1 if self.nchw else self.p.pick([3, 3, -1])
        ref = self.p.add("ConcatV2", [*(m.ref for m in maps), self.p.const(axis)], T=FLOAT, Tidx=INT, N=len(maps))
        first = maps[0]
        return Map(ref, first.n, first.h, first.w, sum(m.c for m in maps))

    def selected(self, x: Map) -> Map:
        """Where: one thing above a threshold, another below."""
        test = self.op("Greater", [x.ref, self.number(0.1)])
        other = self.op("Mul", [x.ref, self.number(0.5)])
        ref = self.p.add("SelectV2", [test, x.ref, other], T=FLOAT) if self.p.chance() else self.p.add(
            "Select", [test, x.ref, other], T=FLOAT)  # fmt: skip
        return Map(ref, x.n, x.h, x.w, x.c)
