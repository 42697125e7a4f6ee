"""DecodeProtoV2; TensorFlow 2.21 gave the values (but of a field named twice), and refuses what is refused here."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.shapes import infer
from pocketgraph.protobuf.wire import bytes_field, number_field, varint

FIELDS = {
    "double": (1, "double", b"2.5"), "float": (2, "float", b"inf"), "int64": (3, "int64", b""),
    "uint64": (4, "uint64", b"18446744073709551615"), "int32": (5, "int32", b"-7"), "fixed32": (7, "uint32", b""),
    "bool": (8, "bool", b"true"), "string": (9, "string", "d\u00e9".encode()), "message": (11, "string", b""),
    "bytes": (12, "string", b"\\001a\\n"), "uint32": (13, "uint32", b""), "enum": (14, "int32", b"B"),
    "sfixed32": (15, "int32", b""), "fixed64": (6, "uint64", b""),
    "sint32": (17, "int32", b""), "sint64": (18, "int64", b""),
}  # fmt: skip
"""By name of a type its number, the tensor's type, and a default."""


def field(name: str, number: int, label: int, kind: int, default: bytes) -> bytes:
    told = bytes_field(1, name) + number_field(3, number) + number_field(4, label) + number_field(5, kind)
    more = bytes_field(6, ".p.M.E" if kind == 14 else ".p.M") if kind in (11, 14) else b""
    return bytes_field(2, told + more + (bytes_field(7, default) if default else b""))


def descriptors() -> bytes:
    """One of each type with a default, called o_TYPE, and a repeated one, r_TYPE, in the message p.M."""
    values = (bytes_field(2, bytes_field(1, n) + number_field(2, v)) for n, v in (("A", 3), ("B", -2)))
    parts = [bytes_field(1, "M"), bytes_field(4, bytes_field(1, "E") + b"".join(values))]
    for place, (name, (kind, _, default)) in enumerate(FIELDS.items()):
        parts += [field(f"o_{name}", 1 + 2 * place, 1, kind, default), field(f"r_{name}", 2 + 2 * place, 3, kind, b"")]
    return bytes_field(1, bytes_field(2, "p") + bytes_field(4, b"".join(parts)))


def node(*names: str, types: tuple[str, ...] = (), **attrs: Any) -> Node:
    kinds = types or tuple(FIELDS[name[2:]][1] for name in names)
    source = b"bytes://" + descriptors()
    given = {"message_type": b"p.M", "descriptor_source": source, "message_format": b"binary", **attrs}
    wanted = tuple(name.encode() for name in names)
    return Node("y", "DecodeProtoV2", ["x"], {
        "field_names": wanted, "output_types": tuple(map(DType.named, kinds)), **given})  # fmt: skip


def number(name: str) -> int:
    return 1 + 2 * list(FIELDS).index(name[2:]) + (name[0] == "r")


def message(name: str, *values: int | bytes) -> bytes:
    return b"".join(
        bytes_field(number(name), v) if isinstance(v, bytes) else number_field(number(name), v) for v in values
    )


def texts(*messages: bytes) -> np.ndarray[Any, Any]:
    return np.array(messages, object)


def decoded(name: str, *messages: bytes, **attrs: Any) -> tuple[list[Any], list[Any]]:
    sizes, values = evaluate(node(name, **attrs), [texts(*messages)])
    return sizes.ravel().tolist(), values.tolist()


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("double", 2.5), ("float", np.inf), ("int64", 0), ("uint64", 2**64 - 1), ("int32", -7), ("bool", True),
        ("string", "d\u00e9".encode()), ("bytes", b"\1a\n"), ("message", b""), ("enum", -2), ("fixed32", 0),
    ],
)  # fmt: skip
def test_what_is_missing_has_the_default_that_the_descriptor_says(name: str, default: Any) -> None:
    assert decoded(f"o_{name}", b"", b"") == ([0, 0], [[default], [default]])
    empty = 3 if name == "enum" else type(default)()
    assert decoded(f"r_{name}", b"", b"") == ([0, 0], [[empty], [empty]])


@pytest.mark.parametrize(
    ("name", "given", "values"),
    [
        ("r_int64", (1, -2, 3), [1, -2, 3]), ("r_int32", (-2,), [-2]), ("r_enum", (3, -2), [3, -2]),
        ("r_uint32", (2**32 - 1,), [2**32 - 1]), ("r_uint64", (2**63 + 5,), [2**63 + 5]),
        ("r_bool", (1, 0), [True, False]),
        ("r_sint32", (1, 10), [-1, 5]), ("r_sint64", (2**41 - 1,), [-(2**40)]),
        ("r_string", (b"a", b"", b"ccc"), [b"a", b"", b"ccc"]),
        ("r_message", (b"\x08\x04", b""), [b"\x08\x04", b""]), ("r_float", (struct.pack("<2f", 0.5, 7),), [0.5, 7]),
        ("r_int64", (varint(5) + varint(-1),), [5, -1]), ("r_sfixed32", (struct.pack("<2i", -9, 8),), [-9, 8]),
        ("o_int32", (5, -3), [-3]), ("o_string", (b"a", b"b"), [b"b"]),
    ],
)  # fmt: skip
def test_values_of_each_type_alone_and_packed(name: str, given: tuple[Any, ...], values: list[Any]) -> None:
    assert decoded(name, message(name, *given)) == ([len(values)], [values])


def test_numbers_of_a_fixed_length() -> None:
    for name, layout, value in (("double", "<d", 1.5), ("float", "<f", 3.25), ("fixed32", "<I", 2**32 - 7),
                                ("fixed64", "<Q", 9), ("sfixed32", "<i", -9)):  # fmt: skip
        data = struct.pack(layout, value)
        tag = varint(number(f"o_{name}") << 3 | (1 if len(data) == 8 else 5))
        assert decoded(f"o_{name}", tag + data) == ([1], [[value]])


def test_some_fields_of_a_batch_and_their_shapes() -> None:
    first = message("r_int64", 1, -2, 3) + message("o_string", b"x")
    wanted = node("r_int64", "o_string", "r_int64")
    sizes, *values = evaluate(wanted, [np.array([[first, message("r_int64", 4)]], object)])
    assert sizes.tolist() == [[[3, 1, 3], [1, 0, 1]]]
    assert values[0].tolist() == values[2].tolist() == [[[1, -2, 3], [4, 0, 0]]]
    assert values[1].tolist() == [[[b"x"], ["d\u00e9".encode()]]]
    fed = Node("x", "Placeholder", [], {"dtype": DType.named("string"), "shape": Shape((1, 2))})
    known = infer(Graph([fed, wanted]))
    assert [str(known.shape(f"y:{port}")) for port in range(3)] == ["[1,2,3]", "[1,2,?]", "[1,2,?]"]
    with Session(Graph([fed, wanted])) as session:
        assert session.run("y:2", {"x:0": np.array([[first, b""]], object)})[0].shape == (1, 2, 1)


def test_an_int32_and_a_float_may_be_twice_as_wide() -> None:
    assert decoded("o_int32", message("o_int32", -3), types=("int64",)) == ([1], [[-3]])
    assert decoded("o_float", b"", types=("double",)) == ([0], [[np.inf]])
    source = bytes_field(1, "M") + field("o_float", 3, 1, 2, b"0.1")
    attrs = {"message_type": b"M", "descriptor_source": b"bytes://" + bytes_field(1, bytes_field(4, source))}
    assert decoded("o_float", b"", types=("double",), **attrs) == ([0], [[0.10000000149011612]])


def test_a_packed_run_in_a_field_that_is_not_repeated_counts_and_gives_the_default() -> None:
    """So it is in TensorFlow, which writes the default over what it read."""
    one, run, empty = message("o_int32", 5), message("o_int32", b"\6\7"), message("o_int32", b"")
    for data, count, value in ((run, 1, -7), (run + run, 1, -7), (run + one, 1, 5), (empty, 0, -7), (one + one, 1, 5)):
        assert decoded("o_int32", data) == ([count], [[value]])
    assert decoded("o_float", message("o_float", struct.pack("<f", 1))) == ([1], [[np.inf]])
    for data in (one + run, one + empty):
        with pytest.raises(RunError, match=r"o_int32.* has a value and then a packed run"):
            decoded("o_int32", data)


@pytest.mark.parametrize(
    ("said", "name", "data", "attrs"),
    [
        ("Unknown field: zz", "zz", b"", {"types": ("int32",)}),
        ("Unexpected output type for p.M.o_uint32: int64", "o_uint32", b"", {"types": ("int64",)}),
        ("No descriptor found for message type p.Z", "o_int32", b"", {"message_type": b"p.Z"}),
        ("lies in another file", "o_int32", b"", {"descriptor_source": b"local://"}),
        (
            "the descriptors of message type 'p.M' are damaged",
            "o_int32",
            b"",
            {"descriptor_source": b"bytes://\xff\xff"},
        ),
        ("a message is damaged", "o_int32", b"\xff\xff", {}),
        ("a message is damaged", "r_double", b"\x12\x01\0", {}),
        ("in the format 'text' are not read", "o_int32", b"", {"message_format": b"text"}),
    ],
)
def test_what_cannot_be_decoded_is_refused(said: str, name: str, data: bytes, attrs: dict[str, Any]) -> None:
    with pytest.raises(RunError, match=said):
        evaluate(node(name, **attrs), [texts(data)])


def test_messages_deep_in_each_other_are_refused() -> None:
    inner = bytes_field(1, "a")
    for _ in range(2000):
        inner = bytes_field(1, "a") + bytes_field(3, inner)
    source = b"bytes://" + bytes_field(1, bytes_field(4, inner))
    with pytest.raises(RunError, match="deep in each other"):
        evaluate(node("o_int32", descriptor_source=source), [texts(b"")])


def test_no_messages_are_refused() -> None:
    with pytest.raises(RunError, match="at least one"):
        evaluate(node("o_int32"), [texts()])
