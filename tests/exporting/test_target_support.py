"""check: its answer is that of export, node by node."""

from __future__ import annotations

import json
import pathlib
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from command_line import call
from loop_text import counted_loop
from pocketgraph.apps.quantizing import quantize
from pocketgraph.cli.judge.check import show
from pocketgraph.errors import PocketgraphError, UsageError
from pocketgraph.exporting import export, export_verification, opened
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.target_support import DEVICES, Obstacle, Support, support, targets_of
from pocketgraph.exporting.targets import TARGETS
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.model_file import ModelFile
from pocketgraph.runtime import Session
from support import model_dir, needs_shared

FINE = "x = Placeholder(dtype=float, shape=[1, 4])\ny = Relu(x, T=float)\nz = Softmax(y, T=float)"
TEXTS = """
    x = Placeholder(dtype=float, shape=[1, 4])
    y = Relu(x, T=float)
    s = AsString(y, T=float)
    t = StringToNumber(s, out_type=float)
    z = Add(t, y, T=float)
"""
OPEN = "x = Placeholder(dtype=float, shape=[?, 4])\ny = Relu(x, T=float)"


def refused(source: Any, out: pathlib.Path, target: str) -> tuple[dict[str, str], str]:
    """What export says against a model: by node, or of it as a whole."""
    try:
        export(source, out, target=target)
    except LackingError as error:
        return error.reasons, ""
    except PocketgraphError as error:
        return {}, str(error)
    return {}, ""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [FINE, TEXTS, OPEN])
def test_the_answer_is_that_of_export(text: str, target: str, tmp_path: pathlib.Path) -> None:
    if any(find_spec(package) is None for package in TARGETS[target].needs):
        pytest.skip(f"{target} needs {TARGETS[target].needs}, of the extra {TARGETS[target].extra}")
    graph = parse(text)
    found = support(graph, target)
    out = tmp_path / f"model{(TARGETS[target].suffixes or ('',))[0]}"
    assert (found.reasons, found.refusal) == refused(graph, out, target)
    assert found.is_complete == out.exists()
    if text == TEXTS:
        assert not found.is_complete
        assert {"s", "t"} & set(found.reasons)


def test_the_answer_takes_no_time_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_verification, "_milliseconds", lambda *_: pytest.fail("nobody sees the time"))
    assert support(parse(FINE), "tflite").is_complete


def test_a_run_that_takes_long_is_timed_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(export_verification, "LONGEST", 0.0)
    monkeypatch.setattr(ModelFile, "seconds", lambda self, key, feeds: (seen.append(key), 1.0)[1])
    [check] = export(parse(FINE), tmp_path / "model.tflite").checks
    assert (check.milliseconds, len(seen)) == (1000, 1)


def test_the_command(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(FINE), tmp_path / "fine.pb")
    save(parse(TEXTS), tmp_path / "texts.pb")
    before = sorted(tmp_path.iterdir())
    assert call("check", tmp_path / "fine.pb") == 0
    assert capsys.readouterr().out == "tflite: yes, all of 3 nodes\n"
    assert call("check", tmp_path / "texts.pb") == 1
    said = capsys.readouterr().out
    assert said.startswith("tflite: no, ")
    assert "AsString x 1 ('s'): " in said
    assert call("check", tmp_path / "texts.pb", "--json") == 1
    (answer,) = json.loads(capsys.readouterr().out)
    judged = {node["name"]: node["supported"] for node in answer["nodes"]}
    assert (judged["y"], judged["s"]) == (True, False)
    assert call("check", tmp_path / "texts.pb", "--outputs=y") == 0
    assert sorted(tmp_path.iterdir()) == before


def test_bad_calls(tmp_path: pathlib.Path, capsys: Any) -> None:
    with pytest.raises(UsageError, match="there is no target 'tflit'"):
        support(parse(FINE), "tflit")
    assert call("check", tmp_path / "none.pb") == 1
    assert "there is no such file" in capsys.readouterr().err


SMALL = (
    "kws_dnn_s", "dotnet_matmul", "pocdoc", "vibcat", "kws_basic_lstm_s", "utensor_xor_keras", "bender_dense",
    "mnist_softmax_frozen", "rust_addition",
)  # fmt: skip


@needs_shared
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SMALL)
def test_real_models(name: str, target: str, tmp_path: pathlib.Path) -> None:
    if TARGETS[target].missing:
        pytest.skip(f"{target} needs {TARGETS[target].missing[0]}, of the extra {TARGETS[target].extra}")
    path = next(model_dir(name).glob("*.pb"))
    found = support(path, target)
    out = tmp_path / f"model{(TARGETS[target].suffixes or ('',))[0]}"
    assert (found.reasons, found.refusal) == refused(path, out, target)
    assert found.is_complete == out.exists()


# TensorFlow Mobile, and names of devices

OLD = """
    x = Placeholder(dtype=float, shape=[1, 4])
    data = Placeholder(dtype=string, shape=[])
    p = DecodeJpeg(data)
    i = Cast(x, SrcT=float, DstT=int64)
    m = Maximum(i, i, T=int64)
    s = Sum(m, axes, T=int64, Tidx=int32)
    axes = Const(int32 0)
    y = Relu(x, T=float)
    unused = MatrixInverse(z, T=float)
    z = Const(float[1, 1] [[1]])
"""


def test_tfmobile_names_ops_and_types() -> None:
    found = support(parse(OLD), "tfmobile", outputs=["y", "s", "p"])
    assert set(found.reasons) == {"p", "s", "unused"}
    assert found.reasons["p"] == "it is not among the ops that mobile builds link"
    assert found.reasons["s"] == "int64 is not among its types there (float, int32, bool)"
    hints = {obstacle.op: obstacle.hint for obstacle in found.obstacles}
    assert "strip_unused" in hints["DecodeJpeg"]
    assert "strip_unused_nodes" in hints["MatrixInverse"]
    assert "print_selective_registration_header" in hints["Sum"]
    fine = parse(FINE)
    assert support(fine, "tfmobile").is_complete


def test_what_is_of_no_node_is_told_of_the_graph(capsys: Any) -> None:
    """As a type that the edge of a loop's body has; it counts as no node."""
    reasons = {"y": "no lowering", "": "LiteRT does not compute with double"}
    obstacles = (Obstacle("Erfinv", "no lowering", "", ("y",)), Obstacle("", reasons[""], "cast it", ("",)))
    show(Support("tflite", {"y": "Erfinv", "z": "Relu"}, reasons, obstacles))
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "tflite: no, 1 of 2 nodes stands in the way"
    assert rest == [
        "  Erfinv x 1 ('y'): no lowering",
        "  the graph: LiteRT does not compute with double; cast it",
    ]
    show(Support("onnx", {"y": "Relu"}, {"": "it has no form"}, (Obstacle("", "it has no form", "", ("",)),)))
    assert capsys.readouterr().out.splitlines() == ["onnx: no", "  the graph: it has no form"]


def test_tfmobile_and_functions(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(parse(OLD), tmp_path / "old.pb")
    assert call("check", tmp_path / "old.pb", "--target=tfmobile", "--outputs=y") == 1
    said = capsys.readouterr().out
    assert said.startswith("tfmobile: no, 3 of 10 nodes stand in the way")
    assert call("check", tmp_path / "old.pb", "--target=tfmobile", "--outputs=nowhere") == 2


@pytest.mark.parametrize("target", ["tflite", "tfmobile"])
def test_names_that_the_model_lacks_are_refused_for_each_target(
    target: str, tmp_path: pathlib.Path, capsys: Any
) -> None:
    save(parse(OPEN), tmp_path / "open.pb")
    assert call("check", tmp_path / "open.pb", f"--target={target}", "--input_shape=x:2,4", "--inputs=x") == 0
    capsys.readouterr()
    for flag, said in (
        ("--input_shape=nope:1", "there is no input 'nope' to give a shape"),
        ("--input_shape=y:2,4", "there is no input 'y' to give a shape"),
        ("--input_shape=x:2,5", "=x:2,5 does not fit"),
        ("--inputs=nope", "nope"),
        ("--outputs=nope", "nope"),
    ):
        assert call("check", tmp_path / "open.pb", f"--target={target}", flag) != 0
        out, err = capsys.readouterr()
        assert said in err
        assert out == ""


@needs_shared
@pytest.mark.parametrize("name", ["aiy_visionkit_detect", "mobilenet_v1_025_128_quant", "stylize_quantized"])
def test_what_ran_on_phones_is_taken(name: str) -> None:
    assert support(next(model_dir(name).glob("*.pb")), "tfmobile").is_complete


def test_devices_are_the_targets_that_they_take(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert targets_of("android") == ("tflite",)
    assert set(targets_of("ios")) <= set(DEVICES["ios"]) & set(TARGETS)
    save(parse(FINE), tmp_path / "fine.pb")
    assert call("check", tmp_path / "fine.pb", "--target=android,pi,tfmobile") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "tflite: yes, all of 3 nodes", "tfmobile: yes, all of 3 nodes", "android: yes, by tflite", "pi: yes, by tflite",
    ]  # fmt: skip
    assert call("check", tmp_path / "fine.pb", "--target=andriod") == 2
    assert "did you mean 'android'" in capsys.readouterr().err


def test_a_finished_file_is_no_question_of_targets_but_of_operators(tmp_path: pathlib.Path, capsys: Any) -> None:
    export(parse(FINE), tmp_path / "fine.tflite")
    assert call("print_required_ops", tmp_path / "fine.tflite") == 2
    assert "--form=litert" in capsys.readouterr().err
    for target in ("tflite", "tfmobile"):
        assert call("check", tmp_path / "fine.tflite", f"--target={target}") == 2
        assert "finished already; check starts from the graph" in capsys.readouterr().err
    assert call("print_required_ops", tmp_path / "fine.tflite", "--form=litert") == 0


DROPOUT = """
    x = Placeholder(dtype=float, shape=[?, 6])
    keep = Const(float 0.5)
    scaled = RealDiv(x, keep, T=float)
    size = Shape(x, T=float)
    noise = RandomUniform(size, T=int32, dtype=float)
    total = Add(keep, noise, T=float)
    mask = Floor(total, T=float)
    y = Mul(scaled, mask, T=float)
"""
NOISE = """
    x = Placeholder(dtype=float, shape=[2, 3])
    size = Shape(x, T=float)
    noise = RandomStandardNormal(size, T=int32, dtype=float)
    y = Add(x, noise, T=float)
"""
DRAWN_IN_A_LOOP = """
    x = Placeholder(dtype=float, shape=[3])
    most = Placeholder(dtype=int32, shape=[])
    three = Const(int32 [3])
""" + counted_loop(
    "most",
    "noise = RandomUniform(three_in, T=int32, dtype=float)\nnext = Add(v, noise, T=float)",
    given={"three": "int32"},
)


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
class TestRandomNumbers:
    def test_are_fed_to_both_sides(self, tmp_path: pathlib.Path) -> None:
        for name, text in (("dropout", DROPOUT), ("noise", NOISE)):
            assert support(parse(text), "onnx", outputs=["y"]).is_complete
            made = export(parse(text), tmp_path / f"{name}.onnx", outputs=["y"], keep_dropout=True)
            (checked,) = made.checks
            assert checked.passed
            assert checked.is_made
            assert checked.outputs[0].largest_relative < 1e-6
            assert any("own generator" in note for note in made.notes)
            assert any("a dropout or noise was left on" in note for note in made.notes) == (name == "dropout")
            assert sorted(path.name for path in tmp_path.glob(f"{name}*")) == [f"{name}.onnx"]

    def test_are_drawn_by_the_file_itself(self, tmp_path: pathlib.Path) -> None:
        import numpy as np
        import onnxruntime

        export(parse(NOISE), tmp_path / "noise.onnx", outputs=["y"])
        session = onnxruntime.InferenceSession(tmp_path / "noise.onnx", providers=["CPUExecutionProvider"])
        assert [item.name for item in session.get_inputs()] == ["x"]
        first, second = (session.run(None, {"x": np.zeros((2, 3), np.float32)})[0] for _ in range(2))
        assert (first != second).all()

    def test_samples_are_what_goes_with_them(self, tmp_path: pathlib.Path) -> None:
        import numpy as np

        samples = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
        (checked,) = export(parse(DROPOUT), tmp_path / "a.onnx", outputs=["y"], samples=samples).checks
        assert (checked.runs, checked.is_made) == (5, False)

    def test_in_a_loop_are_not_compared(self, tmp_path: pathlib.Path) -> None:
        graph = parse(DRAWN_IN_A_LOOP)
        assert support(graph, "onnx", outputs=["y"]).is_complete
        made = export(graph, tmp_path / "loop.onnx", outputs=["y"])
        assert made.checks == ()
        assert "in a loop" in made.unchecked

    def test_a_difference_elsewhere_is_still_found(self, tmp_path: pathlib.Path) -> None:
        with pytest.raises(PocketgraphError, match="past the tolerance"):
            export(parse(NOISE), tmp_path / "noise.onnx", outputs=["y"], tolerance=-1.0)
        assert not list(tmp_path.iterdir())


def test_what_takes_dropout_out_is_said() -> None:
    assert support(parse(DROPOUT), "tflite", outputs=["y"]).is_complete  # one that was left on is taken out
    share = DROPOUT.replace("keep = Const(float 0.5)", "keep = Placeholder(dtype=float, shape=[])")
    (obstacle,) = support(parse(share), "tflite", outputs=["y"], inputs=["x", "keep"]).obstacles
    assert "values=keep=1" in obstacle.hint
    assert support(parse(share), "tflite", outputs=["y"]).is_complete  # what dropouts keep has its value in use
    (obstacle,) = support(parse(NOISE), "tflite", outputs=["y"]).obstacles
    assert "dropout" not in obstacle.hint
    rankless = share.replace("dtype=float, shape=[])", "dtype=float)")
    assert support(parse(rankless), "tflite", outputs=["y"]).is_complete
    with pytest.raises(UsageError, match="values=keep=1"):
        support(parse(rankless), "tflite", outputs=["y"], inputs=["x", "keep"])


@pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed")
def test_dropout_that_keeps_all_draws_nothing(tmp_path: pathlib.Path) -> None:
    share = parse(DROPOUT.replace("keep = Const(float 0.5)", "keep = Placeholder(dtype=float, shape=[])"))
    made = export(share, tmp_path / "a.onnx", outputs=["y"], values={"keep": 1.0})
    assert made.notes == ()


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_an_old_graph_does_not_say_are_those_that_fit_its_weights(target: str) -> None:
    if TARGETS[target].missing:
        pytest.skip(f"{target} needs {TARGETS[target].needs}, of the extra {TARGETS[target].extra}")
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        w = Const(float [[1, 2], [3, 4], [5, 6]])
        y = MatMul(x, w, T=float)
    """)
    assert support(graph, target).is_complete
    (port,) = opened(graph).main.inputs
    assert port.shape == (1, 3)


def test_a_loop_is_named_as_one_cause() -> None:
    body = "next = Relu(v, T=float)"
    graph = parse(
        "x = Placeholder(dtype=float, shape=[1,4])\nn = Placeholder(dtype=int32, shape=[1])\n"
        "first = Const(int32 0)\nmost = Max(n, first, T=int32, Tidx=int32)\n"
        # as weights enter a decoder where training's was made first
        + counted_loop("most", body).replace("loop/rounds", "training/rounds")
    )
    said = str(
        LackingError("Core ML", graph, dict.fromkeys((n.name for n in graph if "loop/" in n.name), "has no form"))
    )
    assert "check with target=onnx tells whether an .onnx file can hold it" in said
    assert "a loop that goes on for as long as its condition says ('loop')" in said
    assert not any(op in said for op in ("Enter", "Merge", "Switch", "NextIteration"))
    assert len(said) < 400


def test_what_a_loop_holds_is_named_and_not_the_loop(tmp_path: pathlib.Path) -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[1,4])\nmost = Const(int32 1000)\n"
        + counted_loop(
            "most", "size = Const(int32 [1, 4], ^v)\nnoise = RandomUniform(size, T=int32, dtype=float)\n"
            "next = Add(v, noise, T=float)"
        )
    )  # fmt: skip
    with pytest.raises(LackingError) as error:
        export(graph, tmp_path / "net.tflite")
    said = str(error.value)
    assert said.startswith("LiteRT has nothing for 1 node: RandomUniform ('noise'): ")
    with pytest.raises(UsageError, match="node 'noise'"):
        quantize(graph, mode="dynamic", outputs=["y"])


def test_a_loop_of_too_many_rounds_is_said_to_be_long_and_not_of_unknown_length() -> None:
    steps = (
        "".join(f"v{at + 1} = Tanh({f'v{at}' if at else 'v'}, T=float)\n" for at in range(9))
        + "next = Relu(v9, T=float)"
    )
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\nmost = Const(int32 1000)\n" + counted_loop("most", steps))
    said = str(LackingError("Core ML", graph, {"loop/go": "has no form"}))
    assert "a loop of 1,000 rounds ('loop')" in said
    assert "an .onnx file can hold it" in said
    assert "depends on the input" not in said
    for target in ("tflite", "c"):
        assert support(graph, target).is_complete


def test_a_branch_inside_a_branch_is_taken_where_constants_decide_both(tmp_path: pathlib.Path) -> None:
    """As in a running average, which divides by how much it has seen: if count > 0: if count > 1: sum / (count - 1)."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,2])
        count = Const(int32 5)
        sum = Const(float [8.0, 36.0])
        none = Const(int32 0)
        some = Greater(count, none, T=int32)
        outer = Switch(count, some, T=int32)
        one = Const(int32 1)
        many = Greater(outer:1, one, T=int32)
        inner = Switch(outer:1, many, T=int32)
        sums = Switch(sum, many, T=float)
        less = Sub(inner:1, one, T=int32)
        divisor = Cast(less, SrcT=int32, DstT=float)
        average = RealDiv(sums:1, divisor, T=float)
        few = Mul(sums, sums, T=float)
        found = Merge(average, few, T=float, N=2)
        else = Switch(sum, some, T=float)
        nothing = Neg(else, T=float)
        scale = Merge(nothing, found, T=float, N=2)
        y = Mul(x, scale, T=float)
    """)
    export(graph, tmp_path / "net.tflite")
    with Session(tmp_path / "net.tflite") as session:
        (result,) = session.run(list(session.outputs), {next(iter(session.inputs)): np.float32([[1, 10]])})
    np.testing.assert_array_equal(result, [[2, 90]])


def test_a_loop_over_texts_is_told_as_texts_and_not_as_too_long(tmp_path: pathlib.Path) -> None:
    """As tf.map_fn makes over a batch of texts; an .onnx file has nothing for it either."""
    steps = "word = AsString(v, T=float)\nkept = Identity(word, T=string)\nnext = StringToNumber(kept, out_type=float)"
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\nmost = Const(int32 9000)\n" + counted_loop("most", steps))
    with pytest.raises(LackingError, match=r"AsString \(.word.\)") as error:
        export(graph, tmp_path / "net.tflite")
    assert error.value.hint == "give the numbers behind the texts: inputs names the tensors to feed"


FIVE_ROUNDS = "most = Const(int32 5)\n" + counted_loop("most", """
        loop/parted = Switch(v, loop/holds, T=float)
        loop/below = Sin(loop/parted, T=float)
        loop/above = Neg(loop/parted:1, T=float)
        next = Merge(loop/below, loop/above, T=float, N=2)
""").replace("loop/parted =", "{}\nloop/parted =")  # fmt: skip


def test_five_rounds_with_a_branch_are_no_loop_of_unknown_length() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\n" + FIVE_ROUNDS.format("""
        axes = Const(int32 [0, 1], ^i)
        mean = Mean(v, axes, T=float, Tidx=int32, keep_dims=false)
        zero = Const(float 0, ^i)
        loop/holds = Greater(mean, zero, T=float)
    """))  # fmt: skip
    error = LackingError("Core ML", graph, dict.fromkeys(("loop/go", "loop/parted"), "has no form"))
    assert "check with target=onnx tells whether an .onnx file can hold it" in error.hint
    assert "a loop with a branch inside that the input decides ('loop')" in str(error)
    assert "as long as its condition says" not in str(error)
    for target in ("tflite", "c"):
        assert support(graph, target).is_complete


@pytest.mark.parametrize("target", ["tflite", "c"])
def test_a_branch_by_an_input_inside_of_a_loop(target: str, tmp_path: pathlib.Path) -> None:
    """It is decided while running, or set for good, which the notes say."""
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\nflag = Placeholder(dtype=bool, shape=[])\n"
                  + FIVE_ROUNDS.format('loop/holds = Enter(flag, T=bool, frame_name="loop", is_constant=true)')
                 )  # fmt: skip
    place = tmp_path / ("net.tflite" if target == "tflite" else "net")
    x = np.float32([[-1, 0.5, 2, 3]])
    made = export(graph, place, target=target)
    assert made.checks[0].passed
    whole = made.bytes
    said = "'flag' decides while running which way a branch goes; values=flag=false (or true) sets it for good"
    assert said in made.notes
    for flag, wanted in ((False, np.sin(np.sin(np.sin(np.sin(np.sin(x)))))), (True, -x)):
        if target == "tflite":
            with Session(place) as session:
                np.testing.assert_allclose(
                    session.run_signature({"x": x, "flag": np.bool_(flag)})["y"], wanted, rtol=1e-6
                )
        made = export(graph, tmp_path / f"{flag}.tflite" if target == "tflite" else tmp_path / str(flag), target=target,
                      values={"flag": flag}, samples={"x": x})  # fmt: skip
        assert made.checks[0].passed
        assert made.bytes < whole
        if target == "tflite":
            with Session(made.path) as session:
                np.testing.assert_allclose(session.run(list(session.outputs), {"x": x})[0], wanted, rtol=1e-6)


def test_only_what_decides_is_said_to_decide(tmp_path: pathlib.Path) -> None:
    """In a loop, in what goes round, and computed of others; not what a branch or a loop merely takes."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        n = Placeholder(dtype=int32, shape=[])
        flag = Placeholder(dtype=bool, shape=[])
        one = Placeholder(dtype=bool, shape=[])
        other = Placeholder(dtype=bool, shape=[])
        shown = Placeholder(dtype=bool, shape=[])
        inside = Placeholder(dtype=bool, shape=[])
        both = LogicalAnd(one, other)
        number = Cast(shown, SrcT=bool, DstT=float)
        parted = Switch(x, both, T=float)
        of_inside = Switch(inside, both, T=bool)
        cast = Cast(of_inside:1, SrcT=bool, DstT=float)
        above = Add(parted:1, cast, T=float)
        below = Sin(parted, T=float)
        begin = Merge(below, above, T=float, N=2)
    """ + counted_loop("n", """
        flag_in = Enter(flag, T=bool, frame_name="loop", is_constant=true)
        ways = Switch(v, flag_in, T=float)
        sin = Sin(ways, T=float)
        more = Add(ways:1, number_in, T=float)
        next = Merge(sin, more, T=float, N=2)
    """, start="begin", given={"number": "float"}))  # fmt: skip
    made = export(graph, tmp_path / "net.tflite", outputs=["y"])
    said = [note.split("'")[1] for note in made.notes if "decides while running which way a branch goes" in note]
    assert sorted(said) == ["flag", "one", "other"]


def test_a_node_of_an_unrolled_loop_is_named_once_as_the_graph_names_it() -> None:
    body = "three = Const(float 3.0, ^i)\nodd = Digamma(v, T=float)\nnext = Mul(odd, three, T=float)"
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\nmost = Const(int32 3)\n" + counted_loop("most", body))
    (obstacle,) = support(graph, "tflite", outputs=["y"]).obstacles
    assert (obstacle.op, obstacle.nodes) == ("Digamma", ("odd",))
