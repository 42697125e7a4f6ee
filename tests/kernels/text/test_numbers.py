"""Texts that are read as numbers, as TensorFlow 2.21 reads them (what StringToNumber gave for each)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.state.table_files import table_columns

REALS = {
    b"1": 1.0, b"+1": 1.0, b" -2\t": -2.0, b"\x0b3\n": 3.0, b"0x10": 16.0, b"-0x10": -16.0, b"0X1F": 31.0,
    b"0x1p3": 8.0, b"0x1.8p1": 3.0, b"1E5": 1e5, b".5": 0.5, b"5.": 5.0, b"inf": np.inf, b"-INF": -np.inf,
    b"Infinity": np.inf, b"nan": np.nan, b"+nan": np.nan, b"nan(1)": np.nan, b"1e400": np.inf, b"-1e400": -np.inf,
    b"1e-400": 0.0,
    b"007": 7.0,
}  # fmt: skip
NO_REALS = [
    b"", b" ", b"1_0", b"0x", b"0x1p", b"1e", b"1e+", b".", b"- 1", b"--1", b"+-1", b"1 2", b"1f", b"1,0", b"1\0",
    b"infinit",
    b"infinityx", b"\xd9\xa1", b"\xa01", b"0b1", b"0o7",
]  # fmt: skip
INTEGERS = {
    b"1": 1,
    b"+1": 1,
    b" 2\t": 2,
    b"007": 7,
    b"-9223372036854775808": -(2**63),
    b"9223372036854775807": 2**63 - 1,
}
NO_INTEGERS = [*NO_REALS, b"0x10", b"1.5", b"1e2", b"inf", b"9223372036854775808", b"-9223372036854775809"]


def run(op: str, text: bytes, kind: str, **attrs: Any) -> Any:
    more = [np.zeros(0, DType.named(kind).numpy)] if op == "DecodeCSV" else []
    return evaluate(Node("n", op, (), attrs), [np.array(text, object), *more])[0]


@pytest.mark.parametrize("op", ["StringToNumber", "DecodeCSV"])
def test_numbers(op: str) -> None:
    def read(text: bytes, kind: str) -> Any:
        named = DType.named(kind)
        return run(op, text, kind, **({"OUT_TYPE": (named,)} if op == "DecodeCSV" else {"out_type": named}))

    for kind in ("float", "double"):
        for text, value in REALS.items():
            if op == "StringToNumber" or b"\n" not in text:
                np.testing.assert_array_equal(read(text, kind), np.array(value, DType.named(kind).numpy), str(text))
        for text in NO_REALS:
            with pytest.raises(RunError):
                read(text, kind)
    for text, number in INTEGERS.items():
        assert read(text, "int64") == number
    for text in NO_INTEGERS:
        with pytest.raises(RunError):
            read(text, "int64")
    with pytest.raises(RunError):
        read(b"2147483648", "int32")


def test_files_of_tables() -> None:
    int64, string = DType.named("int64"), DType.named("string")
    assert table_columns(b"+1\na\n0x1\n", (string, int64), (-2, -1))[1].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="no integer"):
        table_columns(b"1_0\n", (int64, int64), (-2, -1))


def test_a_line_without_anything_has_no_fields() -> None:
    with pytest.raises(RunError, match="Expect 1 fields but have 0 in record 0"):
        run("DecodeCSV", b"", "float", OUT_TYPE=(DType.named("float"),))
