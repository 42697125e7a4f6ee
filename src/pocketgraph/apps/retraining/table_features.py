"""What a model makes of the rows of a table at one of its tensors; without a model, the columns made alike."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pocketgraph.apps.retraining.base_model import Cut
from pocketgraph.apps.retraining.example_lists import FEW, Example, category_of, check_counts, check_shares
from pocketgraph.datasets import csv_tables, named_arrays
from pocketgraph.datasets.evaluation_dataset import Dataset, open_dataset
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.stored_arrays import sample_of
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, Node, Shape, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.op_traits import PLACEHOLDERS
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted
from pocketgraph.runtime import Session

SUFFIXES = (*csv_tables.SUFFIXES, ".npz")
INPUT, ALIKE = "row", "columns/alike"


def is_table(path: str) -> bool:
    """Whether a path is that of a table: rows of numbers, each with its class."""
    return path.lower().endswith(SUFFIXES) and not os.path.isdir(path)


def taken_by(graph: Graph, tensor: str) -> ModelInput:
    """The one input that a tensor is computed from.

    Raises:
        UsageError: there are several, or it does not say how many numbers it takes.
    """
    needed = reachable(graph, [tensor])
    found = [node for node in graph if node.name in needed and node.op in PLACEHOLDERS and not node.inputs]
    if len(found) != 1:
        names = ", ".join(f"'{node.name}'" for node in found) or "none"
        raise UsageError(f"rows of a table go into one input, and the base has {len(found)}: {names}")
    (node,) = found
    shape = node.shape()
    dims = shape.dims if shape is not None else None
    if not dims or None in dims[1:]:
        raise UsageError("the base does not say how many numbers it takes", where=f"node '{node.name}'")
    return ModelInput(f"{node.name}:0", (1, *(int(size or 1) for size in dims[1:])), np.dtype(np.float32))


def read_table(path: str, wanted: ModelInput | None) -> Dataset:
    """The rows of a table, and their classes.

    Args:
        path: a .csv or .tsv file with a column of classes, or an .npz file with ``labels`` and one other array.
        wanted: what the model takes; None for all columns but the class.

    Raises:
        UsageError: the table does not fit the model, or has no classes.
        FormatError: it is no table, or a damaged one.
    """
    if wanted is None:
        wanted = ModelInput(f"{INPUT}:0", (1, _width(path)), np.dtype(np.float32))
    data = open_dataset(path, (wanted,))
    if not data.classes:
        columns = ", ".join(csv_tables.CLASS_COLUMNS)
        raise UsageError("the table does not say what its rows are", where=path, hint=f"call a column one of {columns}")
    return data


def _width(path: str) -> int:
    if csv_tables.is_table(path):
        return csv_tables.columns_of(path) - 1
    arrays = {key: array for key, array in named_arrays.arrays_of(path).items() if key not in named_arrays.LABEL_KEYS}
    if len(arrays) != 1:
        raise UsageError(f"there are {counted(len(arrays), 'array')} beside the labels, not one", where=path)
    return math.prod(next(iter(arrays.values())).shape[1:])


def examples_of_table(
    data: Dataset, *, testing: float, validation: float, warn: Callable[[str], None]
) -> tuple[list[str], list[Example]]:
    """The labels in order, and every row as an example; a row's side follows from its numbers, so that equal ones stay
    together and none ever changes sides.

    Raises:
        UsageError: there are not two classes, or the percentages leave nothing.
    """
    check_shares(testing, validation)
    labels = sorted(set(data.classes))
    if len(labels) < 2:
        raise UsageError(f"there is one class alone, '{labels[0]}'; two are needed", where=data.place)
    examples = []
    for number, ((row,), label) in enumerate(zip(data.samples(), data.classes, strict=True)):
        key = hashlib.sha1(row.tobytes()).hexdigest()
        examples.append(Example(f"{data.place}#{number + 1}", label, category_of(key, testing, validation), key))
    for label in labels:
        own = [example for example in examples if example.label == label]
        if len(own) < FEW:
            warn(f"'{label}' has less than {FEW} rows, which may cause issues")
        check_counts(label, own)
    return labels, examples


def columns_alike(data: Dataset, examples: Sequence[Example]) -> tuple[Graph, Cut]:
    """A graph that gives each column mean 0 and standard deviation 1 over the rows that train."""
    train = [row for (row,), example in zip(data.samples(), examples, strict=True) if example.category == "training"]
    rows = np.concatenate(train).astype(np.float64)
    mean, std = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(std > 0, 1 / np.where(std > 0, std, 1), 0)
    nodes = [
        Node(INPUT, "Placeholder", (), {"dtype": FLOAT, "shape": Shape((None, rows.shape[1]))}),
        const("columns/mean", mean.astype(np.float32)),
        const("columns/scale", scale.astype(np.float32)),
        Node("columns/centered", "Sub", (INPUT, "columns/mean"), {"T": FLOAT}),
        Node(ALIKE, "Mul", ("columns/centered", "columns/scale"), {"T": FLOAT}),
    ]
    return Graph(nodes), Cut(f"{ALIKE}:0", "")


class TableFeatures:
    """What a model makes of rows.

    Args:
        graph: takes a row.
        tensor: what is wanted.
        data: the rows.
        threads: as in Session.
    """

    scaling = None

    def __init__(self, graph: Graph, tensor: str, data: Dataset, *, threads: int | None = None) -> None:
        self._data, self._tensor, self._threads = data, tensor, threads
        self._session = Session(graph, threads=threads)

    @property
    def entrance(self) -> str:
        return self._data.inputs[0].name

    @property
    def identity(self) -> str:
        return f"{self._data.inputs[0]} {self._tensor}"

    def rank(self) -> int:
        return self._run(np.zeros(self._data.inputs[0].shape, np.float32)).ndim

    def content(self, path: str) -> bytes:
        return self._row(path).tobytes()

    def of(self, path: str, content: bytes, variants: Sequence[int]) -> list[Array]:
        """The tensor; rows have no variants, so each is alike."""
        made = self._run(np.frombuffer(content, np.float32).reshape(self._data.inputs[0].shape))
        return [made[0] if made.ndim > 1 and len(made) == 1 else made] * len(variants)

    def at(self, graph: Graph, tensor: str) -> TableFeatures:
        return TableFeatures(graph, tensor, self._data, threads=self._threads)

    def prepared(self, path: str) -> Callable[[], object]:
        return partial(self._run, self._row(path))

    def _row(self, path: str) -> Array:
        number = int(path.rpartition("#")[2]) - 1
        item = self._data.inputs[0]
        return np.asarray(sample_of(self._data.arrays[0], number), np.float32).reshape(item.shape)

    def _run(self, row: Array) -> Array:
        return np.asarray(self._session.run([self._tensor], {self.entrance: row})[0], np.float32)
