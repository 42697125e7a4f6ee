"""The original's eight-bit arithmetic in floats, on the fast engine, against the reference kernels: code for code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT, INT8, QUINT8
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.quantized.eight_bit_arithmetic import (
    half_away,
)
from pocketgraph.runtime.eight_bit import arithmetic_choice as eight_bit_choice
from pocketgraph.runtime.eight_bit.float_rewriting import without_codes
from pocketgraph.runtime.eight_bit.ranges import RangeWriter
from pocketgraph.transforms.tool import run
from quantize_nets import float_program

F32 = np.float32
LOG = 'insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")'
SEARCH = """
    flat{0} = Const(int32 [-1])
    line{0} = Reshape({1}, flat{0}, T=float, Tshape=int32)
    axis{0} = Const(int32 [0])
    low{0} = Min(line{0}, axis{0}, T=float, keep_dims=false)
    high{0} = Max(line{0}, axis{0}, T=float, keep_dims=false)
    codes{0} = QuantizeV2({1}, low{0}, high{0}, T=quint8, mode="MIN_FIRST")
"""


# Operations

FEEDS = """
    x = Placeholder(dtype=float, shape=[2, 9, 9, 8])
    y = Placeholder(dtype=float, shape=[2, 9, 9, 8])
    wlow = Const(float -1.0)
    whigh = Const(float 1.5)
"""
PAIR = "codes0:0, codes1:0, codes0:1, codes0:2, codes1:1, codes1:2, T1=quint8, T2=quint8, "
TO_CONSTANT = "codes0:0, b, codes0:1, codes0:2, wlow, whigh, T1=quint8, T2=quint8, "
LAYERS = {
    "convolution": """wide = QuantizedConv2D(codes0:0, w, codes0:1, codes0:2, wlow, whigh, Tinput=quint8,
        Tfilter=quint8, out_type=qint32, strides=[1, 2, 2, 1], padding="SAME")""",
    "bias": f"wide = QuantizedBiasAdd({TO_CONSTANT} out_type=qint32)",
    "sum with a constant": f"wide = QuantizedAdd({TO_CONSTANT} Toutput=qint32)",
    "sum": f"wide = QuantizedAdd({PAIR} Toutput=qint32)",
    "product": f"wide = QuantizedMul({PAIR} Toutput=qint32)",
    "matrices": """two = Const(int32 [-1, 8])
        rows = QuantizedReshape(codes0:0, two, codes0:1, codes0:2, T=quint8, Tshape=int32)
        wide = QuantizedMatMul(rows:0, m, rows:1, rows:2, wlow, whigh, T1=quint8, T2=quint8, Toutput=qint32)""",
}
KEEPING = {
    "rectifier": "kept = QuantizedRelu(moved:0, moved:1, moved:2, Tinput=quint8, out_type=quint8)",
    "clip": "kept = QuantizedRelu6(moved:0, moved:1, moved:2, Tinput=quint8, out_type=quint8)",
    "largest": """kept = QuantizedMaxPool(moved:0, moved:1, moved:2, T=quint8, ksize=[1, 3, 3, 1],
        strides=[1, 2, 2, 1], padding="SAME")""",
    "average": """kept = QuantizedAvgPool(moved:0, moved:1, moved:2, T=quint8, ksize=[1, 3, 3, 1],
        strides=[1, 2, 2, 1], padding="SAME")""",
    "shape": """to = Const(int32 [-1, 24])
        kept = QuantizedReshape(moved:0, to, moved:1, moved:2, T=quint8, Tshape=int32)""",
    "joined": """axis = Const(int32 3)
        kept = QuantizedConcat(axis, moved:0, codes1:0, moved:1, codes1:1, moved:2, codes1:2, N=2, T=quint8)""",
    "larger": """to = Const(int32 [18, 18])
        kept = QuantizedResizeBilinear(moved:0, to, moved:1, moved:2, T=quint8)""",
    "as large as computed": """whole = Shape(x, T=float, out_type=int32)
        one = Const(int32 [1])
        three = Const(int32 [3])
        sides = StridedSlice(whole, one, three, one, T=int32, Index=int32)
        half = Const(int32 [2, 3])
        to = Mul(sides, half, T=int32)
        kept = QuantizedResizeBilinear(moved:0, to, moved:1, moved:2, T=quint8)""",
}
MOVES = {
    "searched": """range = RequantizationRange(wide:0, wide:1, wide:2, Tinput=qint32)
        moved = Requantize(wide:0, wide:1, wide:2, range:0, range:1, Tinput=qint32, out_type=quint8)""",
    "fixed": """from = Const(float -0.7)
        until = Const(float 2.1)
        moved = Requantize(wide:0, wide:1, wide:2, from, until, Tinput=qint32, out_type=quint8)""",
    "shrunk": "moved = QuantizeDownAndShrinkRange(wide:0, wide:1, wide:2, Tinput=qint32, out_type=quint8)",
}
OPENED = '{0} = Dequantize({1}:0, {1}:1, {1}:2, T=quint8, mode="MIN_FIRST")\n'


def graph_of(layer: str, move: str, keeping: str) -> Graph:
    """A layer on codes of searched ranges, a move to eight bits, and an operation on what comes of it.

    What is fed has been codes before, so that it is not taken for a picture, whose range counts for itself only.
    """
    lines = FEEDS + SEARCH.format(8, "x") + SEARCH.format(9, "y")
    lines += OPENED.format("again0", "codes8") + OPENED.format("again1", "codes9")
    lines += SEARCH.format(0, "again0") + SEARCH.format(1, "again1")
    lines += "\n".join((LAYERS[layer], MOVES[move], KEEPING[keeping], OPENED.format("result", "kept")))
    random = np.random.default_rng(7)
    constants = {"w": (3, 3, 8, 12), "b": (8,), "m": (8, 12)}
    nodes = [const(name, random.integers(0, 256, shape).astype(np.uint8), QUINT8) for name, shape in constants.items()]
    return Graph([*nodes, *parse(lines)], inputs=["x", "y"], outputs=["result"])


def compared(graph: Graph, folder: Path, feeds: dict[str, Array]) -> tuple[float, float]:
    """(the largest distance in steps of the result, the share of values that differ at all)."""
    with Session(graph, 1, exact=True, cache_dir=folder) as exact, Session(graph, 1, cache_dir=folder) as fast:
        expected, low, high = exact.run(["result:0", "kept:1", "kept:2"], feeds)
        (found,) = fast.run("result:0", feeds)
        assert all(part.runs_on == "litert" for part in fast.plan("result:0").parts)
    distance = np.abs(found - expected) / ((float(high) - float(low)) / 255 or 1.0)
    return float(distance.max()), float((distance > 0.5).mean())


def pictures(seed: int, size: float = 1.0) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    return {name: (size * random.normal(0.2, 1, (2, 9, 9, 8))).astype(F32) for name in ("x", "y")}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_give_the_codes_of_the_original(tmp_path: Path, layer: str, move: str) -> None:
    graph = graph_of(layer, move, "rectifier")
    for seed, size in ((1, 1.0), (2, 0.5)) if move == "fixed" else ((1, 1.0), (2, 1e-3), (3, 40.0)):
        distance, share = compared(graph, tmp_path, pictures(seed, size))
        assert round(distance, 3) <= 1
        assert share < 0.001


@pytest.mark.parametrize("keeping", KEEPING)
def test_operations_on_codes_give_the_codes_of_the_original(tmp_path: Path, keeping: str) -> None:
    graph = (
        graph_of("convolution", "searched", keeping) if keeping != "joined" else graph_of("sum", "searched", keeping)
    )
    distance, share = compared(graph, tmp_path, pictures(4))
    assert round(distance, 3) <= 1
    assert share < 0.001


@pytest.mark.parametrize("layer", LAYERS)
def test_values_without_any_range_are_no_trouble(tmp_path: Path, layer: str) -> None:
    for value in (0.0, -3.0, 7.5):
        feeds = {name: np.full((2, 9, 9, 8), value, F32) for name in ("x", "y")}
        distance, _ = compared(graph_of(layer, "searched", "rectifier"), tmp_path, feeds)
        assert round(distance, 3) <= 1


@pytest.mark.parametrize(("low", "high"), [(0.5, 2.0), (1.0, -1.0), (np.nan, 1.0), (-1.0, np.inf)])
def test_ranges_that_are_none_are_told_of(tmp_path: Path, low: float, high: float) -> None:
    graph = graph_of("sum", "fixed", "rectifier")
    ends = [const("from", F32(low), FLOAT), const("until", F32(high), FLOAT)]
    graph = graph.replace([*(node for node in graph if node.name not in ("from", "until")), *ends])
    outcomes = []
    for exact in (True, False):
        try:
            with Session(graph, 1, exact=exact, cache_dir=tmp_path) as session:
                outcomes.append(session.run("result:0", pictures(5))[0].shape)
        except PocketgraphError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


# Networks


def network(depthwise: bool, seed: int = 0) -> Graph:
    """Layers with batch-norm shifts as sums, as quantize_nodes finds them in mobile networks."""
    random = np.random.default_rng(seed)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 16, 16, 3])
        conv1 = Conv2D(x, w1, T=float, strides=[1, 1, 1, 1], padding="SAME")
        sum1 = Add(conv1, b1, T=float)
        relu1 = Relu6(sum1, T=float)
        conv2 = DepthwiseConv2dNative(relu1, w2, T=float, strides=[1, 2, 2, 1], padding="SAME")
        sum2 = Add(conv2, b2, T=float)
        relu2 = Relu6(sum2, T=float)
        conv3 = Conv2D(relu2, w3, T=float, strides=[1, 1, 1, 1], padding="SAME")
        bias3 = BiasAdd(conv3, b3, T=float)
        relu3 = Relu(bias3, T=float)
        pool = AvgPool(relu3, T=float, ksize=[1, 8, 8, 1], strides=[1, 1, 1, 1], padding="VALID")
        flat_shape = Const(int32 [-1, 24])
        flat = Reshape(pool, flat_shape, T=float, Tshape=int32)
        product = MatMul(flat, w4, T=float, transpose_a=false, transpose_b=false)
        sum = BiasAdd(product, b4, T=float)
        y = Softmax(sum, T=float)
    """)
    second = (3, 3, 16, 1) if depthwise else (3, 3, 16, 16)
    shapes = {"w1": (3, 3, 3, 16), "w2": second, "w3": (1, 1, 16, 24), "w4": (24, 10)}
    parts = [
        const(name, random.normal(0, np.prod(shape[:-1]) ** -0.5 * 2, shape).astype(F32), FLOAT)
        for name, shape in shapes.items()
    ]
    for name, size in (("b1", 16), ("b2", 16), ("b3", 24), ("b4", 10)):
        parts.append(const(name, random.normal(0, 0.3, size).astype(F32), FLOAT))
    nodes = [node if depthwise or node.op[0] != "D" else node.replace(op="Conv2D") for node in graph]
    float_graph = graph.replace([*parts, *nodes], inputs=["x"], outputs=["y"])
    return run(float_graph, "quantize_weights(minimum_size=16) quantize_nodes strip_unused_nodes")


def frozen(graph: Graph, folder: Path, capfd: pytest.CaptureFixture[str]) -> Graph:
    with Session(run(graph, LOG), 1, exact=True, cache_dir=folder) as session:
        for image in images(8):
            session.run("y", {"x": image})
    log = folder / "ranges.log"
    log.write_text(capfd.readouterr().err)
    return run(graph, f"freeze_requantization_ranges(min_max_log_file={log}) strip_unused_nodes")


def images(count: int, seed: int = 1) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.uniform(-1, 1, (1, 16, 16, 3)).astype(F32) for _ in range(count)]


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("depthwise", [False, True])
def test_networks_give_what_the_original_gives(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], depthwise: bool, is_frozen: bool
) -> None:
    graph = network(depthwise)
    if is_frozen:
        graph = frozen(graph, tmp_path, capfd)
    fetches = ["sum/eightbit/requantize:1", "sum/eightbit/requantize:2"]
    steps, agree = [], 0
    with Session(graph, 1, exact=True, cache_dir=tmp_path) as exact, Session(graph, 1, cache_dir=tmp_path) as fast:
        for image in images(20, seed=2):
            expected, low, high = exact.run(["sum", *fetches], {"x": image})
            (found,) = fast.run("sum", {"x": image})
            steps.append(float(np.abs(found - expected).max() / ((float(high) - float(low)) / 255)))
            agree += int(found.argmax() == expected.argmax())
    assert agree == 20
    assert round(max(steps), 3) <= 1
    assert np.mean(np.array(steps) < 0.5) >= 0.9  # the very codes


def test_trained_ranges_give_what_the_original_gives(tmp_path: Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 16, 16, 3])
        low0 = Const(float -1.0)
        high0 = Const(float 1.0)
        seen = FakeQuantWithMinMaxVars(x, low0, high0, num_bits=8, narrow_range=false)
        conv = Conv2D(seen, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
        bias = BiasAdd(conv, b, T=float)
        relu = Relu6(bias, T=float)
        low1 = Const(float 0.0)
        high1 = Const(float 5.5)
        held = FakeQuantWithMinMaxVars(relu, low1, high1, num_bits=8, narrow_range=false)
        y = MaxPool(held, T=float, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    """)
    random = np.random.default_rng(3)
    nodes = [const("w", random.normal(0, 0.4, (3, 3, 3, 8)).astype(F32), FLOAT)]
    nodes.append(const("b", random.normal(0, 0.4, 8).astype(F32), FLOAT))
    graph = graph.replace([*nodes, *graph], inputs=["x"], outputs=["y"])
    graph = run(graph, "quantize_weights(minimum_size=16) quantize_nodes strip_unused_nodes")
    with Session(graph, 1, exact=True, cache_dir=tmp_path) as exact, Session(graph, 1, cache_dir=tmp_path) as fast:
        for image in images(5):
            expected, found = exact.run("y", {"x": image})[0], fast.run("y", {"x": image})[0]
            assert np.mean(np.abs(found - expected) > 1e-5) < 0.001
            assert np.abs(found - expected).max() <= 1.001 * 5.5 / 255
        assert all(part.runs_on == "litert" for part in fast.plan("y").parts)


def test_large_networks_keep_their_values_between_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is small is rounded as in the original, unless its other ranges are fixed."""
    graph = network(depthwise=False)
    feeds = {Endpoint("x", 0): (FLOAT, (1, 16, 16, 3))}
    needed = [node.name for node in graph]
    small = {node.op for node in without_codes(graph, {"y"}, needed, feeds)}
    monkeypatch.setattr(eight_bit_choice, "MOST_SEARCHED", 1000)
    monkeypatch.setattr(eight_bit_choice, "FEW_SEARCHED_LAYERS", 0)
    large = {node.op for node in without_codes(graph, {"y"}, needed, feeds)}
    assert "Floor" in small
    assert "Floor" not in large
    assert not any(op.startswith("Quantized") for op in small | large)


@pytest.mark.parametrize("limits", [("nan", "1"), ("-inf", "inf"), ("2", "1"), ("0", "0"), ("-3e38", "3e38")])
@pytest.mark.parametrize("exact", [False, True])
def test_constant_ranges_that_are_none_are_refused_on_the_fast_engine_too(limits: tuple[str, str], exact: bool) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2,4])
        bottom = Const(float -1)
        top = Const(float 1)
        codes = QuantizeV2(x, bottom, top, T=quint8, mode="MIN_FIRST")
        y = QuantizedMatMul(codes, w, codes:1, codes:2, low, high, T1=quint8, T2=quint8, Toutput=qint32)
        used = RequantizationRange(y, y:1, y:2, Tinput=qint32)
        small = Requantize(y, y:1, y:2, used, used:1, Tinput=qint32, out_type=quint8)
        z = Dequantize(small, small:1, small:2, T=quint8, mode="MIN_FIRST")
    """)
    weights = const("w", np.arange(8, dtype=np.uint8).reshape(4, 2), QUINT8)
    ends = [const(name, F32(end)) for name, end in zip(("low", "high"), limits, strict=True)]
    said = r"node 'y': .*(must be larger|finite numbers|wider than)"
    with (
        Session(graph.replace([*graph, weights, *ends]), 1, exact=exact) as session,
        pytest.raises(PocketgraphError, match=said),
    ):
        session.run("z:0", {"x:0": np.ones((2, 4), F32)})


@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_products_of_codes_run_on_eight_bit_kernels(tmp_path: Path, taps: int, seed: int) -> None:
    """Code for code, whatever the weights' zero and however few parts the factor to the next range has."""
    random = np.random.default_rng(seed)
    size = (1, 12, 12, 16 if taps > 1 else 96)  # of fewer it would not pay
    graph = parse(f"""
        x = Placeholder(dtype=float, shape={list(size)})
        codes = QuantizeV2(x, bottom, top, T=quint8, mode="MIN_FIRST")
        sums = QuantizedConv2D(codes, w, codes:1, codes:2, low, high, Tinput=quint8, Tfilter=quint8, out_type=qint32, strides=[1, 1, 1, 1], padding="SAME")
        small = Requantize(sums, sums:1, sums:2, from, until, Tinput=qint32, out_type=quint8)
        relu = QuantizedRelu(small, small:1, small:2, Tinput=quint8, out_type=quint8)
        y = Dequantize(relu, relu:1, relu:2, T=quint8, mode="MIN_FIRST")
    """)  # noqa: E501
    share = random.uniform(0.2, 0.8, 3)
    ends = {"bottom": -share[0], "top": 1 - share[0], "low": -share[1], "high": 1 - share[1]}
    reach = 4.0 * taps
    ends |= {"from": -share[2] * reach, "until": (1 - share[2]) * reach}
    parts = [const(name, F32(end), FLOAT) for name, end in ends.items()]
    parts.append(const("w", random.integers(0, 256, (taps, taps, size[3], 48)).astype(np.uint8), QUINT8))
    graph = graph.replace([*parts, *graph], inputs=["x"], outputs=["y"])
    rewritten = without_codes(graph, {"x", "y"}, graph.nodes, {Endpoint("x", 0): (FLOAT, size)})
    program = float_program(rewritten, ["y:0"], {"x:0": size})
    (convolution,) = (operation for operation in program.operations if operation.code == "CONV_2D")
    assert convolution.inputs[1] is not None
    assert convolution.inputs[1].dtype is INT8
    with Session(graph, 1, exact=True, cache_dir=tmp_path) as exact, Session(graph, 1, cache_dir=tmp_path) as fast:
        for _ in range(5):
            image = random.uniform(-share[0], 1 - share[0], size).astype(F32)
            np.testing.assert_array_equal(fast.run("y", {"x": image})[0], exact.run("y", {"x": image})[0])


def test_halves_are_rounded_away_from_zero_and_what_is_just_below_them_is_not(tmp_path: Path) -> None:
    below = [np.nextafter(F32(half), F32(0)) for half in (0.5, 1.5, 2.5, 7.5, 100.5)]
    values = np.array([*below, 0.5, 1.5, 2.5, 7.5, 100.5, 0, 1, 3], F32)
    values = np.concatenate([values, -values])
    graph = parse(f"values = Placeholder(dtype=float, shape=[{values.size}])")
    writer = RangeWriter(graph.nodes)
    writer.begin(Node("made", "NoOp"))
    found = writer.away("values")
    with Session(graph.replace([*graph, *writer.nodes]), 1, cache_dir=tmp_path) as session:
        np.testing.assert_array_equal(session.run(found, {"values": values})[0], half_away(values))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("is_fixed", [False, True])
def test_ranges_below_zero_have_the_padding_of_the_original(tmp_path: Path, padding: str, is_fixed: bool) -> None:
    """The code of zero is 300 there, of which a byte holds 44."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 7, 7, 6])
        codes = QuantizeV2(x, bottom, top, T=quint8, mode="MIN_FIRST")
        sums = QuantizedConv2D(codes, w, codes:1, codes:2, low, high, Tinput=quint8, Tfilter=quint8, out_type=qint32, strides=[1, 1, 1, 1], padding="VALID")
        used = RequantizationRange(sums, sums:1, sums:2, Tinput=qint32)
        small = Requantize(sums, sums:1, sums:2, {"from, until" if is_fixed else "used, used:1"}, Tinput=qint32, out_type=quint8)
        next = QuantizedConv2D(small, v, small:1, small:2, less, more, Tinput=quint8, Tfilter=quint8, out_type=qint32, strides=[1, 2, 2, 1], padding="{padding}")
        span = RequantizationRange(next, next:1, next:2, Tinput=qint32)
        last = Requantize(next, next:1, next:2, span, span:1, Tinput=qint32, out_type=quint8)
        y = Dequantize(last, last:1, last:2, T=quint8, mode="MIN_FIRST")
    """)  # noqa: E501
    random = np.random.default_rng(0)
    ends = {"bottom": 0, "top": 1, "low": -1, "high": 0, "from": -3.0, "until": -0.45, "less": -1, "more": 1}
    parts = [const(name, F32(end), FLOAT) for name, end in ends.items()]
    parts.append(const("w", random.integers(0, 200, (1, 1, 6, 5)).astype(np.uint8), QUINT8))
    parts.append(const("v", random.integers(0, 256, (3, 3, 5, 4)).astype(np.uint8), QUINT8))
    graph = graph.replace([*parts, *graph], inputs=["x"], outputs=["y"])
    with Session(graph, 1, exact=True, cache_dir=tmp_path) as exact, Session(graph, 1, cache_dir=tmp_path) as fast:
        for _ in range(3):
            image = random.uniform(0.4, 0.9, (1, 7, 7, 6)).astype(F32)
            expected, high = exact.run(["y", "small:2"], {"x": image})
            assert high < 0
            np.testing.assert_array_equal(fast.run("y", {"x": image})[0], expected)
