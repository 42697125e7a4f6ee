"""The object graph inside TensorFlow 2's checkpoints: which variable lies under which key.

Source: tensorflow/core/protobuf/trackable_object_graph.proto (nodes = 1; attributes = 2; full_name = 2,
checkpoint_key = 3).
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketgraph.errors import FormatError
from pocketgraph.graph import Tensor
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, damage_told

KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


def keys_by_variable(checkpoint: Mapping[str, Tensor]) -> dict[str, str]:
    """The checkpoint key of each variable by the variable's own name; empty for checkpoints of TensorFlow 1.

    A name that several variables share is left out.

    Raises:
        FormatError: the object graph is damaged.
    """
    if KEY not in checkpoint:
        return {}
    tensor = checkpoint[KEY]
    if tensor.dtype.name != "string" or tensor.size != 1:
        raise FormatError(f"tensor '{KEY}' is not one string")
    data: bytes = tensor.numpy().item()
    with damage_told(f"tensor '{KEY}' is not an object graph"):
        found: dict[str, set[str]] = {}
        for _, number, kind, start, stop in wire.fields(data, 0, len(data)):
            if (number, kind) == (1, LEN):
                for name, key in _attributes(data, start, stop):
                    found.setdefault(name, set()).add(key)
    return {name: next(iter(keys)) for name, keys in found.items() if len(keys) == 1}


def _attributes(data: bytes, start: int, stop: int) -> list[tuple[str, str]]:
    """(full name, checkpoint key) of one node's attributes."""
    found = []
    for _, number, kind, value, end in wire.fields(data, start, stop):
        if (number, kind) == (2, LEN):
            texts = {n: wire.text(data, a, b) for _, n, k, a, b in wire.fields(data, value, end) if k == LEN}
            if 2 in texts and 3 in texts:
                found.append((texts[2], texts[3]))
    return found
