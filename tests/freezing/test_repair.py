"""What training left behind, repaired rule by rule, and on real models that were left so."""

import inspect
import re
from importlib import import_module

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import FreezeError, RunError, UsageError
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.leftovers import leftovers
from pocketgraph.freezing.repair import REPAIRS, chosen, references, repaired
from pocketgraph.freezing.repair.updates import is_update
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.dropout_removal import without_dropout
from pocketgraph.runtime import Session
from support import ROOT, assert_text, model_dir, model_info, needs_shared


def after(rule: str, text: str, output: str = "y") -> tuple[Graph, list[str]]:
    from pocketgraph.freezing import extract_sub_graph

    graph, lines = repaired(parse(text).replace(outputs=[output]), rule)
    return extract_sub_graph(graph, [output]), list(lines.values())


def examples(rule: str) -> list[tuple[str, str]]:
    """(Given, Result) of each example in a repair's docstring."""
    function = import_module(f"pocketgraph.freezing.repair.{rule}").repaired
    parts = re.findall(r"^(?:Given|Result):(.*?)(?=^\S|\Z)", inspect.getdoc(function) or "", re.DOTALL | re.MULTILINE)
    return list(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("rule", sorted(set(REPAIRS) - {"dropout"}))  # passes/test_dropout.py runs its example
def test_the_examples_are_true(rule: str) -> None:
    found = examples(rule)
    assert found
    for given, result in found:
        assert_text(after(rule, given)[0], result)


def test_names_of_repairs() -> None:
    assert chosen(True) == chosen("all") == tuple(REPAIRS)
    assert chosen(False) == ()
    assert chosen("dropout, flags") == chosen(["flags", "dropout"]) == ("flags", "dropout")
    with pytest.raises(
        UsageError, match="no repair called 'queues'; there are flags, batch_norms, inputs, augmentation, "
    ):
        chosen("queues")


@pytest.mark.parametrize(
    "name",
    [
        "is_training",
        "net/is_training_1",
        "phase_train",
        "train_phase",
        "keras_learning_phase",
        "Training",
        "isTrain",
        "train_mode",
    ],
)
def test_flags_are_known_by_their_names(name: str) -> None:
    graph, lines = after("flags", f"{name} = Placeholder(dtype=bool)\ny = LogicalNot({name})")
    assert graph[name].op == "Const"
    assert lines == [f"'{name}' is false from now on"]


@pytest.mark.parametrize("name", ["constraint", "is_inference", "train_images", "mask"])
def test_other_bool_placeholders_stay(name: str) -> None:
    graph, lines = after("flags", f"{name} = Placeholder(dtype=bool)\ny = LogicalNot({name})")
    assert graph[name].op == "Placeholder"
    assert lines == []


QUEUE = """
    files = Const(string ["a"])
    queue = FIFOQueueV2(component_types=[float, int64], shapes=[[28,28],[]])
    put = QueueEnqueueManyV2(queue, files, files, Tcomponents=[float, int64])
    n = Const(int32 8)
    batch = QueueDequeueManyV2(queue, n, component_types=[float, int64], timeout_ms=-1)
"""


def test_queues_become_placeholders() -> None:
    graph, lines = after(
        "inputs", QUEUE + "label = Cast(batch:1, SrcT=int64, DstT=float)\ny = Add(batch, label, T=float)"
    )
    assert_text(
        graph,
        """
        batch = Placeholder(dtype=float, shape=[?,28,28])
        batch_1 = Placeholder(dtype=int64, shape=[?])
        label = Cast(batch_1, SrcT=int64, DstT=float)
        y = Add(batch, label, T=float)
        """,
    )
    assert lines[0] == "'batch' is a placeholder float[?,28,28] in place of what QueueDequeueManyV2 'batch' gave"


def test_a_default_that_comes_from_a_queue() -> None:
    graph, lines = after(
        "inputs",
        QUEUE
        + """
            half = Relu(batch, T=float)
            image = PlaceholderWithDefault(half, dtype=float, shape=[?,28,28])
            y = Neg(image, T=float)
        """,
    )
    assert_text(graph, "image = Placeholder(dtype=float, shape=[?,28,28])\ny = Neg(image, T=float)")
    assert lines == ["'image' had the input pipeline as its default; it is a placeholder float[?,28,28]"]


def test_one_queue_behind_the_other_is_cut_once() -> None:
    graph, lines = after(
        "inputs",
        QUEUE
        + """
        second = FIFOQueueV2(component_types=[float])
        more = QueueEnqueueV2(second, batch, Tcomponents=[float])
        last = QueueDequeueV2(second, ^batch, component_types=[float])
        y = Neg(last, ^batch, T=float)
    """,
    )
    assert_text(graph, "last = Placeholder(dtype=float, shape=<unknown>)\ny = Neg(last, T=float)")
    assert lines


def test_iterators_and_readers() -> None:
    graph, _ = after(
        "inputs",
        """
        it = IteratorV2(output_types=[float], output_shapes=[[?,3]], shared_name="", container="")
        next = IteratorGetNext(it, output_types=[float], output_shapes=[[?,3]])
        y = Neg(next, T=float)
    """,
    )
    assert_text(graph, "next = Placeholder(dtype=float, shape=[?,3])\ny = Neg(next, T=float)")
    graph, lines = after(
        "inputs",
        """
        names = FIFOQueueV2(component_types=[string])
        reader = WholeFileReaderV2()
        read = ReaderReadV2(reader, names)
        y = DecodeJpeg(read:1)
    """,
    )
    assert_text(graph, "read_1 = Placeholder(dtype=string, shape=[])\ny = DecodeJpeg(read_1)")
    assert lines == ["'read_1' is a placeholder string[] in place of what ReaderReadV2 'read' gave"]


def test_updates_are_dropped() -> None:
    graph, lines = after(
        "updates",
        """
        w = VariableV2(dtype=float, shape=[])
        v = VarHandleOp(dtype=float, shape=[])
        x = Placeholder(dtype=float)
        average = AssignSub(w, x, T=float)
        count = AssignAddVariableOp(v, x, dtype=float)
        read = ReadVariableOp(v, ^count, dtype=float)
        y = Add(average, read, ^count, T=float)
    """,
    )
    assert_text(
        graph,
        """
        w = VariableV2(dtype=float, shape=[])
        v = VarHandleOp(dtype=float, shape=[])
        read = ReadVariableOp(v, dtype=float)
        y = Add(w, read, T=float)
        """,
    )
    assert lines == ["'average' (AssignSub to 'w') is dropped", "'count' (AssignAddVariableOp to 'v') is dropped"]
    out, _ = after("updates", "w = Const(float 1.0)\nx = Const(float 2.0)\ny = Assign(w, x, T=float)")
    assert_text(out, "w = Const(float 1.0)\ny = Identity(w, T=float)")
    scatter = parse("i = Const(int32 [[0]])\nu = Const(float [1.0])\ns = Const(int32 [4])\ny = ScatterNd(i, u, s)")
    assert not is_update(scatter["y"])


def test_references_become_values() -> None:
    graph, lines = after(
        "references",
        """
        w = Const(float 1.0)
        p = Placeholder(dtype=bool)
        s = RefSwitch(w, p, T=float)
        m = RefMerge(s, s:1, T=float, N=2)
        y = Identity(m, T=float_ref)
    """,
    )
    assert [node.op for node in graph][2:] == ["Switch", "Merge", "Identity"]
    assert graph["y"].dtype().name == "float"
    assert lines == [
        "'s': RefSwitch is Switch",
        "'m': RefMerge is Merge",
        "'y': the types in T are no references any more",
    ]


def test_what_reads_a_constant_by_a_handle_takes_its_value() -> None:
    text = """
        w = Const(float [[1.0, 2.0], [3.0, 4.0]])
        p = Placeholder(dtype=bool)
        rows = Placeholder(dtype=int32)
        s = Switch(w, p, T=resource)
        read = ReadVariableOp(s:1, dtype=float)
        row = ResourceGather(w, rows, dtype=float, Tindices=int32)
        y = Add(read, row, T=float)
    """
    with pytest.raises(FreezeError, match="use it as it is, or with repair mend what training left"):
        freeze(parse(text), "y")
    lost = parse(text + "lost = ReadVariableOp(dtype=float)\nalso = RefIdentity(T=float)")  # as a damaged file has it
    [told] = leftovers(lost, lost)
    assert told.startswith("'read', 'row' would need a variable and now would get a constant; ")
    assert references.repaired(lost)[0]["lost"] == lost["lost"]
    frozen = freeze_with_report(parse(text), "y", repair="references")
    assert [frozen.graph[name].op for name in ("read", "row")] == ["Identity", "GatherV2"]
    assert frozen.graph["s"].dtype().name == "float"
    assert frozen.repaired == (
        "'read': ReadVariableOp of a constant is Identity",
        "'row': ResourceGather of a constant is GatherV2",
    )
    (y,) = Session(frozen.graph).run(["y"], {"p": np.array(True), "rows": np.array([1], np.int32)})
    np.testing.assert_array_equal(y, [[4, 6], [6, 8]])
    with pytest.raises(RunError, match=r"ReadVariableOp would read a variable that is a constant.*repair=references"):
        Session(parse(text)).run(["y"], {"p": np.array(True), "rows": np.array([1], np.int32)})


NOISE = """
    shape = Shape(x, T=float)
    uniform = RandomUniform(shape, T=int32, dtype=float)
    min = Const(float 0.0)
    width = Const(float 1.0)
    wide = Mul(uniform, width, T=float)
    noise = Add(wide, min, T=float)
"""
DROPOUTS = {
    "floor": """
        x = Placeholder(dtype=float)
        keep = Placeholder(dtype=float)
        div = RealDiv(x, keep, T=float)
        sum = Add(keep, noise, T=float)
        mask = Floor(sum, T=float)
        y = Mul(div, mask, T=float)
    """,
    "compare": """
        x = Placeholder(dtype=float)
        keep = Placeholder(dtype=float)
        one = Const(float 1.0)
        rate = Sub(one, keep, T=float)
        rest = Sub(one, rate, T=float)
        scale = RealDiv(one, rest, T=float)
        scaled = Mul(x, scale, T=float)
        kept = GreaterEqual(noise, rate, T=float)
        mask = Cast(kept, SrcT=bool, DstT=float)
        y = Mul(scaled, mask, T=float)
    """,
    "select": """
        x = Placeholder(dtype=float)
        keep = Placeholder(dtype=float)
        one = Const(float 1.0)
        rate = Sub(one, keep, T=float)
        scale = RealDiv(one, keep, T=float)
        scaled = Mul(scale, x, T=float)
        kept = GreaterEqual(noise, rate, T=float)
        zero = Const(float 0.0)
        y = SelectV2(kept, scaled, zero, T=float)
    """,
}


@pytest.mark.parametrize("form", DROPOUTS)
def test_dropout_in_every_form(form: str) -> None:
    graph, lines = after("dropout", DROPOUTS[form] + NOISE)
    assert_text(graph, "x = Placeholder(dtype=float)\ny = Identity(x, T=float)")
    assert lines == ["'y' dropped out what 'uniform' said; it hands on 'x'"]
    bound = freeze(parse(DROPOUTS[form] + NOISE), "y", {}, bind={"keep": 1.0})
    assert_text(bound, "x = Placeholder(dtype=float)\ny = Identity(x, T=float)")
    still = freeze(parse(DROPOUTS[form] + NOISE), "y", {}, bind={"keep": 0.5})
    assert still["y"].op != "Identity"


def test_other_uses_of_random_numbers_stay() -> None:
    text = "x = Placeholder(dtype=float)\ny = Mul(x, noise, T=float)\n" + NOISE
    assert after("dropout", text)[1] == []
    alpha = (
        text.replace("y = Mul(x, noise", "y = Add(part, rest")
        + """
        keep = Const(float 0.5)
        mask = Floor(sum, T=float)
        sum = Add(keep, noise, T=float)
        part = Mul(x, mask, T=float)
        one = Const(float 1.0)
        rest = Sub(one, mask, T=float)
    """
    )
    assert after("dropout", alpha)[1] == []
    masked = text.replace("Mul(x, noise", "Mul(x, floor") + "floor = Floor(noise, T=float)\n"
    assert after("dropout", masked)[1] == []
    assert len(without_dropout(parse(text), only_noop=True)[0]) == len(parse(text))


@needs_shared
@pytest.mark.parametrize("name", ["utensor_adl_deep_mlp", "utensor_mnist_demo"])
def test_real_models_lose_their_dropout(name: str) -> None:
    info = model_info(name)
    output = next(iter(info["outputs"])).partition(":")[0]
    told = freeze_with_report(model_dir(name) / info["file"], output, repair="dropout")
    assert told.repaired
    assert not any(node.op == "RandomUniform" for node in told.graph)
    feeds = {n.name + ":0": None for n in told.graph if n.op == "Placeholder"}
    assert feeds


@needs_shared
def test_a_saved_model_with_dropout_left_in() -> None:
    folder = model_dir("sm_mnist_conv") / "mnist_conv_model"
    rates = [node.name for node in freeze(folder) if node.op == "PlaceholderWithDefault"]
    told = freeze_with_report(folder, bind=dict.fromkeys(rates, 1.0))
    assert rates
    assert not {node.op for node in told.graph} & {"RandomUniform", "Floor", "PlaceholderWithDefault"}
    feeds = {"Features:0": np.random.default_rng(0).random((2, 28, 28, 1), np.float32)}
    before = Session(freeze(folder)).run(["Prediction:0"], {**feeds, **{f"{r}:0": np.float32(1) for r in rates}})[0]
    np.testing.assert_allclose(Session(told.graph).run(["Prediction:0"], feeds)[0], before, rtol=1e-5)


@needs_shared
def test_a_training_step_loses_its_updates() -> None:
    folder = model_dir("sm_rust_regression") / "regression_savedmodel"
    told = freeze_with_report(folder, signature="train", repair=["updates"])
    assert not any(is_update(node) for node in told.graph)
    assert told.warnings == ()


@needs_shared
def test_a_graph_that_was_frozen_with_its_initializers() -> None:
    """``gait``: TensorFlow says "Input 0 of node Variable/Assign was passed float from Variable:0 incompatible with
    expected float_ref"."""
    graph = formats.load(model_dir("gait") / model_info("gait")["file"])
    told = freeze_with_report(graph, "init", repair="updates")
    assert len(told.repaired) == 26
    assert "frozen with its initializer as the output: it holds 26 initial assignments" in told.warnings[0]
    assert "'Variable/Assign' (Assign to 'Variable') is dropped" in told.repaired
    assert [(node.name, node.op, node.inputs) for node in told.graph] == [("init", "NoOp", ())]
    with pytest.raises(FreezeError, match="It is likely the model was frozen previously"):
        freeze(graph, "init")


@pytest.mark.parametrize(
    ("source", "is_said"), [("Const(float [[1.0, 2.0]])", True), ("Placeholder(dtype=float)", False)]
)
def test_training_data_that_are_constants_are_told_as_what_is_to_be_fed(source: str, is_said: bool) -> None:
    whole = parse(f"""
        data = {source}
        w = VariableV2(dtype=float, shape=[2, 1])
        y = MatMul(data, w, T=float)
    """)
    frozen = parse(f"""
        data = {source}
        w = Const(float [[1.0], [2.0]])
        y = MatMul(data, w, T=float)
    """)
    said = [line for line in leftovers(frozen, whole) if line.startswith("no input leads to")]
    assert [line.endswith("inputs=data") for line in said] == [True] * is_said


def test_the_digits_lose_everything_in_one_go() -> None:
    told = freeze_with_report(ROOT / "examples" / "digits" / "training", "train/probabilities", repair=True)
    assert told.repaired == (
        "'is_training' is false from now on",
        "'train/images' had the input pipeline as its default; it is a placeholder float[?,8,8,1]",
    )
    assert told.warnings == ()
