"""Gradients of small graphs: TensorFlow's own numbers, and where it has none, differences of float64 results."""

from __future__ import annotations

import pathlib
import re
import sys

import numpy as np
import pytest

import pocketgraph
from function_text import with_functions
from pocketgraph.differentiation.gradient_table import GRADIENTS
from pocketgraph.errors import GraphError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures"
sys.path.insert(0, str(FIXTURES))
from gradient_cases import CASES, Case, with_weights  # noqa: E402

GOLDEN = dict(np.load(FIXTURES / "gradients.npz"))
TOLERANCE = 1e-5
JUDGED = [case for case in CASES if not case.numeric]
NUMERIC = [case for case in CASES if case.numeric]


def assert_near(got: np.ndarray, want: np.ndarray, tolerance: float = TOLERANCE) -> None:
    assert got.shape == want.shape
    peak = float(np.max(np.abs(want), initial=0.0)) or 1.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * peak)


@pytest.mark.parametrize("static", [True, False], ids=["known_sizes", "unknown_sizes"])
@pytest.mark.parametrize("case", JUDGED, ids=lambda case: case.name)
def test_gradients_are_tensorflows(case: Case, static: bool) -> None:
    feeds = case.feeds()
    graph = with_weights(case.graph(static=static), feeds)
    slopes = pocketgraph.gradients(graph, "y", list(feeds), ["oracle_gy"], unconnected="zero")
    for options in ({"engine": "reference"}, {}):
        with pocketgraph.Session(slopes, **options) as session:
            found = session.run(list(slopes.outputs), feeds)
        for x, got in zip(feeds, found, strict=True):
            assert_near(got, GOLDEN[f"{case.name}/{x}"])


def test_the_newer_lstm_block_has_the_gradients_of_the_older_one_whose_gates_stand_otherwise() -> None:
    case = next(case for case in CASES if case.name == "BlockLSTM")
    newer = case._replace(
        nodes="""
        n = Const(int64 3)
        p = Const(float [0.0, 0.0])
        last = Const(int32 -1)
        w = Split(last, W, T=float, num_split=4)
        b = Split(last, B, T=float, num_split=4)
        one = Const(float 1.0)
        f = Add(b:2, one, T=float)
        v = ConcatV2(w, w:2, w:1, w:3, last, N=4, T=float, Tidx=int32)
        c = ConcatV2(b, f, b:1, b:3, last, N=4, T=float, Tidx=int32)
        l = BlockLSTMV2(n, X, C, H, v, p, p, p, c, T=float, cell_clip=0.0, use_peephole=false)
        y = Identity(l:6, T=float)
    """
    )
    feeds = case.feeds()
    slopes = pocketgraph.gradients(with_weights(newer.graph(), feeds), "y", list(feeds), ["oracle_gy"])
    with pocketgraph.Session(slopes) as session:
        for x, got in zip(feeds, session.run(list(slopes.outputs), feeds), strict=True):
            assert_near(got, GOLDEN[f"BlockLSTM/{x}"])


def test_nothing_flows_through_a_bicubic_resizing_of_half_numbers() -> None:
    graph = parse("""
        x = Placeholder(dtype=half, shape=[1,3,3,1])
        s = Const(int32 [4, 4])
        y = ResizeBicubic(x, s, T=half, align_corners=false, half_pixel_centers=false)
    """)
    slopes = pocketgraph.gradients(graph, "y", "x", unconnected="zero")
    assert not any(node.op == "ResizeBicubicGrad" for node in slopes)  # which has no half numbers in TensorFlow


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        ("Bilinear", [1.0, -0.5, -2.0, 2.5, 0.875, -0.75, 4.0, 2.25, 0.5]),
        ("Bicubic", [0.99782914, -0.6811943, -2.3602176, 2.7141385, 0.875, -0.9641386, 4.430447, 2.431194, 0.43194047]),
    ],
)
def test_the_gradient_of_a_resizings_gradient_is_the_resizing_as_tensorflow_resizes(
    kind: str, want: list[float]
) -> None:
    graph = parse(f"""
        dy = Placeholder(dtype=float, shape=[1,3,3,1])
        x = Placeholder(dtype=float, shape=[1,2,2,1])
        w = Const(float [[[[1.0], [-2.0]], [[4.0], [0.5]]]])
        y = Resize{kind}Grad(dy, x, T=float, align_corners=false, half_pixel_centers=true)
    """)
    feeds = {"dy": np.zeros((1, 3, 3, 1), np.float32), "x": np.zeros((1, 2, 2, 1), np.float32)}
    found = run(pocketgraph.gradients(graph, "y", "dy", ["w"]), feeds)[0]
    np.testing.assert_allclose(found.ravel(), want, rtol=1e-6)


@pytest.mark.parametrize("case", NUMERIC, ids=lambda case: case.name)
def test_gradients_are_differences_of_results(case: Case) -> None:
    feeds = {x: value.astype(np.float64) for x, value in case.feeds().items()}
    doubled = case._replace(nodes=re.sub(r"\bfloat\b", "double", case.nodes))
    graph = with_weights(doubled.graph(dtype="double"), feeds)
    weights = graph["oracle_gy"].tensor.numpy()
    slopes = pocketgraph.gradients(graph, "y", list(feeds), ["oracle_gy"])
    step = 1e-6
    with pocketgraph.Session(slopes, engine="reference") as session:
        found = session.run(list(slopes.outputs), feeds)
        for (x, value), got in zip(feeds.items(), found, strict=True):
            want = np.zeros_like(value)
            for place in np.ndindex(value.shape):
                sides = []
                for sign in (1, -1):
                    moved = value.copy()
                    moved[place] += sign * step
                    sides.append(np.sum(session.run(["y"], {**feeds, x: moved})[0] * weights))
                want[place] = (sides[0] - sides[1]) / (2 * step)
            assert_near(got, want, 1e-7)


def test_an_op_that_has_a_gradient_is_an_op_and_its_module_is_in_the_index() -> None:
    from pocketgraph.graph import opdefs

    for op in GRADIENTS:
        assert opdefs.find(op) is not None, op
        assert GRADIENTS.row(op) is not None, op


GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[2])
    n = Placeholder(dtype=int32, shape=[2])
    a = HSVToRGB(x, T=float)
    b = MatrixLogarithm(a, T=float)
    y = Square(b, T=float)
    z = Neg(x, T=float)
""")


def test_all_ops_without_a_gradient_are_named_with_their_nodes() -> None:
    with pytest.raises(GraphError, match=r"2 nodes have no gradient: 'a' \(HSVToRGB\), 'b' \(MatrixLogarithm\)"):
        pocketgraph.gradients(GRAPH, "y", "x")


def test_ops_whose_gradient_is_of_real_numbers_only_are_named_where_theirs_are_complex() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        c = Complex(x, x, T=float, Tout=complex64)
        e = SquaredDifference(c, c, T=complex64)
        y = Real(e, T=complex64, Tout=float)
    """)
    with pytest.raises(GraphError, match=r"1 node has no gradient: 'e' \(SquaredDifference of complex numbers\)"):
        pocketgraph.gradients(graph, "y", "x")
    with pytest.raises(GraphError, match="'c' is complex64, and gradients are of floating numbers only"):
        pocketgraph.gradients(graph, "y", "c")


def test_the_gradient_of_a_magnitude_of_zero_is_zero() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        z = ZerosLike(x, T=float)
        c = Complex(x, z, T=float, Tout=complex64)
        y = ComplexAbs(c, T=complex64, Tout=float)
    """)
    assert run(pocketgraph.gradients(graph, "y", "x"), {"x": [0.0, -3.0]})[0].tolist() == [0, -1]


@pytest.mark.parametrize(
    ("transform", "given", "cut"),
    [("RFFT(%s, n)", "Identity(x, T=float)", "[2, 4]"), ("IRFFT(%s, n)", "Complex(x, x, T=float)", "[2, 3]")],
)
def test_of_what_a_transform_passes_over_the_gradient_is_zero(transform: str, given: str, cut: str) -> None:
    """TensorFlow's own gradient fails where fft_length is less than what is given; so it is judged by a slice."""
    x = np.random.default_rng(3).normal(size=(2, 6)).astype(np.float32)
    found = []
    for source in ("given", "cut"):
        graph = parse(f"""
            x = Placeholder(dtype=float, shape=[2,6])
            given = {given}
            begin = Const(int32 [0, 0])
            size = Const(int32 {cut})
            n = Const(int32 [4])
            cut = Slice(given, begin, size, T={"complex64" if "Complex" in given else "float"}, Index=int32)
            f = {transform % source}
            w = Const(float {[0.5, -1.5, 2.0, 0.25][: 4 if "IRFFT" in transform else 3]})
            m = {"Identity(f, T=float)" if "Complex" in given else "ComplexAbs(f, T=complex64, Tout=float)"}
            y = Mul(m, w, T=float)
        """)
        found.append(run(pocketgraph.gradients(graph, "y", "x"), {"x": x})[0])
    assert np.abs(found[0]).max() > 0.1
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)


def test_ops_without_a_gradient_beside_the_way_do_no_harm() -> None:
    assert pocketgraph.gradients(GRAPH, "y", "b").outputs
    assert pocketgraph.gradients(GRAPH, "z", "x").outputs


@pytest.mark.parametrize(
    ("ys", "xs", "options", "message"),
    [
        ("nowhere", "x", {}, "no tensor 'nowhere'"),
        ("y", "x:3", {}, "there is no 'x:3'"),
        ("y", "n", {}, "'n' is int32"),
        ("z", "y", {}, "z does not depend on y; unconnected='zero'"),
        ("z", "x", {"unconnected": "none"}, "'error' or 'zero'"),
        ("z", "x", {"grad_ys": ["x", "x"]}, "1 ys and 2 grad_ys"),
        ("z", [], {}, "a y and an x"),
    ],
)
def test_bad_calls_say_what_is_wrong(ys: str, xs: str | list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        pocketgraph.gradients(GRAPH, ys, xs, **options)  # type: ignore[arg-type]


def run(graph: Graph, feeds: dict[str, object]) -> list[np.ndarray]:
    with pocketgraph.Session(graph, engine="reference") as session:
        found: list[np.ndarray] = session.run(list(graph.outputs), feeds)
    return found


def test_assertions_that_only_run_before_are_not_on_the_way() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        t = Const(bool true)
        a = Assert(t, x, T=[float], summarize=3)
        y = Square(x, ^a, T=float)
    """)
    assert_near(run(pocketgraph.gradients(graph, "y", "x"), {"x": [1.0, 2.0]})[0], np.float32([2, 4]))


def test_what_is_not_connected_is_zero_on_request() -> None:
    slopes = pocketgraph.gradients(GRAPH, "z", ["x", "y"], unconnected="zero")
    assert slopes.outputs[1].startswith("gradients/zeros_like")


def test_names_are_tensorflows_and_a_scope_that_is_taken_gets_a_number() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[?])\ny = Relu(x, T=float)")
    once = pocketgraph.gradients(graph, "y", "x")
    assert [node.name for node in once][2:] == [
        "gradients/Shape", "gradients/grad_ys_0", "gradients/Fill", "gradients/y_grad/ReluGrad",
    ]  # fmt: skip
    twice = pocketgraph.gradients(once, once.outputs, "x")
    assert twice.outputs[0].startswith("gradients_1/")


def test_a_second_derivative() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\ny = Tanh(x, T=float)")
    once = pocketgraph.gradients(graph, "y", "x")
    twice = pocketgraph.gradients(once, once.outputs, "x")
    x = np.float32([0.3, -1.0])
    want = -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
    assert_near(run(twice, {"x": x})[0], want)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(
    ("op", "x", "want"),
    [
        ("Elu", [-1.5, -0.25, 0.5, 2.0], [0.13891499, -0.6316452, 40.5, 72.0]),
        ("Selu", [-1.5, -0.25, 0.5, 2.0], [4.1021318, -18.652353, 54.49165, 96.874046]),
        ("Softplus", [-1.5, -0.25, 0.5, 2.0], [0.0025917431, 3.1625307, 93.554138, 67.690193]),
        ("Sqrt", [0.25, 0.5, 1.5, 4], [2.25, 9.0, 20.250004, 0.5625]),
        ("Rsqrt", [0.25, 0.5, 1.5, 4], [-46080.0, -2879.9988, -8.8888845, -0.00068664551]),
        ("Reciprocal", [-1.5, -0.25, 0.5, 2.0], [1.8728859, 75497472.0, -331776.0, -0.03515625]),
    ],
)
def test_second_derivatives_are_tensorflows(op: str, x: list[float], want: list[float], engine: str | None) -> None:
    """The gradient of the square of that of c f(x)³: TensorFlow 1.15's numbers."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[4])
        f = {op}(x, T=float)
        square = Square(f, T=float)
        cube = Mul(square, f, T=float)
        c = Const(float [1, -2, 3, 0.5])
        y = Mul(cube, c, T=float)
    """)
    assert_near(_of_squared_gradient(graph, engine, np.float32(x)), np.float32(want), 1e-6)


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("kind", ["", "3D"])
def test_second_derivatives_of_max_pooling_are_tensorflows(kind: str, engine: str | None) -> None:
    """TensorFlow 1.15's numbers, with ties: in two dimensions one of the largest counts, in three all."""
    ones = ",1" * (kind == "3D")
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,4,4,1{ones}])
        p = MaxPool{kind}(x, T=float, ksize=[1,3,2,1{ones}], strides=[1,1,2,1{ones}], padding="SAME")
        y = Square(p, T=float)
    """)
    x = np.float32([[1, 2, 2, 0], [5, 4, -1, 3], [0, 1, 7, 7], [2, 2, 3, -4]])
    want = np.float32([[0, 0, 0, 0], [1800, 0, 0, 72], [0, 0, 3528, 0], [32, 0, 0, 0]])
    if kind:
        want[[2, 3], [3, 1]] = 3528, 32
    shape = (1, 4, 4, 1, *[1] * bool(kind))
    assert_near(_of_squared_gradient(graph, engine, x.reshape(shape), weigh=True), want.reshape(shape), 1e-6)


def _of_squared_gradient(graph: Graph, engine: str | None, x: np.ndarray, *, weigh: bool = False) -> np.ndarray:
    """The gradient by x of the sum of the squares of the gradient by x, each times a constant x where they weigh."""
    once = pocketgraph.gradients(graph, "y", "x")
    weights = const("weights", x if weigh else np.ones_like(x))
    squares = parse(f"""
        squares = Square({once.outputs[0]}, T=float)
        weighed = Mul(squares, weights, T=float)
    """)
    twice = pocketgraph.gradients(once.replace([*once, weights, *squares]), "weighed", "x")
    with pocketgraph.Session(twice, **({"engine": engine} if engine else {})) as session:
        return session.run(list(twice.outputs), {"x": x})[0]


def test_tensors_that_count_as_constants() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\na = Square(x, T=float)\ny = Mul(a, x, T=float)")
    x = np.float32([3.0, -2.0])
    assert_near(run(pocketgraph.gradients(graph, "y", "x"), {"x": x})[0], 3 * x**2)
    assert_near(run(pocketgraph.gradients(graph, "y", "x", stop_gradients=["a"]), {"x": x})[0], x**2)


@pytest.mark.parametrize(
    ("stop", "want"),
    [
        ([], [475.5, 177.75, 1.5, 1.5]), (["b"], [120.0, 177.75, 1.5, 1.5]), (["x"], [475.5, 177.75, 1.5, 1.5]),
        (["o"], [100.5, 0, 1.5, 0]), (["left"], [100.5, 0, 1.5, 1.5]), (["x", "b"], [120.0, 177.75, 1.5, 1.5]),
        (["y"], [0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_an_x_that_counts_as_a_constant_has_its_gradient_as_in_tensorflow(stop: list[str], want: list[float]) -> None:
    """Of three rounds of o = o b + x from b = 2 x on, and y = o x; the numbers are those of tf.gradients, 1.15."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        two = Const(float 2)
        b = Mul(x, two, T=float)
        zero = Const(int32 0)
        start = Enter(zero, T=int32, frame_name="w")
        first = Enter(b, T=float, frame_name="w")
        held_b = Enter(b, T=float, frame_name="w", is_constant=true)
        held_x = Enter(x, T=float, frame_name="w", is_constant=true)
        count = Merge(start, next_count, N=2, T=int32)
        value = Merge(first, next_value, N=2, T=float)
        three = Const(int32 3, ^count)
        less = Less(count, three, T=int32)
        more = LoopCond(less)
        way_count = Switch(count, more, T=int32)
        way_value = Switch(value, more, T=float)
        one_more = Identity(way_count:1, T=int32)
        one = Const(int32 1, ^one_more)
        added = Add(one_more, one, T=int32)
        product = Mul(way_value:1, held_b, T=float)
        sum = Add(product, held_x, T=float)
        next_count = NextIteration(added, T=int32)
        next_value = NextIteration(sum, T=float)
        left = Exit(way_value, T=float)
        o = Identity(left, T=float)
        y = Mul(o, x, T=float)
    """)
    slopes = pocketgraph.gradients(graph, "y", ["x", "b", "o", "left"], stop_gradients=stop, unconnected="zero")
    assert run(slopes, {"x": 1.5}) == want


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("Sum", [[np.inf, 1], [0, 0], [3, np.nan], [np.inf, 1]]),
        ("Max", [[0, 0], [0, 0], [3, np.nan], [np.inf, 1]]),
        ("Min", [[np.inf, 1], [0, 0], [3, np.nan], [0, 0]]),
    ],
)
def test_dropped_rows_get_no_gradient_where_others_are_not_finite(
    op: str, want: list[list[float]], engine: str | None
) -> None:
    """TensorFlow 1.15's numbers."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[4,2])
        i = Const(int32 [0, -1, 1, 0])
        n = Const(int32 2)
        s = UnsortedSegment{op}(x, i, n, T=float, Tindices=int32, Tnumsegments=int32)
        c = Const(float [[inf, 1], [3, nan]])
        y = Mul(s, c, T=float)
    """)
    slopes = pocketgraph.gradients(graph, "y", "x")
    with pocketgraph.Session(slopes, **({"engine": engine} if engine else {})) as session:
        (found,) = session.run(list(slopes.outputs), {"x": [[1, 5], [2, 4], [3, 4], [9, 9]]})
    np.testing.assert_array_equal(found, np.float32(want))


@pytest.mark.parametrize("way", [True, False])
def test_conditionals_go_back_through_the_branch_that_ran(way: bool) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        p = Placeholder(dtype=bool, shape=[])
        s = Switch(x, p, T=float)
        no = Square(s, T=float)
        yes = Sin(s:1, T=float)
        y = Merge(no, yes, N=2, T=float)
    """)
    slopes = pocketgraph.gradients(graph, "y", "x")
    x = np.float32([3.0, -2.0])
    assert_near(run(slopes, {"x": x, "p": way})[0], np.cos(x) if way else 2 * x)


VARIABLE = """
    h = VarHandleOp(dtype=float, shape=[2], shared_name="h")
    first = Const(float [0.5, -2.0])
    set = AssignVariableOp(h, first, dtype=float)
"""


@pytest.mark.parametrize("way", [True, False])
def test_a_variable_that_one_branch_reads(way: bool) -> None:
    graph = parse(f"""{VARIABLE}
        x = Placeholder(dtype=float, shape=[2])
        p = Placeholder(dtype=bool, shape=[])
        s = Switch(x, p, T=float)
        v = Switch(h, p, T=resource)
        r = ReadVariableOp(v:1, dtype=float)
        yes = Mul(r, s:1, T=float)
        no = Identity(s, T=float)
        y = Merge(no, yes, N=2, T=float)
    """)
    slopes = pocketgraph.gradients(graph, "y", ["h", "x"])
    feeds = {"x": np.float32([3.0, 4.0]), "p": way}
    with pocketgraph.Session(slopes, engine="reference") as session:
        session.run(["set"], {})
        by_h, by_x = session.run(list(slopes.outputs), feeds)
    assert_near(by_h, np.float32([3, 4]) * way)
    assert_near(by_x, np.float32([0.5, -2.0]) if way else np.float32([1, 1]))


def test_variables_by_resource_looked_up_and_not_connected() -> None:
    graph = parse(f"""{VARIABLE}
        i = Const(int32 [1, 1])
        r = ResourceGather(h, i, dtype=float, Tindices=int32)
        y = Square(r, T=float)
        x = Placeholder(dtype=float, shape=[2])
        z = Neg(x, T=float)
    """)
    slopes = pocketgraph.gradients(graph, "y", "h")
    apart = pocketgraph.gradients(graph, "z", "h", unconnected="zero")
    for made, want in ((slopes, [0.0, -8.0]), (apart, [0.0, 0.0])):
        with pocketgraph.Session(made, engine="reference") as session:
            session.run(["set"], {})
            assert_near(session.run(list(made.outputs), {})[0], np.float32(want))


@pytest.mark.parametrize("way", [True, False])
def test_functions_and_conditionals_of_tensorflow_2_are_inlined(way: bool) -> None:
    graph = with_functions(
        parse("""
            x = Placeholder(dtype=float, shape=[2])
            p = Placeholder(dtype=bool, shape=[])
            c = PartitionedCall(x, Tin=[float], Tout=[float], f=func(cube))
            y = If(p, c, Tcond=bool, Tin=[float], Tout=[float], then_branch=func(sine), else_branch=func(twice))
        """),
        [
            "cube(a: float) -> m:z:0", "s = Mul(a, a, T=float)", "m = Mul(s:z:0, a, T=float)",
            "sine(a: float) -> r:y:0", "r = Sin(a, T=float)",
            "twice(a: float) -> r:z:0", "r = Add(a, a, T=float)",
        ],
    )  # fmt: skip
    x = np.float32([0.5, -1.2])
    want = 3 * x**2 * (np.cos(x**3) if way else 2)
    assert_near(run(pocketgraph.gradients(graph, "y", "x"), {"x": x, "p": way})[0], want)


def test_what_has_no_gradient_in_a_loop_is_named() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        e = Enter(x, T=float, frame_name="f")
        m = Merge(e, n, N=2, T=float)
        t = Const(float 100.0)
        te = Enter(t, T=float, frame_name="f", is_constant=true)
        c = Less(m, te, T=float)
        l = LoopCond(c)
        s = Switch(m, l, T=float)
        b = HSVToRGB(s:1, T=float)
        n = NextIteration(b, T=float)
        y = Exit(s, T=float)
    """)
    with pytest.raises(GraphError, match=r"1 node has no gradient: 'b' \(HSVToRGB\)"):
        pocketgraph.gradients(graph, "y", "x")


def test_the_graph_that_is_given_stays_as_it_was() -> None:
    before = len(GRAPH)
    slopes = pocketgraph.gradients(GRAPH, "z", "x")
    assert len(GRAPH) == before
    assert all(slopes[node.name] is node for node in GRAPH)


def test_a_file_that_is_written_and_read_differentiates_the_same(tmp_path: pathlib.Path) -> None:
    slopes = pocketgraph.gradients(GRAPH, "z", "x")
    pocketgraph.save(slopes, tmp_path / "slopes.pb")
    x = np.float32([1.0, 2.0])
    assert_near(run(pocketgraph.load(tmp_path / "slopes.pb").replace(outputs=slopes.outputs), {"x": x})[0], -np.ones(2))
