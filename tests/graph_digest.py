"""The digest of a graph that tests/fixtures/make_for_inference.py makes in TensorFlow."""

import hashlib

import numpy as np

from pocketgraph.graph import Graph


def digest(graph: Graph, *, attributes: bool = True) -> list[object]:
    """Of every node in order: name, op, inputs, names of attributes, and a constant's type, shape and bytes."""
    whole = hashlib.sha256()
    for node in graph:
        line = [node.name, node.op, *node.inputs, *(sorted(node.attrs) if attributes else [])]
        if node.op == "Const":
            tensor = node.tensor
            line += [str(tensor.dtype.number), str(list(tensor.shape))]
            if tensor.dtype.name != "string":
                line.append(hashlib.sha256(np.ascontiguousarray(tensor.numpy()).tobytes()).hexdigest())
        whole.update("\n".join(line).encode() + b"\n\n")
    return [len(graph), whole.hexdigest()]
