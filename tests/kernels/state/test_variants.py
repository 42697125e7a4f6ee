"""Zeros and sums of lists, optionals, maps and ragged tensors, as in gradients of loops; with TensorFlow's results."""

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Node, Shape
from pocketgraph.graph.dtype import FLOAT, INT32, INT64
from pocketgraph.kernels.registry import evaluate

NONE = np.array(-1, np.int32)


def run(op: str, *inputs: Any, **attrs: Any) -> Any:
    return evaluate(Node("x", op, (), attrs), inputs)[0]


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def made_list(items: dict[int, Any], count: int = 3, dtype: Any = FLOAT) -> Any:
    shape = np.array([2], np.int32)
    made = run("TensorListReserve", shape, np.array(count, np.int32), element_dtype=dtype, shape_type=INT32)
    for index, item in items.items():
        made = run("TensorListSetItem", made, np.array(index, np.int32), item, element_dtype=dtype)
    return made


def items(held: Any, count: int = 3) -> Any:
    shape = np.array([2], np.int32)
    return [run("TensorListGetItem", held, np.int32(i), shape, element_dtype=FLOAT).tolist() for i in range(count)]


def test_lists_are_added_element_by_element() -> None:
    one = made_list({0: floats(1, 2), 2: floats(3, 4)})
    other = made_list({0: floats(10, 20), 1: floats(5, 6)})
    total = run("AddN", one, other, one, N=3)
    assert items(total) == [[12, 24], [5, 6], [6, 8]]
    assert items(run("ZerosLike", total)) == [[0, 0]] * 3
    assert items(one) == [[1, 2], [0, 0], [3, 4]], "the lists themselves do not change"


def test_lists_of_lists() -> None:
    inner = made_list({0: floats(1, 2)}, 1)
    outer = run("TensorListPushBack", run("EmptyTensorList", NONE, NONE, element_dtype=FLOAT, shape_type=INT32), inner,
                element_dtype=FLOAT)  # fmt: skip
    (total,) = run("AddN", outer, outer, N=2).items
    assert items(total, 1) == [[2, 4]]
    (zeros,) = run("ZerosLike", outer).items
    assert items(zeros, 1) == [[0, 0]]


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (lambda: made_list({}, 2), "two lists of tensors with different lengths: 3 and 2"),
        (lambda: made_list({}, 3, INT32), "two lists of tensors of different dtypes"),
        (lambda: run("OptionalNone"), "two lists of tensors of different dtypes"),
    ],
)
def test_lists_that_cannot_be_added(other: Any, problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        run("AddN", made_list({0: floats(1, 2)}), other(), N=2)


def test_optionals() -> None:
    one = run("OptionalFromValue", floats(1, 2), np.int32(3))
    types = {"output_types": (FLOAT, INT32), "output_shapes": (Shape([2]), Shape([]))}
    get = Node("g", "OptionalGetValue", (), types)
    assert [value.tolist() for value in evaluate(get, (run("AddN", one, one, N=2),))] == [[2, 4], 6]
    assert [value.tolist() for value in evaluate(get, (run("ZerosLike", one),))] == [[0, 0], 0]
    none = run("OptionalNone")
    assert not run("OptionalHasValue", run("ZerosLike", none))
    assert not run("OptionalHasValue", run("AddN", none, none, N=2))
    with pytest.raises(RunError, match="one has a value and the other doesn't"):
        run("AddN", one, none, N=2)
    with pytest.raises(RunError, match="different numbers of components"):
        run("AddN", one, run("OptionalFromValue", floats(1)), N=2)


def test_maps() -> None:
    one = run("TensorMapInsert", run("EmptyTensorMap"), np.int32(1), floats(1, 2))
    other = run("TensorMapInsert", one, np.int32(2), floats(7, 8))
    total = run("AddN", one, other, N=2)
    assert [run("TensorMapLookup", total, np.int32(key)).tolist() for key in (1, 2)] == [[2, 4], [7, 8]]
    assert run("TensorMapSize", run("ZerosLike", other)) == 0
    with pytest.raises(RunError, match="a map and something else"):
        run("AddN", one, run("OptionalNone"), N=2)


def test_ragged_tensors_in_pieces() -> None:
    splits = np.array([0, 1, 3], np.int64)
    pieces = run("RaggedTensorToVariant", splits, floats(1, 2, 3), RAGGED_RANK=1, batched_input=True)
    back = Node("r", "RaggedTensorFromVariant", (), {
        "input_ragged_rank": 0, "output_ragged_rank": 1, "Tvalues": FLOAT, "Tsplits": INT64,
    })  # fmt: skip
    assert [v.tolist() for v in evaluate(back, (run("ZerosLike", pieces),))] == [[0, 1, 3], [0, 0, 0]]
    whole = run("RaggedTensorToVariant", splits, floats(1, 2, 3), RAGGED_RANK=1, batched_input=False)
    twice = run("AddN", whole, whole, N=2)
    assert twice.item().values.tolist() == [2, 4, 6]
    other = run(
        "RaggedTensorToVariant", np.array([0, 2, 3], np.int64), floats(1, 2, 3), RAGGED_RANK=1, batched_input=False
    )
    with pytest.raises(RunError, match="whose rows differ"):
        run("AddN", whole, other, N=2)


def test_texts_are_no_such_values() -> None:
    texts = np.array([b"a", b"bc"], object)
    assert run("ZerosLike", texts).tolist() == [b"", b""]
    with pytest.raises(RunError, match="no zeros like a"):
        run("ZerosLike", run("CompositeTensorVariantFromComponents", floats(1), metadata=b""))
