"""Counts, crosses, ragged rows, accumulators, sparse maps: what goldens of single nodes do not say, and bad inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.registry import Context

FLOAT, LONG, STRING = (DType.named(name) for name in ("float", "int64", "string"))


def run(op: str, *inputs: Any, context: Context | None = None, **attrs: Any) -> tuple[Any, ...]:
    return evaluate(Node("n", op, (), attrs), inputs, context)


def i64(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def made(**attrs: Any) -> tuple[Any, Context]:
    node = Node("a", "ConditionalAccumulator", (), {"dtype": FLOAT, "shape": Shape((2,)), **attrs})
    context = Context(node)
    (handle,) = evaluate(node, (), context)
    return handle, context


def test_an_accumulator_gives_the_mean_of_what_is_new() -> None:
    handle, _ = made()
    for step, gradient in ((0, [1, 2]), (0, [3, 6])):
        run("AccumulatorApplyGradient", handle, i64(step)[0], np.float32(gradient))
    assert run("AccumulatorNumAccumulated", handle)[0] == 2
    (mean,) = run("AccumulatorTakeGradient", handle, np.int32(2))
    np.testing.assert_array_equal(mean, np.float32([2, 4]))
    run("AccumulatorApplyGradient", handle, i64(0)[0], np.float32([9, 9]))  # of the step before: thrown away
    assert run("AccumulatorNumAccumulated", handle)[0] == 0


def test_an_accumulator_that_is_asked_for_too_much_says_so_and_does_not_wait() -> None:
    handle, _ = made()
    with pytest.raises(RunError, match="0 gradients of 1"):
        run("AccumulatorTakeGradient", handle, np.int32(1))
    with pytest.raises(RunError, match="positive"):
        run("AccumulatorTakeGradient", handle, np.int32(0))
    with pytest.raises(RunError, match=r"Shape mismatch: expected \[2\], got \[3\]"):
        run("AccumulatorApplyGradient", handle, i64(0)[0], np.float32([1, 2, 3]))


def test_a_sparse_map_gives_each_tensor_once() -> None:
    node = Node("m", "AddSparseToTensorsMap", (), {"T": FLOAT, "shared_name": b"held"})
    context = Context(node)
    (handle,) = evaluate(node, (i64([0, 1]), np.float32([5]), i64(2, 3)), context)
    take = Node("t", "TakeManySparseFromTensorsMap", (), {"dtype": FLOAT, "shared_name": b"held"})
    places, values, shape = evaluate(take, (handle.reshape(1),), context)
    assert (places.tolist(), values.tolist(), shape.tolist()) == ([[0, 0, 1]], [5.0], [1, 2, 3])
    with pytest.raises(RunError, match="Unable to find SparseTensor: 0"):
        evaluate(take, (handle.reshape(1),), context)


def test_elements_packed_into_bits() -> None:
    values = np.float32([[1, 0, 3, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9]])
    assert run("CompareAndBitpack", values, np.float32(0))[0].tolist() == [[0b10100001, 1]]
    with pytest.raises(RunError, match="multiple of 8"):
        run("CompareAndBitpack", values[:, :7], np.float32(0))


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "said"),
    [
        ("SparseBincount", (i64([9]), i64(1), i64(4, 5), np.int64(3), i64()), {}, "indices of shape"),
        ("SparseBincount", (i64([0, 0]), i64(-1), i64(4, 5), np.int64(3), i64()), {}, "non-negative"),
        ("RaggedBincount", (i64(0, 5), i64(1), np.int64(3), i64()), {}, "splits must rise"),
        ("RaggedBincount", (i64(0, 1), i64(1), np.int64(2**40), i64()), {}, "would take"),
        ("RaggedRange", (np.int64(0), np.int64(2**50), np.int64(1)), {}, "would take"),
        ("RaggedRange", (np.int64(0), np.int64(5), np.int64(0)), {}, "delta != 0"),
        ("RaggedGather", (i64(0, 3), np.float32([1, 2]), i64(0)), {"PARAMS_RAGGED_RANK": 1}, "Invalid ragged splits"),
        ("RaggedGather", (i64(0, 2), np.float32([1, 2]), i64(4)), {"PARAMS_RAGGED_RANK": 1}, "not in"),
        ("ParseTensor", (np.array(b"\x08\x01\x12\x02\x12\x00", object),), {"out_type": LONG}, "Type mismatch"),
        ("ParseTensor", (np.array(b"\xff\xff", object),), {"out_type": FLOAT}, "arse"),
        (
            "ParseTensor", (np.array(b"\x08\x01\x12\x0c\x12\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", object),),
            {"out_type": FLOAT}, "would take",
        ),
        ("EditDistance", (i64([0, 9]), i64(1), i64(1, 2), i64([0, 0]), i64(1), i64(1, 2)), {}, "point outside"),
        ("DecodeCSV", (np.array([b'"a'], object), np.array([b""], object)), {"OUT_TYPE": (STRING,)}, "Quoted field"),
        ("DecodeCSV", (np.array([b"x"], object), i64(1)), {"OUT_TYPE": (LONG,)}, "not a valid int64"),
        ("DecodeCompressed", (np.array([b"no"], object),), {"compression_type": b"ZLIB"}, "no ZLIB data"),
        (
            "MaxPool", (np.zeros((1, 2, 2, 1), np.float32),),
            {"ksize": (1, 2100, 2100, 1), "strides": (1, 1, 1, 1), "padding": b"SAME"}, "a window of 2100 x 2100",
        ),
        ("InplaceUpdate", (np.zeros((2, 2)), np.int32([0]), np.zeros((1, 3))), {}, "do not fit"),
        ("UnsortedSegmentJoin", (np.array([b"a"], object), i64(3), np.int64(2)), {}, "not less than"),
        ("FractionalMaxPool", (np.zeros((1, 2, 2, 1)),), {"pooling_ratio": (1.0, 3.0, 1.0, 1.0)}, "leaves nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=said):
        run(op, *inputs, **attrs)


def test_pools_of_broken_size_are_what_their_sequences_say() -> None:
    x = np.arange(7 * 9, dtype=np.float32).reshape(1, 7, 9, 1)
    ratio = {"pooling_ratio": (1.0, 1.5, 1.7, 1.0), "deterministic": True, "seed": 3}
    pooled, rows, columns = run("FractionalMaxPool", x, **ratio)
    assert pooled.shape == (1, 4, 5, 1)
    assert (rows[0], rows[-1], columns[0], columns[-1]) == (0, 7, 0, 9)
    assert set(np.diff(rows)) <= {1, 2}
    np.testing.assert_array_equal(pooled[0, :, :, 0], x[0, rows[1:] - 1][:, columns[1:] - 1, 0])
