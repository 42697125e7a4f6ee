"""Tables with an empty key: numbers, texts and vectors as keys, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import Context, evaluate

INT64, FLOAT, STRING = (DType.named(name) for name in ("int64", "float", "string"))


def table(empty: Any, deleted: Any, keys: DType = INT64, state: dict[str, Any] | None = None, **attrs: Any) -> Any:
    given = {"key_dtype": keys, "value_dtype": FLOAT, "value_shape": Shape([]), **attrs}
    node = Node("table", "MutableDenseHashTableV2", (), given)
    return evaluate(node, [np.asarray(empty), np.asarray(deleted)], Context(node, {} if state is None else state))[0]


def run(op: str, *inputs: Any) -> tuple[Any, ...]:
    return evaluate(Node("node", op, (), {}), inputs)


def longs(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def floats(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def test_inserted_found_removed_listed() -> None:
    made = table(-1, -2)
    run("LookupTableInsertV2", made, longs(5, 7, 5), floats(1, 2, 3))
    assert run("LookupTableFindV2", made, longs([5, 8], [7, 5]), np.float32(-9))[0].tolist() == [[3, -9], [2, 3]]
    assert run("LookupTableSizeV2", made)[0] == 2
    run("LookupTableRemoveV2", made, longs(5, 100))
    keys, values = run("LookupTableExportV2", made)
    assert (keys.tolist(), values.tolist()) == ([7], [2.0])
    run("LookupTableImportV2", made, longs(1), floats(4))
    assert run("LookupTableFindV2", made, longs(7, 1), np.float32(0))[0].tolist() == [0, 4]


def test_keys_that_are_vectors_and_texts() -> None:
    made = table([-1, -1], [-2, -2], value_shape=Shape([3]))
    run("LookupTableInsertV2", made, longs([1, 2], [3, 4]), np.arange(6, dtype=np.float32).reshape(2, 3))
    found = run("LookupTableFindV2", made, longs([[3, 4]], [[2, 1]]), floats(9, 9, 9))[0]
    assert found.tolist() == [[[3, 4, 5]], [[9, 9, 9]]]
    keys, values = run("LookupTableExportV2", made)
    assert (keys.tolist(), values.shape) == ([[1, 2], [3, 4]], (2, 3))
    words = table(np.array(b"", object), np.array(b"-", object), keys=STRING)
    run("LookupTableInsertV2", words, np.array([b"a"], object), floats(2))
    assert run("LookupTableFindV2", words, np.array([b"a", b"b"], object), np.float32(0))[0].tolist() == [2, 0]


def test_one_table_a_name() -> None:
    state: dict[str, Any] = {}
    assert table(-1, -2, state=state) is table(-1, -2, state=state)
    node = Node("anonymous", "AnonymousMutableHashTable", (), {"key_dtype": INT64, "value_dtype": FLOAT})
    context = Context(node, state)
    assert evaluate(node, [], context)[0] is not evaluate(node, [], context)[0]


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (longs(-1), floats(0), "empty_key"),
        (longs(-2), floats(0), "deleted_key"),
        (longs(1, 2), floats(0), "2.* keys"),
    ],
)
def test_what_cannot_be_inserted(keys: Any, values: Any, message: str) -> None:
    with pytest.raises(RunError, match=message):
        run("LookupTableInsertV2", table(-1, -2), keys, values)


def test_what_cannot_be_made() -> None:
    with pytest.raises(RunError, match="cannot be equal"):
        table(-1, -1)
    with pytest.raises(RunError, match="power of 2"):
        table(-1, -2, initial_num_buckets=3)
    with pytest.raises(RunError, match="max_load_factor"):
        table(-1, -2, max_load_factor=1.5)
    with pytest.raises(RunError, match="key of shape"):
        table([-1, -1], -2)
    with pytest.raises(RunError, match="key shape"):
        run("LookupTableFindV2", table([-1, -1], [-2, -2]), longs(1, 2, 3), np.float32(0))
