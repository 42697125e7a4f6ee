"""Statically known values: small constants, and integer vectors of which some elements are known."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Node, Shape, Tensor, opdefs
from pocketgraph.graph.dtype import INT32, INT64, STRING, DType
from pocketgraph.graph.op_traits import ENTER, ops_with

LARGEST = 1024  # elements; sizes, paddings, permutations and the like are far smaller, weights far larger

MOVING = ops_with("passes", "moves") | {"Cast"}
"""Ops that only move elements about: what is known of their inputs carries over element by element."""
JOINING = ops_with("joins")
POLYNOMIALS = ops_with("polynomial")
"""Ops whose result is known where it does not depend on the unknown elements."""
DIVISIONS = frozenset({"FloorDiv", "Div"})
"""Ops of which the same is true when the divisor is known."""
UNTAKEN = 0x5EED_1E55_0F_5A_17
"""Stands for an element that is not known while elements are moved about."""
SIZED_BY_VALUE = ops_with("sized_by_value")
"""Ops whose output shape depends on the values, never larger than the input."""


class Partial:
    """An integer tensor of which some elements are known.

    Attributes:
        numbers: int64 values; meaningless where not known.
        known: which elements are known, of the same shape.
    """

    __slots__ = ("known", "numbers")

    def __init__(
        self, numbers: np.ndarray[Any, np.dtype[np.int64]], known: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> None:
        self.numbers = numbers
        self.known = known


Known: TypeAlias = "np.ndarray[Any, Any] | Partial | None"
"""What is known of a tensor's value: all, some integers, or nothing."""


def comparable(value: Known) -> tuple[Any, ...] | None:
    """What is equal where the same is known of two tensors' values; None where texts are known, which have no bytes."""
    if isinstance(value, Partial):
        return value.numbers.shape, value.numbers.tobytes(), value.known.tobytes()
    if value is None:
        return ()
    return None if value.dtype.hasobject else (value.dtype, value.shape, value.tobytes())


def of_tensor(tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """The value of a small constant; a large one is not read."""
    return tensor.numpy() if tensor.size <= LARGEST and tensor.dtype is not STRING else None


def of_dims(shape: Shape, dtype: DType) -> Known:
    """What ``Shape`` gives for an input of this shape."""
    if shape.dims is None:
        return None
    if shape.is_known:
        return np.asarray(shape.known, dtype.numpy if dtype in (INT32, INT64) else np.int64)
    return Partial(
        np.array([d or 0 for d in shape.dims], np.int64), np.array([d is not None for d in shape.dims], np.bool_)
    )


def known_outputs(
    node: Node, known: Sequence[Known], inputs: Sequence[Shape], shapes: Sequence[Shape], *, is_complete: bool
) -> list[Known]:
    """What is known of the values of a node's outputs; empty where nothing is.

    Args:
        known, inputs: what is known of the values of its data inputs, and their shapes.
        shapes: of its outputs.
        is_complete: whether a placeholder with a default is its default.
    """
    if node.op == "Const":
        value = node.attrs.get("value")
        return [of_tensor(value) if isinstance(value, Tensor) else None for _ in shapes]
    if node.op in ("Shape", "ShapeN"):
        return [of_dims(shape, node.dtype("out_type", INT32)) for shape in inputs]
    if node.op in ("Rank", "Size"):
        count = inputs[0].rank if node.op == "Rank" else inputs[0].elements
        return [None if count is None else np.asarray(count, node.dtype("out_type", INT32).numpy)]
    if node.op in ENTER:
        return [known[0] if known and node.attrs.get("is_constant") is True else None]
    if node.op == "PlaceholderWithDefault":
        return list(known) if is_complete else []
    if all(value is None for value in known):
        return []
    if node.op == "Identity":
        return list(known)
    if node.op in ("Merge", "Switch", "_SwitchN") or opdefs.is_stateful(node.op):
        return []
    return list(_computed(node, known, inputs, shapes))


def _computed(
    node: Node, inputs: Sequence[Known], input_shapes: Sequence[Shape], shapes: Sequence[Shape]
) -> tuple[Known, ...]:
    """What is known of a stateless node's outputs, from what is known of its data inputs.

    Args:
        inputs: one entry for each data input.
        input_shapes: their shapes.
        shapes: the shapes of its outputs; an output that may be large is not computed.
    """
    nothing: tuple[Known, ...] = (None,) * len(shapes)
    if node.op in JOINING and any(value is not None for value in inputs):
        inputs = [_placeholder(s) if value is None else value for value, s in zip(inputs, input_shapes, strict=True)]
    if not inputs or any(value is None for value in inputs):
        return nothing
    if node.op not in SIZED_BY_VALUE and any(s.elements is None or s.elements > LARGEST for s in shapes):
        return nothing
    if all(isinstance(value, np.ndarray) for value in inputs):
        return tuple(_evaluate(node, inputs) or nothing)
    divides = node.op in DIVISIONS and isinstance(inputs[-1], np.ndarray)
    if node.op in MOVING:
        return _followed(node, inputs) or nothing
    if node.op in POLYNOMIALS or divides:
        return _probed(node, inputs) or nothing
    return nothing


def _placeholder(shape: Shape) -> Partial | None:
    """An input of a join of which nothing but the shape is known."""
    if shape.elements is None or shape.elements > LARGEST:
        return None
    return Partial(np.zeros(shape.known, np.int64), np.zeros(shape.known, np.bool_))


def _evaluate(node: Node, inputs: Sequence[Any]) -> tuple[Any, ...] | None:
    from pocketgraph.kernels import registry

    try:
        outputs = registry.evaluate(node, inputs)
    except (PocketgraphError, ArithmeticError, LookupError, AssertionError, NotImplementedError):
        return None
    return tuple(v if isinstance(v, (np.ndarray, np.generic)) else None for v in map(_as_array, outputs))


def _as_array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, (np.generic, int, float)) else value


def _followed(node: Node, inputs: Sequence[Known]) -> tuple[Known, ...] | None:
    """Runs a node that only moves elements about, with a number in the unknown places that no known one is."""
    filled = []
    for value in inputs:
        if isinstance(value, Partial):
            filled.append(np.where(value.known, value.numbers, UNTAKEN))
        elif value is not None and value.dtype.kind in "iu":
            filled.append(value.astype(np.int64))
        else:
            return None
        if isinstance(value, np.ndarray) and (filled[-1] == UNTAKEN).any():
            return None
    outputs = _evaluate(_widened(node), filled)
    if outputs is None:
        return None
    found: list[Known] = []
    for moved in outputs:
        if moved is None or moved.dtype.kind not in "iu":
            found.append(None)
            continue
        known = np.asarray(moved != UNTAKEN)
        numbers = moved.astype(np.int64)
        if known.all():
            found.append(_integers(node, numbers))
        else:
            found.append(Partial(numbers, known) if known.any() else None)
    return tuple(found)


def _probed(node: Node, inputs: Sequence[Known]) -> tuple[Known, ...] | None:
    """Runs the node twice with different numbers in the unknown places: what comes out the same is known.

    The numbers are large, random and all different, so that two that cancel are not taken for a known result.
    """
    runs = []
    wanted = sum(value.known.size for value in inputs if isinstance(value, Partial))
    for guesses in _guesses(-(-wanted // LARGEST) * LARGEST):
        filled = []
        place = 0
        for value in inputs:
            if isinstance(value, Partial):
                guess = guesses[place : place + value.known.size].reshape(value.known.shape)
                place += value.known.size
                filled.append(np.where(value.known, value.numbers, guess))
            elif value is not None and value.dtype.kind in "iu":
                filled.append(value.astype(np.int64))
            else:
                return None
        outputs = _evaluate(_widened(node), filled)
        if outputs is None:
            return None
        runs.append(outputs)
    found: list[Known] = []
    for first, second in zip(*runs, strict=True):
        if first is None or second is None or first.shape != second.shape or first.dtype.kind not in "iu":
            found.append(None)
            continue
        same = first == second
        numbers = first.astype(np.int64)
        if same.all():
            found.append(_integers(node, numbers))
        else:
            found.append(Partial(numbers, np.asarray(same)) if same.any() else None)
    return tuple(found)


@functools.lru_cache(4)
def _guesses(count: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Twice as many random numbers: drawing them takes longer than what they are for."""
    return tuple(np.random.default_rng(seed).integers(2**40, 2**41, count) for seed in (1, 2))


def _widened(node: Node) -> Node:
    """The node with 32-bit casts made 64-bit, so that the probing numbers survive."""
    target = node.attrs.get("DstT")
    if node.op == "Cast" and isinstance(target, DType) and target.is_integer:
        return node.with_attrs(DstT=INT64)
    return node


def _integers(node: Node, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Numbers that are all known, in the node's type; None where that has no integers and there are some."""
    for name in ("DstT", "T", "Tparams"):
        value = node.attrs.get(name)
        if isinstance(value, DType):
            return numbers.astype(value.numpy) if value.is_integer or not (numbers.size or value is STRING) else None
    return numbers.astype(np.int32)
