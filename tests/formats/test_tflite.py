"""LiteRT files as graphs: those of TensorFlow's converter, damaged ones, and what a session makes of them."""

from __future__ import annotations

import pathlib
import shutil
import struct
from typing import Any

import numpy as np
import pytest

import pocketgraph
from graph_files import graph_file
from pocketgraph.errors import FormatError, PocketgraphError, RunError
from pocketgraph.formats import tflite
from pocketgraph.formats.flatbuffers import Table
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.model_file_graph import coded, numbers
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.runtime import Session
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "tflite"


def arrays(name: str) -> dict[str, Any]:
    with np.load(FIXTURES / f"{name}.npz") as data:
        return {key: data[key] for key in data.files}


def test_the_graph_of_a_file() -> None:
    graph = pocketgraph.load(FIXTURES / "pictures.tflite")
    assert graph.inputs == ("x:0",)
    assert graph.outputs == ("y:0",)
    assert graph["x"].shape().dims == (None, 16, 16, 3)
    assert graph["y"].op == "tfl.softmax"
    kernel = next(node for node in graph if node.op == "Const" and node.tensor.shape == (8, 3, 3, 3))
    assert kernel.tensor.numpy().dtype == np.float32
    facts = pocketgraph.summarize(graph)
    assert dict(facts.op_counts)["tfl.depthwise_conv_2d"] == 1


def test_what_a_loop_hands_to_its_body_is_no_input_of_the_model() -> None:
    facts = pocketgraph.summarize(ROOT / "tests" / "fixtures" / "loops" / "nested.tflite")
    assert [found.name for found in facts.inputs] == ["serving_default/x", "serving_default/n"]


@pytest.mark.parametrize("name", ["pictures", "numbers"])
def test_a_session_runs_it(name: str) -> None:
    given = arrays(name)
    with Session(FIXTURES / f"{name}.tflite", threads=1) as session:
        (found,) = session.run("y", {"x": given["x"]})
        np.testing.assert_allclose(found, given["y"], atol=1e-6 * np.abs(given["y"]).max())
        assert session.run_signature({"x": given["x"]}).keys() == {"y"}
        assert "LiteRT" in str(session.plan()) or "litert" in str(session.plan())


def test_a_file_is_said_to_have_the_signatures_that_it_has() -> None:
    both = str(pocketgraph.identify(FIXTURES / "two_ways.tflite"))
    assert "; best: features float[?,4] -> best int64[?], sum float[?]; scores: features float[?,4] -> " in both
    none = str(pocketgraph.identify(FIXTURES / "pictures.tflite"))
    assert "; no signature: x float[?,16,16,3] -> y float[?,5]; " in none
    assert "serving_default" not in both + none


def test_signatures_of_others() -> None:
    given = arrays("two_ways")
    with Session(FIXTURES / "two_ways.tflite") as session:
        found = session.run_signature({"features": given["features"]}, "scores")
        np.testing.assert_allclose(found["scores"], given["scores"], rtol=1e-5)
        found = session.run_signature({"features": given["features"]}, "best")
        np.testing.assert_array_equal(found["best"], given["best"])
        np.testing.assert_allclose(found["sum"], given["sum"], rtol=1e-5)
        with pytest.raises(RunError, match="did you mean 'scores'"):
            session.run_signature({"features": given["features"]}, "score")


def test_signatures_share_the_variables_of_their_file(tmp_path: pathlib.Path) -> None:
    """Whatever is fetched, and from a file as from a graph; other sessions have variables of their own."""
    graph, wanted = pocketgraph.load(FIXTURES / "counting.tflite"), np.load(FIXTURES / "counting.npz")
    shutil.copy(FIXTURES / "counting.tflite", tmp_path / "net.tflite")
    with Session(graph) as session, Session(tmp_path / "net.tflite") as other:
        for at, key in enumerate(wanted["calls"]):
            signature = graph.signatures[str(key)]
            names = list(signature.outputs)[:: 1 - 2 * (at % 2)][: 1 + at % 3]
            for each in (session, other):
                feeds = {name: np.array([1, 2, 3], np.float32) for name in signature.inputs.values()}
                found = each.run([signature.outputs[name] for name in names], feeds)
                for name, array in zip(names, found, strict=True):
                    np.testing.assert_array_equal(array, wanted[f"{at}/{name}"])


def test_codes_go_in_and_come_out() -> None:
    given = arrays("coded")
    graph = pocketgraph.load(FIXTURES / "coded.tflite")
    (fed,), (made,) = graph.inputs, graph.outputs
    codes = coded(graph, fed, given["x"])
    assert codes.dtype == np.int8
    with Session(FIXTURES / "coded.tflite") as session:
        (found,) = session.run([made], {fed: codes})
    assert found.dtype == np.int8
    np.testing.assert_allclose(numbers(graph, made, found), given["y"], atol=0.05)
    np.testing.assert_allclose(numbers(graph, fed, codes), given["x"], atol=0.03)


def test_a_file_runs_as_a_whole() -> None:
    given = arrays("pictures")
    with Session(FIXTURES / "pictures.tflite") as session:
        inside = next(node.name for node in session.graph if node.op == "tfl.mean")
        with pytest.raises(RunError, match=f"'{inside}:0' is no output of it; its outputs: y:0"):
            session.run(inside, {"x": given["x"]})
        with pytest.raises(RunError, match="must feed a value for placeholder tensor 'x'"):
            session.run("y", {})
        with pytest.raises(RunError, match=r"which has shape \(\?, 16, 16, 3\)"):
            session.run("y", {"x": given["x"][:, :8]})
    with (
        pytest.raises(RunError, match="not on the reference engine"),
        Session(FIXTURES / "pictures.tflite", engine="reference") as session,
    ):
        session.run("y", {"x": given["x"]})


def test_damage_is_an_error_and_nothing_else() -> None:
    """A file that is cut or has any one byte changed is read, or refused, before any native code sees it."""
    whole = (FIXTURES / "two_ways.tflite").read_bytes()
    for length in range(8, len(whole), 7):
        with pytest.raises(PocketgraphError):
            tflite.parse(whole[:length])
    rng = np.random.default_rng(3)
    refused = 0
    for place in range(8, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        try:
            tflite.parse(bytes(changed))
            tflite.facts(bytes(changed))
        except FormatError:
            refused += 1
    assert refused > 50


def test_an_operator_of_a_negative_number_is_none_that_is_known() -> None:
    whole = (FIXTURES / "pictures.tflite").read_bytes()
    code = Table.root(whole).tables(1)[0]
    changed = bytearray(whole)
    struct.pack_into("<b", changed, code.place(0), -3)
    struct.pack_into("<i", changed, code.place(3), -500)
    assert any(node.op == "tfl.operator_-3" for node in tflite.parse(bytes(changed)))


def test_it_is_saved_as_it_was(tmp_path: pathlib.Path) -> None:
    graph = pocketgraph.load(FIXTURES / "coded.tflite")
    pocketgraph.save(graph, tmp_path / "copy.tflite")
    assert (tmp_path / "copy.tflite").read_bytes() == (FIXTURES / "coded.tflite").read_bytes()
    for name, form in (("copy.pb", ""), ("copy.pbtxt", ""), ("copy.tflite", "graphdef")):
        with pytest.raises(FormatError, match="no GraphDef form; give the graph that it was made from"):
            pocketgraph.save(graph, tmp_path / name, form=form)


def test_verify_finds_tensors_by_their_public_names() -> None:
    net = graph_file(FIXTURES, "pictures")
    assert pocketgraph.verify(net, FIXTURES / "pictures.tflite").passed
    assert pocketgraph.verify(net, FIXTURES / "coded.tflite", tolerance=0.4, runs=2).passed


def test_outputs_keep_their_names_where_others_are_called_the_same() -> None:
    """As the codes of an output in front of what makes floats of them."""
    x, codes, y = (Value(name, FLOAT, (4,)) for name in ("x", "other", "boxes"))
    program = Program([x], [y], [Operation("ABS", [x], [codes]), Operation("NEG", [codes], [y])])
    graph = tflite.parse(model_bytes(program).replace(b"other", b"boxes"))
    assert graph.outputs == ("boxes:0",)
    assert graph["boxes"].op == "tfl.neg"
    assert [node.op for node in graph] == ["Placeholder", "tfl.abs", "tfl.neg"]
    with Session(graph) as session:
        np.testing.assert_array_equal(session.run("boxes", {"x": np.float32([1, -2, 3, -4])})[0], [-1, -2, -3, -4])


def test_a_session_verifies_before_native_code_sees_the_file(tmp_path: pathlib.Path) -> None:
    """An operator that reads a tensor which nothing makes: the graph can be looked at, and is not run."""
    whole = bytearray((FIXTURES / "pictures.tflite").read_bytes())
    table = Table.root(bytes(whole)).tables(2)[0].tables(3)[-1]
    start = table.reader.target(table.place(1))  # the inputs of the last operator
    whole[start + 4 : start + 8] = (0x7FFF).to_bytes(4, "little")
    (tmp_path / "x.tflite").write_bytes(whole)
    with pytest.raises(FormatError, match="there is no tensor 32767"):
        pocketgraph.load(tmp_path / "x.tflite")
    outputs = table.reader.target(table.place(2))
    whole[start + 4 : start + 8] = whole[outputs + 4 : outputs + 8]  # it reads what it makes
    (tmp_path / "x.tflite").write_bytes(whole)
    session = Session(tmp_path / "x.tflite")
    with pytest.raises(FormatError, match="it is damaged"):
        session.run(session.graph.outputs[0], {"x": np.zeros((1, 16, 16, 3), np.float32)})


def test_times_by_operator() -> None:
    """The operators' times are those of one run; where LiteRT does not tell them apart there is one entry."""
    x = arrays("pictures")["x"][:1]
    with Session(FIXTURES / "pictures.tflite", threads=1) as session:
        trace = session.profile("y", {"x": x})
    operators = [node.name for node in session.graph if node.op.startswith("tfl.")]
    assert [timing.name for timing in trace.nodes] in (operators, ["y"])
    assert sum(timing.duration_us for timing in trace.nodes) == pytest.approx(trace.total_us, rel=1e-3)
    assert trace.notes


@pytest.mark.parametrize("name", ["pictures", "numbers"])
def test_open_sizes_become_those_that_the_file_stores(name: str) -> None:
    content = (ROOT / "tests" / "fixtures" / "tflite" / f"{name}.tflite").read_bytes()
    fixed = tflite.with_fixed_sizes(content)
    assert len(fixed) == len(content)
    shapes = [item.shape for item in tflite.facts(fixed).signatures["serving_default"][0].values()]
    assert all(size > 0 for shape in shapes for size in shape)
    with pytest.raises(FormatError):
        tflite.with_fixed_sizes(content[: len(content) // 2])
