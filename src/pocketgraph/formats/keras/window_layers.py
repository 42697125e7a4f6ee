"""Layers of Keras that slide windows over space: convolutions, pooling, padding, cropping, upsampling."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pocketgraph.formats.keras.activation_functions import activated
from pocketgraph.formats.keras.layer_writer import (
    Dims,
    KerasTensor,
    LayerWriter,
    Rule,
    as_float,
    expanded,
    joined,
    pair,
)
from pocketgraph.graph.attr import AttrValue
from pocketgraph.graph.dtype import FLOAT

SPACE = {"1D": 1, "2D": 2, "3D": 3}
"""How many axes of space a layer has, by the end of its class."""
RESIZES = {
    "nearest": "ResizeNearestNeighbor", "bilinear": "ResizeBilinear", "bicubic": "ResizeBicubic", "area": "ResizeArea",
}  # fmt: skip
"""The op of each way to resize."""
KERNELS = {
    "bilinear": b"triangle", "bicubic": b"keyscubic", "lanczos3": b"lanczos3", "lanczos5": b"lanczos5",
    "gaussian": b"gaussian", "mitchellcubic": b"mitchellcubic",
}  # fmt: skip
"""The kernel of each way to resize that can be without aliases."""
OF_KERAS_ALONE = re.compile(r"1\.|2\.[0-3]\.\d+$")
"""The versions of the Keras that was no part of TensorFlow 1."""


def axes_of_space(writer: LayerWriter) -> int:
    return SPACE[writer.kind.removesuffix("Transpose")[-2:]]


def strided(size: int | None, window: int, stride: int, padding: str) -> int | None:
    """How many windows there are along an axis."""
    if size is None:
        return None
    return -(-size // stride) if padding == "same" else (size - window) // stride + 1


def with_height(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A sequence as a picture one pixel high."""
    dims = (value.dims[0], 1, *value.dims[1:])
    return writer.add("ExpandDims", value, writer.const(1, "height"), dims=dims)


def without_height(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    return writer.add("Squeeze", value, dims=(value.dims[0], *value.dims[2:]), squeeze_dims=(1,))


def with_bias(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A contraction's result with the bias that the layer may have, and its activation."""
    if writer.config.get("use_bias", True):
        value = writer.add("BiasAdd", value, writer.weight("bias"))
    return activated(writer, value, writer.config.get("activation"))


def convolution(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Conv1D, Conv2D, Conv3D, and DepthwiseConv and SeparableConv along one or two axes."""
    is_separable, is_depthwise = writer.kind.startswith("Separable"), writer.kind.startswith("Depthwise")
    kernel = writer.weight("depthwise_kernel" if is_separable or is_depthwise else "kernel", "kernel")
    kernels = (kernel, writer.weight("pointwise_kernel")) if is_separable else (kernel,)
    return with_bias(writer, convolved(writer, value, *kernels))


def convolved(
    writer: LayerWriter, value: KerasTensor, kernel: KerasTensor, point: KerasTensor | None = None
) -> KerasTensor:
    """Windows of a tensor times a kernel, and what separable ones make by ``point`` of each place."""
    writer.expect(data_format="channels_last")
    space = len(value.dims) - 2
    strides, rates = (pair(writer.config.get(name, 1), space) for name in ("strides", "dilation_rate"))
    padding = str(writer.config.get("padding", "valid"))
    windows = [int(size or 1) for size in kernel.dims[:space]]
    if padding == "causal":
        before = (windows[0] - 1) * rates[0]
        value, padding = padded(writer, value, [(before, 0)]), "valid"
    flat = space == 1
    if flat:
        value = with_height(writer, value)
        kernel = writer.add("ExpandDims", kernel, writer.const(0, "axis"), dims=(1, *kernel.dims), name="kernel")
        strides, rates, windows = (strides[0], *strides), (1, *rates), [1, *windows]
    spans = [(window - 1) * rate + 1 for window, rate in zip(windows, rates, strict=True)]
    sizes = [strided(*each, padding) for each in zip(value.dims[1:-1], spans, strides, strict=True)]
    settings: dict[str, AttrValue] = {
        "strides": (1, *strides, 1), "dilations": (1, *rates, 1), "padding": padding.upper().encode(),
    }  # fmt: skip
    if point or writer.kind.startswith("Depthwise"):
        if len(set(strides[flat:])) > 1:
            raise writer.refuse(f"has strides={list(strides)}, which TensorFlow's depthwise convolutions have not")
        if flat:
            settings["strides"] = (1, strides[1], strides[1], 1)
        depth = int(kernel.dims[-2] or 1) * int(kernel.dims[-1] or 1)
        value = writer.add(
            "DepthwiseConv2dNative", value, kernel, dims=(value.dims[0], *sizes, depth), name="", **settings
        )
        if point:
            if flat:
                point = writer.add("ExpandDims", point, writer.const(0, "axis"), dims=(1, *point.dims), name="point")
            value = writer.add(
                "Conv2D", value, point, dims=(*value.dims[:-1], point.dims[-1]), strides=(1, 1, 1, 1), padding=b"VALID"
            )
    else:
        op = "Conv3D" if space == 3 else "Conv2D"
        value = writer.add(op, value, kernel, dims=(value.dims[0], *sizes, kernel.dims[-1]), name="", **settings)
    return without_height(writer, value) if flat else value


def transposed_convolution(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Convolutions from outputs to inputs along one, two or three axes; kernels are [size, …, outputs, inputs]."""
    writer.expect(data_format="channels_last")
    axes = axes_of_space(writer)
    kernel, padding = writer.weight("kernel"), str(writer.config.get("padding", "valid"))
    strides, rates = (pair(writer.config.get(name) or 1, axes) for name in ("strides", "dilation_rate"))
    extra = writer.config.get("output_padding")
    ends: tuple[int | None, ...] = (None,) * axes if extra is None else pair(extra, axes)
    windows = [(int(size or 1) - 1) * rate + 1 for size, rate in zip(kernel.dims[:axes], rates, strict=True)]
    if axes == 1:
        kernel = writer.add("ExpandDims", kernel, writer.const(0, "axis"), dims=(1, *kernel.dims), name="kernel")
        value, windows, strides, rates, ends = (
            with_height(writer, value),
            [1, *windows],
            (1, *strides),
            (1, *rates),
            (None, *ends),
        )
    space: list[int | KerasTensor] = []
    for axis, (window, stride, end) in enumerate(zip(windows, strides, ends, strict=True), 1):
        more = max(window - stride, 0) if padding == "valid" else 0
        if end is not None:
            more = window - stride + end - (2 * (window // 2) if padding == "same" else 0)
        space.append(affine(writer, value, axis, stride, more))
    batch = value.dims[0] if value.dims[0] is not None else writer.size(value, 0)
    depth = kernel.dims[-2]
    sizes = writer.sizes([batch, *space, int(depth or 0)])
    dims = (value.dims[0], *(size if isinstance(size, int) else None for size in space), depth)
    settings: dict[str, AttrValue] = {"strides": (1, *strides, 1), "padding": padding.upper().encode()}
    if max(rates) > 1:
        settings["dilations"] = (1, *rates, 1)
    op = "Conv3DBackpropInputV2" if axes == 3 else "Conv2DBackpropInput"
    made = writer.add(op, sizes, kernel, value, dims=dims, name="", **settings)
    return with_bias(writer, without_height(writer, made) if axes == 1 else made)


def affine(writer: LayerWriter, value: KerasTensor, axis: int, factor: int, more: int) -> int | KerasTensor:
    """A size of a tensor times a number, and more."""
    size = value.dims[axis]
    if size is not None:
        return size * factor + more
    found = writer.size(value, axis)
    found = writer.add("Mul", found, writer.const(factor, "factor")) if factor != 1 else found
    return writer.add("AddV2", found, writer.const(more, "more")) if more else found


def pooling(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """MaxPooling and AveragePooling along one, two or three axes."""
    writer.expect(data_format="channels_last")
    space = len(value.dims) - 2
    windows = pair(writer.config.get("pool_size", 2), space)
    strides = pair(writer.config.get("strides") or windows, space)
    padding = str(writer.config.get("padding", "valid"))
    if space == 1:
        value, windows, strides = with_height(writer, value), (1, *windows), (1, *strides)
    sizes = [strided(*each, padding) for each in zip(value.dims[1:-1], windows, strides, strict=True)]
    op = ("MaxPool" if writer.kind.startswith("Max") else "AvgPool") + "3D" * (space == 3)
    made = writer.add(
        op, value, dims=(value.dims[0], *sizes, value.dims[-1]), ksize=(1, *windows, 1), strides=(1, *strides, 1),
        padding=padding.upper().encode(),
    )  # fmt: skip
    return without_height(writer, made) if space == 1 else made


def global_pooling(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The mean or the largest of all of space."""
    writer.expect(data_format="channels_last")
    if "Average" in writer.kind and writer.model.is_keras_3:
        value = as_float(writer, value)
    keeps = bool(writer.config.get("keepdims", False))
    axes = list(range(1, len(value.dims) - 1))
    dims = (value.dims[0], *([1] * len(axes) if keeps else []), value.dims[-1])
    op = "Max" if "Max" in writer.kind else "Mean"
    if value.mask is not None and op == "Mean" and writer.model.version:  # TensorFlow.js counts all steps
        counts, along = expanded(writer, value.mask, 2), writer.const(axes, "axes")
        counted = writer.add("SelectV2", counts, value, writer.const(0, "zero", FLOAT), dims=value.dims)
        total = writer.add("Sum", counted, along, dims=dims, keep_dims=keeps)
        numbers = writer.add("Cast", counts, DstT=writer.float_type)
        count = writer.add("Sum", numbers, along, dims=(*dims[:-1], 1), keep_dims=keeps)
        return writer.add("RealDiv", total, count)
    return writer.add(op, value, writer.const(axes, "axes"), dims=dims, keep_dims=keeps)


def adaptive_pooling(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The mean or the largest of as many windows as are wanted, which are as even as can be and may overlap.

    Raises:
        FormatError: a size of space is open.
    """
    writer.expect(data_format="channels_last")
    op, rank = "Max" if "Max" in writer.kind else "Mean", len(value.dims)
    for axis, count in enumerate(pair(writer.config["output_size"], axes_of_space(writer)), 1):
        size = value.dims[axis]
        if size is None:
            raise writer.refuse("takes open sizes, which is not read")
        parts, along = [], writer.const([axis], "axis")
        for at in range(count):
            begin, end = at * size // count, -(-(at + 1) * size // count)
            cut = [(0, 0)] * (axis - 1) + [(begin, size - end)] + [(0, 0)] * (rank - 2 - axis)
            dims = (*value.dims[:axis], 1, *value.dims[axis + 1 :])
            parts.append(writer.add(op, cropped(writer, value, cut), along, dims=dims, keep_dims=True))
        value = joined(writer, parts, axis)
    return value


def margins(writer: LayerWriter, name: str, space: int) -> list[tuple[int, ...]]:
    """How much is put before and after each axis of space, or taken away."""
    given = writer.config.get(name, 1)
    if space == 1:
        return [pair(given)]
    listed = given if isinstance(given, list | tuple) else (given,) * space
    return [pair(one) for one in listed]


def padded(writer: LayerWriter, value: KerasTensor, ends: Sequence[Sequence[int]], fill: float = 0) -> KerasTensor:
    inner = zip(value.dims[1:-1], ends, strict=True)
    dims = (value.dims[0], *(None if size is None else size + sum(end) for size, end in inner), value.dims[-1])
    paddings = writer.const([(0, 0), *ends, (0, 0)], "paddings")
    if fill:
        return writer.add("PadV2", value, paddings, writer.const(fill, "fill", value.dtype), dims=dims)
    return writer.add("Pad", value, paddings, dims=dims)


def zero_padding(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Zeros around space."""
    writer.expect(data_format="channels_last")
    return padded(writer, value, margins(writer, "padding", axes_of_space(writer)))


def cropping(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """Space without its margins."""
    writer.expect(data_format="channels_last")
    return cropped(writer, value, margins(writer, "cropping", axes_of_space(writer)))


def cropped(writer: LayerWriter, value: KerasTensor, ends: Sequence[Sequence[int]]) -> KerasTensor:
    sizes = [None if size is None else size - sum(end) for size, end in zip(value.dims[1:-1], ends, strict=True)]
    whole = sum(1 << axis for axis, end in enumerate([0, *(end[1] for end in ends), 0]) if not end)
    bounds = [[0, *(end[0] for end in ends), 0], [0, *(-end[1] for end in ends), 0], [1] * len(value.dims)]
    return writer.add(
        "StridedSlice", value, *(writer.const(bound, name) for bound, name in zip(bounds, "abc", strict=True)),
        dims=(value.dims[0], *sizes, value.dims[-1]), end_mask=whole,
    )  # fmt: skip


def upsampling(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """More pixels along one, two or three axes; bilinear ones take corners in TensorFlow.js, centres in Keras."""
    writer.expect(data_format="channels_last")
    space = axes_of_space(writer)
    factors = pair(writer.config.get("size", 2), space)
    if space == 3:
        return repeated(writer, value, factors)
    if space == 1:
        value, factors = with_height(writer, value), (1, *factors)
    wanted = [affine(writer, value, axis, factor, 0) for axis, factor in enumerate(factors, 1)]
    method = writer.config.get("interpolation", "nearest")
    is_centred = method != "nearest" and bool(writer.model.version) and not OF_KERAS_ALONE.match(writer.model.version)
    made = resized(writer, value, wanted, method, is_centred=is_centred)
    return without_height(writer, made) if space == 1 else made


def repeated(writer: LayerWriter, value: KerasTensor, factors: Sequence[int]) -> KerasTensor:
    """Each plane several times in a row, along each axis of space."""
    for axis, factor in enumerate(factors, 1):
        dims = list(value.dims)
        after = dims[axis + 1]
        dims[axis + 1] = None if after is None else after * factor
        rows = writer.add("ConcatV2", [value] * factor, writer.const(axis + 1, "axis"), dims=tuple(dims))
        sizes = writer.all_sizes(value)
        sizes[axis] = affine(writer, value, axis, factor, 0)
        dims = [size if isinstance(size, int) else None for size in sizes]
        value = writer.add("Reshape", rows, writer.sizes(sizes), dims=tuple(dims))
    return value


def resized(
    writer: LayerWriter, value: KerasTensor, wanted: Sequence[int | KerasTensor], method: str, *, is_centred: bool
) -> KerasTensor:
    """Pictures in another size.

    Raises:
        FormatError: there is no such method, or it reads its kernel for sizes that are open.
    """
    dims: Dims = (value.dims[0], *(one if isinstance(one, int) else None for one in wanted), value.dims[-1])
    is_smooth = bool(writer.config.get("antialias", False)) and method in KERNELS
    if is_smooth or method not in RESIZES:
        sizes = [one for one in (*value.dims[1:-1], *wanted) if isinstance(one, int)]
        if method not in KERNELS or len(sizes) < 4:
            raise writer.refuse(f"has interpolation={method}, which is not read of these sizes")
        scales = writer.const([sizes[2] / sizes[0], sizes[3] / sizes[1]], "scales", FLOAT)
        made = writer.add(
            "ScaleAndTranslate", value, writer.sizes(wanted), scales, writer.const([0, 0], "translation", FLOAT),
            dims=dims, name="", kernel_type=KERNELS[method], antialias=is_smooth,
        )  # fmt: skip
    else:
        settings: dict[str, AttrValue] = {} if method == "area" else {"half_pixel_centers": is_centred}
        made = writer.add(RESIZES[method], value, writer.sizes(wanted), dims=dims, name="", **settings)
    stays = writer.kind == "UpSampling2D" and not writer.model.version.startswith(
        "3."
    )  # what TensorFlow gives, float32
    return as_float(writer, made) if value.dtype is writer.float_type and not stays else made


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"),
        convolution,
    ),
    **{f"Conv{space}Transpose": transposed_convolution for space in SPACE},
    **{f"{which}Pooling{space}": pooling for which in ("Max", "Average") for space in SPACE},
    **{f"Global{which}Pooling{space}": global_pooling for which in ("Max", "Average") for space in SPACE},
    **{f"Adaptive{which}Pooling{space}": adaptive_pooling for which in ("Max", "Average") for space in SPACE},
    **{f"ZeroPadding{space}": zero_padding for space in SPACE},
    **{f"Cropping{space}": cropping for space in SPACE},
    **{f"UpSampling{space}": upsampling for space in SPACE},
}
