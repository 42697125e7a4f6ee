"""Texts that people have: tables with a column of texts, folders of text files, lists with a text a line."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pocketgraph.datasets import csv_tables, file_lists
from pocketgraph.datasets.text_decoding import decoded
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats.files import opened, unreadable
from pocketgraph.pages.quantities import counted

TEXT_COLUMNS = ("text", "texts", "review", "sentence", "comment", "message", "content", "body", "document", "tweet")
CLASS_COLUMNS = (*csv_tables.CLASS_COLUMNS, "labels", "sentiment", "category", "classes")
MOST_CLASSES = 50
"""Different cells that a column of classes has at most where nothing names it."""
MOST_BYTES = 1 << 26  # of one text file


@dataclass(frozen=True)
class TextTable:
    """Texts, and what else their rows say.

    Attributes:
        place: where they come from.
        columns: cells by the names of columns, a cell a row; of a table without names ``column 1`` and so on.
        text: the name of the column of texts; the likeliest one.
        classes: the class of each row; empty where the data do not tell.
    """

    place: str
    columns: Mapping[str, Sequence[str]]
    text: str
    classes: Sequence[str]

    def column(self, *names: str) -> Sequence[str] | None:
        """The column of one of these names, whatever their case; None without."""
        wanted = [name.strip().lower() for name in names]
        found = {name.strip().lower(): cells for name, cells in self.columns.items()}
        return next((found[name] for name in wanted if name in found), None)


def read_text_table(
    place: str, names: Sequence[str] = (), numbers: Sequence[str] = (), *, without_strays: bool = False
) -> TextTable:
    """The texts of a table (``.csv``, ``.tsv``), of a folder of ``.txt`` files, or of a list.

    In a folder, folders inside are classes. A list has a text a line, or the path of a text file, perhaps with a tab
    and its class behind it. A table's first row names its columns where it reads like names.

    Args:
        place: the path.
        names: what columns of texts may be called, by the model's inputs.
        numbers: likewise those of numbers.
        without_strays: see ``file_lists.of_folder``.

    Raises:
        UsageError: there are no texts.
        FormatError: a file cannot be read, or is no text in UTF-8.
    """
    if os.path.isdir(place):
        files, classes = file_lists.texts_of_folder(place, without_strays=without_strays)
        return TextTable(place, {"text": [read_text(path) for path in files]}, "text", classes)
    if csv_tables.is_table(place):
        return _of_rows(place, csv_tables.rows_of(place), names, numbers)
    return _of_lines(place, [line for line in read_text(place).splitlines() if line.strip()])


def read_text(path: str) -> str:
    """A file's text, without line ends at its end.

    Raises:
        FormatError: it cannot be read, is too long or no text in UTF-8.
    """
    try:
        with opened(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise unreadable("the text", path, error) from None
    if len(data) > MOST_BYTES:
        raise FormatError(f"this is no text: it has more than {MOST_BYTES:,} bytes", where=path)
    return decoded(data, "text", path).rstrip("\r\n")


def _of_lines(place: str, lines: Sequence[str]) -> TextTable:
    if not lines:
        raise UsageError("there are no texts here", where=place)
    parts = [line.rpartition("\t") if "\t" in line else (line, "", "") for line in lines]
    texts, classes = [text for text, _, _ in parts], [label.strip() for _, _, label in parts]
    named = [label for label in classes if label]
    if named and len(named) < len(texts):
        raise UsageError(f"{len(texts)} texts are listed, but only {len(named)} with a class", where=place)
    folder = os.path.dirname(place)
    paths = [os.path.join(folder, text.strip()) for text in texts]
    if all(text.strip().lower().endswith(file_lists.TEXTS) for text in texts):
        texts = [read_text(path) for path in paths]
    classes = classes if named else []
    return TextTable(place, {"text": file_lists.mixed(texts, classes)}, "text", file_lists.mixed(classes, classes))


def _of_rows(place: str, rows: list[list[str]], names: Sequence[str], numbers: Sequence[str]) -> TextTable:
    if not rows:
        raise UsageError("there are no texts here", where=place)
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise UsageError(
                f"row {number + 1} has {counted(len(row), 'column')}, the first {width}",
                where=place,
                hint='a text with commas in it is put into quotes: "so, and so"',
            )
    head = _head(rows, [*names, *numbers])
    body = rows[1:] if head else rows
    if not body:
        raise UsageError("there are no texts here", where=place)
    titles = [name.strip() for name in head] or [f"column {at + 1}" for at in range(width)]
    cells = {title: [row[at] for row in body] for at, title in enumerate(titles)}
    text = _text_column(cells, names)
    label = _class_column(cells, text, {name.lower() for name in (*names, *numbers)})
    classes = [csv_tables.class_name(cell) for cell in cells[label]] if label is not None else []
    mixed = {title: file_lists.mixed(column, classes) for title, column in cells.items()}
    return TextTable(place, mixed, text, file_lists.mixed(classes, classes))


def _head(rows: Sequence[Sequence[str]], names: Sequence[str]) -> Sequence[str]:
    """The first row where it names columns: known names, or cells that no other row of a column with few different
    ones has."""
    first = rows[0]
    known = {*TEXT_COLUMNS, *CLASS_COLUMNS, *(name.lower() for name in names)}
    if any(cell.strip().lower() in known for cell in first):
        return first
    for at, cell in enumerate(first):
        others = {row[at] for row in rows[1:]}
        if 1 < len(others) <= MOST_CLASSES and len(rows) > 2 * len(others) + 1 and cell not in others:
            return first
    return []


def _text_column(cells: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """The column that is named like an input, else like a text, else the one with the longest cells."""
    lower = {title.strip().lower(): title for title in cells}
    for name in (*(name.lower() for name in names), *TEXT_COLUMNS):
        if name in lower:
            return lower[name]
    usable = [title for title in cells if title.strip().lower() not in CLASS_COLUMNS] or list(cells)
    return max(usable, key=lambda title: sum(map(len, cells[title])))


def _class_column(cells: Mapping[str, Sequence[str]], text: str, fed: Collection[str] = ()) -> str | None:
    """The column of classes: the one that is named so; else the only one that no input takes, where it has few
    different cells. ``fed`` has what the inputs are called."""
    others = [title for title in cells if title != text and title.strip().lower() not in fed]
    named = [title for known in CLASS_COLUMNS for title in others if title.strip().lower() == known]
    if named:
        return named[0]
    count = len(set(cells[others[0]])) if len(others) == 1 else 0
    return others[0] if 1 < count <= max(2, min(MOST_CLASSES, len(cells[text]) // 2)) else None
