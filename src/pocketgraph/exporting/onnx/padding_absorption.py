"""Pads become part of the convolution or max pool that reads them, so that no image is copied for its borders.

    x ─ Pad ─ Conv                                  becomes   x ─ Conv with pads
    x ─ Pad ─ Transpose ─ Conv                      becomes   x ─ Transpose ─ Conv with pads
    x ─ Relu ─ Pad ─ MaxPool                        becomes   x ─ Relu ─ MaxPool with pads

A max pool's own borders are never the largest; zeros are not either where nothing is negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue, all_operations, used_by
from pocketgraph.graph import Shape


def absorb_padding(body: Body) -> None:
    """Takes zeros around images into convolutions and max pools; changed in place."""
    if not any(operation.code == "Pad" for operation in body.operations):
        return
    uses = Counter(id(value) for operation in all_operations(body) for value in used_by(operation))
    uses.update(id(value) for value in body.outputs)
    makers = {id(value): operation for operation in body.operations for value in operation.outputs if value is not None}
    for operation in body.operations:
        source = operation.inputs[0] if operation.inputs else None
        if operation.code not in ("Conv", "MaxPool") or "auto_pad" in operation.attrs or source is None:
            continue
        moved = makers.get(id(source))
        order = None
        if moved is not None and moved.code == "Transpose" and uses[id(source)] == 1:
            order, source = moved.attrs.get("perm"), moved.inputs[0]
        pad = makers.get(id(source))
        pads = None if pad is None or uses[id(source)] != 1 else _zeros(pad, order)
        if pads is None or not _may_take(operation, pads, makers, pad):
            continue
        assert pad is not None
        own = np.array(operation.attrs.get("pads", [0] * (pads.size - 4)), np.int64).reshape(2, -1)
        operation.attrs["pads"] = (own + pads[:, 2:]).reshape(-1).tolist()
        if order is None:
            operation.inputs[0] = pad.inputs[0]
        elif moved is not None:
            moved.inputs[0] = pad.inputs[0]
            _shrink(moved.outputs[0], pads)


def _zeros(pad: OnnxOperation, order: Sequence[int] | None) -> np.ndarray[tuple[int, int], np.dtype[np.int64]] | None:
    """How many zeros are added (before, behind; each axis, in this order); None where something else is."""
    if pad.code != "Pad" or pad.attrs.get("mode", "constant") != "constant" or len(pad.inputs) > 3:
        return None
    amounts, value = (*pad.inputs, None)[1:3]
    if amounts is None or amounts.constant is None or (value is not None and value.constant is None):
        return None
    if value is not None and value.constant is not None and np.any(value.constant.numpy() != 0):
        return None
    pads = amounts.constant.numpy().astype(np.int64).reshape(2, -1)
    pads = pads if order is None else pads[:, list(order)]
    return pads if pads.shape[1] > 2 and not pads[:, :2].any() and pads.min() >= 0 else None


def _may_take(
    operation: OnnxOperation,
    pads: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    makers: Mapping[int, OnnxOperation],
    pad: OnnxOperation | None,
) -> bool:
    """Whether an operation computes the same with borders of its own."""
    if operation.code == "Conv":
        return True
    source = pad.inputs[0] if pad is not None else None
    maker = makers.get(id(source))
    window = np.array(operation.attrs["kernel_shape"])
    is_covered = bool(np.all(pads[:, 2:] < window)) and not any(operation.attrs.get("pads", ()))
    is_plain = len(operation.outputs) == 1 and not operation.attrs.get("ceil_mode", 0)
    return is_covered and is_plain and maker is not None and _is_positive(maker)


def _is_positive(operation: OnnxOperation) -> bool:
    """Whether an operation gives nothing below 0."""
    if operation.code != "Clip":
        return operation.code == "Relu"
    least = (*operation.inputs, None)[1]
    return least is not None and least.constant is not None and bool(np.all(least.constant.numpy() >= 0))


def _shrink(value: OnnxValue | None, pads: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> None:
    """A value has these borders no longer."""
    if value is not None and value.shape.is_known:
        value.shape = Shape([size - int(each) for size, each in zip(value.shape.known, pads.sum(0), strict=True)])
