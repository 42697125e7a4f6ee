"""Graphs that stand for files of LiteRT and ONNX."""

import pytest

from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.dtype import FLOAT, RESOURCE
from pocketgraph.graph.entry_points import likely_outputs
from pocketgraph.graph.model_file_graph import LITERT, ONNX, SHAPES, TYPES, refuse_finished
from pocketgraph.graph.node import Node
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.planning.model_file_plan import share_of


@pytest.mark.parametrize(("form", "is_told"), [(ONNX, True), (LITERT, False)])
def test_a_file_of_another_framework_is_told_how_it_becomes_a_graph(form: bytes, is_told: bool) -> None:
    with pytest.raises(UsageError, match="is finished already; ship starts from the graph") as caught:
        refuse_finished(Graph([], extra=b"\0" * 4 + form), "ship")
    assert ("onnx2tf -i MODEL.onnx -o saved_model" in str(caught.value)) is is_told


def test_a_handle_of_a_variable_has_a_share_of_a_run_and_no_bytes() -> None:
    node = Node("state", "tfl.split", (), {TYPES: (RESOURCE, FLOAT), SHAPES: (Shape(()), Shape((2, 3)))})
    share = share_of(node, 0.5)
    assert (share.part, share.output_bytes, share.outputs) == (0.5, 24, (("float32", (2, 3)),))


@pytest.mark.parametrize(("extra", "found"), [(b"\0" * 4 + LITERT, ["y"]), (b"", ["y", "z"])])
def test_what_a_file_gives_is_what_it_states(extra: bytes, found: list[str]) -> None:
    """Such a file runs as a whole, and what its variables are set to is no output."""
    nodes = parse("x = Placeholder(dtype=float, shape=[2])\ny = Relu(x, T=float)\nz = Tanh(x, T=float)")
    assert [name for name, _ in likely_outputs(Graph([*nodes], outputs=("y",), extra=extra))] == found
