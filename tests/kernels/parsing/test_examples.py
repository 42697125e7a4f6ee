"""Encoded Examples that do not fit: the errors are TensorFlow's, and damage never does worse."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.cases import from_list
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.dtype import FLOAT, INT32, INT64, STRING
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.parsing.example_records import values_of
from pocketgraph.kernels.shapes.infer import infer
from pocketgraph.protobuf.wire import WireError


def field(number: int, payload: bytes) -> bytes:
    assert len(payload) < 128
    return bytes([number << 3 | 2, len(payload)]) + payload


def record(key: bytes, kind: int, values: bytes) -> bytes:
    """An Example of one feature: kind 1 bytes, 2 float, 3 int64; ``values`` the body of its list."""
    return field(1, field(1, field(1, key) + field(2, field(kind, values))))


def floats(*values: float) -> bytes:
    return field(1, np.array(values, "<f4").tobytes())


def length(size: int) -> bytes:
    """A length as protobuf writes it."""
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + length(size >> 7)


def spelled(kind: int, values: list[Any], *, packed: bool = True) -> bytes:
    """An encoded Feature of these values, its lists as long as they may be."""
    if kind == 1:
        body = b"".join(b"\x0a" + length(len(text)) + text for text in values)
    elif kind == 2:
        single = [np.float32(value).tobytes() for value in values]
        whole = b"".join(single)
        body = b"\x0a" + length(len(whole)) + whole if packed else b"".join(b"\x0d" + piece for piece in single)
    else:
        numbers = [length(value) for value in values]
        whole = b"".join(numbers)
        body = b"\x0a" + length(len(whole)) + whole if packed else b"".join(b"\x08" + piece for piece in numbers)
    return bytes([kind << 3 | 2]) + length(len(body)) + body


def vector(*items: bytes) -> np.ndarray[Any, Any]:
    result = np.empty(len(items), object)
    result[:] = items
    return result


NONE = np.zeros(0, np.float32)


def batch(
    *records: bytes,
    shape: tuple[int | None, ...] = (1,),
    default: Any = NONE,
    names: tuple[bytes, ...] = (),
    sparse: DType | None = None,
) -> Any:
    """A batch with the dense feature x, and the sparse feature z when it has a type."""
    keys = [b"z"] * (sparse is not None) + [b"x"]
    attrs = {
        "Nsparse": len(keys) - 1,
        "Ndense": 1,
        "sparse_types": () if sparse is None else (sparse,),
        "Tdense": (FLOAT,),
        "dense_shapes": (Shape(shape),),
    }
    inputs = [vector(*records), vector(*names), *(np.array(key, object) for key in keys), default]
    return evaluate(Node("parse", "ParseExample", (), attrs), inputs)


def single(
    data: bytes, shape: tuple[int | None, ...] = (1,), default: Any = NONE, sparse: DType | None = None
) -> tuple[np.ndarray[Any, Any], ...]:
    attrs = {
        "num_sparse": int(sparse is not None),
        "sparse_keys": (b"z",) * (sparse is not None),
        "dense_keys": (b"x",),
        "sparse_types": () if sparse is None else (sparse,),
        "Tdense": (FLOAT,),
        "dense_shapes": (Shape(shape),),
    }
    inputs = [np.array(data, object), default]
    return evaluate(Node("parse", "ParseSingleExample", (), attrs), inputs)


X = record(b"x", 2, floats(1))
INTEGER = record(b"x", 3, field(1, b"\x05"))
TWO = record(b"x", 2, floats(1, 2))
PAD = np.array([7], np.float32)
CUT = record(b"x", 2, b"\x0a\x05")

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: batch(b"garbage"), "Could not parse example input, value: 'garbage'"),
    (lambda: batch(X, b""), "Name: <unknown>, Feature: x (data type: float) is required but could not be found."),
    (lambda: batch(b"", names=(b"n",)), "Name: n, Feature: x (data type: float) is required but could not be found."),
    (
        lambda: batch(X, INTEGER, names=(b"n", b"m")),
        "Name: m, Key: x, Index: 1.  Data types don't match. Data type: int64 but expected type: float",
    ),
    (
        lambda: batch(TWO),
        "Name: <unknown>, Key: x, Index: 0.  Number of float values != expected.  Values size: 2 but output shape: [1]",
    ),
    (lambda: batch(CUT), "Name: <unknown>, Key: x, Index: 0.  Can't parse serialized Example."),
    (lambda: batch(record(b"x", 4, b"")), "Unsupported datatype."),
    (
        lambda: batch(X, shape=(None,)),
        "dense_shape[0] is a variable length shape: [?], therefore def_value[0] must contain a single element (the "
        "padding element).  But its shape is: [0]",
    ),
    (
        lambda: batch(X, shape=(None, 2), default=PAD),
        "Name: <unknown>, Key: x, Index: 0.  Number of float values is not a multiple of stride length. Saw 1 values "
        "but output shape is: [?,2]",
    ),
    (
        lambda: batch(X, default=np.float32([1, 2])),
        "def_value[0].shape() == [2] is not compatible with dense_shapes_[0] == [1]",
    ),
    (
        lambda: batch(X + record(b"z", 2, floats(1)), sparse=INT64),
        "Name: <unknown>, Key: z, Index: 0.  Data types don't match. Expected type: int64, Actual type: float",
    ),
    (
        lambda: batch(X, names=(b"n", b"m")),
        "Expected names have the same shape as serialized: name.shape=[2], serialized.shape=[1]",
    ),
    (lambda: batch(X, sparse=INT32), "a record holds no int32"),
    (lambda: batch(X, shape=(1, None)), "unknown inner dimensions"),
    (lambda: single(b"garbage"), "Could not parse example input, value: 'garbage'"),
    (lambda: single(b""), "Feature: x (data type: float) is required but could not be found."),
    (lambda: single(INTEGER), "Key: x.  Data types don't match. Data type: int64 but expected type: float"),
    (lambda: single(TWO), "Key: x.  Can't parse serialized Example: Some float_list slice was not parsed."),
    (lambda: single(CUT), "Key: x.  Can't parse serialized Example: Parsing float_list failed."),
    (
        lambda: single(X, (None, 2), PAD),
        "Error while parsing feature with key x: number of elements should be divisible by 2, found 1 instead",
    ),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_does_not_fit_is_said_in_tensorflows_words(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RunError) as caught:
        call()
    assert text in str(caught.value)
    assert "node 'parse'" in str(caught.value)


KEY, VALUE = field(1, b"x"), field(2, field(2, floats(1)))


@pytest.mark.parametrize(
    "entry", [KEY, VALUE, KEY + VALUE + VALUE, field(1, b"z") + KEY + VALUE, KEY + VALUE + b"\x18\x05", b""]
)
def test_an_entry_is_a_key_and_a_feature(entry: bytes) -> None:
    for call in (batch, single):
        for start in (b"", field(1, KEY + VALUE)):
            with pytest.raises(RunError, match="Could not parse example input"):
                call(field(1, start + field(1, entry)), default=np.float32([7]))


def test_a_key_that_comes_twice() -> None:
    """The last one counts; one that holds nothing hides the first from a batch's sparse features alone."""

    def twice(key: bytes, last: bytes) -> bytes:
        return field(1, field(1, field(1, key) + VALUE) + field(1, field(1, key) + field(2, last)))

    both = twice(b"x", b"") + twice(b"z", b"")
    indices, values, shape, dense = batch(both, X, sparse=FLOAT, default=np.float32([7]))
    assert dense.tolist() == [[1], [1]]
    assert values.tolist() == []
    assert shape.tolist() == [2, 0]
    assert indices.size == 0
    assert [part.tolist() for part in single(both, sparse=FLOAT)] == [[[0]], [1.0], [1], [1.0]]
    again = twice(b"x", field(2, floats(2))) + twice(b"z", field(2, floats(3)))
    assert [part.tolist() for part in batch(again, sparse=FLOAT)] == [[[0, 0]], [3.0], [1, 1], [[2.0]]]


def test_the_shapes_foretold_are_those_that_come() -> None:
    for case in (*from_list("records"), *from_list("sequence_records")):
        names = [f"in{i}" for i in range(len(case.inputs))]
        graph = Graph([*(Node(name, "Placeholder") for name in names), case.node.replace(inputs=names)])
        feeds = {
            f"{name}:0": (STRING if v.dtype == object else DType.of_numpy(v.dtype), Shape(v.shape))
            for name, v in zip(names, case.inputs, strict=True)
        }
        known = infer(graph, feeds, strict=True).shapes(case.node.name)
        assert len(known) == len(case.expected)
        for shape, value in zip(known, case.expected, strict=True):
            assert shape.rank == value.ndim
            assert shape.fits(value.shape), f"{case.node.name}: {shape} but {value.shape}"


def test_a_shape_beyond_all_memory_is_refused() -> None:
    with pytest.raises(RunError, match="would take"):
        batch(X, shape=(1 << 40,))


def test_a_record_in_an_error_is_one_short_line() -> None:
    with pytest.raises(RunError) as caught:
        batch(b"\n\x00\xff" * 100_000)
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.tuples(st.just(1), st.lists(st.binary(max_size=140), max_size=4)),
        st.tuples(st.just(2), st.lists(st.floats(width=32, allow_nan=False), max_size=40)),
        st.tuples(st.just(3), st.lists(st.integers(0, 2**40), max_size=40)),
    ),
    st.booleans(),
)
def test_values_are_read_however_they_are_spelled(held: tuple[int, list[Any]], packed: bool) -> None:
    kind, values = held
    feature = spelled(kind, values, packed=packed)
    assert values_of(feature).tolist() == values
    with contextlib.suppress(WireError):
        assert isinstance(values_of(feature[:-1]), np.ndarray)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.floats(-9, 9, width=32), min_size=2, max_size=2) | st.none(), min_size=1, max_size=5))
def test_dense_rows_however_they_are_spelled(rows: list[list[float] | None]) -> None:
    """Packed in the usual few bytes or not, with the default where a record has none."""
    default = np.array([7, -7], np.float32)
    expected = np.array([default if row is None else row for row in rows], np.float32)
    for packed in (True, False):
        records = [
            field(1, b"" if row is None else field(1, field(1, b"x") + field(2, spelled(2, row, packed=packed))))
            for row in rows
        ]
        (found,) = batch(*records, shape=(2,), default=default)
        np.testing.assert_array_equal(found, expected)


def test_damaged_records_never_do_worse_than_an_error() -> None:
    random = np.random.default_rng(5)
    (case,) = (case for case in from_list("records") if case.node.name == "ParseSingleExample_0")
    whole = case.inputs[0].item()
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        data[random.integers(len(data))] = random.integers(256)
        try:
            evaluate(case.node, [np.array(bytes(data), object), *case.inputs[1:]])
        except RunError:
            refused += 1
    for length in range(1, len(whole)):
        with pytest.raises(RunError, match="Could not parse example input"):
            evaluate(case.node, [np.array(whole[:length], object), *case.inputs[1:]])
    assert 0 < refused < 300


@pytest.mark.parametrize(("kind", "dtype"), [(1, STRING), (2, FLOAT), (3, INT64)])
@pytest.mark.parametrize("size", [5, 200, 3000])
def test_large_batches_and_long_features_hold_what_their_records_do(kind: int, dtype: DType, size: int) -> None:
    """However few or many values a record has, which decides how they are read."""
    random = np.random.default_rng(size)
    rows = [random.integers(0, 2**33, random.integers(0, size)).tolist() for _ in range(30_000 // size)]
    rows = [[b"%d" % value for value in row] for row in rows] if kind == 1 else rows
    rows = [[float(np.float32(value)) for value in row] for row in rows] if kind == 2 else rows
    records = []
    for row in rows:
        entry = b"\x0a\x01z\x12" + length(len(spelled(kind, row))) + spelled(kind, row)
        features = b"\x0a" + length(len(entry)) + entry
        records.append(b"\x0a" + length(len(features)) + features)
    places, values, shape, _ = batch(*records, sparse=dtype, default=np.array([1], np.float32))
    assert values.tolist() == [value for row in rows for value in row]
    assert places.tolist() == [[number, place] for number, row in enumerate(rows) for place in range(len(row))]
    assert shape.tolist() == [len(rows), max(len(row) for row in rows)]
