"""Convolutions, products, pools and normalization of channels-first images."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.translation import Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.operands import KNOWN

RANKS = range(3, 6)
"""Axes of an image with one, two or three spatial ones."""


def pads(operation: OnnxOperation, count: int) -> list[int]:
    """Core ML's pads, before and after by axis; ONNX has all before and then all after."""
    given = operation.attrs.get("pads") or [0] * 2 * count
    return [int(number) for pair in zip(given[:count], given[count:], strict=True) for number in pair]


def window(operation: OnnxOperation, count: int) -> dict[str, Any]:
    """Strides and padding of a convolution or a pool."""
    made: dict[str, Any] = {"strides": list(operation.attrs.get("strides") or [1] * count)}
    if operation.attrs.get("auto_pad") == "SAME_UPPER":
        return {**made, "pad_type": "same"}
    return {**made, "pad_type": "custom", "pad": pads(operation, count)}


@translates("Conv")
def convolution(to: Translation, operation: OnnxOperation, x: Any, weight: Any) -> Any:
    count = weight.rank - 2
    inputs = window(operation, count)
    if operation.attrs.get("dilations"):
        inputs["dilations"] = list(operation.attrs["dilations"])
    if to.optional(operation, 2) is not None:
        inputs["bias"] = to.input(operation, 2)
    return to.op("conv", x=x, weight=weight, groups=int(operation.attrs.get("group", 1)), **inputs)


@translates("ConvTranspose")
def transposed_convolution(to: Translation, operation: OnnxOperation, x: Any, weight: Any) -> Any:
    """What ONNX's padding cuts off is cut off; where less is made than asked for, zeros are put behind."""
    count = weight.rank - 2
    if operation.attrs.get("auto_pad"):
        raise to.unsupported(f"the size that it is to make must be {KNOWN}")
    amounts = pads(operation, count)
    extra = list(operation.attrs.get("output_padding") or [0] * count)
    missing = []
    for axis, more in enumerate(extra):
        after = amounts[2 * axis + 1] - more
        amounts[2 * axis + 1] = max(after, 0)
        missing += [0, max(-after, 0)]
    made = to.op(
        "conv_transpose", x=x, weight=weight, groups=int(operation.attrs.get("group", 1)), pad_type="custom",
        pad=amounts, strides=list(operation.attrs.get("strides") or [1] * count),
        dilations=list(operation.attrs.get("dilations") or [1] * count),
    )  # fmt: skip
    if any(missing):
        made = to.op("pad", x=made, pad=[0, 0, 0, 0, *missing], mode="constant", constant_val=np.float32(0))
    if to.optional(operation, 2) is not None:
        bias = to.static(operation, 2, "its bias").reshape(-1, *[1] * count)
        made = to.op("add", x=made, y=bias)
    return made


@translates("MatMul")
def product(to: Translation, operation: OnnxOperation, a: Any, b: Any) -> Any:
    if not to.is_float(a):
        raise to.unsupported("a product of matrices of integers")
    return to.op("matmul", x=a, y=b)


@translates("Gemm")
def general_product(to: Translation, operation: OnnxOperation) -> Any:
    attrs = operation.attrs
    made = to.op(
        "matmul", x=to.input(operation, 0), y=to.input(operation, 1), transpose_x=bool(attrs.get("transA")),
        transpose_y=bool(attrs.get("transB")),
    )  # fmt: skip
    if attrs.get("alpha", 1.0) != 1.0:
        made = to.op("mul", x=made, y=np.float32(attrs["alpha"]))
    more = to.optional(operation, 2)
    if more is None:
        return made
    if attrs.get("beta", 1.0) != 1.0:
        more = to.op("mul", x=more, y=np.float32(attrs["beta"]))
    return to.op("add", x=made, y=more)


@translates("Einsum")
def einsum(to: Translation, operation: OnnxOperation) -> Any:
    values = [to.input(operation, index) for index in range(len(operation.inputs))]
    return to.op("einsum", values=values, equation=str(operation.attrs["equation"]))


@translates("MaxPool")
def largest(to: Translation, operation: OnnxOperation) -> Any:
    if len(operation.outputs) > 1:
        raise to.unsupported("where the largest values lie")
    size = list(operation.attrs["kernel_shape"])
    x = to.cast(to.input(operation, 0), "fp32")
    return to.op("max_pool", x=x, kernel_sizes=size, **window(operation, len(size)))


@translates("AveragePool")
def average(to: Translation, operation: OnnxOperation) -> Any:
    size = list(operation.attrs["kernel_shape"])
    return to.op(
        "avg_pool", x=to.input(operation, 0), kernel_sizes=size, **window(operation, len(size)),
        exclude_padding_from_average=not operation.attrs.get("count_include_pad", 0),
    )  # fmt: skip


@translates("GlobalAveragePool")
def average_of_all(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    return to.op("reduce_mean", x=x, axes=list(range(2, x.rank)), keep_dims=True)


@translates("BatchNormalization")
def batch_norm(to: Translation, operation: OnnxOperation, x: Any) -> Any:
    epsilon = float(operation.attrs.get("epsilon", 1e-5))
    known = [to.static_or_none(operation, index) for index in range(1, 5)]
    if x.rank in RANKS and all(part is not None for part in known):
        gamma, beta, mean, variance = (to.plain(part).reshape(-1) for part in known if part is not None)
        return to.op(
            "batch_norm", x=x, mean=mean, variance=variance, gamma=gamma, beta=beta, epsilon=np.float32(epsilon)
        )  # fmt: skip
    gamma, beta, mean, variance = (
        to.op("reshape", x=to.input(operation, index), shape=[-1, *[1] * (x.rank - 2)]) for index in range(1, 5)
    )
    spread = to.op("sqrt", x=to.op("add", x=variance, y=np.float32(epsilon)))
    factor = to.op("real_div", x=gamma, y=spread)
    return to.op("add", x=to.op("mul", x=to.op("sub", x=x, y=mean), y=factor), y=beta)


@translates("LRN")
def local_response(to: Translation, operation: OnnxOperation) -> Any:
    attrs = operation.attrs
    return to.op(
        "local_response_norm", x=to.input(operation, 0), size=int(attrs["size"]),
        alpha=np.float32(attrs.get("alpha", 1e-4)), beta=np.float32(attrs.get("beta", 0.75)),
        k=np.float32(attrs.get("bias", 1.0)),
    )  # fmt: skip


@translates("DepthToSpace", "SpaceToDepth")
def blocks(to: Translation, operation: OnnxOperation) -> Any:
    kind = "depth_to_space" if operation.code == "DepthToSpace" else "space_to_depth"
    if operation.attrs.get("mode", "DCR") != "DCR":
        raise to.unsupported("blocks that are split by column and row first")
    return to.op(kind, x=to.input(operation, 0), block_size=int(operation.attrs["blocksize"]))


@translates("Resize")
def resize(to: Translation, operation: OnnxOperation) -> Any:
    """Pictures [n, channels, rows, columns] scaled: by Core ML's own operator where it has this way of counting pixels,
    else by a matrix for the rows and one for the columns."""
    x = to.cast(to.input(operation, 0), "fp32")
    height, width = to.integers(operation, 3, "the size of the result")[2:]
    mode, counted = operation.attrs["mode"], operation.attrs["coordinate_transformation_mode"]
    sampling = {"asymmetric": "DEFAULT", "align_corners": "STRICT_ALIGN_CORNERS"}.get(counted)
    if mode == "linear" and sampling is not None and height > 1 and width > 1:
        return to.op(
            "resize_bilinear", x=x, target_size_height=height, target_size_width=width, sampling_mode=sampling
        )  # fmt: skip
    rows, columns = (interpolation(size, wanted, operation.attrs) for size, wanted in
                     zip(x.shape[2:], (height, width), strict=True))  # fmt: skip
    if mode == "nearest" and height % x.shape[2] == 0 and width % x.shape[3] == 0 and counted != "align_corners":
        return to.op(
            "upsample_nearest_neighbor", x=x, scale_factor_height=height // x.shape[2],
            scale_factor_width=width // x.shape[3],
        )  # fmt: skip
    if mode == "nearest":
        x = to.op("gather", x=x, indices=rows.argmax(1).astype(np.int32), axis=2)
        return to.op("gather", x=x, indices=columns.argmax(1).astype(np.int32), axis=3)
    across = to.op("matmul", x=x, y=np.ascontiguousarray(columns.T))
    return to.op("matmul", x=rows, y=across)


def interpolation(size: int, wanted: int, attrs: Any) -> Array:
    """The shares [wanted, size] that each old row has in each new one, by ONNX's attributes of Resize."""
    counted, mode = attrs["coordinate_transformation_mode"], attrs["mode"]
    places = np.arange(wanted, dtype=np.float32)
    if counted == "align_corners":
        places = places * np.float32((size - 1) / (wanted - 1) if wanted > 1 else 0)
    elif counted == "half_pixel":
        places = (places + np.float32(0.5)) * np.float32(size / wanted) - np.float32(0.5)
    else:
        places = places * np.float32(size / wanted)
    shares = np.zeros((wanted, size), np.float32)
    rows = np.arange(wanted)
    if mode == "nearest":
        upwards = attrs.get("nearest_mode") == "round_prefer_ceil"
        near = np.floor(places + np.float32(0.5)) if upwards else np.floor(places)
        shares[rows, np.clip(near, 0, size - 1).astype(int)] = 1
        return shares
    if mode == "linear":
        places = np.clip(places, 0, size - 1)
    below = np.floor(places).astype(int)
    part = (places - below).astype(np.float32)
    taps = {0: 1 - part, 1: part} if mode == "linear" else _cubic(part, float(attrs.get("cubic_coeff_a", -0.75)))
    if attrs.get("exclude_outside"):
        inside = {step: share * ((below + step >= 0) & (below + step < size)) for step, share in taps.items()}
        whole = sum(inside.values())
        taps = {step: share / whole for step, share in inside.items()}
    for step, share in taps.items():
        np.add.at(shares, (rows, np.clip(below + step, 0, size - 1)), share)
    return shares


def _cubic(part: Array, a: float) -> dict[int, Array]:
    """Keys's cubic convolution: the shares of the four rows around a place."""

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return {-1: far(part + 1), 0: near(part), 1: near(1 - part), 2: far(2 - part)}
