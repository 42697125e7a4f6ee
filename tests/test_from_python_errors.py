"""Calls from Python that are easily made wrongly: one clear error each, and one line for what comes back."""

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph.apps.picture_model import find_output
from pocketgraph.datasets.named_arrays import arrays_of
from pocketgraph.errors import FormatError, RunError, UsageError
from pocketgraph.graph import Signature
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.runtime.feeding.feed_files import read_feeds

NET = """
    x = Placeholder(dtype=float, shape=[?,2])
    w = Const(float [[1.0, 2.0], [3.0, 4.0]])
    l = MatMul(x, w, T=float)
    y = Softmax(l, T=float)
"""


def test_a_signature_and_its_inputs_that_changed_places_are_told() -> None:
    signatures = {"serving_default": Signature({"a": "x:0"}, {"b": "y:0"})}
    with pocketgraph.Session(parse(NET).replace(signatures=signatures)) as session:
        with pytest.raises(RunError, match=r"call run_signature\(inputs, signature\)"):
            session.run_signature("serving_default", {"a": np.zeros((1, 2))})  # type: ignore[arg-type]
        found = session.run_signature({"a": np.zeros((1, 2), np.float32)}, "serving_default")
    np.testing.assert_array_equal(found["b"], [[0.5, 0.5]])


def test_samples_may_be_lists_of_numbers_and_nothing_else() -> None:
    assert arrays_of([[1.0, 2.0], [3.0, 4.0]])[""].shape == (2, 2)  # type: ignore[arg-type]
    for wrong in (3.0, ["a", "b"], [[1.0], [2.0, 3.0]], None):
        with pytest.raises(UsageError, match="samples along its first axis"):
            arrays_of(wrong)  # type: ignore[arg-type]


def test_what_comes_back_is_one_line_of_figures() -> None:
    graph = parse(NET)
    assert repr(pocketgraph.summarize(graph)) == "<Summary of 4 nodes, 4 parameters: x -> y>"
    assert repr(pocketgraph.view(graph)).startswith("<ViewPage: ")


def test_a_key_that_names_no_tensor_is_answered_with_the_inputs(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "a.npz", something=np.zeros((1, 2)))
    with pytest.raises(UsageError, match="names no tensor of the model; its inputs are x"):
        read_feeds(tmp_path / "a.npz", parse(NET))


def test_the_output_that_a_signature_states_is_taken() -> None:
    """A Keras SavedModel has many ends: the reads of its optimizer's variables."""
    graph = parse(
        NET + "left = VarHandleOp(dtype=float, shape=[])\nread = ReadVariableOp(left, dtype=float)\n"
        "other = Relu(l, T=float)"
    )
    with pytest.raises(UsageError, match="may be the output"):
        find_output(parse(NET.replace("Softmax", "Elu") + "other = Relu(l, T=float)\nthird = Selu(l, T=float)"))
    signatures = {"serving_default": Signature({"a": "x:0"}, {"b": "y:0"})}
    assert find_output(graph.replace(signatures=signatures)) == "y"


DOORS = {
    "benchmark": [], "evaluate": [np.zeros((1, 2))], "export": ["x.tflite"], "freeze": [], "identify": [],
    "label_image": ["x.png"], "plan": [], "ship": ["x"], "verify": ["x"],
}  # fmt: skip


@pytest.mark.parametrize("wrong", [None, 5, b"x", {"a": 1}, np.float32(3)])
@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_model_is_said_at_every_door(door: str, wrong: object) -> None:
    with pytest.raises(UsageError, match=f"named by its path, not by {type(wrong).__name__}"):
        getattr(pocketgraph, door)(wrong, *DOORS[door])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transform", ["fold_constants", "x", "y"]), ("summarize", []), ("save", ["x.pb"]), ("gradients", ["y", "x"]),
        ("minimize", ["loss"]), ("trainable", []), ("add_loss", ["y"]), ("add_regularization", ["loss"]),
        ("add_signatures", ["y"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wrong", [5, None, b"x"])
def test_what_is_no_graph_is_said(name: str, arguments: list[str], wrong: object) -> None:
    message = f"{name} takes a Graph, not {type(wrong).__name__}; pocketgraph.load\\(path\\) gives one"
    with pytest.raises(UsageError, match=message):
        getattr(pocketgraph, name)(wrong, *arguments)


def test_graphs_are_given_by_their_paths_as_well(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        v = VariableV2(dtype=float, shape=[2], container="", shared_name="")
        one = Const(float [1, 1])
        first = Assign(v, one, T=float)
        same = Identity(v, T=float)
        y = Mul(x, same, T=float)
        axis = Const(int32 0)
        loss = Sum(y, axis, T=float, Tidx=int32)
    """)
    path = tmp_path / "net.pb"
    pocketgraph.save(graph, path)
    whole = pocketgraph.load(path)
    assert pocketgraph.summarize(path).op_counts == pocketgraph.summarize(graph).op_counts
    calls: dict[str, Any] = {
        "transform": ["remove_nodes(op=Identity)", "x", "loss"], "gradients": ["loss", "x"], "minimize": ["loss"],
        "trainable": [["one"]], "add_loss": ["y", "mean_squared_error"],
    }  # fmt: skip
    for name, arguments in calls.items():
        made = [print_graph(getattr(pocketgraph, name)(given, *arguments)) for given in (whole, path, str(path))]
        assert made[0] == made[1] == made[2]
    with pytest.raises(FormatError):
        pocketgraph.gradients(tmp_path / "none.pb", "y", "x")


def test_where_to_write_is_a_path() -> None:
    graph = parse(PICTURE_NET)
    with pytest.raises(UsageError, match="what to write is named by its path, not by int"):
        pocketgraph.save(graph, 5)  # type: ignore[arg-type]
    quantized = pocketgraph.quantize(graph, {"x": np.ones((2, 4, 4, 3), np.float32)})
    with pytest.raises(UsageError, match="what to write is named by its path, not by NoneType"):
        quantized.save(None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a model is named by its path, not by Graph") as refused:
        pocketgraph.ship(graph, "out")  # type: ignore[arg-type]
    assert "pocketgraph.save" in refused.value.hint


def test_a_picture_that_is_none_is_said() -> None:
    with pytest.raises(UsageError, match="a picture is named by its path, not by int"):
        pocketgraph.label_image(parse(PICTURE_NET), 5)  # type: ignore[arg-type]


PICTURE_NET = """
    x = Placeholder(dtype=float, shape=[?,4,4,3])
    w = Const(float[3,2] 0.5)
    p = Const(int32[2] [1, 2])
    m = Mean(x, p, T=float, Tidx=int32)
    l = MatMul(m, w, T=float)
    y = Softmax(l, T=float)
"""
