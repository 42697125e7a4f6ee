"""Sparse kernels have quick forms for few elements: the same results as by the general way and by definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.errors import RunError
from pocketgraph.graph import Shape
from pocketgraph.graph.dtype import FLOAT, INT32, INT64, STRING
from pocketgraph.kernels.array import sorting
from pocketgraph.kernels.math import segments
from pocketgraph.kernels.math.segments import SUM, segment_mean, sorted_groups
from pocketgraph.kernels.parsing import examples
from pocketgraph.kernels.parsing.example_records import features_of, values_of
from pocketgraph.kernels.parsing.record_batches import Wanted
from pocketgraph.kernels.registry import KERNELS
from pocketgraph.kernels.sparse import sparse_tensors

DATA = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)


def computed(op: str, *inputs: np.ndarray) -> np.ndarray:
    row = KERNELS.row(op)
    assert row is not None
    return row.function(*inputs)


def by_definition(rows: np.ndarray, ids: list[int], count: int, how: str) -> np.ndarray:
    result = np.zeros((count, *rows.shape[1:]), np.float64)
    for group in set(ids):
        members = rows[[place for place, other in enumerate(ids) if other == group]].astype(np.float64)
        total = members.sum(axis=0)
        result[group] = total / {"sum": 1, "mean": len(members), "root": np.sqrt(len(members))}[how]
    return result.astype(np.float32)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=120).map(sorted), st.data())
def test_segments(ids: list[int], data: st.DataObject) -> None:
    picked = np.array(data.draw(st.lists(st.integers(0, 39), min_size=len(ids), max_size=len(ids))), np.int64)
    groups, rows = np.array(ids, np.int32), DATA[picked]
    count = ids[-1] + 1
    np.testing.assert_array_equal(
        computed("SparseSegmentSum", DATA, picked, groups), by_definition(rows, ids, count, "sum")
    )
    np.testing.assert_array_equal(
        computed("SparseSegmentSqrtN", DATA, picked, groups), by_definition(rows, ids, count, "root")
    )
    np.testing.assert_array_equal(segment_mean(rows, groups), by_definition(rows, ids, count, "mean"))
    wide = computed("SparseSegmentMeanWithNumSegments", DATA, picked, groups, np.array(count + 2))
    np.testing.assert_array_equal(wide, by_definition(rows, ids, count + 2, "mean"))
    np.testing.assert_array_equal(segments._summed(rows, groups, None), sorted_groups(SUM, rows, groups))


@pytest.mark.parametrize("ids", [[1, 0], [-1, 0], [0, 3, 2]])
def test_segments_that_do_not_increase_are_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match="not increasing"):
        computed("SparseSegmentSum", DATA, np.arange(len(ids)), np.array(ids))
    with pytest.raises(ValueError, match="not in"):
        computed("SparseSegmentMeanWithNumSegments", DATA, np.arange(2), np.array([0, 4]), np.array(3))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=12), st.integers(1, 7))
def test_filling_empty_rows(places: list[tuple[int, int]], rows: int) -> None:
    places = [place for place in places if place[0] < rows]
    indices = np.array(places, np.int64).reshape(-1, 2)
    values = np.arange(len(places), dtype=np.float32)
    found = sparse_tensors.sparse_fill_empty_rows(indices, values, np.array([rows, 4]), np.float32(-1))
    listed = [(*place, value) for place, value in zip(places, values.tolist(), strict=True)]
    listed += [(row, 0, -1.0) for row in range(rows) if row not in {first for first, _ in places}]
    order = sorted(range(len(listed)), key=lambda place: listed[place][0])
    assert found[0].tolist() == [list(listed[place][:2]) for place in order]
    assert found[1].tolist() == [listed[place][2] for place in order]
    assert found[2].tolist() == [row not in {first for first, _ in places} for row in range(rows)]
    assert found[3].tolist() == [order.index(place) for place in range(len(places))]


def test_a_row_outside_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the 2 rows"):
        sparse_tensors.sparse_fill_empty_rows(np.array([[2, 0]]), np.ones(1), np.array([2, 3]), np.float64(0))
    for place in ([[0, 3]], [[2, 0]], [[-1, 0]]):
        with pytest.raises(ValueError, match="do not point into"):
            sparse_tensors.sparse_to_dense(np.array(place), np.array([2, 3]), np.ones(1), np.float64(0))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=300))
def test_unique_numbers(numbers: list[int]) -> None:
    x = np.array(numbers, np.int64)
    values, places = sorting.unique(x, out_idx=INT32)
    assert values.tolist() == list(dict.fromkeys(numbers))
    assert values[places].tolist() == numbers
    assert (values.dtype, places.dtype) == (x.dtype, np.dtype(np.int32))
    _, again, counts = sorting.unique_with_counts(x, out_idx=INT64)
    assert again.tolist() == places.tolist()
    assert counts.tolist() == [numbers.count(value) for value in values.tolist()]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(values: list[float] | list[int] | list[bytes]) -> bytes:
    if values and isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))  # type: ignore[arg-type]
    if values and isinstance(values[0], float):
        return field(2, field(1, np.array(values, "<f4").tobytes()))
    return field(3, field(1, b"".join(varint(int(value)) for value in values)))


VALUES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
    st.lists(st.integers(0, 200), max_size=70),
    st.lists(st.floats(width=32, allow_nan=False), max_size=40),
    st.lists(st.binary(max_size=150), max_size=4),
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.binary(max_size=140), VALUES, max_size=5))
def test_records(wanted: dict[bytes, list[int]]) -> None:
    entries = [field(1, field(1, key) + field(2, feature(values))) for key, values in wanted.items()]
    found = features_of(field(1, b"".join(entries)))
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert values_of(found[key]).tolist() == values


def test_records_cut_off_are_refused_at_every_byte() -> None:
    record = field(
        1,
        field(1, field(1, b"a") + field(2, feature([1, 300])))
        + field(1, field(1, b"b") + field(2, feature([b"x" * 200]))),
    )
    for end in range(1, len(record)):
        with pytest.raises(ValueError, match="Could not parse"):
            examples.batch_of(np.array([record[:end]], object))


def parsed(rows: list[dict[bytes, list[int]]]) -> tuple[np.ndarray, ...]:
    records = [field(1, b"".join(field(1, field(1, k) + field(2, feature(v))) for k, v in row.items())) for row in rows]
    return examples.parse(
        examples.batch_of(np.array(records, object)),
        Wanted([b"s"], [INT64], [b"d", b"t"], [FLOAT, STRING], [Shape((2,)), Shape(())]),
        [np.array([7, 8], np.float32), np.array(b"none", object)],
    )  # fmt: skip


def test_a_batch_of_records() -> None:
    rows = [{b"s": [5, -6], b"d": [1.5, 2.5]}, {b"t": [b"x"]}, {b"s": [9], b"d": [0.5, 0.25], b"t": [b""]}]
    indices, values, shape, dense, texts = parsed(rows)  # type: ignore[arg-type]
    assert indices.tolist() == [[0, 0], [0, 1], [2, 0]]
    assert values.tolist() == [5, -6, 9]
    assert shape.tolist() == [3, 2]
    assert dense.tolist() == [[1.5, 2.5], [7, 8], [0.5, 0.25]]
    assert texts.tolist() == [b"none", b"x", b""]
    assert [array.dtype for array in (indices, values, shape, dense)] == [np.int64, np.int64, np.int64, np.float32]


def test_values_of_another_type_or_number_are_refused_as_before() -> None:
    with pytest.raises((ValueError, RunError), match="Data types don't match"):
        parsed([{b"s": [1.5]}])  # type: ignore[list-item]
    with pytest.raises((ValueError, RunError), match=r"Number of float values != expected.  Values size: 3"):
        parsed([{b"d": [1.5, 2.5, 3.5]}])  # type: ignore[list-item]
