"""Encoded SequenceExamples and Examples in JSON that do not fit: TensorFlow's words, and damage never does worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels.cases import Case, from_list
from kernels.parsing.test_examples import INTEGER, TWO, field, floats, vector
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.graph.dtype import FLOAT, INT32, INT64, STRING
from pocketgraph.kernels import evaluate

NONE = np.zeros(0, np.float32)
X = field(1, field(1, field(1, b"x") + field(2, field(2, floats(1)))))


def steps(key: bytes, *features: bytes) -> bytes:
    """A SequenceExample of one list of encoded Features."""
    return field(2, field(1, field(1, key) + field(2, b"".join(field(1, feature) for feature in features))))


ONE, PAIR, WHOLE = field(2, floats(1)), field(2, floats(1, 2)), field(3, field(1, b"\x05"))


def one(value: bytes) -> np.ndarray[Any, Any]:
    return np.array(value, object)


def batch(
    *records: bytes,
    x: tuple[int | None, ...] | None = None,
    default: Any = NONE,
    z: DType | None = None,
    ragged: DType | None = None,
    steps_x: tuple[int, ...] | None = None,
    steps_z: DType | None = None,
    names: tuple[bytes, ...] = (),
    alone: bool = False,
) -> tuple[np.ndarray[Any, Any], ...]:
    """ParseSequenceExampleV2 of dense float features x and X, and sparse or ragged features z and Z, where wanted."""

    def keys(key: bytes, wanted: object) -> np.ndarray[Any, Any]:
        return vector(*([] if wanted is None else [key]))

    attrs = {
        "Ncontext_sparse": int(z is not None),
        "context_sparse_types": () if z is None else (z,),
        "Tcontext_dense": () if x is None else (FLOAT,),
        "context_dense_shapes": () if x is None else (Shape(x),),
        "context_ragged_value_types": () if ragged is None else (ragged,),
        "context_ragged_split_types": () if ragged is None else (INT64,),
        "Nfeature_list_sparse": int(steps_z is not None),
        "feature_list_sparse_types": () if steps_z is None else (steps_z,),
        "Nfeature_list_dense": int(steps_x is not None),
        "feature_list_dense_types": () if steps_x is None else (FLOAT,),
        "feature_list_dense_shapes": () if steps_x is None else (Shape(steps_x),),
    }
    inputs = [
        one(records[0]) if alone else vector(*records),
        vector(*names),
        keys(b"z", z),
        keys(b"x", x),
        keys(b"z", ragged),
        keys(b"Z", steps_z),
        keys(b"X", steps_x),
        vector(),
        np.zeros(int(steps_x is not None), bool),
        *([] if x is None else [default]),
    ]
    return evaluate(Node("parse", "ParseSequenceExampleV2", (), attrs), inputs)


def single(
    record: Any,
    x: tuple[int | None, ...] | None = None,
    dtype: DType = FLOAT,
    default: Any = NONE,
    z: DType | None = None,
    steps_x: tuple[int, ...] | None = None,
    steps_z: DType | None = None,
) -> tuple[np.ndarray[Any, Any], ...]:
    """ParseSingleSequenceExample, likewise, of a record called n."""
    attrs = {
        "Ncontext_sparse": int(z is not None),
        "Ncontext_dense": int(x is not None),
        "Nfeature_list_sparse": int(steps_z is not None),
        "Nfeature_list_dense": int(steps_x is not None),
        "context_sparse_types": () if z is None else (z,),
        "Tcontext_dense": () if x is None else (dtype,),
        "feature_list_dense_types": () if steps_x is None else (FLOAT,),
        "context_dense_shapes": () if x is None else (Shape(x),),
        "feature_list_sparse_types": () if steps_z is None else (steps_z,),
        "feature_list_dense_shapes": () if steps_x is None else (Shape(steps_x),),
    }
    keys = [(b"z", z), (b"x", x), (b"Z", steps_z), (b"X", steps_x)]
    inputs = [
        one(record) if isinstance(record, bytes) else record,
        vector(),
        *(one(key) for key, wanted in keys if wanted is not None),
        *([] if x is None else [default]),
        one(b"n"),
    ]
    return evaluate(Node("parse", "ParseSingleSequenceExample", (), attrs), inputs)


def json(text: bytes) -> tuple[np.ndarray[Any, Any], ...]:
    return evaluate(Node("parse", "DecodeJSONExample", (), {}), [one(text)])


def in_a(text: bytes) -> bytes:
    return b'{"features": {"feature": {"a": %s}}}' % text


EMPTY = field(1, field(1, field(1, b"x") + field(2, field(2, b""))))
REQUIRED = (
    "Feature list 'X' is required but could not be found.  Did you mean to include it in "
    "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
)
MISMATCH = "Data types don't match. Expected type:"
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: batch(b"garbage", x=(1,)), "Invalid protocol message input, example id: <unknown>"),
    (lambda: batch(X, b"g", x=(1,), names=(b"n", b"m")), "Invalid protocol message input, example id: m"),
    (lambda: batch(X, b"", x=(1,)), "Feature: x (data type: float) is required but could not be found."),
    (lambda: batch(X, INTEGER, x=(1,), names=(b"n", b"m")), f"Name: m, Context feature: x.  {MISMATCH} float"),
    (lambda: batch(TWO, x=(1,)), "Inconsistent max number of elements for feature x: expected 1, but found 2"),
    (lambda: batch(X, x=(2,)), "Inconsistent max number of elements for feature x: expected 2, but found 1"),
    (lambda: batch(b"", x=(1,), alone=True), "for feature x: expected 1, but found 0"),
    (lambda: batch(X, EMPTY, x=(1,)), "Unexpected number of elements in example <unknown>"),
    (
        lambda: batch(X, x=(1,), default=np.float32([1, 2])),
        "default_value[0].shape() == [2] != context_dense_shapes[0] == [1]",
    ),
    (lambda: batch(X, x=(None,)), "Shape [?] is not fully defined"),
    (lambda: batch(X, names=(b"a", b"b")), "example_names must be empty or have the correct number of elements"),
    (lambda: batch(X.replace(b"x", b"z"), z=INT64), f"Name: <unknown>, Context feature: z.  {MISMATCH} int64"),
    (lambda: batch(X, z=FLOAT, ragged=FLOAT), "Context feature z cannot be both ragged and sparse"),
    (lambda: batch(X, z=INT32), "a record holds no int32"),
    (
        lambda: batch(steps(b"X", ONE), steps(b"X", WHOLE), steps_x=(1,)),
        f"Name: <unknown>, Feature list: X, Index: 0.  {MISMATCH} float",
    ),
    (lambda: batch(steps(b"X", ONE), b"", steps_x=(1,)), f"Name: <unknown>, {REQUIRED}"),
    (
        lambda: batch(steps(b"X", ONE, PAIR), steps_x=(1,)),
        "Name: <unknown>, Key: X, Index: 1.  Number of values != expected.  values size: 2 but output shape: [1]",
    ),
    (
        lambda: batch(steps(b"X", ONE, ONE), steps_x=(2,)),
        "Key: X, Index: 0.  Number of values != expected.  values size: 1 but output shape: [2]",
    ),
    (lambda: batch(steps(b"X", ONE), steps_x=(2,)), "'X' has an unexpected number of values.  Total values size: 1"),
    (lambda: batch(steps(b"X", ONE), steps_x=(0,)), "'X' has an unexpected number of values"),
    (
        lambda: batch(steps(b"Z", ONE, WHOLE), steps_z=FLOAT),
        f"Name: <unknown>, Feature list: Z, Index: 1.  {MISMATCH} float",
    ),
    (
        lambda: batch(b"\x12\x09\x0a\x07\x0a\x01X\x12\x02\x0a\x01", steps_x=(1,)),
        "Error in sequence feature X in example <unknown>",
    ),
    (lambda: batch(b"\x0a\x05\x0a\x03\x0a\x01x", x=(1,), default=np.float32([1])), "Invalid protocol message input"),
    (lambda: single(b"garbage", x=(1,)), "Could not parse example input, value: 'garbage'"),
    (lambda: single(b"", x=(1,)), "Name: n, Context feature 'x' is required but could not be found."),
    (lambda: single(INTEGER, x=(1,)), f"Name: n, Context feature: x.  {MISMATCH} float"),
    (
        lambda: single(TWO, x=(1,)),
        "Name: n, Key: x, Index: 0.  Number of float values != expected.  values size: 2 but output shape: [1]",
    ),
    (
        lambda: single(field(1, field(1, field(1, b"x") + field(2, field(1, field(1, b"a") * 2)))), (1,), STRING),
        "Name: n, Key x, Index: 0.  Number of bytes values != expected.  Values size: 2 but output shape: [1]",
    ),
    (lambda: single(X.replace(b"x", b"z"), z=INT64), f"Name: n, Context feature: z.  {MISMATCH} int64"),
    (lambda: single(b"", steps_x=(1,)), f"Name: n, {REQUIRED}"),
    (lambda: single(steps(b"X", ONE, WHOLE), steps_x=(1,)), f"Name: n, Feature list: X, Index: 1.  {MISMATCH} float"),
    (lambda: single(steps(b"X", b""), steps_x=(1,)), f"Name: n, Feature list: X, Index: 0.  {MISMATCH} float"),
    (lambda: single(steps(b"X", PAIR), steps_x=(1,)), "Name: n, Key: X, Index: 0.  Number of float values != expected"),
    (lambda: single(steps(b"Z", b"", WHOLE), steps_z=FLOAT), f"Name: n, Feature List: Z, Index: 1.  {MISMATCH} float"),
    (
        lambda: single(X, (1,), default=np.float32([1, 2])),
        "def_value[0].shape() == [2] != context_dense_shapes_[0] == [1]",
    ),
    (lambda: single(vector(X), (1,)), "Expected serialized to be a scalar, got shape: [1]"),
    (lambda: single(X, (None,)), "Shape [?] is not fully defined"),
]
BAD_JSON = [
    b"", b"[]", b"null", b"{} x", b"{,}", b"{1: 2}", b'{"foo": 1}', b'{"features": {"feature": []}}',
    b'{"features": {"feature": {"a": {} "b": {}}}}', b'{"features": {"feature": {"a": {}, "a": {}}}}',
    b'{"features": {"feature": {"a\\q": {}}}}', b'{"features": {"feature": {"\\ud800": {}}}}',
    b'{"features": {"feature": {"\xff": {}}}}', b'{"@type": "x"}', b"[" * 100_000, b'{"a": ' * 100_000,
    *map(in_a, (
        b'{"foo": 1}', b'{"int64List": {"value": [1]}, "floatList": {"value": [1]}}', b'{"int64List": []}',
        b'{"int64List": {"value": [1]}, "int64List": {"value": [2]}}', b'{"int64List": {"value": [1.5]}}',
        b'{"int64List": {"value": [true]}}', b'{"int64List": {"value": [9223372036854775808]}}',
        b'{"int64List": {"value": [" 3"]}}', b'{"int64List": {"value": [""]}}', b'{"int64List": {"value": [1e400]}}',
        b'{"int64List": {"value": [01]}}', b'{"int64List": {"value": [1 2]}}', b'{"int64List": {"value": [,]}}',
        b'{"floatList": {"value": [1e39]}}', b'{"floatList": {"value": [1e400]}}', b'{"floatList": {"value": [NaN]}}',
        b'{"floatList": {"value": [""]}}', b'{"floatList": {"value": ["1_0"]}}', b'{"floatList": {"value": [true]}}',
        b'{"floatList": {"value": [.5]}}', b'{"floatList": {"value": [3.4028236e38]}}',
        b'{"bytesList": {"value": ["!"]}}', b'{"bytesList": {"value": [1]}}', b'{"bytesList": {"value": ["YQ="]}}',
        b'{"bytesList": {"value": ["YQ==="]}}', b'{"bytesList": {"value": ["Y"]}}',
        b'{"bytesList": {"value": [" YQ"]}}', b'{"bytesList": {"value": ["YQ==\\n"]}}',
    )),
]  # fmt: skip
"""What TensorFlow refuses, and brackets beyond its depth."""


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_does_not_fit_is_said_in_tensorflows_words(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RunError) as caught:
        call()
    assert text in str(caught.value)
    assert "node 'parse'" in str(caught.value)


@pytest.mark.parametrize("text", BAD_JSON, ids=lambda text: text[:40].decode("latin-1"))
def test_bad_json_is_refused_in_one_short_line(text: bytes) -> None:
    with pytest.raises(RunError, match="Error while parsing JSON: ") as caught:
        json(text)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("op", ["ParseSequenceExampleV2_3", "ParseSingleSequenceExample_0"])
def test_damaged_records_never_do_worse_than_an_error(op: str) -> None:
    def refuses(case: Case, data: bytes) -> bool:
        try:
            evaluate(case.node, [np.array(data, object), *case.inputs[1:]])
        except RunError:
            return True
        return False

    random = np.random.default_rng(5)
    (case,) = (case for case in from_list("sequence_records") if case.node.name == op)
    whole = case.inputs[0].item()
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        data[random.integers(len(data))] = random.integers(256)
        refused += refuses(case, bytes(data))
    assert 0 < refused < 300
    # the context is one field and the steps another, so a cut between them leaves a record
    assert sum(not refuses(case, whole[:length]) for length in range(1, len(whole))) <= 1


def test_one_text_for_each_record_or_step_is_a_text_in_the_tensor() -> None:
    def told(key: bytes, *words: bytes) -> bytes:
        return field(1, field(1, key) + field(2, field(1, b"".join(field(1, word) for word in words))))

    context = [field(1, told(b"x", word)) for word in (b"red", b"blue")]
    walks = [steps(b"X", *(field(1, field(1, word)) for word in words)) for words in ((b"a", b"b"), (b"c",))]
    shape: dict[str, Any] = {
        "context_sparse_types": (), "Tcontext_dense": (STRING,), "context_dense_shapes": (Shape(()),),
        "feature_list_sparse_types": (), "feature_list_dense_types": (STRING,),
        "feature_list_dense_shapes": (Shape(()),), "context_sparse_keys": (), "context_dense_keys": (b"x",),
        "feature_list_sparse_keys": (), "feature_list_dense_keys": (b"X",),
        "feature_list_dense_missing_assumed_empty": (),
    }  # fmt: skip
    records = vector(*(first + second for first, second in zip(context, walks, strict=True)))
    node = Node("parse", "ParseSequenceExample", (), shape)
    colors, letters, lengths = evaluate(node, [records, vector(), np.array([], object)])
    assert [type(value) for value in colors] == [bytes, bytes]
    assert colors.tolist() == [b"red", b"blue"]
    assert {type(value) for value in letters.ravel()} == {bytes}
    assert letters.tolist() == [[b"a", b"b"], [b"c", b""]]
    assert lengths.tolist() == [2, 1]
    attrs = {key: value for key, value in shape.items() if not key.endswith(("_keys", "_empty"))}
    counts = {"Ncontext_sparse": 0, "Ncontext_dense": 1, "Nfeature_list_sparse": 0, "Nfeature_list_dense": 1}
    node = Node("parse", "ParseSingleSequenceExample", (), attrs | counts)
    keys = one(b"x"), one(b"X")
    color, alone = evaluate(node, [one(records[0]), vector(), *keys, np.array([], object), one(b"n")])
    assert color.item() == b"red"
    assert [type(value) for value in alone] == [bytes, bytes]
    assert alone.tolist() == [b"a", b"b"]


def test_a_shape_beyond_all_memory_is_refused() -> None:
    with pytest.raises(RunError, match="would take"):
        single(b"", (1 << 40,))
