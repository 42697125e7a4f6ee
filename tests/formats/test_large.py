"""A GraphDef larger than 2 GB, most of it a hole in the file: loaded, changed and saved without its size in memory."""

from __future__ import annotations

import os
import pathlib
import resource

import numpy as np
import pytest

from pocketgraph import formats, summarize, transform
from pocketgraph.formats import graphdef
from pocketgraph.formats.attr_value import encode_attr_map
from pocketgraph.formats.tensor_proto import shape_bytes
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.protobuf import wire

SIDE = 23_171  # elements; so many times as many floats are just over 2 GiB
FLOAT = DType.named("float")
MOST_MEMORY = 400 << 10  # KiB


@pytest.mark.slow
def test_a_graph_of_more_than_2_gb(tmp_path: pathlib.Path) -> None:
    if os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize < 3 << 30:
        pytest.skip("needs 3 GB of disk")
    nbytes = SIDE * SIDE * 4
    head = wire.number_field(1, 1) + wire.bytes_field(2, shape_bytes((SIDE, SIDE))) + wire.header(4, nbytes)
    value = wire.header(8, len(head) + nbytes) + head
    entry = wire.bytes_field(1, "value") + wire.header(2, len(value) + nbytes) + value
    dtype = b"".join(bytes(piece) for piece in encode_attr_map(5, {"dtype": FLOAT}))
    node = wire.bytes_field(1, "w") + wire.bytes_field(2, "Const") + dtype + wire.header(5, len(entry) + nbytes) + entry
    rest = [
        Node("x", "Placeholder", attrs={"dtype": FLOAT, "shape": Shape((1, SIDE))}),
        const("spare", np.float32(1)),
        Node("y", "MatMul", ["x", "w"], {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
    ]
    path = tmp_path / "large.pb"
    with open(path, "wb") as file:
        for piece in graphdef.chunks(Graph(rest)):
            file.write(piece)
        file.write(wire.header(1, len(node) + nbytes) + node)
        file.seek(nbytes - 4, os.SEEK_CUR)
        file.write(np.float32(7).tobytes())

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = formats.load(path)
    assert path.stat().st_size > 2 << 30
    assert summarize(graph).const_parameters == SIDE * SIDE + 1
    assert graph["w"].tensor.numpy()[-1, -2:].tolist() == [0, 7]
    small = transform(graph, "strip_unused_nodes rename_node(old_node_name=w, new_node_name=weights)", ["x"], ["y"])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY

    path.unlink()  # the mapping keeps it; the copy needs its place
    formats.save(small, tmp_path / "copy.pb")
    del graph, small
    again = formats.load(tmp_path / "copy.pb")
    assert sorted(again.nodes) == ["weights", "x", "y"]
    assert (tmp_path / "copy.pb").stat().st_size > 2 << 30
    assert again["weights"].tensor.numpy()[-1, -2:].tolist() == [0, 7]
