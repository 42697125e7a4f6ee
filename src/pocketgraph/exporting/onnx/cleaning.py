"""What nobody needs is dropped, and what is equal becomes one, before the file is written."""

from __future__ import annotations

import hashlib
from collections import defaultdict

import numpy as np

from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue, all_operations, used_by

DRAWS = frozenset(("Bernoulli", "Multinomial", "Dropout"))
"""Not a trait: ONNX operators that draw random numbers, besides those whose names say so."""


def cleaned(body: Body) -> Body:
    """The body without operators whose results nobody takes, with equal constants and equal operators once; changed in
    place."""
    _drop(body, set())
    _share_constants(body)
    _merge_equal(body)
    return body


def _share_constants(body: Body) -> None:
    """Takes one constant in place of several of the same type, shape and content."""
    alike: dict[tuple[str, tuple[int, ...]], dict[int, OnnxValue]] = defaultdict(dict)
    for operation in all_operations(body):
        for value in operation.inputs:
            if value is not None and value.constant is not None:
                alike[value.dtype.name, value.constant.shape][id(value)] = value
    replaced: dict[int, OnnxValue] = {}
    for values in alike.values():
        first: dict[bytes, OnnxValue] = {}
        for value in values.values() if len(values) > 1 else ():
            assert value.constant is not None
            array = value.constant.numpy()
            if array.dtype.kind == "O":
                continue
            known = first.setdefault(hashlib.sha256(array.tobytes()).digest(), value)
            if known is not value:
                replaced[id(value)] = known
    _replace(body, replaced)


def _replace(body: Body, replaced: dict[int, OnnxValue]) -> None:
    if not replaced:
        return
    for operation in all_operations(body):
        operation.inputs = [None if value is None else replaced.get(id(value), value) for value in operation.inputs]


def _merge_equal(body: Body) -> None:
    """Computes once what several operators compute of the same operands; results that bodies give stay."""
    given = {id(value) for value in body.outputs}
    for operation in all_operations(body):
        for inner in operation.bodies.values():
            given.update(id(value) for value in inner.outputs)
    seen: dict[tuple[object, ...], OnnxOperation] = {}
    replaced: dict[int, OnnxValue] = {}
    for operation in body.operations:
        operation.inputs = [None if value is None else replaced.get(id(value), value) for value in operation.inputs]
        is_given = any(id(value) in given for value in operation.outputs if value is not None)
        if operation.bodies or is_given or operation.code in DRAWS or "Random" in operation.code:
            continue
        operands = tuple(None if value is None else id(value) for value in operation.inputs)
        left_out = tuple(value is None for value in operation.outputs)
        known = seen.setdefault((operation.code, operands, _attrs(operation), left_out), operation)
        if known is not operation:
            pairs = zip(operation.outputs, known.outputs, strict=True)
            replaced.update((id(own), other) for own, other in pairs if own is not None and other is not None)
    _replace(body, replaced)
    _drop(body, set())


def _attrs(operation: OnnxOperation) -> tuple[object, ...]:
    return tuple(
        (key, (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else repr(value))
        for key, value in sorted(operation.attrs.items())
    )


def _drop(body: Body, wanted: set[int]) -> set[int]:
    """Drops what neither the body's outputs nor ``wanted`` need; gives back what it takes from outside."""
    needed = {id(value) for value in body.outputs} | wanted
    kept: list[OnnxOperation] = []
    for operation in reversed(body.operations):
        if not any(value is not None and id(value) in needed for value in operation.outputs):
            continue
        for inner in operation.bodies.values():
            _drop(inner, set())
        needed.update(id(value) for value in used_by(operation))
        kept.append(operation)
    body.operations[:] = reversed(kept)
    return needed
