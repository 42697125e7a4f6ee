"""Batches of Examples that are read together have the values of those read one by one, and the same errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.parsing.test_examples import spelled, vector
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.dtype import FLOAT, INT64, STRING
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.parsing import example_columns, example_layout, example_pattern, examples
from pocketgraph.kernels.parsing.example_columns import columns_of
from pocketgraph.kernels.parsing.example_walk import columns_by_walk, inside
from pocketgraph.kernels.parsing.record_bytes import IrregularError
from pocketgraph.protobuf.wire import WireError

KINDS = {1: STRING, 2: FLOAT, 3: INT64}
KEYS = {b"": 3, b"id": 3, b"weight": 2, b"a key of more than eight bytes": 1, b"a key of more than eight bytez": 2}


def length(size: int) -> bytes:
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + length(size >> 7)


def part(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2]) + length(len(payload)) + payload


def encoded(features: dict[bytes, tuple[int, list[Any]]], *, packed: bool = True) -> bytes:
    entries = [
        part(1, part(1, key) + part(2, spelled(kind, values, packed=packed)))
        for key, (kind, values) in features.items()
    ]
    return part(1, b"".join(entries))


def drawn(random: np.random.Generator, kind: int, count: int) -> list[Any]:
    if kind == 1:
        return [random.bytes(int(random.integers(0, 300))) for _ in range(count)]
    if kind == 2:
        return [float(value) for value in random.normal(size=count).astype(np.float32)]
    return [int(value) for value in random.integers(0, 1 << int(random.integers(1, 63)), count)]


def records(seed: int, count: int, *, most: int = 6) -> list[dict[bytes, tuple[int, list[Any]]]]:
    """Features with keys in any order, some missing."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        keys = [key for key in KEYS if random.random() < 0.8]
        random.shuffle(keys)
        made.append({key: (KEYS[key], drawn(random, KEYS[key], int(random.integers(0, most)))) for key in keys})
    return made


@pytest.mark.parametrize("seed", range(6))
def test_columns_have_the_values_of_all_records(seed: int) -> None:
    held = records(seed, 60, most=1 + 40 * (seed % 2))
    found = columns_of([encoded(each) for each in held], {key: KINDS[kind] for key, kind in KEYS.items()})
    assert found is not None
    for key, column in found.items():
        lists = [each[key][1] if key in each else None for each in held]
        assert column.counts().tolist() == [-1 if values is None else len(values) for values in lists]
        assert column.values.tolist() == [value for values in lists for value in values or ()]


def test_negative_numbers_and_the_longest() -> None:
    numbers = [-1, -(1 << 63), (1 << 63) - 1, 0, 127, 128, 16384]
    wire = [number & (1 << 64) - 1 for number in numbers]
    found = columns_of([encoded({b"n": (3, wire)})] * 50, {b"n": INT64})
    assert found is not None
    assert found[b"n"].values.tolist() == numbers * 50


def parsed(held: list[bytes], keys: dict[bytes, DType], shapes: list[Shape], defaults: list[Any]) -> Any:
    """The keys as sparse features and, those after the first two, as dense ones."""
    names = list(keys)
    attrs = {
        "Nsparse": 2,
        "Ndense": len(names) - 2,
        "sparse_types": tuple(keys.values())[:2],
        "Tdense": tuple(keys.values())[2:],
        "dense_shapes": tuple(shapes),
    }
    inputs = [vector(*held), vector(), *(np.array(key, object) for key in names), *defaults]
    return evaluate(Node("parse", "ParseExample", (), attrs), inputs)


def refused(*_: Any) -> Any:
    raise IrregularError


def nothing(*_: Any) -> None:
    """No columns, so that the general way is taken."""


def learned_at_once(
    records: list[bytes], wanted: dict[bytes, DType], memory: Any
) -> dict[bytes, example_pattern.RecordColumn] | None:
    """The batch by a pattern that was learned of itself but for its last record, and of no other."""
    learned = example_pattern._Learned(wanted)
    learned.due = 1
    try:
        learned.read(records[:-1] or records, memory)
        assert learned.pattern is None or learned.unread == 0
        return learned.read(records, memory)
    except (WireError, IndexError, IrregularError):
        return None


def with_memory(parse: Any) -> Any:
    """``columns_of`` as in a session."""
    return lambda records, wanted, memory: parse(records, wanted, example_columns.new_array)


WAYS: dict[str, list[tuple[Any, str, Any]]] = {
    "generally": [(examples, "columns_of", nothing)],
    "by a pattern": [
        (examples, "columns_of", with_memory(columns_of)),
        (example_columns, "MOST_MATCHED", 1 << 60),
        (example_columns, "columns_by_pattern", learned_at_once),
    ],
    "one after the other": [(example_columns, "LEAST_TOGETHER", 1 << 60)],
    "along a layout": [(example_columns, "LEAST_TOGETHER", 0), (example_columns, "columns_by_keys", refused)],
    "by keys": [
        (example_columns, "LEAST_TOGETHER", 0),
        (example_columns, "columns_by_layout", refused),
    ],
}


def all_ways(*call: Any) -> list[Any]:
    """What comes of it in each way; an error's text in its place."""
    found = []
    for changes in WAYS.values():
        with pytest.MonkeyPatch.context() as patch:
            for place, name, value in changes:
                patch.setattr(place, name, value)
            try:
                found.append(parsed(*call))
            except RunError as error:
                found.append(str(error))
    return found


def assert_equal_ways(*call: Any) -> Any:
    """Each way has the first one's results, which are given, or its error."""
    one, *others = all_ways(*call)
    for other in others:
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
            continue
        for left, right in zip(one, other, strict=True):
            assert left.dtype == right.dtype
            assert left.shape == right.shape
            assert left.tolist() == right.tolist()
    return one


WANTED = {b"": INT64, b"a key of more than eight bytes": STRING, b"id": INT64, b"weight": FLOAT}


@pytest.mark.parametrize("damage", ["none", "unpacked", "twice", "cut", "kind", "size", "missing", "empty"])
def test_all_ways_have_the_same_results_and_errors(damage: str) -> None:
    random = np.random.default_rng(4)
    held = records(3, 50)
    for each in held:
        each[b"weight"] = (2, drawn(random, 2, 3))
        if not random.integers(2):
            each.pop(b"id", None)
    if damage == "kind":
        held[7][b"weight"] = (3, [1, 2, 3])
    if damage == "size":
        held[7][b"weight"] = (2, [1.0])
    if damage == "missing":
        del held[7][b"weight"]
    lines = [encoded(each) for each in held]
    if damage == "unpacked":
        lines[7] = encoded(held[7], packed=False)
    if damage == "twice":
        entry = part(1, part(1, b"weight") + part(2, spelled(2, [5.0, 6.0, 7.0])))
        plain = encoded({key: value for key, value in held[7].items() if key != b"weight"})
        lines[7] = plain + part(1, entry + entry)
    if damage == "cut":
        lines[7] = lines[7][:-1]
    if damage == "empty":
        lines[7] = b""
    shapes = [Shape((None,)), Shape((3,))]
    one = assert_equal_ways(lines, WANTED, shapes, [np.array(9, np.int64), np.zeros(0, np.float32)])
    assert isinstance(one, str) <= (damage in ("cut", "kind", "size", "missing", "empty"))


def alike(seed: int, count: int) -> list[dict[bytes, tuple[int, list[Any]]]]:
    """Features with the same keys in the same order, of lengths that mostly are the same, some not wanted."""
    random = np.random.default_rng(seed)
    each = dict.fromkeys(KEYS, 1) | {b"weight": 3, b"a key of more than eight bytez": 200}
    most = 1 << (6 if seed % 2 else 40)
    made = []
    for _ in range(count):
        held: dict[bytes, tuple[int, list[Any]]] = {}
        for key, kind in [*KEYS.items(), (b"more", 2), (b"image", 1)]:
            size = each.get(key, 1) if seed % 3 or random.random() < 0.9 else int(random.integers(0, 3))
            values = drawn(random, kind, size)
            held[key] = kind, [value % most for value in values] if kind == 3 else values
        made.append(held)
    return made


@pytest.mark.parametrize("seed", range(12))
def test_records_of_one_layout_have_the_same_results_in_all_ways(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_layout, "MOST_COMPARED", (20, 400)[seed % 2])
    lines = [encoded(each) for each in alike(seed, 20)]
    shapes, defaults = [Shape((None,)), Shape((None,))], [np.array(9, np.int64), np.array(0.5, np.float32)]
    assert not isinstance(assert_equal_ways(lines, WANTED, shapes, defaults), str)


def test_records_of_one_layout_need_no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_columns, "LEAST_TOGETHER", 0)
    monkeypatch.setattr(example_columns, "columns_by_keys", refused)
    for seed in (1, 2):
        held = alike(seed, 20)
        found = columns_of([encoded(each) for each in held], WANTED)
        assert found is not None
        assert {key: column.values.tolist() for key, column in found.items()} == {
            key: [value for each in held for value in each[key][1]] for key in WANTED
        }


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_records_and_none(count: int) -> None:
    lines = [encoded(each) for each in alike(1, count)]
    one = assert_equal_ways(lines, WANTED, [Shape((None,))] * 2, [np.array(9, np.int64), np.array(0.5, np.float32)])
    assert one[-1].shape[0] == count


def test_lengths_of_fields_are_told_from_the_bytes_that_they_take() -> None:
    sizes = [*range(300), *range(16_300, 16_500), 1 << 21, (1 << 21) - 1]
    assert [inside(len(part(1, bytes(size)))) for size in sizes] == sizes
    assert [inside(size) for size in (-1, 0, 1, 130)] == [-1, -1, -1, -1]


@pytest.mark.parametrize("kind", ["any", "alike"])
def test_damage_anywhere_never_does_worse_than_an_error(kind: str) -> None:
    random = np.random.default_rng(8)
    held = records(5, 45, most=3) if kind == "any" else alike(2, 10)
    lines = [encoded(each) for each in held]
    shapes, defaults = [Shape((None,)), Shape((None,))], [np.array(9, np.int64), np.array(0.5, np.float32)]
    for _ in range(150):
        broken = list(lines)
        for _ in range(int(random.integers(1, 4))):
            index = int(random.integers(len(broken)))
            changed = bytearray(broken[index])
            changed[int(random.integers(len(changed)))] = int(random.integers(256))
            broken[index] = bytes(changed)
        assert_equal_ways(broken, WANTED, shapes, defaults)


def test_the_walk_reads_what_encoders_write_and_nothing_else() -> None:
    held = [{b"id": (3, [1, -2 & (1 << 64) - 1]), b"weight": (2, [0.5])}, {b"id": (3, [3])}] * 4
    lines = [encoded(each) for each in held]
    found = columns_by_walk(lines, WANTED)
    assert found is not None
    assert found[b"id"].values.tolist() == [1, -2, 3] * 4
    assert found[b"weight"].counts().tolist() == [1, -1] * 4
    feature = part(1, b"id") + part(2, spelled(3, [1]))
    for odd in (
        part(1, part(1, feature) + part(1, feature)),  # a key twice
        part(1, part(1, feature)) + part(7, b"unknown"),
        part(1, part(1, feature + part(9, b"unknown"))),
        part(1, part(1, part(2, spelled(3, [1])) + part(1, b"id"))),  # the key behind its feature
        encoded({b"id": (3, [1])}, packed=False),
        encoded({b"id": (2, [1.0])}),  # another type
        lines[0][:-1],
    ):
        assert columns_by_walk([*lines, odd], WANTED) is None


def by_pattern(taught: list[bytes], lines: list[bytes], wanted: dict[bytes, DType]) -> tuple[Any, int]:
    """The columns of these records by a pattern that others taught, and how many of them it did not match."""
    learned = example_pattern._Learned(wanted)
    learned.due = 1
    assert learned.read(taught, example_columns.new_array) is None
    assert learned.pattern is not None
    found, missed = learned.pattern.columns(lines, wanted, learned.keys, example_columns.new_array)
    return found, missed


def assert_columns(found: Any, held: list[dict[bytes, tuple[int, list[Any]]]], wanted: dict[bytes, DType]) -> None:
    assert found is not None
    for key in wanted:
        lists = [each[key][1] if key in each else None for each in held]
        assert found[key].counts().tolist() == [-1 if values is None else len(values) for values in lists]
        assert found[key].values.tolist() == [value for values in lists for value in values or ()]


SMALL = {
    b"label": INT64,
    b"ids": INT64,
    b"score": FLOAT,
    b"row": FLOAT,
    b"name": STRING,
    b"words": STRING,
    b"no": INT64,
}


def as_encoders_write(held: list[dict[bytes, tuple[int, list[Any]]]]) -> list[bytes]:
    """Records whose empty lists have no packed values."""
    return [
        part(1, b"".join(
            part(1, part(1, key) + part(2, spelled(kind, values, packed=len(values) > 0)))
            for key, (kind, values) in each.items()
        ))
        for each in held
    ]  # fmt: skip


def small(seed: int, count: int, form: str) -> list[dict[bytes, tuple[int, list[Any]]]]:
    """Features as many records have: keys in one order or in any, all of them or some."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        held: dict[bytes, tuple[int, list[Any]]] = {
            b"label": (3, [int(random.integers(0, 1000))]),
            b"ids": (3, [int(random.integers(0, 1 << 20)) for _ in range(int(random.integers(0, 6)))]),
            b"score": (2, drawn(random, 2, 1)),
            b"not wanted": (3, [int(random.integers(0, 300))]),
            b"row": (2, drawn(random, 2, 200)),
            b"name": (1, [random.bytes(int(random.integers(0, 12)))]),
            b"words": (1, [random.bytes(int(random.integers(0, 5))) for _ in range(int(random.integers(0, 4)))]),
        }
        keys = list(held)
        if form == "any order":
            random.shuffle(keys)
        made.append({key: held[key] for key in keys if form != "some missing" or random.random() < 0.8})
    return made


@pytest.mark.parametrize("form", ["one order", "any order", "some missing"])
def test_a_pattern_reads_records_like_those_that_taught_it(form: str) -> None:
    taught, held = small(1, 200, form), small(2, 150, form)
    found, missed = by_pattern(as_encoders_write(taught), as_encoders_write(held), SMALL)
    assert_columns(found, held, SMALL)
    assert missed < (15 if form != "some missing" else 30)


@pytest.mark.parametrize("form", ["one order", "any order"])
def test_records_unlike_those_that_taught_a_pattern_are_read_by_their_keys(form: str) -> None:
    taught, held = small(1, 200, form), small(2, 20, form)
    held[3][b"name"] = (1, [b"a name that is longer than any before" * 9])
    held[5][b"row"] = (2, [1.0, 2.0])
    held[7] = dict(sorted(held[7].items(), reverse=True))
    held[9][b"no"] = (3, [5, -1 & (1 << 64) - 1])
    held[11] = {b"label": (3, [])}
    found, missed = by_pattern(as_encoders_write(taught), as_encoders_write(held), SMALL)
    held[9][b"no"] = (3, [5, -1])
    assert_columns(found, held, SMALL)
    assert missed >= 4


def test_a_key_that_comes_twice_is_left_to_the_general_way() -> None:
    taught, held = small(1, 200, "any order"), small(2, 20, "any order")
    lines = as_encoders_write(held)
    entry = part(1, part(1, b"label") + part(2, spelled(3, [5])))
    inner = lines[4][lines[4].index(10, 1) :]
    lines[4] = part(1, inner + entry)
    assert columns_by_walk(lines, SMALL) is None
    assert by_pattern(as_encoders_write(taught), lines, SMALL)[0] is None


def test_what_looks_like_an_entry_inside_of_a_text_is_text() -> None:
    inner = part(1, part(1, b"label") + part(2, spelled(3, [7])))
    held = [{b"label": (3, [n]), b"name": (1, [inner * (n % 3)]), b"score": (2, [0.5])} for n in range(60)]
    found, missed = by_pattern(as_encoders_write(held), as_encoders_write(held), SMALL)
    assert_columns(found, held, SMALL)
    assert missed == 0


def test_a_pattern_is_made_after_many_records_only_and_given_up_where_it_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(example_pattern, "FIRST_LEARNED", 50)
    learned = example_pattern._Learned(SMALL)
    lines = as_encoders_write(small(1, 30, "one order"))
    others = as_encoders_write(small(2, 30, "any order"))
    new = example_columns.new_array
    assert learned.read(lines, new) is None
    assert learned.pattern is None
    assert learned.read(lines, new) is None
    assert learned.read(lines, new) is not None
    assert learned.read(others, new) is None
    assert learned.pattern is None
    assert learned.due == 200


@pytest.mark.parametrize("missing", [False, True])
def test_a_single_record_has_the_values_of_one_read_feature_by_feature(missing: bool) -> None:
    numbers = [0.5, 2.5, -3.0]
    held = {b"w": (2, numbers), b"id": (3, [300, 1 << 62]), b"name": (1, [b"", b"a text"])}
    record = np.array(encoded({} if missing else held), object)
    attrs: dict[str, Any] = {
        "sparse_keys": ("id", "name"), "sparse_types": (INT64, STRING),
        "dense_keys": ("w",), "Tdense": (FLOAT,), "dense_shapes": (Shape((3,)),),
    }  # fmt: skip
    default = np.array([7, 8, 9], np.float32)
    together = examples.parse_single_example(record, default, **attrs)
    apart = examples.parse_single_example.without[examples.TOGETHER](record, default, **attrs)  # type: ignore[attr-defined]
    assert len(together) == len(apart) == 7
    for found, expected in zip(together, apart, strict=True):
        assert (found.dtype, found.shape, found.tolist()) == (expected.dtype, expected.shape, expected.tolist())
    assert together[6].tolist() == (default.tolist() if missing else numbers)
    assert together[4].tolist() == [0 if missing else 2]
