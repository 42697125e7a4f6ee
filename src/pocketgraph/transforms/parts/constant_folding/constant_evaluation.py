"""Computes constant steps, each once, and lets go of every value as soon as nobody needs it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError, TransformError
from pocketgraph.formats.stored_list import StoredList, list_tensor, stored_list
from pocketgraph.formats.typed_list import in_typed_list
from pocketgraph.graph import DType, Node, Tensor, opdefs
from pocketgraph.graph.dtype import DOUBLE, FLOAT, VARIANT
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import NO_DEFAULT_PLACEHOLDERS, ops_with
from pocketgraph.kernels import registry
from pocketgraph.kernels.state.tensor_list import TensorList
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.original.older_fake_quant import OLDER_FAKE_QUANTS, older_fake_quant
from pocketgraph.transforms.parts.constant_folding.constants import CONSTANTS, PASSED_THROUGH, FoldableConstants
from pocketgraph.transforms.parts.constant_folding.flow import Flow

MOVES = ops_with("moves") | {
    "GatherNd", "Pad", "PadV2", "MirrorPad", "BroadcastTo", "Bitcast", "SpaceToBatchND", "BatchToSpaceND",
    "SpaceToDepth", "DepthToSpace", "Where", "Unique", "DynamicStitch", "DynamicPartition", "ZerosLike", "OnesLike",
    "Shape",
}  # fmt: skip
"""Not a trait: ops that compute nothing in TensorFlow, so that denormal numbers go through them."""


def evaluate(
    flow: Flow, found: FoldableConstants, wanted: Collection[tuple[str, int]], compat: Compat
) -> dict[tuple[str, int], Tensor]:
    """The values of the wanted tensors.

    Arithmetic is done as the original does it: a denormal number that goes in or comes out is taken as zero.

    Args:
        found: its constant steps.
        wanted: tensors of constant steps, as step name and port.

    Raises:
        TransformError: a kernel refuses its inputs, or a placeholder that is not among the inputs is needed.
    """
    needed = set(closure([name for name, _ in wanted], lambda name: [at for at, _ in _edges(flow, found, name)]))
    uses: dict[tuple[str, int], int] = {}
    for name in needed:
        for edge in _edges(flow, found, name):
            uses[edge] = uses.get(edge, 0) + 1
    kept = set(wanted)
    values: dict[tuple[str, int], Tensor] = {}
    for name in (name for name in found.order if name in needed):
        edges = _edges(flow, found, name)
        outputs = found.shapes.get(name)
        if outputs is None:
            outputs = _computed(flow.steps[name].node, [values[edge] for edge in edges], compat)
        for edge in edges:
            uses[edge] -= 1
            if not uses[edge] and edge not in kept:
                values.pop(edge, None)
        for port, value in enumerate(outputs):
            if (name, port) in kept or uses.get((name, port)):
                values[name, port] = value
    return values


def _edges(flow: Flow, found: FoldableConstants, name: str) -> list[tuple[str, int]]:
    return [] if name in found.shapes else flow.steps[name].data


def _computed(node: Node, inputs: list[Tensor], compat: Compat) -> tuple[Tensor, ...]:
    if node.op in CONSTANTS:
        return (_list_of(node) if node.tensor.dtype is VARIANT else node.tensor,)
    if node.op in PASSED_THROUGH and inputs:
        return (inputs[0],)
    if node.op == "NoOp":
        return ()
    if node.op in NO_DEFAULT_PLACEHOLDERS:
        raise TransformError(
            f"You must feed a value for placeholder tensor '{node.name}'",
            hint=f"name '{node.name}' among the inputs, or write fold_constants(ignore_errors=true)",
        )
    exact = node.op in MOVES or VARIANT in (opdefs.known_output_dtypes(node) or ())
    try:
        arrays = [_value(tensor) if exact else _flushed(_value(tensor), tensor.dtype) for tensor in inputs]
        with np.errstate(all="ignore"):
            results = registry.evaluate(node, arrays)
        if compat.original and node.op in OLDER_FAKE_QUANTS:
            results = (older_fake_quant(node, arrays),)
        return tuple(_as_tensor(node, port, result, exact) for port, result in enumerate(results))
    except PocketgraphError as error:
        raise TransformError(error.what, where=error.where or f"node '{node.name}'") from error
    except (ArithmeticError, LookupError, MemoryError, NotImplementedError) as error:
        said = str(error) or "there is not enough memory"
        raise TransformError(f"{node.op} failed: {said}", where=f"node '{node.name}'") from error


def _as_tensor(node: Node, port: int, result: Any, exact: bool) -> Tensor:
    dtypes = opdefs.known_output_dtypes(node) or ()
    if port < len(dtypes) and dtypes[port] is VARIANT:
        return _of_variants(result)
    array = np.asarray(result)
    dtype = dtypes[port] if port < len(dtypes) else DType.of_numpy(array.dtype)
    return Tensor.from_numpy(array if exact else _flushed(array, dtype), dtype)


def _of_variants(value: Any) -> Tensor:
    """What carries variants as kernels know them from one to the next."""
    array = value
    if not isinstance(value, np.ndarray):
        array = np.empty((), object)
        array[()] = value
    return Tensor(VARIANT, array.shape, array=array)


def _value(tensor: Tensor) -> Any:
    """What a kernel takes of the tensor."""
    return tensor.numpy().item() if tensor.dtype is VARIANT and not tensor.shape else tensor.numpy()


def _list_of(node: Node) -> Tensor:
    """The list that a constant holds, as kernels know it."""

    def made(tensor: Tensor, depth: int = 0) -> TensorList:
        found = stored_list(tensor, f"node '{node.name}'", depth)
        items: list[Any] = [None] * found.count
        for index, item in found.items.items():
            items[index] = made(item, depth + 1) if item.dtype is VARIANT else item.numpy()
        return TensorList(found.dtype, found.shape, items, found.most)

    return _of_variants(made(node.tensor))


def as_stored(tensor: Tensor) -> Tensor | None:
    """A computed tensor as a Const holds it; None where none can, as of variants other than a list."""
    if tensor.dtype is not VARIANT:
        return in_typed_list(tensor)
    found = _value(tensor)
    if not isinstance(found, TensorList):
        return None
    items: dict[int, Tensor] = {}
    for index, item in enumerate(found.items):
        if item is not None:
            made = as_stored(_of_variants(item) if found.dtype is VARIANT else Tensor.from_numpy(item, found.dtype))
            if made is None:
                return None
            items[index] = made
    return list_tensor(StoredList(found.dtype, found.shape, len(found.items), items, found.most))


def _flushed(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The array with denormal numbers made zero."""
    if dtype not in (FLOAT, DOUBLE):
        return array
    magnitude = np.abs(array)
    denormal = (magnitude < np.finfo(array.dtype).tiny) & (magnitude > 0)
    return np.where(denormal, np.copysign(array.dtype.type(0), array), array) if denormal.any() else array
