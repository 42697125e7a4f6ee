"""Breaks the goldens' nodes, one input at a time: a rank, a length or a value that the op may not take."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests"))

from kernels.cases import FOLDER, Case
from kernels.cases import cases as cases
from pocketgraph.graph import DType, Graph, Node, Shape, opdefs
from pocketgraph.graph.graph import Versions
from pocketgraph.graph.tensor import Array

OTHER_FORM = (
    "eight_bit",
    "eight_bit_1_15",
    "variables",
    "steps",
    "summaries",
    "pictures",
)  # goldens that are no single nodes
OLD = {"TileGrad": 2, "AdjustContrast": 1}
"""Ops that TensorFlow allows in graphs of old producers only, and how old."""
OLDER = frozenset((
    "TopK", "BatchNormWithGlobalNormalization", "BatchMatrixDiag", "BatchMatrixDiagPart", "BatchMatrixSetDiag",
    "BatchMatrixBandPart", "BatchNormWithGlobalNormalizationGrad", "Conv3DBackpropInput", "Conv3DBackpropFilter",
    "MatrixExponential", "SelfAdjointEig", "BatchCholeskyGrad",
))  # fmt: skip
UNUSED = ("resource", "variant", "float8_e5m2", "float8_e4m3fn", "int4", "uint4")
FEW = 64  # elements; what tells an op how to compute is no longer than that


@dataclass(frozen=True)
class Broken:
    """A node with one input, or attribute, that is not as the op wants it.

    Attributes:
        node: takes the placeholders ``in0``, ``in1``, …
        inputs: what these are fed.
        how: what was broken, for people.
    """

    node: Node
    inputs: tuple[Array, ...]
    how: str

    def graph(self) -> Graph:
        """The node behind placeholders of unknown shapes, so that nothing is known before it runs."""
        dtypes = opdefs.input_dtypes(self.node)
        sources = [
            Node(f"in{n}", "Placeholder", (), {"dtype": dtype, "shape": Shape(None)}) for n, dtype in enumerate(dtypes)
        ]
        producer = OLD.get(self.node.op, 6 if self.node.op in OLDER else 987)
        return Graph([*sources, self.node], versions=Versions(producer=producer))


def goldens(wanted: set[str]) -> dict[str, list[Case]]:
    """The cases of all goldens that are single nodes, by op."""
    found: dict[str, list[Case]] = {}
    for path in sorted(FOLDER.glob("*.pb.gz")):
        group = path.name.partition(".")[0]
        if group in OTHER_FORM:
            continue
        for case in cases(group):
            if case.inputs and (not wanted or case.node.op in wanted):
                found.setdefault(case.node.op, []).append(case)
    return found


def broken(rng: np.random.Generator, case: Case) -> Iterator[Broken]:
    """Every way in which one input of a case is broken."""
    node = case.node.replace(
        name="broken", inputs=tuple(f"in{n}" for n in range(len(case.inputs)))
    )  # fmt: skip
    for number, value in enumerate(case.inputs):
        for how, other in breaks(rng, value):
            inputs = (*case.inputs[:number], other, *case.inputs[number + 1 :])
            yield Broken(node, inputs, f"input {number}: {how}")
    for name, value in wrong_attributes(case.node):
        yield Broken(node.replace(attrs={**node.attrs, name: value}), case.inputs, f"{name} is {value}")


def retyped(case: Case, kernels: Sequence[Mapping[str, Sequence[int]]]) -> Iterator[Broken]:
    """The case in every type that TensorFlow has a registered CPU kernel for, its inputs cast."""
    definition = opdefs.definition(case.node.op)
    if any(argument.type_list_attr or argument.number_attr for argument in definition.inputs):
        return
    names = tuple(f"in{n}" for n in range(len(case.inputs)))
    for kernel in kernels:
        for name, numbers in kernel.items():
            for number in numbers:
                kind = DType.of(number)
                if kind.name in UNUSED or kind.is_quantized or case.node.attrs.get(name) in (kind, None):
                    continue
                others = {n: v for n, v in case.node.attrs.items() if n in kernel and n != name}
                if any(isinstance(v, DType) and v.number not in kernel[n] for n, v in others.items()):
                    continue
                inputs = []
                for argument, value in zip(definition.inputs, case.inputs, strict=True):
                    changes = argument.type_attr == name
                    if changes and (value.dtype.kind == "O") != (kind.name == "string"):
                        break
                    with np.errstate(all="ignore"):
                        inputs.append(value.astype(kind.numpy) if changes else value)
                else:
                    node = case.node.replace(name="broken", inputs=names, attrs={**case.node.attrs, name: kind})
                    yield Broken(node, tuple(inputs), f"{name} is {kind.name}")


def breaks(rng: np.random.Generator, value: Array) -> Iterator[tuple[str, Array]]:
    """(what was done, the tensor) for each break of one tensor."""
    yield "an axis more in front", value[np.newaxis]
    yield "an axis more behind", value[..., np.newaxis]
    if value.ndim:
        if len(value):
            yield "its first axis gone", np.asarray(value[0], value.dtype)
        yield "flat", value.reshape(-1)
        yield "empty", value[:0]
        axis = int(rng.integers(value.ndim))
        yield f"axis {axis} empty", np.take(value, [], axis)
        if value.shape[axis]:
            yield f"axis {axis} longer", np.concatenate([value, np.take(value, [0], axis)], axis)
            yield f"axis {axis} shorter", np.take(value, range(value.shape[axis] - 1), axis)
            yield f"axis {axis} twice as long", np.concatenate([value, value], axis)
    else:
        yield "a vector of two", np.stack([value, value])
    if not value.size:
        return
    yield from wrong_values(rng, value)


def wrong_values(rng: np.random.Generator, value: Array) -> Iterator[tuple[str, Array]]:
    """One element, or all of them, out of what an index, a size or a number may be."""
    place = int(rng.integers(value.size))
    kind = value.dtype
    if kind.kind in "iu":
        info = np.iinfo(kind)
        others = {-1, -2, -100, 0, 1, 2, 1000, info.max, info.min, int(value.ravel()[place]) + 1}
        for other in sorted(o for o in others if info.min <= o <= info.max):
            yield f"element {place} is {other}", with_element(value, place, other)
        yield "all negative" if info.min else "all large", np.full_like(value, -3 if info.min else info.max)
    elif kind.kind in "fcV":
        for number in (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e30):
            with np.errstate(all="ignore"):
                yield f"element {place} is {number}", with_element(value, place, np.asarray(number).astype(kind)[()])
    elif kind.kind == "O":
        for text in (b"", b"\xff\xfe", b"nonsense", b"\x00" * 3):
            yield f"element {place} is {text!r}", with_element(value, place, text)
        cut = value.ravel()[place][:-1] if isinstance(value.ravel()[place], bytes) else b""
        yield f"element {place} lacks its last byte", with_element(value, place, cut)


def wrong_attributes(node: Node) -> Iterator[tuple[str, Any]]:
    """(attribute, value) for numbers and lists of numbers that an op may not take."""
    definition = opdefs.definition(node.op)
    counts = {arg.number_attr for arg in (*definition.inputs, *definition.outputs)}
    for name, attr in definition.attrs.items():
        value = node.attrs.get(name, attr.default)
        if attr.kind == "int" and name not in counts:
            yield from ((name, other) for other in (-1, 0, 1000, 2**31) if other != value)
        elif attr.kind == "float":
            yield from ((name, other) for other in (-1.0, 0.0, float("nan"), float("inf")) if other != value)
        elif attr.kind == "list(int)" and isinstance(value, tuple) and value:
            yield name, value[:-1]
            yield name, (*value, 1)
            yield from ((name, (*value[:-2], other, *value[-1:])) for other in (0, -1, 1000) if len(value) > 1)


def with_element(value: Array, place: int, element: Any) -> Array:
    changed = value.copy().reshape(-1)
    changed[place] = element
    return changed.reshape(value.shape)
