"""Graphs that stand for files of LiteRT and ONNX."""

import pytest

from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.model_file_graph import LITERT, ONNX, refuse_finished


@pytest.mark.parametrize(("form", "is_told"), [(ONNX, True), (LITERT, False)])
def test_a_file_of_another_framework_is_told_how_it_becomes_a_graph(form: bytes, is_told: bool) -> None:
    with pytest.raises(UsageError, match="is finished already; ship starts from the graph") as caught:
        refuse_finished(Graph([], extra=b"\0" * 4 + form), "ship")
    assert ("onnx2tf -i MODEL.onnx -o saved_model" in str(caught.value)) is is_told
