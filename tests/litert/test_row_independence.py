"""Which operators keep rows apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph.dtype import BOOL, FLOAT, INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.sizes.row_independence import keeps_rows

X, IDS = Value("x", FLOAT, (4, 3, 4)), Value("i", INT32, (4,))
V = Value("v", FLOAT, (4,))
ROWS = {X, IDS, V}
TABLE, IS_ROW, IS_PLACE = Value("t", FLOAT, (3, 4)), Value("r", BOOL, (4,)), Value("p", BOOL, (3, 1))  # are no rows


def numbers(*given: int) -> Value:
    return Value("", INT32, (len(given),), Constant.of(np.array(given, np.int32)))


SLICED = [X, numbers(1, 1, 1), numbers(3, 3, 3), numbers(1, 1, 1)]


@pytest.mark.parametrize(
    ("code", "inputs", "made", "options", "keeps"),
    [
        ("PACK", [V, V], (4, 2), {"axis": 1}, True),
        ("PACK", [V, V], (4, 2), {"axis": -1}, True),
        ("PACK", [V, V], (2, 4), {"axis": 0}, False),
        ("PACK", [V, V], (2, 4), {"axis": -2}, False),
        ("UNPACK", [X], (4, 4), {"axis": 1}, True),
        ("UNPACK", [X], (3, 4), {"axis": -3}, False),
        ("GATHER", [TABLE, IDS], (4, 4), {"axis": 0}, True),
        ("GATHER", [TABLE, IDS], (4, 4), {"axis": -2}, True),
        ("GATHER", [X, numbers(1, 0)], (4, 2, 4), {"axis": 1}, True),
        ("GATHER", [X, numbers(1, 0)], (2, 3, 4), {"axis": 0}, False),
        ("GATHER", [X, numbers(1, 0)], (2, 3, 4), {"axis": -3}, False),
        ("GATHER", [V, numbers(1, 0)], (2,), {"axis": -1}, False),
        ("GATHER", [X, IDS], (4, 4, 4), {"axis": 1}, False),
        ("CUMSUM", [X, numbers(-1)], X.shape, {}, True),
        ("CUMSUM", [X, numbers(-3)], X.shape, {}, False),
        ("REVERSE_V2", [X, numbers(1)], X.shape, {}, True),
        ("REVERSE_V2", [X, numbers(0)], X.shape, {}, False),
        ("TILE", [X, numbers(1, 2, 1)], (4, 6, 4), {}, True),
        ("TILE", [X, numbers(2, 1, 1)], (8, 3, 4), {}, False),
        ("STRIDED_SLICE", SLICED, (2, 2, 2), {}, False),
        ("STRIDED_SLICE", SLICED, (3, 2, 2), {"end_mask": 1}, False),
        ("STRIDED_SLICE", SLICED, (4, 2, 2), {"begin_mask": 1, "end_mask": 1}, True),
        ("SELECT_V2", [IS_PLACE, X, TABLE], X.shape, {}, True),
        ("SELECT", [IS_ROW, X, X], X.shape, {}, False),
    ],
)
def test_rows_stay_apart(code: str, inputs: list[Value], made: tuple[int, ...], options: Any, keeps: bool) -> None:
    operation = Operation(code, list(inputs), [Value("y", FLOAT, made)], options)
    assert keeps_rows(operation, ROWS) is keeps
