"""Tables of numbers as samples: a row each, in a .csv or .tsv file, perhaps with a column of classes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from pocketgraph.datasets.file_lists import LISTED, is_picture, is_recording
from pocketgraph.datasets.model_input import signature_prefix
from pocketgraph.datasets.text_decoding import decoded
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.formats.files import opened, unreadable
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted

SUFFIXES = (".csv", ".tsv")
CLASS_COLUMNS = ("label", "class", "target", "y")
MOST_VALUES = 50  # of a column of texts, that each can be a column of its own
OTHER_SEPARATORS = (";", "\t")
_NUMBERED = re.compile(r"_?\d{1,9}$")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")


def is_table(path: str) -> bool:
    """Whether a file's name is that of a table."""
    return path.lower().endswith(SUFFIXES)


def read_table(path: str, sizes: Sequence[int], names: Sequence[str] = ()) -> tuple[list[Array], list[str], bool]:
    """The numbers of each input, float64 [rows, size], the class of each row, if there is a column for it, and whether
    names tell which columns are which input's.

    A first row without a single number names the columns. Where each input has columns of its name, behind which there
    is a number where it takes several, these are the inputs', in any order; else columns are those of the inputs in
    their order. One more, named ``label``, ``class``, ``target`` or ``y``, or the last one, is the class.

    Args:
        path: of the file.
        sizes: how many numbers each input takes.
        names: what a column of each input is called.

    Raises:
        FormatError: it cannot be read, or a cell is no number.
        UsageError: it has no rows, or rows of another length.
    """
    rows = [row for row in rows_of(path) if any(cell.strip() for cell in row)]
    head = rows.pop(0) if rows and not any(_is_number(cell) for cell in rows[0]) else []
    if not rows:
        raise UsageError("there are no samples here", where=path)
    wanted, width = sum(sizes), len(rows[0])
    if width not in (wanted, wanted + 1):
        raise UsageError(
            f"a row has {counted(width, 'column')}, and the model takes {counted(wanted, 'number')}, "
            "perhaps and a class",
            where=path,
            hint=_help_with_width(width, wanted, rows[0]),
        )
    order = by_name = _named(path, head[:width], sizes, names)
    at = _class_column(head[:width], order, width) if width > wanted else -1
    order = order or [index for index in range(width) if index != at]
    numbers, classes = np.empty((len(rows), wanted)), []
    for number, row in enumerate(rows):
        if len(row) != width:
            raise UsageError(
                f"row {number + 1} has {counted(len(row), 'column')}, the first {width}", where=path,
                hint=_help_with_row(row, width),
            )  # fmt: skip
        cells = [row[index] for index in order]
        try:
            numbers[number] = [float(cell) for cell in cells]
        except ValueError:
            column = next(index for index in order if not _is_number(row[index]))
            wrong = row[column]
            name = f"'{head[column]}'" if column < len(head) else f"number {column + 1}"
            raise FormatError(
                f"row {number + 1} has '{wrong}', which is no number", where=path,
                hint=_help_with(wrong, name, sorted({one[column] for one in rows if len(one) == width})),
            ) from None  # fmt: skip
        if at >= 0:
            classes.append(class_name(row[at]))
    ends = np.cumsum([0, *sizes])
    return [numbers[:, first:last] for first, last in pairwise(ends)], classes, bool(by_name)


def _named(path: str, head: Sequence[str], sizes: Sequence[int], names: Sequence[str]) -> list[int]:
    """The columns of inputs by their names, of several numbers ``name_0``, ``name_1``, …; none where not each has its.

    Raises:
        UsageError: an input's column is not where it would be read by the inputs' order.
    """
    columns = [name.strip().lower() for name in head]
    stems = [_NUMBERED.sub("", name) for name in columns]
    wanted = [name.lower() for name in names]
    prefix = signature_prefix(wanted, {*columns, *stems}) if wanted else ""
    wanted = [name.removeprefix(prefix) for name in wanted]
    if len(set(wanted)) < len(sizes):
        return []
    found = [[at for at, name in enumerate(columns) if name == one] for one in wanted]
    found = [
        at if len(at) == size else _numbered(columns, stems, one)
        for at, size, one in zip(found, sizes, wanted, strict=True)
    ]
    if [len(at) for at in found] == [*sizes]:
        return [*chain.from_iterable(found)]
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    for at, start, size in zip(found, starts, sizes, strict=True):
        if len(sizes) > 1 and len(at) == size and at[0] not in (start, start + 1):  # perhaps behind a class
            raise UsageError(
                f"column {at[0] + 1} is called '{columns[at[0]]}', but by the inputs' order that is column {start + 1}",
                where=path,
                hint=f"name the columns of all inputs: {columns_by_order(wanted, sizes)}; or leave the head out",
            )
    return []


def _numbered(columns: Sequence[str], stems: Sequence[str], name: str) -> list[int]:
    """The columns that are called so and a number, by that number."""
    found = [at for at, stem in enumerate(stems) if stem == name != columns[at]]
    return sorted(found, key=lambda at: int(columns[at].removeprefix(name).lstrip("_")))


def columns_by_order(names: Sequence[str], sizes: Sequence[int]) -> str:
    """The columns in the inputs' order, as they may be called."""
    return ", ".join(
        name if size == 1 else f"{name}_0 to {name}_{size - 1}" for name, size in zip(names, sizes, strict=True)
    )


def _class_column(head: Sequence[str], taken: Sequence[int], width: int) -> int:
    """The column of classes: the one so named, else the last, of those that are no input's."""
    free = [index for index in range(width) if index not in taken]
    named = (index for index in free if index < len(head) and head[index].strip().lower() in CLASS_COLUMNS)
    return next(named, free[-1])


def _help_with_width(width: int, wanted: int, row: Sequence[str]) -> str:
    """What can be done about rows that are longer or shorter than what the model takes."""
    if any(is_picture(cell.strip()) or is_recording(cell.strip()) for cell in row):
        return LISTED
    if not any(map(_is_number, row)) or (width < wanted and any(_is_text(cell) for cell in row)):
        return "texts are for the graph that reads them; name that first"
    if width > wanted:
        return (
            f"leave out the columns that it does not take; where it takes any number of them, {option('input_shape')} "
            f"says how many, as in NAME:1,{width}; several numbers that it should give go into an .npz, as 'targets'"
        )
    return (
        f"a row is one sample, {wanted} columns; cut a series into such rows, or give arrays in an .npz, one an input, "
        "samples first"
    )


def _help_with_row(row: Sequence[str], width: int) -> str:
    """What can be done about a row that is longer or shorter than the first."""
    if len(row) == 2 * width and all(map(_is_number, row)):
        return "a comma that marks decimals looks like one between columns; separate columns by semicolons"
    if len(row) > width:
        return "a cell with a comma in it goes into quotes; or leave the row out"
    return "it may be cut off: fill in what it lacks, or leave it out"


def _help_with(wrong: str, name: str, values: Sequence[str]) -> str:
    """What can be done about a cell of a column that is no number."""
    if not wrong.strip():
        return f"fill in what column {name} leaves empty, or leave such rows out"
    if any(map(_is_number, values)):
        return f"other rows have numbers in column {name}: mend this one, or leave it out"
    one_of = (
        f", or make {counted(len(values), 'column')} of 0 and 1 of it, one a value"
        if len(values) <= MOST_VALUES
        else ""
    )
    return f"leave column {name} out{one_of}; or call it 'class' if it says what the rows are"


def columns_of(path: str) -> int:
    """How many columns a table has, by its first row.

    Raises:
        FormatError: it cannot be read.
        UsageError: it has no rows.
    """
    rows = rows_of(path)
    if not rows:
        raise UsageError("there are no samples here", where=path)
    return len(rows[0])


def rows_of(path: str) -> list[list[str]]:
    """The cells of each row, those of the head too; rows without any are left out.

    A .csv file whose cells are told apart by semicolons or tabs alone is read by these, as spreadsheets write it where
    numbers have a decimal comma; such numbers get a point, those of a .tsv file too.

    Raises:
        FormatError: it cannot be read.
    """
    try:
        with opened(path) as file:
            content = decoded(file.read(), "table", path)
        if path.lower().endswith(".tsv"):
            return _pointed_cells(content, "\t")
        rows, first = _cells(content, ","), content.partition("\n")[0]
        if _width(rows) > 1 and not any(_are_numbers(_cells(first, separator)) for separator in OTHER_SEPARATORS):
            return rows
        for separator in OTHER_SEPARATORS:
            others = _pointed_cells(content, separator)
            if _width(others) > 1 and (len(others) > 1 or _are_numbers(others)):
                return others
    except OSError as error:
        raise unreadable("the table", path, error) from None
    except csv.Error as error:
        raise FormatError(f"this is no table ({error})", where=path) from None
    return rows


def _cells(content: str, separator: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(content, newline=""), delimiter=separator) if row]


def _pointed_cells(content: str, separator: str) -> list[list[str]]:
    return [[_pointed(cell) for cell in row] for row in _cells(content, separator)]


def _width(rows: Sequence[Sequence[str]]) -> int:
    """How many cells each row has; 0 where they differ."""
    widths = {len(row) for row in rows}
    return widths.pop() if len(widths) == 1 else 0


def _are_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Whether there are several cells in a row, numbers all of them, perhaps with a decimal comma."""
    return _width(rows) > 1 and all(_is_number(_pointed(cell)) for row in rows for cell in row)


def _pointed(cell: str) -> str:
    """A number with a decimal comma with a point; other cells as they are."""
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell


def _is_text(cell: str) -> bool:
    """Whether a cell holds several words."""
    return not _is_number(cell) and len(cell.split()) > 1


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def class_name(cell: str) -> str:
    """A class's name; whole numbers without a point, but codes such as 007 as they are."""
    text = cell.strip()
    if text.removeprefix("-").isdecimal():  # of any size, which a float would round
        return text
    return str(int(float(text))) if _is_number(text) and float(text).is_integer() else text
