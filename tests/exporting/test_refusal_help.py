"""What an export that is refused tells to type next works when it is typed."""

from __future__ import annotations

import pathlib

import pytest

import pocketgraph
from command_line import call
from pocketgraph import save
from pocketgraph.exporting.opening import opened
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.refusal_help import help_with_refusal
from pocketgraph.exporting.target_support import support
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.emitter import EMPTY

NET = """
    x = Placeholder(dtype=float, shape=[2, 2])
    w = Const(float [[1.0, 2.0], [0.5, 1.0]])
    v = Const(float [[1.0, 2.0], [3.0, 1.0]])
    first = MatMul(x, w, T=float)
    odd = Digamma(first, T=float)
    last = MatMul(odd, v, T=float)
    side = Tanh(first, T=float)
    y = AddV2(last, side, T=float)
"""


def hint_of(graph: Graph, path: pathlib.Path, **options: object) -> str:
    with pytest.raises(LackingError) as caught:
        pocketgraph.export(graph, path, **options)  # type: ignore[arg-type]
    return caught.value.hint


def test_a_model_is_cut_before_or_behind_what_a_target_lacks(tmp_path: pathlib.Path) -> None:
    graph = parse(NET)
    ways = "outputs=first,side exports what is before that; or inputs=x,odd exports what is behind that, fed by the app"
    for form in ("tflite", "onnx"):
        assert hint_of(graph, tmp_path / f"net.{form}") == ways
        for options in ({"outputs": ["first", "side"]}, {"inputs": ["x", "odd"]}):
            assert pocketgraph.export(graph, tmp_path / f"net.{form}", force=True, **options).checks[0].passed


def test_there_is_nothing_to_cut_off_in_front_of_a_first_node_nor_behind_the_last(tmp_path: pathlib.Path) -> None:
    front = parse("x = Placeholder(dtype=float, shape=[2])\na = Digamma(x, T=float)\ny = Tanh(a, T=float)")
    assert hint_of(front, tmp_path / "a.tflite") == "inputs=a exports what is behind that, fed by the app"
    end = parse("x = Placeholder(dtype=float, shape=[2])\na = Tanh(x, T=float)\ny = Digamma(a, T=float)")
    assert hint_of(end, tmp_path / "a.tflite") == "outputs=a exports what is before that"
    whole = parse("x = Placeholder(dtype=float, shape=[2])\na = Digamma(x, T=float)\ny = Identity(a, T=float)")
    assert hint_of(whole, tmp_path / "a.tflite") == ""


def test_the_part_without_the_models_layers_is_not_offered(tmp_path: pathlib.Path) -> None:
    scaled = NET.replace("MatMul(x, w, T=float)", "Mul(x, w, T=float)")
    assert "outputs=" not in hint_of(parse(scaled), tmp_path / "net.tflite")


def test_another_target_is_named_where_it_has_all_the_ops(tmp_path: pathlib.Path) -> None:
    graph = parse(NET.replace("Digamma(first", "Betainc(first, first, first"))
    assert ".onnx" not in hint_of(graph, tmp_path / "net.tflite")
    graph = parse(NET.replace("Digamma", "MatrixDeterminant").replace("MatMul(odd", "Mul(odd"))
    said = hint_of(graph, tmp_path / "net.tflite")
    assert said.endswith("check with target=onnx tells whether an .onnx file can hold it")
    assert pocketgraph.export(graph, tmp_path / "net.onnx").checks[0].passed


def test_check_says_it_once_with_flags(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = parse(NET.replace("side = Tanh", "side = Lgamma"))
    save(graph, tmp_path / "net.pb")
    assert call("check", tmp_path / "net.pb", "--target=tflite,onnx") == 1
    said = capsys.readouterr().out
    assert said.count("\n  --outputs=first exports what is before that; or --inputs=odd,side exports") == 2
    assert said.count("exports what is before") == 2
    found = support(graph, "tflite")
    assert found.hint.startswith("outputs=first ")
    assert {obstacle.hint for obstacle in found.obstacles} == {""}


def test_a_node_with_help_of_its_own_gets_no_other() -> None:
    graph = parse(NET.replace("Digamma(first, T=float)", 'PyFunc(first, Tin=[float], Tout=[float], token="f")'))
    found = support(graph, "onnx")
    assert [obstacle.hint.endswith("inputs=odd") for obstacle in found.obstacles] == [True]
    assert found.hint == ""


def test_an_output_without_a_shape_is_not_blamed_for_what_it_is_computed_from(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 4])
        pairs = SelfAdjointEigV2(x, T=float, compute_v=true)
        parts = Svd(pairs, T=float)
        y = Identity(parts:1, T=float)
    """)
    with pytest.raises(LackingError) as caught:
        pocketgraph.export(graph, tmp_path / "net.onnx")
    assert caught.value.reasons.keys() == {"pairs", "parts"}


def test_sizes_are_asked_for_where_made_up_ones_leave_nothing() -> None:
    """As of pairs of neighbours, of which one step has none."""
    model = opened(parse("x = Placeholder(dtype=float, shape=[?,?,3])\ny = Relu(x, T=float)"))
    asked = 'say how large its inputs are: shapes={"x": (N, N, 3)}, with numbers for N'
    assert help_with_refusal(model, "tflite", {"y": f"{EMPTY}, here [1, 0, 3]"}) == asked
    assert help_with_refusal(model, "tflite", {"y": "LiteRT has nothing for it"}) != asked


def test_a_number_that_decides_a_size_is_told_as_what_to_set() -> None:
    model = opened(parse("""
        x = Placeholder(dtype=float, shape=[1, 8, 8, 3])
        factor = Placeholder(dtype=float, shape=[])
        side = Const(float [8.0, 8.0])
        sides = Mul(side, factor, T=float)
        size = Cast(sides, SrcT=float, DstT=int32)
        y = ResizeBilinear(x, size, T=float)
    """))  # fmt: skip
    said = help_with_refusal(model, "tflite", {"y": "the new size must be known beforehand, not computed"})
    assert said.startswith("values=factor=1, or")
    said = help_with_refusal(model, "tflite", {"y": "the size must be known beforehand: values=factor=2"})
    assert "values=" not in said
    open_batch = parse("""
        x = Placeholder(dtype=float, shape=[1, 8, 8, 3])
        size = Placeholder(dtype=int32, shape=[?])
        y = ResizeBilinear(x, size, T=float)
    """)
    said = help_with_refusal(opened(open_batch), "tflite", {"y": "the new size must be known beforehand"})
    assert "values=" not in said


def test_check_takes_sizes_as_export_does(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = parse("""
        steps = Placeholder(dtype=float, shape=[?,?,3])
        state = Placeholder(dtype=float, shape=[1,?,4])
        axis = Const(int32 2)
        both = ConcatV2(steps, state, axis, T=float, Tidx=int32, N=2)
        y = Relu(both, T=float)
    """)
    save(graph, "net.pb")
    for steps, code in ((5, 0), (6, 2)):
        sizes = (f"--input_shape=steps:1,{steps},3", "--input_shape=state:1,5,4")
        assert call("check", "net.pb", *sizes) == code
        assert call("export", "net.pb", "-o", f"net{steps}.tflite", *sizes) == code
