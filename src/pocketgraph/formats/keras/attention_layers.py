"""Attention of Keras: products of queries with keys choose among values."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from pocketgraph.formats.keras.activation_functions import HIDDEN, scaled
from pocketgraph.formats.keras.layer_writer import (
    KerasTensor,
    LayerWriter,
    Rule,
    broadcast,
    elements,
    expanded,
    transposed,
)
from pocketgraph.formats.keras.operation_call import OperationCall
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32


def projected(writer: LayerWriter, value: KerasTensor, part: str) -> KerasTensor:
    """What a head has of a tensor, [batch, heads, time, size]."""
    kernel = writer.array(f"{part}/kernel")
    width, heads, size = kernel.shape
    matrix = writer.const(kernel.reshape(width, heads * size), f"{part}_kernel", FLOAT)
    rows = writer.add("MatMul", writer.reshaped(value, (None, width)), matrix, dims=(None, heads * size))
    if writer.config.get("use_bias", True):
        rows = writer.add("BiasAdd", rows, writer.const(np.ravel(writer.array(f"{part}/bias")), f"{part}_bias", FLOAT))
    split = writer.reshaped(rows, (*value.dims[:2], heads, size), value)
    return transposed(writer, split, [0, 2, 1, 3])


def multi_head_attention(writer: LayerWriter, *inputs: KerasTensor) -> list[KerasTensor]:
    """Of a query, values and, where they differ, keys: [batch, time, width] each, or with more axes than time."""
    writer.expect(use_gate=False, sliding_window=None)
    call = OperationCall(writer, writer.given, writer.named)
    query, value = call.argument(0, "query"), call.argument(1, "value")
    key = call.argument(2, "key", default=value)
    if not all(isinstance(one, KerasTensor) for one in (query, value, key)):
        raise writer.refuse("takes what are no tensors, which is not read")
    rank = len(query.dims)
    shown, is_causal = (call.setting(name) for name in ("return_attention_scores", "use_causal_mask"))
    mask = call.argument(6, "attention_mask")
    counts = _counts(writer, query, value, key if call.argument(2, "key") is not None else None, mask, bool(is_causal))
    if len({rank, len(value.dims), len(key.dims)}) > 1 or (rank != 3 and (shown or counts)):
        raise writer.refuse("has a mask over more axes than time, or returns scores of these, which is not read")
    given, told = query, writer.config.get("attention_axes")
    axes = sorted(axis % rank for axis in told) if told else list(range(1, rank - 1))
    if rank != 3:
        order = [*(axis for axis in range(rank - 1) if axis not in axes), *axes, rank - 1]
        query, value, key = (_flattened(writer, one, order, len(axes)) for one in (query, value, key))
    queries, keys, values = (
        projected(writer, one, part) for one, part in ((query, "query"), (key, "key"), (value, "value"))
    )
    heads, group = int(queries.dims[1] or 1), int(keys.dims[1] or 1)
    if heads != group:
        places = writer.const(np.repeat(np.arange(group), heads // group), "groups")
        keys, values = (
            writer.add("GatherV2", one, places, writer.const(1, "axis"), dims=(one.dims[0], heads, *one.dims[2:]))
            for one in (keys, values)
        )
    queries = scaled(writer, queries, 1 / math.sqrt(float(queries.dims[-1] or 1)))
    dims = (*queries.dims[:3], keys.dims[2])
    scores = writer.add("BatchMatMulV2", queries, keys, dims=dims, adj_y=True)
    if counts is not None:
        if len(counts.dims) == 3:
            counts = expanded(writer, counts, 1)
        scores = writer.add("SelectV2", counts, scores, writer.const(HIDDEN, "hidden", FLOAT), dims=dims)
    scores = writer.add("Softmax", scores)
    made = writer.add("BatchMatMulV2", scores, values, dims=(*queries.dims[:3], values.dims[3]))
    made = transposed(writer, made, [0, 2, 1, 3])
    kernel = writer.array("attention_output/kernel")
    width = kernel.shape[0] * kernel.shape[1]
    matrix = writer.const(kernel.reshape(width, -1), "output_kernel", FLOAT)
    rows = writer.reshaped(made, (None, width))
    rows = writer.add("MatMul", rows, matrix, dims=(None, matrix.dims[1]))
    if writer.config.get("use_bias", True):
        bias = writer.array("attention_output/bias")
        rows = writer.add("BiasAdd", rows, writer.weight("attention_output/bias") if bias.ndim == 1 else
                          writer.const(bias.ravel(), "output_bias", FLOAT))  # fmt: skip
    if rank == 3:
        made = writer.reshaped(rows, (*query.dims[:2], *kernel.shape[2:]), query)
    else:
        dims = (*(given.dims[axis] for axis in order[:-1]), *kernel.shape[2:])
        back = [*np.argsort(order[:-1]).tolist(), *range(rank - 1, len(dims))]
        made = transposed(writer, writer.reshaped(rows, dims), back)
    return [made, scores] if shown else [made]


def _flattened(writer: LayerWriter, value: KerasTensor, order: list[int], count: int) -> KerasTensor:
    """A tensor whose axes are one for the batch, one for ``count`` axes that attend, and the last."""
    turned = transposed(writer, value, order)
    if turned.dims.count(None) > 1 or turned.dims[0] is not None:
        raise writer.refuse("has open sizes besides the batch's, which is not read")
    return writer.reshaped(turned, (None, elements(turned.dims[-1 - count : -1]), turned.dims[-1]))


def _counts(
    writer: LayerWriter,
    query: KerasTensor,
    value: KerasTensor,
    key: KerasTensor | None,
    mask: KerasTensor | None,
    is_causal: bool,
) -> KerasTensor | None:
    """Which values count for which queries, [batch, queries, values], by the masks of all; None where all do."""
    parts: list[KerasTensor] = []
    for one, axis in ((query, 2), (value, 1), (key, 1)):
        if one is not None and one.mask is not None:
            parts.append(expanded(writer, one.mask, axis))
    if mask is not None:
        parts.append(mask if mask.dtype is BOOL else writer.add("Cast", mask, DstT=BOOL))
    if is_causal:
        parts.append(causal(writer, query, value))
    if not parts:
        return None
    return reduce(lambda one, other: writer.add("LogicalAnd", one, other, dims=broadcast(one.dims, other.dims)), parts)


def causal(writer: LayerWriter, query: KerasTensor, value: KerasTensor) -> KerasTensor:
    """The values up to each query's own place, [1, queries, values]."""
    steps = []
    for one, axes in ((query, (0, 2)), (value, (0, 1))):
        size = one.dims[1]
        length = writer.size(one, 1) if size is None else writer.const(size, "length")
        places = writer.add("Range", writer.const(0, "first"), length, writer.const(1, "delta"), dims=(size,))
        for axis in axes:
            places = expanded(writer, places, axis)
        steps.append(places._replace(dtype=INT32))
    return writer.add("GreaterEqual", *steps, dims=(1, query.dims[1], value.dims[1]))


def attention(
    writer: LayerWriter, query: KerasTensor, value: KerasTensor, other: KerasTensor | None = None
) -> list[KerasTensor]:
    """Attention by products, or by the sum of a tangent of sums, of queries, values and maybe keys."""
    key = other or value
    call = OperationCall(writer, writer.given, writer.named)
    scale = writer.weight("scale") if writer.config.get("use_scale", writer.kind == "AdditiveAttention") else None
    dims = (*query.dims[:2], key.dims[1])
    if writer.kind == "Attention" and writer.config.get("score_mode", "dot") == "dot":
        scores = writer.add("BatchMatMulV2", query, key, dims=dims, adj_y=True)
        scores = scores if scale is None else writer.add("Mul", scores, scale)
    else:
        wide = [expanded(writer, query, 2), expanded(writer, key, 1)]
        total = writer.add("AddV2", *wide, dims=(*dims, query.dims[-1]))
        is_inside = writer.kind == "Attention"
        if scale is not None and is_inside:
            total = writer.add("Mul", total, scale)
        total = writer.add("Tanh", total)
        if scale is not None and not is_inside:
            total = writer.add("Mul", total, scale)
        scores = writer.add("Sum", total, writer.const([3], "axes"), dims=dims)
        if is_inside:
            scores = writer.add("Mul", scores, writer.weight("concat_score_weight"))
    is_causal = bool(writer.config.get("causal") or call.setting("use_causal_mask"))
    counts = _counts(writer, query._replace(mask=None), value, None, None, is_causal)
    if counts is not None:
        scores = writer.add("SelectV2", counts, scores, writer.const(HIDDEN, "hidden", FLOAT), dims=dims)
    scores = writer.add("Softmax", scores)
    made = writer.add("BatchMatMulV2", scores, value, dims=(*dims[:2], value.dims[-1]))
    if query.mask is not None:
        made = writer.add(
            "SelectV2", expanded(writer, query.mask, 2), made, writer.const(0, "zero", FLOAT), dims=made.dims
        )
    return [made, scores] if call.setting("return_attention_scores") else [made]


RULES: dict[str, Rule] = {
    **dict.fromkeys(("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention"), multi_head_attention),
    **dict.fromkeys(("Attention", "AdditiveAttention"), attention),
}
