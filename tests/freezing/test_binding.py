"""Inputs that are fixed: constants of the right type, and branches that they decide."""

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import FreezeError, UsageError
from pocketgraph.freezing import freeze, freeze_with_report
from pocketgraph.freezing.binding import bound, split
from pocketgraph.freezing.decided_branches import without_known_branches
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from support import ROOT, assert_close, assert_text

BRANCH = """
    x = Placeholder(dtype=float)
    train = Placeholder(dtype=bool, shape=[])
    use = LogicalNot(train)
    s = Switch(x, use, T=float)
    both = Switch(use, use, T=bool)
    t = Identity(both:1, T=bool)
    f = Identity(both, T=bool)
    two = Const(float 2.0, ^t)
    three = Const(float 3.0, ^f)
    a = Mul(s:1, two, T=float)
    b = Add(s, three, T=float)
    y = Merge(b, a, T=float, N=2)
    z = Relu(y, ^s, T=float)
"""


def decided(text: str, output: str, **values: Any) -> Graph:
    return without_known_branches(bound(parse(text).replace(outputs=[output]), values))


def test_the_branch_that_is_taken_stays() -> None:
    assert_text(
        decided(BRANCH, "z", train=False),
        """
        x = Placeholder(dtype=float)
        train = Const(bool false)
        use = LogicalNot(train)
        t = Identity(use, T=bool)
        two = Const(float 2.0)
        a = Mul(x, two, T=float)
        y = Identity(a, T=float)
        z = Relu(y, T=float)
        """.replace("z = Relu(y, T=float)", "z = Relu(y, ^x, T=float)"),
    )  # fmt: skip
    other = decided(BRANCH, "z", train="true")
    assert "b" in other
    assert "a" not in other
    (three,) = Session(other).run(["z:0"], {"x:0": np.float32(4)})
    assert three.tolist() == 7


def test_a_branch_in_a_branch() -> None:
    text = BRANCH.replace(
        "y = Merge(b, a,",
        """
    inner = Switch(a, use, T=float)
    deep = Neg(inner:1, T=float)
    never = Abs(inner, T=float)
    joined = Merge(deep, never, T=float, N=2)
    y = Merge(b, joined,""",
    )
    graph = decided(text, "z", train=False)
    assert not {node.op for node in graph} & {"Switch", "Merge", "Abs"}
    assert graph["deep"].inputs == ("a",)


def test_which_way_it_came_is_known_too() -> None:
    graph = decided(BRANCH + "way = Identity(y:1, T=int32)\n", "way", train=False)
    assert Session(graph).run(["way:0", "y:0"], {"x:0": np.float32(4)})[0].tolist() == 1


def test_a_merge_of_three_loses_one() -> None:
    text = BRANCH.replace(
        "y = Merge(b, a, T=float, N=2)",
        """
    q = Placeholder(dtype=bool)
    u = Switch(x, q, T=float)
    y = Merge(b, u, u:1, T=float, N=3)""",
    )
    graph = decided(text, "z", train=False)
    assert graph["y"].inputs == ("u", "u:1")
    assert graph["y"].attr("N") == 2


def test_loops_stay_whole() -> None:
    text = """
        x = Placeholder(dtype=float)
        n = Placeholder(dtype=float)
        e = Enter(x, T=float, frame_name="f")
        k = Enter(n, T=float, frame_name="f", is_constant=true)
        m = Merge(e, next, T=float, N=2)
        l = Less(m, k, T=float)
        c = LoopCond(l)
        s = Switch(m, c, T=float)
        one = Const(float 1.0, ^m)
        more = Add(s:1, one, T=float)
        next = NextIteration(more, T=float)
        y = Exit(s, T=float)
    """
    graph = decided(text, "y", n=3.5)
    assert len(graph) == len(parse(text))
    assert Session(graph).run(["y:0"], {"x:0": np.float32(0)})[0].tolist() == 4


def test_an_output_on_the_way_not_taken() -> None:
    with pytest.raises(FreezeError, match="output 'b': the values that were bound decide that it is never computed"):
        decided(BRANCH, "b", train=False)


@pytest.mark.parametrize(
    ("placeholder", "value", "expected"),
    [
        ("dtype=bool", "False", False),
        ("dtype=bool", 1, True),
        ("dtype=float", "0.5", 0.5),
        ("dtype=float", 1, 1.0),
        ("dtype=int32, shape=[2]", "[3, 4]", [3, 4]),
        ("dtype=string", "some words", b"some words"),
        ("dtype=uint8, shape=[?]", np.array([1, 2, 3]), [1, 2, 3]),
    ],
)
def test_values_of_every_kind(placeholder: str, value: Any, expected: Any) -> None:
    graph = bound(parse(f"p = Placeholder({placeholder})"), {"p:0": value})
    assert graph["p"].op == "Const"
    assert graph["p"].tensor.numpy().tolist() == expected
    assert graph["p"].tensor.dtype.name == placeholder.split("=")[1].split(",")[0]


@pytest.mark.parametrize(
    ("placeholder", "value", "message"),
    [
        ("dtype=bool", "maybe", "'maybe' is no value of type bool"),
        ("dtype=bool", 2, "2 is no value of type bool"),
        ("dtype=bool", 0.5, "0.5 is no value of type bool"),
        ("dtype=int32", "0.5", "'0.5' is no value of type int32"),
        ("dtype=uint8", -1, "-1 is no value of type uint8"),
        ("dtype=float", "[1, [2]]", "is no value of type float"),
        ("dtype=float, shape=[2]", "[1, 2, 3]", r"it takes float\[2\], not \[3\]"),
        ("dtype=float", "[" * 100_000, "is no value of type float"),
        ("dtype=qint8", "3000000000", "'3000000000' is no value of type qint8"),
        ("dtype=qint8", "NaN", "'NaN' is no value of type qint8"),
        ("dtype=quint8", "-1", "'-1' is no value of type quint8"),
    ],
)
def test_values_that_do_not_fit(placeholder: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bound(parse(f"p = Placeholder({placeholder})"), {"p": value})


def test_names_that_cannot_be_bound() -> None:
    graph = parse(BRANCH + "pair = Split(train, x, T=float, num_split=2)\n")
    with pytest.raises(FreezeError, match="there is no node 'trian' to bind; did you mean 'train'"):
        bound(graph, {"trian": True})
    with pytest.raises(FreezeError, match="its placeholders are x, train"):
        bound(graph, {"qqqqqq": True})
    with pytest.raises(FreezeError, match="only a node's first output can be bound"):
        bound(graph, {"both:1": True})
    with pytest.raises(FreezeError, match="a Split with 2 outputs cannot be bound"):
        bound(graph, {"pair": True})
    assert split("a/b=c=d") == ("a/b", "c=d")
    for text in ("train", "=true", "train="):
        with pytest.raises(UsageError, match="does not say NAME=VALUE"):
            split(text)


def test_the_training_tower_of_the_digits_gives_what_the_serving_tower_gives() -> None:
    folder = ROOT / "examples" / "digits"
    told = freeze_with_report(folder / "training", "train/probabilities", bind={"is_training": False}, repair=True)
    assert not {node.op for node in told.graph} & {"Switch", "Merge", "RandomUniform", "PlaceholderWithDefault"}
    assert [node.name for node in told.graph if node.op == "Placeholder"] == ["train/images"]
    assert told.warnings == ()
    with np.load(folder / "data" / "held_out.npz") as data:
        images = data["images"][..., np.newaxis].astype(np.float32) / np.float32(255)
    with np.load(folder / "data" / "golden.npz") as data:
        wanted = data["probabilities"]
    assert_close(Session(told.graph).run(["train/probabilities:0"], {"train/images:0": images})[0], wanted, 1e-5)


def test_training_mode_is_refused() -> None:
    folder = ROOT / "examples" / "digits" / "training"
    with pytest.raises(
        FreezeError, match=r"'train/bn1/batchnorm/Rsqrt' \(and 2 more.*mean and variance from the batch"
    ):
        freeze(folder, "train/probabilities", bind={"is_training": True})
    graph = freeze(folder, "train/probabilities", bind={"is_training": True}, allow_training_batch_norm=True)
    assert any(node.op == "RandomUniform" for node in graph)
    undecided = freeze(folder, "train/probabilities")
    assert any(node.op == "Switch" for node in undecided)


@pytest.mark.parametrize(
    ("norm", "why"),
    [
        ("is_training=true", "frozen with is_training=true"),
        ("epsilon=0.5", "frozen with is_training=true"),  # which is the op's default
        ("is_training=false", "has empty moving statistics"),
    ],
)
def test_fused_batch_norms_that_use_the_batch(norm: str, why: str) -> None:
    text = f"""
        x = Placeholder(dtype=float)
        w = VariableV2(dtype=float, shape=[2])
        none = Const(float [])
        y = FusedBatchNormV3(x, w, w, none, none, T=float, U=float, {norm})
    """
    values = {"w": parse("w = Const(float [1.0, 2.0])")["w"].tensor}
    with pytest.raises(FreezeError, match=why):
        freeze(parse(text), "y", values)
    assert freeze(parse(text), "y", values, allow_training_batch_norm=True)["y"].op == "FusedBatchNormV3"


def test_statistics_that_were_never_updated_are_told() -> None:
    text = """
        x = Placeholder(dtype=float)
        w = VariableV2(dtype=float, shape=[2])
        m = VariableV2(dtype=float, shape=[2])
        y = FusedBatchNorm(x, w, w, m, w, T=float, is_training=false)
    """
    ones, zeros = (parse(f"w = Const(float [{v}, {v}])")["w"].tensor for v in ("1.0", "0.0"))
    (warning,) = freeze_with_report(parse(text), "y", {"w": ones, "m": zeros}).warnings
    assert "the moving statistics of 'y' were never updated" in warning
    assert freeze_with_report(parse(text), "y", {"w": ones, "m": ones}).warnings == ()


def test_the_command_binds_and_repairs(tmp_path: pathlib.Path) -> None:
    from click.testing import CliRunner

    from pocketgraph.cli.freeze_graph import command

    folder = str(ROOT / "examples" / "digits" / "training")
    out = str(tmp_path / "frozen.pb")
    call = [folder, "-o", out, "--output_node_names=train/probabilities", "--bind", "is_training=false", "--repair"]
    result = CliRunner().invoke(command, call, catch_exceptions=False)
    assert result.exit_code == 0
    assert "repaired: 'train/images' had the input pipeline as its default" in result.output
    with pytest.raises(UsageError, match="no repair called 'dropuot'; did you mean 'dropout'"):
        CliRunner().invoke(command, [*call[:-1], "--repair=dropuot"], catch_exceptions=False)
    with pytest.raises(FreezeError, match="bind is_training=false"):
        CliRunner().invoke(command, [*call[:4], "--bind=is_training=true"], catch_exceptions=False)
    model = ROOT / "tests" / "fixtures" / "saved_models" / "choices"
    for way in ("keep", "lower"):
        call = ["--input_saved_model_dir", str(model), "-o", out, "--signature=serving_default"]
        result = CliRunner().invoke(command, [*call, f"--functional_control_flow={way}"], catch_exceptions=False)
        assert result.exit_code == 0
        assert "Froze 1 variables." in result.output


LAYER_NORM = """
    x = Placeholder(dtype=float, shape=[?,3])
    one = Const(int32 1)
    three = Const(int32 3)
    shape = Shape(x, T=float, out_type=int32)
    from = Const(int32 [0])
    to = Const(int32 [1])
    step = Const(int32 [1])
    rows = StridedSlice(shape, from, to, step, T=int32, Index=int32, shrink_axis_mask=1)
    sizes = Pack(FIRST, rows, three, one, T=int32, N=4)
    channels = Reshape(x, sizes, T=float, Tshape=int32)
    count = Pack(rows, T=int32, N=1)
    unit = Const(float SCALE)
    zero = Const(float 0.0)
    ones = Fill(count, unit, T=float, index_type=int32)
    zeros = Fill(count, zero, T=float, index_type=int32)
    none = Const(float [])
    norm = FusedBatchNormV3(channels, ones, zeros, none, none, T=float, U=float, is_training=true, data_format="NCHW")
    flat = Shape(x, T=float, out_type=int32)
    normal = Reshape(norm, flat, T=float, Tshape=int32)
    w = VariableV2(dtype=float, shape=[])
    y = Mul(normal, w, T=float)
"""


def test_keras_layer_norms_on_fused_batch_norms_are_frozen() -> None:
    """Keras normalizes each example by itself: it makes channels of the examples of a batch of one."""
    values = {"w": parse("w = Const(float 2.0)")["w"].tensor}
    frozen = freeze(parse(LAYER_NORM.replace("FIRST", "one").replace("SCALE", "1.0")), "y", values)
    given = np.array([[1, 2, 3], [4, 4, 10]], np.float32)
    mean, deviation = given.mean(1, keepdims=True), np.sqrt(given.var(1, keepdims=True) + 1e-4)
    with Session(frozen) as session:
        [alone] = session.run(["y"], {"x": given[:1]})
        [both] = session.run(["y"], {"x": given})
    np.testing.assert_allclose(both, 2 * (given - mean) / deviation, rtol=1e-5)
    np.testing.assert_array_equal(alone, both[:1])


@pytest.mark.parametrize(("first", "scale"), [("rows", "1.0"), ("one", "1.5")])
def test_other_fused_batch_norms_on_reshaped_examples_are_refused(first: str, scale: str) -> None:
    values = {"w": parse("w = Const(float 2.0)")["w"].tensor}
    with pytest.raises(FreezeError, match="frozen with is_training=true"):
        freeze(parse(LAYER_NORM.replace("FIRST", first).replace("SCALE", scale)), "y", values)
