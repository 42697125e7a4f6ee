"""``verify`` may not be fooled: models cut to pieces, constant answers, defaults, files of every kind, eight bits."""

import pathlib

import numpy as np
import pytest

from pocketgraph.errors import FormatError, RunError, UsageError
from pocketgraph.exporting import export
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.graph import Signature
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import verify
from pocketgraph.runtime.comparison.compared_models import ComparedModel, reached
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes


def network(weight: str = "[[1.0, 2.0], [3.0, -4.0]]") -> Graph:
    return parse(f"""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float {weight})
        hidden = MatMul(x, w, T=float)
        bottleneck = PlaceholderWithDefault(hidden, dtype=float, shape=[?,2])
        y = Softmax(bottleneck, T=float)
    """)


def cut() -> Graph:
    return parse("""
        hidden = Placeholder(dtype=float, shape=[?,2])
        y = Softmax(hidden, T=float)
    """)


def test_a_default_stays_and_what_lies_behind_it_is_compared() -> None:
    assert list(synthetic_shapes(network(), ["y"])) == ["x"]
    assert verify(network(), network(), outputs=["y"])
    assert not verify(network(), network("[[1.0, 2.0], [3.0, 4.0]]"), outputs=["y"])


def test_a_model_that_lost_its_input_fails() -> None:
    report = verify(network(), cut(), outputs=["y"])
    assert [d.problem for d in report.outputs] == [
        "does not depend on 'x' in the second model, which reads 'hidden' instead"
    ]
    assert not report
    fixed = parse("x = Placeholder(dtype=float, shape=[?,2])\n y = Const(float [[0.5, 0.5]])")
    assert not verify(network(), fixed, outputs=["y"], tolerance=100.0)
    back = verify(fixed, network(), {"x": [[1.0, 2.0]]}, ["y"], tolerance=100.0)
    assert [d.problem for d in back.outputs] == ["does not depend on 'x' in the first model"]


def test_each_result_of_one_node_depends_on_inputs_of_its_own(tmp_path: pathlib.Path) -> None:
    whole = parse("""
        x = Placeholder(dtype=float, shape=[1,2])
        z = Placeholder(dtype=float, shape=[1,2])
        b = Softmax(z, T=float)
        call = IdentityN(x, b, T=[float, float])
    """).replace(outputs=["call", "call:1"])
    assert reached(whole, "call:1", ["x", "z"]) == {"z"}
    assert reached(whole, "call", ["x", "b"]) == {"x"}
    export(whole, tmp_path / "net.tflite")
    assert verify(whole, tmp_path / "net.tflite")


@pytest.mark.parametrize("name", ["hidden", "bottleneck:0"])
def test_feeds_that_cut_weights_off_are_refused(name: str) -> None:
    other = network("[[1.0, 2.0], [3.0, 4.0]]")
    with pytest.raises(UsageError, match="cut 1 of 1 weight of the first model off") as caught:
        verify(network(), other, {name: np.ones((1, 2), np.float32)}, ["y"])
    assert "say partial" in str(caught.value)
    assert verify(network(), other, {name: np.ones((1, 2), np.float32)}, ["y"], partial=True)
    with pytest.raises(UsageError, match="weight of the second model"):
        verify(cut(), other, {"hidden": np.ones((1, 2), np.float32)}, ["y"])


@pytest.mark.parametrize("swapped", [False, True])
def test_an_answer_that_is_always_the_same_fails_whatever_the_tolerance(swapped: bool) -> None:
    silent = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        zero = Const(float 0)
        nothing = Mul(x, zero, T=float)
        y = Softmax(nothing, T=float)
    """)
    pair = (silent, network()) if swapped else (network(), silent)
    report = verify(*pair, outputs=["y"], tolerance=100.0)
    side = "first" if swapped else "second"
    assert [d.problem for d in report.outputs] == [f"always the same in the {side} model, and not in the other"]


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        ("y = Relu(far, T=float)", "is always the same in both models"),
        ("y = Log(far, T=float)", "holds no finite number"),
    ],
)
def test_made_up_feeds_that_neither_model_answers_prove_nothing(last: str, problem: str) -> None:
    text = f"""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float[2,3] WEIGHT)
        m = MatMul(x, w, T=float)
        offset = Const(float -1e30)
        far = AddV2(m, offset, T=float)
        z = Neg(m, T=float)
        {last}
    """
    one, other = parse(text.replace("WEIGHT", "1.0")), parse(text.replace("WEIGHT", "-7.0"))
    report = verify(one, other, outputs=["y"])
    assert not report
    assert report.outputs[0].problem.startswith(problem)
    assert "data that it answers" in report.outputs[0].problem
    assert verify(one, one, outputs=["y", "z"]).notes[0].startswith(f"'y' {problem}")  # the other output tells enough
    assert verify(one, other, {"x": [[-1e30, -1e30]]}, outputs=["y"]).passed is False
    chosen = verify(one, one, {"x": [[1.0, 2.0]]}, outputs=["y"])
    assert chosen  # who chose the feeds is told at most
    assert len(chosen.notes) == ("Log" in last)


def test_an_eight_bit_model_that_gives_no_numbers_either_proves_nothing() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float[2,3] 1.0)
        m = MatMul(x, w, T=float)
        offset = Const(float -1e30)
        far = AddV2(m, offset, T=float)
        y = Log(far, T=float)
    """
    coded = (
        text.replace("Const(float[2,3] 1.0)", "Dequantize(codes, low, high, T=quint8)")
        + """
        codes = Const(quint8[2,3] 255)
        low = Const(float 0)
        high = Const(float 1)
    """
    )
    report = verify(parse(text), parse(coded), outputs=["y"])
    assert not report
    assert report.is_eight_bit
    assert report.outputs[0].problem.startswith("holds no finite number in either model")


def test_what_boxes_are_selected_from_is_compared_where_noise_has_none() -> None:
    """A detector whose shares never reach its threshold on made-up pictures."""
    text = """
        x = Placeholder(dtype=float, shape=[1,4])
        w = Const(float[4,12] 0.01)
        places = MatMul(x, w, T=float)
        three = Const(int32 [3, 4])
        boxes = Reshape(places, three, T=float)
        v = Const(float[4,3] SHARE)
        logits = MatMul(x, v, T=float)
        row = Const(int32 [3])
        flat = Reshape(logits, row, T=float)
        scores = Sigmoid(flat, T=float)
        most = Const(int32 5)
        overlap = Const(float 0.5)
        least = Const(float 1.5)
        chosen = NonMaxSuppressionV3(boxes, scores, most, overlap, least, T=float)
        axis = Const(int32 0)
        found = GatherV2(boxes, chosen, axis, Tparams=float, Tindices=int32)
        none = Const(float[1,4] 0.0)
        detections = ConcatV2(found, none, axis, N=2, T=float)
    """
    one, other = parse(text.replace("SHARE", "0.1")), parse(text.replace("SHARE", "0.2"))
    same = verify(one, one, outputs=["detections"])
    assert same
    assert len(same.outputs) == 3
    assert "always the same" in same.notes[0]
    apart = verify(one, other, outputs=["detections"])
    assert not apart
    assert [each.name for each in apart.outputs if not each.passed] == ["scores"]
    assert not verify(one, parse(text.replace("SHARE", "0.1").replace("scores", "shares")), outputs=["detections"])


def test_outputs_and_feeds_that_prove_nothing_are_said() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        z = Placeholder(dtype=float, shape=[2])
        anchors = Const(float [1.0, 2.0])
        y = Neg(x, T=float)
    """)
    report = verify(graph, graph, {"x": [1.0, 2.0], "z": [0.0, 0.0]}, ["y", "anchors"])
    assert report
    assert report.notes == ("'anchors' depends on no input in either model", "no output depends on the feed 'z'")


def test_several_sets_of_feeds() -> None:
    sets = [{"x": [[1.0, 2.0]]}, {"x": [[0.5, -2.0], [1.0, 1.0]]}]
    report = verify(network(), network(), sets)
    assert (report.runs, report.passed, report.is_made_up) == (2, True, False)
    with pytest.raises(UsageError, match="no feeds"):
        verify(network(), network(), [])


def test_shapes_by_option_for_unknown_ranks() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=<unknown>)\n y = Softmax(x, T=float)")
    with pytest.raises(UsageError, match="how many dimensions"):
        verify(graph, graph)
    assert verify(graph, graph, shapes={"": (3, 4)}).outputs[0].shape == (3, 4)
    assert verify(graph, graph, shapes={"x:0": (3, 4)}).outputs[0].shape == (3, 4)
    with pytest.raises(UsageError, match="no input 'z' to make up"):
        verify(graph, graph, shapes={"z": (3, 4)})


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_tolerances_that_are_none(tolerance: float) -> None:
    with pytest.raises(UsageError, match="a tolerance is a number"):
        verify(network(), network(), tolerance=tolerance)


def eight_bits(levels: str) -> Graph:
    return parse(f"""
        x = Placeholder(dtype=float, shape=[?,2])
        codes = Const(quint8 {levels})
        low = Const(float -4.0)
        high = Const(float 4.0)
        w = Dequantize(codes, low, high, T=quint8, mode="MIN_FIRST")
        hidden = MatMul(x, w, T=float)
        y = Softmax(hidden, T=float)
    """)


def test_eight_bit_models_are_judged_by_agreement_divergence_and_noise() -> None:
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, (200, 2)).astype(np.float32)}
    close = verify(network(), eight_bits("[[159, 191], [223, 0]]"), feeds)
    assert close
    assert close.is_eight_bit
    assert "top class 90%" in close.standard
    (output,) = close.outputs
    assert output.largest_relative > 1e-4  # the float standard would not do
    assert output.snr is not None
    assert output.snr > 30
    assert output.kl is not None
    assert output.kl < 0.001
    assert not verify(network(), eight_bits("[[159, 191], [223, 0]]"), feeds, tolerance=1e-4)
    assert not verify(network(), eight_bits("[[159, 191], [223, 255]]"), feeds)


def test_files_of_half_precision_may_be_off_by_what_rounding_weights_makes(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(64, 64)).astype(np.float32)

    def product(noise: float) -> Graph:
        values = (weights + noise * rng.normal(size=weights.shape)).astype(np.float32)
        x, y = parse("x = Placeholder(dtype=float, shape=[1, 64])"), parse("y = MatMul(x, w, T=float)")
        return Graph([*x, const("w", values), *y])

    graph, half, wrong, codes = product(0), *(tmp_path / f"{name}.tflite" for name in ("half", "wrong", "codes"))
    export(graph, half, mode="float16")
    export(product(0.1), wrong, mode="float16")  # some 19 dB
    export(graph, codes, mode="dynamic")
    report = verify(graph, half)
    assert report.outputs[0].largest_relative > 1e-4
    assert report, report
    assert report.standard == "within 0.02 of the largest magnitude"
    assert not verify(graph, wrong)
    assert verify(graph, wrong).outputs[0].snr > 15  # the standard of eight bits would do
    assert not verify(half, wrong)
    assert verify(half, wrong).tolerance == 1e-4
    assert verify(half, codes)
    assert verify(codes, half).is_eight_bit


def test_two_eight_bit_models_of_one_kind_are_held_to_the_float_standard() -> None:
    report = verify(eight_bits("[[159, 191], [223, 0]]"), eight_bits("[[160, 191], [223, 0]]"))
    assert not report.is_eight_bit
    assert not report


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """One network as .pb, .tflite and, where the extra is installed, .onnx."""
    folder = tmp_path_factory.mktemp("files")
    graph = parse("""
        in/x = Placeholder(dtype=float, shape=[1,2])
        w = Const(float [[1.0, 2.0], [3.0, -4.0]])
        hidden = MatMul(in/x, w, T=float)
        out/y = Softmax(hidden, T=float)
    """)
    found = {kind: folder / f"model.{kind}" for kind in ("pb", "tflite", "onnx")}
    save(graph, found["pb"])
    export(found["pb"], found["tflite"])
    return found


@pytest.mark.parametrize(("a", "b"), [(a, b) for a in ("pb", "tflite", "onnx") for b in ("pb", "tflite", "onnx")])
def test_files_of_every_kind_in_any_mix(files: dict[str, pathlib.Path], a: str, b: str) -> None:
    if "onnx" in (a, b):
        pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
        pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
        export(files["pb"], files["onnx"])
    assert verify(files[a], files[b])
    wrong = parse("""
        in/x = Placeholder(dtype=float, shape=[1,2])
        w = Const(float [[1.0, 2.0], [3.0, 4.0]])
        hidden = MatMul(in/x, w, T=float)
        out/y = Softmax(hidden, T=float)
    """)
    assert not verify(files[a], wrong)
    assert not verify(wrong, files[b])


def test_damaged_and_missing_onnx_files(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    with pytest.raises(RunError, match="no such file"):
        ComparedModel(tmp_path / "none.onnx", None, None)
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(FormatError, match="describes no model"):
        ComparedModel(tmp_path / "bad.onnx", None, None)


def test_an_onnx_output_depends_on_what_its_branches_read(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    value = onnx.helper.make_tensor_value_info
    kind = onnx.TensorProto.FLOAT
    bodies = [
        onnx.helper.make_graph([onnx.helper.make_node(op, ["x"], [op])], op, [], [value(op, kind, [2])])
        for op in ("Neg", "Abs")
    ]
    choice = onnx.helper.make_node("If", ["p"], ["y"], then_branch=bodies[0], else_branch=bodies[1])
    inputs = [value("x", kind, [2]), value("p", onnx.TensorProto.BOOL, [])]
    graph = onnx.helper.make_graph([choice], "g", inputs, [value("y", kind, [2])])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "if.onnx")
    model = ComparedModel(tmp_path / "if.onnx", 1, None)
    assert set(model.graph["y"].inputs) == {"x", "p"}
    (y,) = model.run(["y:0"], {"x:0": np.array([-1.0, 2.0], np.float32), "p:0": np.array(False)})
    np.testing.assert_array_equal(y, [1.0, 2.0])


SEVERAL = """
    x = Placeholder(dtype=float, shape=[?,3])
    w = Const(float [[1.0, 2.0], [3.0, -4.0], [0.5, 0.25]])
    product = MatMul(x, w, T=float)
    chances = Softmax(product, T=float)
    parts = Sigmoid(product, T=float)
    call = IdentityN(product, chances, parts, T=[float, float, float])
"""


@pytest.mark.parametrize("kind", ["tflite", "onnx"])
def test_each_of_a_nodes_results_is_compared_with_the_files_output_of_its_name(
    kind: str, tmp_path: pathlib.Path
) -> None:
    """A SavedModel with several outputs ends in such a node once it is frozen."""
    if kind == "onnx":
        pytest.importorskip("onnx")
    made = tmp_path / f"net.{kind}"
    export(parse(SEVERAL), made)
    report = verify(parse(SEVERAL), str(made))
    assert [output.name for output in report.outputs] == ["call", "call:1", "call:2"]
    assert report.passed
    mixed = parse(SEVERAL.replace("product, chances, parts", "product, parts, chances"))
    assert [output.passed for output in verify(mixed, str(made)).outputs] == [True, False, False]


@pytest.mark.parametrize("op", ["Abs", "Identity"])
def test_classes_that_a_softmax_hides_are_compared_with_smaller_feeds(op: str) -> None:
    """Class 0 wins by far on made-up feeds, or class 1 does, so that all others underflow, whatever their weights."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,8])
        taken = {op}(x, T=float)
        logits = MatMul(taken, w, T=float)
        y = Softmax(logits, T=float)
    """)
    weights = np.random.default_rng(0).normal(0, 30, (8, 5)).astype(np.float32)
    weights[:, 0], weights[:, 1] = 2000, -2000
    made = Graph([*graph, const("w", weights)])
    assert verify(made, Graph([*graph, const("w", weights.copy())])).passed
    report = verify(made, Graph([*graph, const("w", weights[:, [0, 1, 3, 4, 2]])]))
    assert not report.passed
    given = verify(made, Graph([*graph, const("w", weights[:, [0, 1, 3, 4, 2]])]), {"x": np.ones((1, 8), np.float32)})
    assert given.passed  # on feeds of the caller's own nothing else is run


def test_answers_that_are_one_hot_by_design_are_equal() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8])
        best = ArgMax(x, axis, T=float, Tidx=int32)
        axis = Const(int32 -1)
        depth = Const(int32 8)
        on = Const(float 1.0)
        off = Const(float 0.0)
        y = OneHot(best, depth, on, off, T=float, TI=int64)
    """)
    assert verify(graph, graph).passed


def test_sizes_that_one_model_leaves_open_are_those_that_the_other_fixes(tmp_path: pathlib.Path) -> None:
    text = "x = Placeholder(dtype=float, shape=[?,?,?,3])\ny = Relu6(x, T=float)"
    export(parse(text.replace("?,?,?", "1,6,10")), tmp_path / "fixed.tflite")
    assert verify(parse(text), tmp_path / "fixed.tflite")


def test_an_output_that_is_mostly_not_finite_is_noted() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        scale = Const(float [[-1.0, -1.0, -1.0, 0.0], [-1.0, -1.0, -1.0, 0.0]])
        a = Abs(x, T=float)
        m = MatMul(a, scale, T=float)
        one = Const(float [0.0, 0.0, 0.0, 1.0])
        n = AddV2(m, one, T=float)
        y = Log(n, T=float)
        z = Relu(x, T=float)
    """)
    report = verify(graph, graph, outputs=["y", "z"])
    assert report.passed
    assert any(note.startswith("'y' is NaN or infinite in ") for note in report.notes)
    assert not any("'z'" in note for note in report.notes)


def test_feeds_that_do_not_fit_the_second_model_are_said_to_be_its() -> None:
    pictures = parse("x = Placeholder(dtype=float, shape=[1,4,4,3])\n y = Relu(x, T=float)")
    planes = parse("x = Placeholder(dtype=float, shape=[1,3,4,4])\n y = Relu(x, T=float)")
    with pytest.raises(
        RunError, match=r"^the second model: Cannot feed value of shape \(1, 4, 4, 3\) .*; both are run on"
    ):
        verify(pictures, planes, {"x": np.ones((1, 4, 4, 3), np.float32)}, ["y"])


CANCELLING = """
    x = Placeholder(dtype=float, shape=[1, 3])
    w = Const(float [8192.0, 8200.0, 8210.0])
    read = Identity(w, T=float)
    less = Const(float [8190.0, 8198.0, 8208.0])
    product = Mul(x, read, T=float)
    rest = Sub(product, less, T=float)
    more = Const(float {})
    y = Add(rest, more, T=float)
"""
"""Of numbers near 8192 a last bit is 0.001, so that their difference, near 2, is known to some 0.0005."""


@pytest.mark.parametrize("has_variables", [False, True])
@pytest.mark.parametrize(("off", "passes"), [(3e-4, True), (2e-3, False)])
def test_what_the_last_bits_of_weights_move_is_no_difference(
    off: float, passes: bool, has_variables: bool, tmp_path: pathlib.Path
) -> None:
    """Also of the variables of a SavedModel, whose values its session has."""
    first: Graph | pathlib.Path = parse(CANCELLING.format(0.0))
    if has_variables:
        trained = parse("""
            w = VarHandleOp(dtype=float, shape=[3], shared_name="w")
            read = ReadVariableOp(w, dtype=float)
            values = Const(float [8192.0, 8200.0, 8210.0])
            assign = AssignVariableOp(w, values, dtype=float)
            init = NoOp(^assign)
        """)
        graph = Graph({**parse(CANCELLING.format(0.0)).nodes, **trained.nodes}.values())
        signature = Signature({"x": "x:0"}, {"y": "y:0"})
        first = tmp_path / "model"
        save(graph.replace(signatures={"serving_default": signature}), first, form="saved_model")
    feeds = {"x": np.ones((1, 3), np.float32)}
    second = parse(CANCELLING.format(2 * off))
    report = verify(first, second, feeds, ["y"])
    assert report.passed is passes
    assert any("as a change of each weight by its last bit makes" in note for note in report.notes) is passes
    assert not verify(first, second, feeds, ["y"], tolerance=1e-4)


def test_a_share_of_rows_is_between_none_and_all() -> None:
    with pytest.raises(UsageError, match="top1 is a share from 0 to 1, not 7"):
        verify(network(), network(), outputs=["y"], top1=7)
