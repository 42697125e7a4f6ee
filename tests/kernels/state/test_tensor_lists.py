"""Lists of tensors: what TensorFlow 2.21 takes, refuses and gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels import evaluate

FLOAT, INT32 = DType.named("float"), DType.named("int32")


def run(op: str, *inputs: Any, element_dtype: DType = FLOAT, **attrs: Any) -> Any:
    arrays = [np.asarray(value, np.int32) if isinstance(value, int | list) else value for value in inputs]
    found = evaluate(Node("n", op, (), {"element_dtype": element_dtype, **attrs}), arrays)
    return found[0] if len(found) == 1 else found


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


def test_a_full_list_takes_nothing_more() -> None:
    held = run("TensorListPushBack", run("EmptyTensorList", [2], 1), zeros(2))
    with pytest.raises(RunError, match="full list"):
        run("TensorListPushBack", held, zeros(2))
    held, _ = run("TensorListPopBack", held, [2])
    assert len(run("TensorListPushBack", held, zeros(2)).items) == 1
    with pytest.raises(RunError, match="full list"):
        run("TensorListPushBack", run("TensorListResize", held, 3), zeros(2))
    for _ in range(3):
        held = run("TensorListSetItem", run("TensorListResize", held, 3), 2, zeros(2))
    assert len(run("TensorListPushBack", run("EmptyTensorList", [2], -1), zeros(2)).items) == 1


def test_elements_of_another_shape() -> None:
    for op in ("TensorListPushBack", "TensorListSetItem"):
        held = run("TensorListReserve", [-1, 2], 3)
        more = [1] if op == "TensorListSetItem" else []
        assert run(op, held, *more, zeros(5, 2))
        for shape in ((2,), (5, 3), ()):
            with pytest.raises(RunError, match=r"of shape \[\?,2\]"):
                run(op, held, *more, zeros(*shape))
    for shape in ([3, 2], []):
        with pytest.raises(RunError, match="Specified a list with shape"):
            run("TensorListFromTensor", zeros(0, 2), shape)
        with pytest.raises(RunError, match="Specified a list with shape"):
            run("TensorListScatterV2", zeros(2, 2), [0, 3], shape, -1)
    with pytest.raises(RunError, match="at least of rank 1"):
        run("TensorListSplit", zeros(0, 2), [], np.zeros(0, np.int64))
    with pytest.raises(RunError, match="not compatible"):
        run("TensorListSplit", zeros(4), [-1, 2], np.array([2, 2]))
    assert [item.shape for item in run("TensorListSplit", zeros(4, 2), [3, 2], np.array([2, 2])).items] == [(2, 2)] * 2


def test_elements_of_another_type() -> None:
    held = run("TensorListFromTensor", zeros(2, 2), [2])
    for op, more in (
        ("TensorListPushBack", (np.zeros(2, np.int32),)),
        ("TensorListSetItem", (0, np.zeros(2, np.int32))),
        ("TensorListGetItem", (0, [2])),
        ("TensorListPopBack", ([2],)),
        ("TensorListStack", ([2],)),
        ("TensorListGather", ([0], [2])),
        ("TensorListScatterIntoExistingList", (np.zeros((1, 2), np.int32), [0])),
    ):
        with pytest.raises(RunError, match="op elements int32 but list elements float"):
            run(op, held, *more, element_dtype=INT32)


def test_shapes_that_contradict_each_other() -> None:
    held = run("TensorListReserve", [-1, 2], 2)
    for op, more in (("TensorListStack", ([],)), ("TensorListGather", ([], [-1])), ("TensorListPopBack", ([-1],))):
        with pytest.raises(RunError, match="Incompatible shapes"):
            run(op, held, *more)
    assert run("TensorListStack", held, [3, -1]).shape == (2, 3, 2)  # each tells one size
    with pytest.raises(RunError, match=r"element of shape \[5, 2\]"):
        run("TensorListStack", run("TensorListSetItem", run("TensorListResize", held, 1), 0, zeros(5, 2)), [3, 2])


def test_joined_elements_that_were_never_set() -> None:
    held = run("TensorListReserve", [-1, 2], 3)
    joined, lengths = run("TensorListConcatV2", held, [3, 2], np.array([1, 2, 3]))
    assert joined.shape == (6, 2)
    assert lengths.tolist() == [1, 2, 3]
    held = run("TensorListSetItem", held, 1, zeros(4, 2) + 1)
    joined, lengths = run("TensorListConcatV2", held, -1, np.array([1, 9, 2]))
    np.testing.assert_array_equal(joined, np.concatenate([zeros(1, 2), zeros(4, 2) + 1, zeros(2, 2)]))
    assert lengths.tolist() == [1, 4, 2]
    empty = run("EmptyTensorList", [3, 2], 1)
    assert run("TensorListConcatV2", empty, -1, np.zeros(0, np.int64))[0].shape == (0, 2)
    with pytest.raises(RunError, match="at least vectors"):
        run("TensorListConcatV2", run("EmptyTensorList", -1, 0), [], np.zeros(0, np.int64))
    with pytest.raises(RunError, match="never set"):
        run("TensorListConcatV2", run("TensorListReserve", [-1, 2], 3), -1, np.array([1]))


def test_a_list_grows_where_rows_are_put_behind_its_end() -> None:
    held = run("TensorListScatterIntoExistingList", run("EmptyTensorList", [2], 1), zeros(1, 2) + 1, [2])
    np.testing.assert_array_equal(run("TensorListStack", held, -1), [[0, 0], [0, 0], [1, 1]])
