"""Values of one element in the typed lists of TensorProto."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.formats import from_bytes, to_bytes
from pocketgraph.formats.attr_value import encode_attr
from pocketgraph.formats.typed_list import in_typed_list
from pocketgraph.graph import DType, Graph, Tensor, const

VALUES = [
    ("float", -1.5), ("double", 1e300), ("int32", -7), ("int8", -128), ("uint8", 255), ("int64", -(1 << 62)),
    ("uint64", (1 << 64) - 1), ("bool", True), ("half", 0.1), ("bfloat16", 3.0), ("quint8", 200), ("qint32", -5),
    ("complex64", 1 - 2j), ("complex128", 3 + 4j),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), VALUES)
@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_a_value_is_read_back(name: str, value: complex, shape: tuple[int, ...]) -> None:
    dtype = DType.named(name)
    tensor = Tensor.from_numpy(np.full(shape, np.asarray(value).astype(dtype.numpy), dtype.numpy), dtype)
    listed = in_typed_list(tensor)
    assert listed.same_values(tensor)
    read = from_bytes(to_bytes(Graph([const("c", listed)])))["c"].tensor
    assert read.same_values(tensor)
    assert b"".join(encode_attr(listed)) != b"".join(encode_attr(tensor))


def test_the_bytes_are_tensorflows() -> None:
    one = in_typed_list(Tensor.from_numpy(np.float32(1)))
    assert b"".join(encode_attr(one)) == bytes.fromhex("420a080112002a040000803f")


@pytest.mark.parametrize("value", [np.zeros(2, np.float32), np.zeros(0, np.float32), np.array(b"text", object)])
def test_other_tensors_stay_as_they_are(value: np.ndarray) -> None:
    tensor = Tensor.from_numpy(value)
    assert in_typed_list(tensor) is tensor
