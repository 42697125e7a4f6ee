"""The goldens of tests/fixtures/kernels: what TensorFlow computed for single nodes.

FAMILY.pb.gz has the cases of a family of kernels, each under the name of the list that it comes from
(fixtures/kernel_cases): ``networks.Conv2D_3``. Files with other names hold what one test needs for itself.
"""

from __future__ import annotations

import functools
import gzip
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.graph import Node
from pocketgraph.kernels.registry import evaluate

FOLDER = pathlib.Path(__file__).parent.parent / "fixtures" / "kernels"


@dataclass(frozen=True)
class Case:
    """One node, its inputs, what TensorFlow gave for it, and the list that it comes from."""

    node: Node
    inputs: tuple[np.ndarray[Any, Any], ...]
    expected: tuple[np.ndarray[Any, Any], ...]
    source: str = ""

    @property
    def name(self) -> str:
        """What the case is called in its file."""
        return f"{self.source}.{self.node.name}" if self.source else self.node.name


FAMILIES = (
    "array", "audio", "control_flow", "image", "logging", "math", "nn", "parsing", "quantized", "random", "sparse",
    "state", "text",
)  # fmt: skip


def from_list(source: str) -> list[Case]:
    """The cases of one list, of all families; those of a family are in the list's order."""
    return [case for family in FAMILIES for case in cases(family) if case.source == source]


@functools.cache
def cases(file: str) -> tuple[Case, ...]:
    """The cases of one file, in its order, read once; no array of theirs can be written to."""
    graph = formats.from_bytes(gzip.decompress((FOLDER / f"{file}.pb.gz").read_bytes()))
    found = []
    for node in graph:
        if "/" in node.name:
            continue
        inputs = tuple(graph[name].tensor.numpy() for name in node.inputs)
        names = (f"{node.name}/expected_{number}" for number in range(100))
        expected = []
        for name in names:
            if name not in graph.nodes:
                break
            expected.append(graph[name].tensor.numpy())
        source, _, name = node.name.rpartition(".")
        found.append(Case(node.replace(name=name), inputs, tuple(expected), source))
    return tuple(found)


def by_op(found: Iterable[Case]) -> list[Any]:
    """Parameters of a test an op: tests of a case each take longer to be told of than to run."""
    ops: dict[str, list[Case]] = {}
    for case in found:
        ops.setdefault(case.node.op, []).append(case)
    return [pytest.param(each, id=op) for op, each in ops.items()]


def assert_each(check: Callable[[Case], None], found: Iterable[Case]) -> None:
    """Checks all cases, and tells of each that fails."""
    wrong = {}
    for case in found:
        try:
            check(case)
        except Exception as error:
            wrong[case.name] = f"{type(error).__name__}: {error}"
    assert not wrong, "\n".join(f"{name}: {why}" for name, why in wrong.items())


def run(op: str, inputs: list[Any], **attrs: Any) -> tuple[Any, ...]:
    """What our kernel makes of these inputs; text attributes may be ``str``."""
    attrs = {key: value.encode() if isinstance(value, str) else value for key, value in attrs.items()}
    return evaluate(Node("case", op, [], attrs), [np.asarray(value) for value in inputs])
