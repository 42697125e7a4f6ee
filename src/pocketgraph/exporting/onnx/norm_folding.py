"""Batch norms with known statistics become part of the convolution before them, so that files hold no vectors of these.

x ─ Conv ─ BatchNormalization                   becomes   x ─ Conv with other weights and a bias
x ─ Conv ─ Add ─ BatchNormalization             becomes   likewise
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from pocketgraph.exporting.onnx.onnx_program import Body, OnnxValue, all_operations, used_by
from pocketgraph.graph import Shape
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.constant import Constant


def fold_norms(body: Body) -> None:
    """Takes factors and offsets of batch norms into weights and biases; changed in place."""
    norms = [operation for operation in body.operations if operation.code == "BatchNormalization"]
    if not norms:
        return
    uses = Counter(id(value) for operation in all_operations(body) for value in used_by(operation))
    uses.update(id(value) for value in body.outputs)
    makers = {id(value): operation for operation in body.operations for value in operation.outputs if value is not None}
    gone: set[int] = set()
    for norm in norms:
        scale, offset, mean, variance = (_numbers(value) for value in norm.inputs[1:])
        layer, total, shift = makers.get(id(norm.inputs[0])), None, None
        if layer is not None and layer.code == "Add":
            total, (shift, source) = layer, sorted(layer.inputs, key=lambda one: _numbers(one) is None)
            layer = makers.get(id(source))
        if layer is None or layer.code != "Conv":
            continue
        (weights, *held), ends = layer.inputs[1:], [one.outputs[0] for one in (layer, total) if one is not None]
        if scale is None or offset is None or mean is None or variance is None or weights is None:
            continue
        if weights.constant is None or weights.constant.dtype != np.float32 or any(uses[id(end)] != 1 for end in ends):
            continue
        shape = weights.constant.shape
        added = [_numbers(value) for value in held] + [by_channel(value, shape) for value in (shift,) if total]
        biases = [one for one in added if one is not None]
        if len(biases) != len(added):
            continue
        bias = sum(biases, np.zeros(1))
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(variance + float(norm.attrs["epsilon"]))
            folded = (weights.constant.numpy() * factor.reshape(-1, *[1] * (len(shape) - 1))).astype(np.float32)
            moved = (offset + (bias - mean) * factor).astype(np.float32)
        if not np.isfinite(folded).all() or not np.isfinite(moved).all():
            continue
        end = norm.outputs[0]
        assert end is not None
        layer.inputs[1:] = [
            OnnxValue(f"{end.name}/{name}", weights.dtype, Shape(array.shape), None, Constant.of(array))
            for name, array in (("folded_weights", folded), ("folded_bias", moved))
        ]
        layer.outputs[:] = [end]
        makers[id(end)] = layer
        gone.update(id(one) for one in (norm, total) if one is not None)
    body.operations[:] = [operation for operation in body.operations if id(operation) not in gone]


def _numbers(value: OnnxValue | None) -> Array | None:
    return None if value is None or value.constant is None else value.constant.numpy().astype(np.float64)


def by_channel(value: OnnxValue | None, weights: tuple[int, ...]) -> Array | None:
    """What is added to each channel of what weights [out, in, …] make; None where it is more than that."""
    found, rank = _numbers(value), len(weights)
    if found is None or found.ndim > rank or found.size not in (1, weights[0]):
        return None
    is_one_each = found.size == 1 or (found.ndim >= rank - 1 and found.shape[1 - rank] == weights[0])
    return found.reshape(-1) if is_one_each else None
