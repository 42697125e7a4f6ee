"""Tensors of every type, stored in each of the ways that TensorProto allows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pocketgraph.errors import FormatError
from pocketgraph.formats.protos import message
from pocketgraph.formats.tensor_proto import StoredTensor, encode_tensor
from pocketgraph.graph import DType, Tensor
from pocketgraph.protobuf import wire


def stored(shape: tuple[int, ...], dtype: str, **fields: Any) -> Tensor:
    """The Tensor read from a TensorProto that the protobuf library made."""
    made = message("tensorflow.TensorProto")(dtype=DType.named(dtype).number, **fields)
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    encoded = b"pad" + made.SerializeToString()
    return StoredTensor(encoded, 3, len(encoded), "model.pb: node 'w'").tensor()


CASES: list[tuple[str, str, list[Any], Any]] = [
    ("float", "float_val", [1.5, -2.0], np.float32([1.5, -2.0])),
    ("double", "double_val", [1.5, -2.0], np.float64([1.5, -2.0])),
    ("int32", "int_val", [1, -2], np.int32([1, -2])),
    ("int16", "int_val", [1, -2], np.int16([1, -2])),
    ("int8", "int_val", [1, -2], np.int8([1, -2])),
    ("uint8", "int_val", [1, 255], np.uint8([1, 255])),
    ("uint16", "int_val", [1, 65535], np.uint16([1, 65535])),
    ("qint8", "int_val", [1, -2], np.int8([1, -2])),
    ("quint8", "int_val", [1, 255], np.uint8([1, 255])),
    ("qint16", "int_val", [1, -2], np.int16([1, -2])),
    ("quint16", "int_val", [1, 65535], np.uint16([1, 65535])),
    ("qint32", "int_val", [1, -2], np.int32([1, -2])),
    ("int64", "int64_val", [2**40, -1], np.int64([2**40, -1])),
    ("uint32", "uint32_val", [1, 2**32 - 1], np.uint32([1, 2**32 - 1])),
    ("uint64", "uint64_val", [1, 2**64 - 1], np.uint64([1, 2**64 - 1])),
    ("bool", "bool_val", [True, False], np.array([True, False])),
    ("half", "half_val", [0x3C00, 0xC000], np.float16([1.0, -2.0])),
    ("bfloat16", "half_val", [0x3F80, 0xC000], np.array([1.0, -2.0], ml_dtypes.bfloat16)),
    ("complex64", "scomplex_val", [1.0, 2.0, -3.0, 0.0], np.complex64([1 + 2j, -3])),
    ("complex128", "dcomplex_val", [1.0, 2.0, -3.0, 0.0], np.complex128([1 + 2j, -3])),
    ("string", "string_val", [b"ab", b"\xff\0"], np.array([b"ab", b"\xff\0"], object)),
]


@pytest.mark.parametrize(("dtype", "field", "values", "expected"), CASES, ids=[case[0] for case in CASES])
def test_typed_lists(dtype: str, field: str, values: list[Any], expected: Any) -> None:
    tensor = stored((2,), dtype, **{field: values})
    assert tensor.dtype is DType.named(dtype)
    assert tensor.numpy().dtype == expected.dtype
    np.testing.assert_array_equal(tensor.numpy(), expected)
    assert not tensor.numpy().flags.writeable


@pytest.mark.parametrize(("dtype", "field", "values", "expected"), CASES, ids=[case[0] for case in CASES])
def test_the_last_value_repeats(dtype: str, field: str, values: list[Any], expected: Any) -> None:
    tensor = stored((2, 3), dtype, **{field: values})
    full = np.array([expected[0], *[expected[1]] * 5], expected.dtype).reshape(2, 3)
    np.testing.assert_array_equal(tensor.numpy(), full)


@pytest.mark.parametrize("dtype", [case[0] for case in CASES])
def test_no_values_at_all_are_zeros(dtype: str) -> None:
    values = stored((3,), dtype).numpy()
    np.testing.assert_array_equal(values, [b""] * 3 if dtype == "string" else [0] * 3)


@pytest.mark.parametrize(("dtype", "field", "values", "expected"), CASES, ids=[case[0] for case in CASES])
def test_content_and_what_we_write(dtype: str, field: str, values: list[Any], expected: Any) -> None:
    ours = b"".join(encode_tensor(Tensor.from_numpy(expected, DType.named(dtype))))
    made = message("tensorflow.TensorProto").FromString(ours)
    assert made.dtype == DType.named(dtype).number
    assert [dim.size for dim in made.tensor_shape.dim] == [2]
    if dtype == "string":
        assert list(made.string_val) == expected.tolist()
    else:
        assert made.tensor_content == expected.tobytes()
    again = StoredTensor(ours, 0, len(ours), "").tensor()
    np.testing.assert_array_equal(again.numpy(), expected)


def test_content_is_a_view_of_the_file() -> None:
    values = np.arange(1000, dtype=np.float32)
    made = message("tensorflow.TensorProto")(dtype=1, tensor_content=values.tobytes())
    made.tensor_shape.dim.add(size=1000)
    encoded = made.SerializeToString()
    read = StoredTensor(encoded, 0, len(encoded), "").tensor().numpy()
    start = np.frombuffer(encoded, np.uint8).__array_interface__["data"][0]
    assert start < read.__array_interface__["data"][0] < start + len(encoded)


def test_unpacked_and_packed_values_of_one_list_are_read_in_order() -> None:
    packed = np.float32([2, 3]).tobytes()
    floats = b"\x2d" + np.float32(1).tobytes() + wire.bytes_field(5, packed) + b"\x2d" + np.float32(4).tobytes()
    encoded = b"\x08\x01" + wire.bytes_field(2, wire.bytes_field(2, b"\x08\x04")) + floats
    np.testing.assert_array_equal(StoredTensor(encoded, 0, len(encoded), "").read(), [1, 2, 3, 4])
    numbers = wire.number_field(7, -7) + wire.bytes_field(7, wire.varint(-8) + b"\x09") + wire.number_field(7, 10)
    encoded = b"\x08\x03" + wire.bytes_field(2, wire.bytes_field(2, b"\x08\x04")) + numbers
    np.testing.assert_array_equal(StoredTensor(encoded, 0, len(encoded), "").read(), [-7, -8, 9, 10])


def test_strings_in_content() -> None:
    tensor = stored((2,), "string", tensor_content=b"\x02\x01abc")
    assert tensor.numpy().tolist() == [b"ab", b"c"]


def test_a_bool_of_any_other_byte_is_true() -> None:
    assert stored((3,), "bool", tensor_content=b"\0\1\7").numpy().tolist() == [False, True, True]


def test_surplus_values_are_dropped() -> None:
    assert stored((2,), "int32", int_val=[1, 2, 3]).numpy().tolist() == [1, 2]


def test_scalars_and_empty_tensors() -> None:
    assert stored((), "float", float_val=[2.5]).numpy().shape == ()
    assert stored((0, 7), "float").numpy().shape == (0, 7)
    assert stored((0,), "string").numpy().shape == (0,)


@pytest.mark.parametrize(
    ("tensor", "what"),
    [
        (lambda: stored((3,), "float", tensor_content=b"\0" * 8), "needs 12 bytes, but 8"),
        (lambda: stored((1,), "float", tensor_content=b"\0" * 8), "needs 4 bytes, but 8"),
        (lambda: stored((10**6, 10**6), "float", float_val=[1.0]), "1,000,000,000,000 elements"),
        (lambda: stored((2**62, 2**62), "string"), "limit"),
        (lambda: stored((0, 2**63 - 1), "float"), "no tensor can have the shape"),
        (lambda: stored((2**40,), "string", tensor_content=b"\1a"), "strings"),
        (lambda: stored((2,), "string", tensor_content=b"\1\1a"), "strings"),
        (lambda: stored((2,), "string", tensor_content=b"\1\xff"), "cut off"),
        (lambda: stored((), "resource"), "no values"),
        (lambda: stored((), "INVALID"), "no values"),
    ],
)
def test_tensors_that_lie(tensor: Any, what: str) -> None:
    lying = tensor()  # is made without complaint, and without its memory
    with pytest.raises(FormatError, match=what) as caught:
        lying.numpy()
    assert str(caught.value).startswith("model.pb: node 'w': ")


def test_an_untouched_tensor_is_written_as_it_was_read() -> None:
    made = message("tensorflow.TensorProto")(dtype=3, int_val=[7], version_number=3)
    made.tensor_shape.dim.add(size=5, name="named")
    encoded = made.SerializeToString() + b"\xfa\x3e\x02hi"  # and a field that nobody knows
    tensor = StoredTensor(encoded, 0, len(encoded), "").tensor()
    assert b"".join(encode_tensor(tensor)) == encoded
