"""The goldens of tests/fixtures/kernels: what TensorFlow computed for single nodes."""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph import formats
from pocketgraph.graph import Node
from pocketgraph.kernels.registry import evaluate

FOLDER = pathlib.Path(__file__).parent.parent / "fixtures" / "kernels"


@dataclass(frozen=True)
class Case:
    """One node, its inputs, and what TensorFlow gave for it."""

    node: Node
    inputs: tuple[np.ndarray[Any, Any], ...]
    expected: tuple[np.ndarray[Any, Any], ...]


def cases(group: str) -> Iterator[Case]:
    """The cases of one file, in its order."""
    graph = formats.from_bytes(gzip.decompress((FOLDER / f"{group}.pb.gz").read_bytes()))
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
        yield Case(node, inputs, tuple(expected))


def case_names(group: str) -> list[str]:
    return [case.node.name for case in cases(group)]


def run(op: str, inputs: list[Any], **attrs: Any) -> tuple[Any, ...]:
    """What our kernel makes of these inputs; text attributes may be ``str``."""
    attrs = {key: value.encode() if isinstance(value, str) else value for key, value in attrs.items()}
    return evaluate(Node("case", op, [], attrs), [np.asarray(value) for value in inputs])
