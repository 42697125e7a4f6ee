"""Samples for models that take texts: texts, their words, or records with a text in them, as each input takes them."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.datasets import class_labels
from pocketgraph.datasets.model_input import ModelInput, signature_prefix
from pocketgraph.datasets.named_arrays import IN_MEMORY, LABEL_KEYS, SampleSource, are_arrays, arrays_of
from pocketgraph.datasets.stored_arrays import whole
from pocketgraph.datasets.text_tables import TextTable, read_text_table
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats.example_writer import RecordFeature, serialized
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted

BESIDE = "\x1f"  # between the values of a cell: the unit separator of ASCII, which texts do not have


def read_texts(
    source: SampleSource, inputs: tuple[ModelInput, ...]
) -> tuple[list[Array], list[str], Array | None]:  # fmt: skip
    """An array of objects an input, an element a sample: what it is fed; the class of each; the numbers to be given.

    Args:
        source: see ``text_tables.read_text_table``; or arrays of texts by the inputs' names, or the only one.
        inputs: what the model takes, texts among it.

    Raises:
        UsageError: there are no texts, or a column is missing.
        FormatError: a file cannot be read.
    """
    if isinstance(source, str | os.PathLike) and not are_arrays(source):
        numbers = _names(inputs, of_texts=False)
        table = read_text_table(os.fspath(source), _names(inputs), numbers, without_strays=True)
    else:
        table = _of_arrays(source)
    made = [_fed(table, item, inputs) for item in inputs]
    return made, list(table.classes), class_labels.numbers_of(table.classes)


def other_sample(item: ModelInput, text: str, like: Array | None = None) -> Array:
    """What an input takes for a text where nothing else is known: as ``like``, or zeros, for what is no text."""
    if not item.takes_text:
        return np.zeros(item.shape, item.dtype) if like is None else like
    zeros = {feature.key.decode("utf-8", "replace"): " ".join(["0"] * (feature.size or 0))
             for feature in item.features if feature.dtype is not STRING}  # fmt: skip
    strings = {feature.key.decode("utf-8", "replace"): text for feature in item.features if feature.dtype is STRING}
    return _element(item, {**zeros, **strings} if item.features else {"": text}, "")


def _names(inputs: Sequence[ModelInput], *, of_texts: bool = True) -> list[str]:
    """What columns may be called: the inputs that take texts, and the string features of records; or the others."""
    found: list[str] = []
    for item in inputs:
        if item.features:
            found += [
                feature.key.decode("utf-8", "replace")
                for feature in item.features
                if (feature.dtype is STRING) == of_texts
            ]
        elif item.takes_text == of_texts:
            found.append(item.column)
    return found


def _fed(table: TextTable, item: ModelInput, inputs: tuple[ModelInput, ...]) -> Array:
    count = len(next(iter(table.columns.values())))
    if item.features:
        columns = dict(table.columns)
    else:
        plain = item.name.removesuffix(":0")
        cells = table.column(*_columns(table, item, inputs), plain, plain.replace("/", "_"))
        texts = [other for other in inputs if other.takes_text]
        if cells is None and item.takes_text and len(texts) == 1:
            cells = table.columns[table.text]
        if cells is None and not item.takes_text:
            cells = _numbered_columns(table, item, inputs) or _spare_columns(table, item, inputs)
        if cells is None:
            raise UsageError(
                f"there is no column for the input '{item.column}'",
                where=table.place,
                hint=f"there are {', '.join(table.columns)}",
            )
        columns = {"": cells}
    made = np.empty(count, object)
    for at in range(count):
        row = {key: str(cells[at]) for key, cells in columns.items()}
        try:
            made[at] = _element(item, row, table.text)
        except (ValueError, KeyError) as error:
            raise FormatError(
                f"sample {at + 1} has no number for '{item.column}': {error}", where=table.place
            ) from None
    return made


def _columns(table: TextTable, item: ModelInput, inputs: Sequence[ModelInput]) -> tuple[str, str]:
    """What an input's column may be called: as its placeholder, or without what the signature puts before that."""
    taken = {part for name in table.columns for part in (name, name.rpartition("_")[0])}
    prefix = signature_prefix([other.column for other in inputs], taken)
    return item.column, item.column.removeprefix(prefix)


def _numbered_columns(table: TextTable, item: ModelInput, inputs: Sequence[ModelInput]) -> list[str] | None:
    """The columns named like an input with the places of its numbers behind, from 0 or 1; None without."""
    size = math.prod(item.shape)
    for name, first in itertools.product(_columns(table, item, inputs), (0, 1)):
        found = [table.column(f"{name}_{place}") for place in range(first, first + size)]
        columns = [cells for cells in found if cells is not None]
        if len(columns) == size > 1:
            return [BESIDE.join(cells) for cells in zip(*columns, strict=True)]
    return None


def _spare_columns(table: TextTable, item: ModelInput, inputs: Sequence[ModelInput]) -> list[str] | None:
    """The columns that no other input has the name of, side by side; None where they are not as many as it takes."""
    named = {other.column for other in inputs if other is not item}
    spare = [name for name in table.columns if name not in named]
    if not 1 < len(spare) == math.prod(item.shape):
        return None
    return [BESIDE.join(cells) for cells in zip(*(table.columns[name] for name in spare), strict=True)]


def _element(item: ModelInput, row: dict[str, str], text: str) -> Array:
    if item.features:
        record = serialized((feature, values) for feature in item.features
                            if (values := _values(item, feature, row, text)) is not None)  # fmt: skip
        return np.full(item.shape, np.array(record, object), object)
    (value,) = row.values()
    if not item.takes_text:
        numbers = np.array([float(part) for part in value.split(BESIDE)])
        return np.broadcast_to(numbers if numbers.size == 1 else numbers.reshape(item.shape), item.shape).astype(
            item.dtype
        )
    if not item.takes_words:
        return np.full(item.shape, np.array(value.encode(), object), object)
    words: list[bytes] = value.encode().split(BESIDE.encode() if BESIDE in value else None)
    size = item.shape[-1]
    if size > 1:
        words = (words + [b""] * size)[:size]
    made = np.array(words or [b""], object)
    return made.reshape((*(1,) * (len(item.shape) - 1), -1))


def _values(item: ModelInput, feature: RecordFeature, row: dict[str, str], text: str) -> list[Any] | None:
    """A feature's values out of a row, of a column or of such as ``sizes_0`` and ``sizes_1``; None for one that may be
    missing, and is."""
    key = feature.key.decode("utf-8", "replace")
    strings = [other for other in item.features if other.dtype is STRING]
    cell = row.get(key)
    if cell is None and feature.dtype is STRING and len(strings) == 1:
        cell = row.get(text, row.get(""))
    if cell is None:
        names = [*itertools.takewhile(row.__contains__, (f"{key}_{at}" for at in range(len(row))))]
        cell = " ".join(row[name] for name in names) if names and feature.size in (None, len(names)) else None
    if cell is None:
        if feature.size is None:
            return None
        raise UsageError(
            f"the records of '{item.column}' need the feature '{key}'",
            hint=f"name a column '{key}'; there are {', '.join(filter(None, row)) or 'none'}",
        )
    if feature.dtype is STRING:
        return [cell.encode()] if feature.size == 1 else cell.encode().split()
    return [float(part) if feature.dtype.is_floating else int(float(part)) for part in cell.split()]


def _of_arrays(source: Any) -> TextTable:
    place = os.fspath(source) if isinstance(source, (str, os.PathLike)) else IN_MEMORY
    if isinstance(source, (list, tuple, np.ndarray)):
        found = {"": np.asarray(source, object)}
    else:
        found = {name: np.asarray(whole(array)) for name, array in arrays_of(source).items()}
    key = next((key for key in LABEL_KEYS if key in found), None)
    labels = None if key is None else found.pop(key)
    columns = {name: [_cell(row) for row in np.asarray(array, object)] for name, array in found.items() if array.ndim}
    if not columns or len({len(cells) for cells in columns.values()}) != 1 or not len(next(iter(columns.values()))):
        sizes = ", ".join(f"{name or 'texts'}: {len(cells)}" for name, cells in columns.items())
        raise UsageError(f"there must be as many texts in each array, and at least one ({sizes})", where=place)
    classes = class_labels.classes_and_numbers(labels)[0] if labels is not None else []
    count = len(next(iter(columns.values())))
    if classes and len(classes) != count:
        raise UsageError(f"there are {counted(count, 'sample')} but {counted(len(classes), 'label')}", where=place)
    text = max(columns, key=lambda name: sum(map(len, columns[name])))
    return TextTable(place, columns, text, classes)


def _cell(row: Any) -> str:
    """A sample's text, or its words or numbers side by side."""
    return BESIDE.join(map(_decoded, row.reshape(-1))) if isinstance(row, np.ndarray) else _decoded(row)


def _decoded(cell: Any) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
