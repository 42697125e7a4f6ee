"""Stores values as TensorFlow stores the ones that it computes: in the typed list of their TensorProto.

Source: SetAttrValue(const Tensor&) in tensorflow/core/framework/attr_value_util.cc. Programs that compare constants by
their bytes, as the Graph Transform Tool does, see the difference from ``tensor_content``.
"""

from __future__ import annotations

import sys

import numpy as np

from pocketgraph.formats.tensor_proto import ELEMENTS, LIST_OF, StoredTensor, encode_tensor, shape_bytes
from pocketgraph.graph import Tensor
from pocketgraph.protobuf import wire


def in_typed_list(tensor: Tensor) -> Tensor:
    """The same tensor, so stored when it has one element of a numeric type; other tensors stay as they are."""
    if tensor.dtype.base.name not in LIST_OF or tensor.size != 1 or tensor.encoded is not None:
        return tensor
    message = typed_list_message(tensor)
    return StoredTensor(message, 0, len(message), "a folded constant").tensor()


def typed_list_message(tensor: Tensor) -> bytes:
    """The TensorProto whose typed list holds the elements, however many; strings have no other."""
    field = LIST_OF.get(tensor.dtype.base.name)
    if field is None or not tensor.size:
        return wire.joined(encode_tensor(tensor))
    values = np.ascontiguousarray(tensor.numpy()).reshape(-1)
    kind, _ = ELEMENTS[field]
    if kind == wire.VARINT:
        bits = values.view(np.uint16) if tensor.dtype.base.name in ("half", "bfloat16") else values
        payload = b"".join(map(wire.varint, map(int, bits)))
    else:
        payload = (values.byteswap() if sys.byteorder == "big" else values).tobytes()
    return wire.joined([
        wire.number_field(1, tensor.dtype.number),
        wire.bytes_field(2, shape_bytes(tensor.shape)),
        wire.bytes_field(field, payload),
    ])  # fmt: skip
