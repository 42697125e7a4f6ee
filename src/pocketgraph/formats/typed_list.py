"""Stores a value of one element as TensorFlow stores the ones that it computes: in the typed list of its TensorProto.

Source: SetAttrValue(const Tensor&) in tensorflow/core/framework/attr_value_util.cc. Programs that compare constants by
their bytes, as the Graph Transform Tool does, see the difference from ``tensor_content``.
"""

from __future__ import annotations

import sys

import numpy as np

from pocketgraph.formats.tensor_proto import ELEMENTS, LIST_OF, StoredTensor, shape_bytes
from pocketgraph.graph import Tensor
from pocketgraph.protobuf import wire


def in_typed_list(tensor: Tensor) -> Tensor:
    """The same tensor, so stored when it has one element of a numeric type; other tensors stay as they are."""
    field = LIST_OF.get(tensor.dtype.base.name)
    if field is None or tensor.size != 1 or tensor.encoded is not None:
        return tensor
    values = np.ascontiguousarray(tensor.numpy()).reshape(-1)
    kind, _ = ELEMENTS[field]
    if kind == wire.VARINT:
        bits = values.view(np.uint16) if tensor.dtype.base.name in ("half", "bfloat16") else values
        payload = wire.varint(int(bits[0]))
    else:
        payload = (values.byteswap() if sys.byteorder == "big" else values).tobytes()
    message = b"".join([
        wire.number_field(1, tensor.dtype.number),
        wire.bytes_field(2, shape_bytes(tensor.shape)),
        wire.bytes_field(field, payload),
    ])  # fmt: skip
    return StoredTensor(message, 0, len(message), "a folded constant").tensor()
