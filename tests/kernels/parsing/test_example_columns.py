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
from pocketgraph.kernels.parsing import example_columns
from pocketgraph.kernels.parsing.example_columns import columns_of
from pocketgraph.kernels.parsing.example_messages import columns_by_messages

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
        assert column.counts.tolist() == [-1 if values is None else len(values) for values in lists]
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


def all_ways(monkeypatch: pytest.MonkeyPatch, *call: Any) -> list[Any]:
    """What comes of it record by record, by protobuf's parser, and together; an error's text in its place."""
    found = []
    for least, messages in ((1 << 60, 1 << 60), (1 << 60, 0), (0, 0)):
        monkeypatch.setattr(example_columns, "LEAST_RECORDS", least)
        monkeypatch.setattr(example_columns, "LEAST_BY_MESSAGES", messages)
        monkeypatch.setattr(example_columns, "LEAST_BYTES", least)
        try:
            found.append(parsed(*call))
        except RunError as error:
            found.append(str(error))
    return found


WANTED = {b"": INT64, b"a key of more than eight bytes": STRING, b"id": INT64, b"weight": FLOAT}


@pytest.mark.parametrize("damage", ["none", "unpacked", "twice", "cut", "kind", "size", "missing", "empty"])
def test_all_ways_have_the_same_results_and_errors(monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
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
    one, *others = all_ways(monkeypatch, lines, WANTED, shapes, [np.array(9, np.int64), np.zeros(0, np.float32)])
    for other in others:
        if isinstance(one, str):
            assert damage in ("cut", "kind", "size", "missing", "empty")
            assert one == other
            continue
        for left, right in zip(one, other, strict=True):
            assert left.dtype == right.dtype
            assert left.shape == right.shape
            assert left.tolist() == right.tolist()


def test_damage_anywhere_never_does_worse_than_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(8)
    lines = [encoded(each) for each in records(5, 45, most=3)]
    shapes, defaults = [Shape((None,)), Shape((None,))], [np.array(9, np.int64), np.array(0.5, np.float32)]
    for _ in range(150):
        broken = list(lines)
        for _ in range(int(random.integers(1, 4))):
            index = int(random.integers(len(broken)))
            changed = bytearray(broken[index])
            changed[int(random.integers(len(changed)))] = int(random.integers(256))
            broken[index] = bytes(changed)
        one, *others = all_ways(monkeypatch, broken, WANTED, shapes, defaults)
        for other in others:
            if isinstance(one, str) or isinstance(other, str):
                assert one == other
            else:
                assert [array.tolist() for array in one] == [array.tolist() for array in other]


def test_protobufs_parser_reads_what_encoders_write_and_nothing_else() -> None:
    held = [{b"id": (3, [1, -2 & (1 << 64) - 1]), b"weight": (2, [0.5])}, {b"id": (3, [3])}] * 4
    lines = [encoded(each) for each in held]
    found = columns_by_messages(lines, WANTED)
    assert found is not None
    assert found[b"id"].values.tolist() == [1, -2, 3] * 4
    assert found[b"weight"].counts.tolist() == [1, -1] * 4
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
        assert columns_by_messages([*lines, odd], WANTED) is None
