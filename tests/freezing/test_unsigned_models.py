"""SavedModels without signatures: their functions are called by name, and give what TensorFlow gives."""

import json
import pathlib

import numpy as np
import pytest
from click.testing import CliRunner

from pocketgraph import formats
from pocketgraph.cli.look.summarize import command
from pocketgraph.errors import FormatError
from pocketgraph.formats.callable_functions import with_callable_functions
from pocketgraph.freezing import freeze
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.entry_points import likely_outputs
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from support import assert_close

MODEL = pathlib.Path(__file__).parent.parent / "fixtures" / "unsigned_model"
RESULTS = json.loads((MODEL / "results.json").read_text())
VARIANTS = MODEL.parent / "unsigned_variants"


def test_functions_are_signatures_with_their_own_keys() -> None:
    """That of a table is left out: which node holds it stands nowhere."""
    graph = formats.load(MODEL)
    assert sorted(graph.public_signatures) == ["both", "serving_default"]
    assert dict(graph.signatures["serving_default"].inputs) == {"rows": "serving_default_rows:0"}
    assert set(graph.signatures["serving_default"].outputs) == {"sums", "inner"}
    assert set(graph.signatures["both"].inputs) == {"left", "right"}
    assert str(graph["serving_default_rows"].attr("shape")) == "[?,3]"
    assert graph.outputs == tuple(graph.signatures["serving_default"].outputs.values())


@pytest.mark.parametrize("key", ["serving_default", "both"])
def test_frozen_functions_give_what_tensorflow_gives(key: str) -> None:
    """The variables have one name in the module: their places in it tell which is which."""
    graph = freeze(MODEL, signature=key)
    rows = np.float32(RESULTS["rows"])
    values = {"rows": rows, "left": rows, "right": rows[0]}
    signature = graph.signatures[key]
    fed = {tensor: values[name] for name, tensor in signature.inputs.items()}
    got = Session(graph).run(list(signature.outputs.values()), fed)
    for name, value in zip(signature.outputs, got, strict=True):
        assert_close(value, np.float32(RESULTS[key][name]), 1e-6)


@pytest.mark.parametrize("key", ["serving_default", "predict", "predict_image", "added"])
def test_a_function_is_called_as_python_calls_it_without_optional_arguments(key: str) -> None:
    """It was traced for training first; the input of one function has the name of another."""
    results = json.loads((VARIANTS / "results.json").read_text())
    graph = freeze(VARIANTS, signature=key)
    values = {"rows": np.float32(results["rows"]), "image": np.float32(results["rows"])}
    values |= {"lists": np.int32([1, 2, 3]), "lists_1": np.int64([0, 2, 3])}
    signature = graph.signatures[key]
    fed = {tensor: values[name] for name, tensor in signature.inputs.items()}
    assert len(fed) == (3 if key == "added" else 1)
    got = Session(graph).run(list(signature.outputs.values()), fed)
    assert_close(got[0], np.float32(results[key]), 1e-6)


def test_inputs_of_several_tensors_have_no_shape_of_a_neighbour() -> None:
    graph = formats.load(VARIANTS)
    shapes = {name: str(graph[node_name(ref)].attr("shape")) for name, ref in graph.signatures["added"].inputs.items()}
    assert shapes == {"lists": "<unknown>", "lists_1": "<unknown>", "rows": "[2,3]"}


def test_commands_take_such_a_model() -> None:
    done = CliRunner().invoke(command, [str(MODEL)])
    assert done.exit_code == 0
    assert "serving_default_rows" in done.output


def test_a_model_whose_functions_cannot_be_called_has_no_outputs() -> None:
    """The reads of its variables are none."""
    stored = formats.load(MODEL)
    without = [node for node in stored if not node.name.startswith(("serving_default", "both"))]
    graph = Graph(without, functions=stored.functions)
    assert not likely_outputs(graph)


def test_damaged_objects_are_said() -> None:
    graph = parse("x = Placeholder(dtype=float)")
    assert with_callable_functions(graph, b"") is graph
    with pytest.raises(FormatError, match="the objects of the module are damaged"):
        with_callable_functions(graph, b"\x3a\x7f\x00")
