"""Tables: filled once or often, asked, listed, shared by name, read from a file."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import Context, evaluate
from pocketgraph.runtime.sandbox import Directory

STRING, INT64 = DType.named("string"), DType.named("int64")


def texts(*items: bytes) -> np.ndarray:
    return np.array(items, dtype=object)


class Session:
    """Nodes run one after another with one state."""

    def __init__(self, files: Directory | None = None) -> None:
        self.state: dict[str, Any] = {}
        self.files = files

    def run(self, op: str, *inputs: Any, name: str = "node", **attrs: Any) -> tuple[Any, ...]:
        node = Node(name, op, (), attrs)
        return evaluate(node, inputs, Context(node, self.state, files=self.files))


def test_a_hash_table() -> None:
    session = Session()
    (table,) = session.run("HashTableV2", name="words", key_dtype=STRING, value_dtype=INT64)
    with pytest.raises(RunError, match="not initialized"):
        session.run("LookupTableFindV2", table, texts(b"a"), np.array(-1))
    session.run("InitializeTableV2", table, texts(b"a", b"b"), np.array([10, 20]))
    found = session.run("LookupTableFindV2", table, np.array([[b"b", b"?"]], object), np.array(-1))[0]
    np.testing.assert_array_equal(found, [[20, -1]])
    assert found.dtype == np.int64
    assert session.run("LookupTableSizeV2", table)[0] == 2
    assert session.run("HashTableV2", name="words", key_dtype=STRING, value_dtype=INT64)[0] is table
    with pytest.raises(RunError, match="different value for same key"):
        session.run("InitializeTableV2", table, texts(b"a"), np.array([11]))
    with pytest.raises(RunError, match="Conflicting"):
        session.run("HashTableV2", name="words", key_dtype=INT64, value_dtype=STRING)


def test_a_mutable_table_shared_by_name() -> None:
    session = Session()
    kinds = {"key_dtype": INT64, "value_dtype": STRING, "shared_name": b"shared"}
    (table,) = session.run("MutableHashTableV2", name="one", **kinds)
    (same,) = session.run("MutableHashTableV2", name="two", **kinds)
    assert same is table
    session.run("LookupTableInsertV2", table, np.array([1, 2]), texts(b"x", b"y"))
    session.run("LookupTableInsertV2", table, np.array([2, 3]), texts(b"z", b"w"))
    keys, values = session.run("LookupTableExportV2", table)
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {1: b"x", 2: b"z", 3: b"w"}
    with pytest.raises(RunError, match=r"2 keys|shape"):
        session.run("LookupTableInsertV2", table, np.array([1, 2]), texts(b"x"))


@pytest.mark.parametrize(
    ("op", "attrs", "default", "expected"),
    [
        ("MutableHashTableV2", {}, [7, 8, 9], [10, 8, 20]),
        ("MutableHashTableV2", {}, 5, [10, 5, 20]),
        (
            "MutableHashTableOfTensorsV2",
            {"value_shape": Shape([2])},
            [[7, 7], [8, 8], [9, 9]],
            [[1, 2], [8, 8], [3, 4]],
        ),
        ("MutableHashTableOfTensorsV2", {"value_shape": Shape([2])}, [5, 6], [[1, 2], [5, 6], [3, 4]]),
        ("HashTableV2", {}, [7, 8, 9], [10, 7, 20]),
        ("MutableDenseHashTableV2", {}, [7, 8, 9], [10, 7, 20]),
    ],
)
def test_defaults_of_keys(op: str, attrs: dict[str, Any], default: Any, expected: Any) -> None:
    """What TensorFlow 2.21 gives for [1, 5, 2]: but for a mutable table, the first default is that of all keys."""
    session, values = Session(), np.float32([[1, 2], [3, 4]] if attrs else [10, 20])
    marks = [np.array(-1), np.array(-2)] if "Dense" in op else []
    (table,) = session.run(op, *marks, key_dtype=INT64, value_dtype=DType.named("float"), **attrs)
    fill = "InitializeTableV2" if op == "HashTableV2" else "LookupTableInsertV2"
    session.run(fill, table, np.array([1, 2]), values)
    keys, default = np.array([1, 5, 2]), np.float32(default)
    (found,) = session.run("LookupTableFindV2", table, keys, np.asarray(default))
    assert found.tolist() == expected
    with pytest.raises(RunError, match="Expected shape"):
        session.run("LookupTableFindV2", table, keys, np.zeros((2, *values.shape[1:]), np.float32))
    none = session.run("LookupTableFindV2", table, keys[:0], np.zeros((0, *values.shape[1:]), np.float32))[0]
    assert none.shape == (0, *values.shape[1:])


def test_an_import_of_what_a_table_has_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    (table,) = session.run("MutableHashTableV2", key_dtype=STRING, value_dtype=INT64)
    words, numbers = texts(b"a", b"b"), np.array([1, 2])
    session.run("LookupTableImportV2", table, words, numbers)
    with monkeypatch.context() as patch:
        patch.setattr(type(table), "insert", lambda *given: pytest.fail("it was filled again"))
        session.run("LookupTableImportV2", table, words, numbers.copy())


@pytest.mark.parametrize("change", ["insert", "remove", "in place", "another value"])
def test_an_import_into_a_table_that_changed_fills_it_again(change: str) -> None:
    session = Session()
    (table,) = session.run("MutableHashTableV2", key_dtype=STRING, value_dtype=INT64)
    words, numbers = texts(b"a", b"b"), np.array([1, 2])
    session.run("LookupTableImportV2", table, words, numbers)
    if change == "insert":
        session.run("LookupTableInsertV2", table, texts(b"a", b"c"), np.array([7, 8]))
    elif change == "remove":
        session.run("LookupTableRemoveV2", table, texts(b"a"))
    elif change == "in place":
        words[0], numbers[1] = b"d", 5
    else:
        numbers = np.array([1, 3])
    session.run("LookupTableImportV2", table, words, numbers)
    keys, values = session.run("LookupTableExportV2", table)
    assert keys.tolist() == words.tolist()
    assert values.tolist() == numbers.tolist()


def test_a_vocabulary_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(b"zero\none\r\ntwo\n")
    session = Session(Directory(tmp_path))
    (table,) = session.run("HashTableV2", key_dtype=STRING, value_dtype=INT64)
    file = np.array(str(path).encode(), object)
    session.run("InitializeTableFromTextFileV2", table, file, key_index=-2, value_index=-1)
    found = session.run("LookupTableFindV2", table, texts(b"two", b"one", b"?"), np.array(9))[0]
    np.testing.assert_array_equal(found, [2, 1, 9])
    with pytest.raises(RunError, match="3 lines where 5"):
        session.run("InitializeTableFromTextFileV2", table, file, key_index=-2, value_index=-1, vocab_size=5)
    with pytest.raises(RunError, match="no column 3"):
        session.run("InitializeTableFromTextFileV2", table, file, key_index=3, value_index=-1)
    with pytest.raises(RunError, match="cannot be read"):
        missing = np.array(str(tmp_path / "none").encode(), object)
        session.run("InitializeTableFromTextFileV2", table, missing, key_index=-2, value_index=-1)
