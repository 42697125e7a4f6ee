"""Eight-bit graphs on the fast engine's own eight-bit kernels, against the original arithmetic."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.quantized.eight_bit_arithmetic import width
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Value
from pocketgraph.litert.rewriting.eight_bit import coded_weights
from pocketgraph.runtime.eight_bit import arithmetic_choice as eight_bit_choice
from pocketgraph.runtime.eight_bit import float_rewriting as eight_bit_islands
from pocketgraph.runtime.eight_bit.float_rewriting import without_codes
from pocketgraph.transforms.tool import run

LOG = 'insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")'
ALL = "min_percentile=0, max_percentile=0"
STEPS = 2
"""How many quantization steps of the output the fast engine may be away from the original arithmetic."""


def network(seed: int = 0) -> Graph:
    """Two convolutions and a product, with biases, rectifiers, a pool and a concatenation."""
    random = np.random.default_rng(seed)

    def weights(name: str, *shape: int) -> Node:
        return const(name, random.normal(0, np.prod(shape[:-1]) ** -0.5, shape).astype(np.float32), FLOAT)

    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 12, 12, 3])
        conv1 = Conv2D(x, w1, T=float, strides=[1, 1, 1, 1], padding="SAME")
        bias1 = BiasAdd(conv1, b1, T=float)
        relu1 = Relu(bias1, T=float)
        pool1 = MaxPool(relu1, T=float, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
        conv2 = Conv2D(pool1, w2, T=float, strides=[1, 1, 1, 1], padding="SAME")
        bias2 = BiasAdd(conv2, b2, T=float)
        relu2 = Relu6(bias2, T=float)
        axis = Const(int32 3)
        both = Concat(axis, pool1, relu2, N=2, T=float)
        pool2 = AvgPool(both, T=float, ksize=[1, 6, 6, 1], strides=[1, 1, 1, 1], padding="VALID")
        flat_shape = Const(int32 [-1, 24])
        flat = Reshape(pool2, flat_shape, T=float, Tshape=int32)
        product = MatMul(flat, w3, T=float, transpose_a=false, transpose_b=false)
        sum = BiasAdd(product, b3, T=float)
        y = Softmax(sum, T=float)
    """)
    parts = [weights("w1", 3, 3, 3, 8), weights("w2", 3, 3, 8, 16), weights("w3", 24, 10)]
    parts += [weights("b1", 8), weights("b2", 16), weights("b3", 10)]
    return graph.replace([*parts, *graph], inputs=["x"], outputs=["y"])


def images(count: int, seed: int = 1) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    return [random.uniform(-1, 1, (1, 12, 12, 3)).astype(np.float32) for _ in range(count)]


def quantized(graph: Graph, options: str = "") -> Graph:
    return run(graph, f"quantize_weights(minimum_size=16) quantize_nodes{options} strip_unused_nodes")


def frozen(graph: Graph, folder: Path, capfd: pytest.CaptureFixture[str]) -> Graph:
    """The eight-bit graph with the ranges that some images gave."""
    logging = run(graph, LOG)
    with Session(logging, 1, cache_dir=folder) as session:
        for image in images(8):
            session.run("y", {"x": image})
    log = folder / "ranges.log"
    log.write_text(capfd.readouterr().err)
    return run(
        graph,
        f"freeze_requantization_ranges(min_max_log_file={log}, {ALL}) strip_unused_nodes",
    )


def compared(graph: Graph, folder: Path) -> tuple[float, float]:
    """(the largest distance of the logits in output steps, the share of equal best classes) over 30 images."""
    distance, agree = 0.0, 0
    step = output_step(graph)
    with Session(graph, 1, cache_dir=folder) as fast, Session(graph, 1, exact=True, cache_dir=folder) as exact:
        for image in images(30, seed=2):
            quick, slow = (session.run("sum", {"x": image})[0] for session in (fast, exact))
            distance = max(distance, float(np.abs(quick - slow).max() / (step or np.ptp(slow) / 255)))
            agree += int(quick.argmax() == slow.argmax())
    return distance, agree / 30


def output_step(graph: Graph) -> float | None:
    """What one code of the logits is worth, None where their range is found while running."""
    ends = [graph.constant(ref) for ref in graph["sum/eightbit/requantize"].inputs[3:5]]
    low, high = (None if end is None else float(end.numpy().reshape(-1)[0]) for end in ends)
    return None if low is None or high is None else width(low, high) / 255


def operations(graph: Graph, folder: Path) -> Counter[tuple[str, str]]:
    """The compiled operators and the type that they give; everything must run on LiteRT."""
    with Session(graph, 1, engine="litert", cache_dir=folder) as session:
        session.run("y", {"x": images(1)[0]})
        (prepared,) = session._calls.plans.values()
        (executable,) = prepared.executables
        program: Any = executable
        return Counter((op.code, op.outputs[0].dtype.name) for op in program.program.operations)


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes every network for one in which speed counts."""
    for most in ("MOST_SEARCHED", "MOST_FIXED", "FEW_SEARCHED_LAYERS"):
        monkeypatch.setattr(eight_bit_choice, most, 0)


@pytest.mark.parametrize("seed", [0, 3])
def test_ranges_found_while_running_in_a_large_network(tmp_path: Path, seed: int) -> None:
    graph = quantized(network(seed))
    distance, agree = compared(graph, tmp_path)
    assert agree >= 0.96
    assert distance <= 6 * STEPS  # the original rounds every result, LiteRT's kernels only what they multiply
    found = operations(graph, tmp_path / "other")
    assert found["CONV_2D", "float"] == 2
    assert not any(code in ("REDUCE_MIN", "REDUCE_MAX") for code, _ in found)


def test_frozen_ranges_stay_in_codes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graph = frozen(quantized(network()), tmp_path, capfd)
    distance, agree = compared(graph, tmp_path)
    assert agree == 1
    assert round(distance, 3) <= STEPS
    found = operations(graph, tmp_path / "other")
    assert found["CONV_2D", "int8"] == found["CONV_2D", "float"] == 1  # nobody logged the range of the input
    assert found["MAX_POOL_2D", "int8"] == 1
    assert found["CONCATENATION", "int8"] == 2  # the graph's own, and what the product reads, twice
    assert found["DEPTHWISE_CONV_2D", "int8"] == 3  # the biases, each rounded by itself as in the original


def test_trained_ranges_become_codes(tmp_path: Path) -> None:
    text = """
        x = Placeholder(dtype=float, shape=[1, 12, 12, 3])
        low0 = Const(float -1.0)
        high0 = Const(float 1.0)
        fq0 = FakeQuantWithMinMaxVars(x, low0, high0, num_bits=8, narrow_range=false)
        conv = Conv2D(fq0, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
        low1 = Const(float -4.0)
        high1 = Const(float 4.0)
        fq1 = FakeQuantWithMinMaxVars(conv, low1, high1, num_bits=8, narrow_range=false)
        y = Relu(fq1, T=float)
    """
    graph = parse(text)
    weights = np.random.default_rng(0).normal(0, 0.2, (3, 3, 3, 8)).astype(np.float32)
    graph = quantized(graph.replace([const("w", weights, FLOAT), *graph], inputs=["x"], outputs=["y"]))
    found = operations(graph, tmp_path)
    assert found["CONV_2D", "int8"] == 1
    with Session(graph, exact=True, cache_dir=tmp_path) as exact, Session(graph, cache_dir=tmp_path) as fast:
        for image in images(5):
            a, b = exact.run("y", {"x": image})[0], fast.run("y", {"x": image})[0]
            assert np.abs(a - b).max() <= STEPS * width(-4.0, 4.0) / 255


def test_a_constant_in_a_sum_lies_on_the_line_of_the_original(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """QuantizedAdd puts its codes on a line through two whole numbers, here up to a percent too flat."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 12, 12, 3])
        conv = Conv2D(x, w1, T=float, strides=[1, 2, 2, 1], padding="VALID")
        shifted = Add(conv, b1, T=float)
        relu = Relu(shifted, T=float)
        flat_shape = Const(int32 [-1, 200])
        flat = Reshape(relu, flat_shape, T=float, Tshape=int32)
        product = MatMul(flat, w2, T=float, transpose_a=false, transpose_b=false)
        sum = Add(product, b2, T=float)
        y = Softmax(sum, T=float)
    """)
    random = np.random.default_rng(0)
    parts = [random.normal(0, 0.03, (3, 3, 3, 8)), random.normal(-1, 0.9, 8)]
    parts += [random.normal(0, 0.05, (200, 10)), random.normal(0, 0.1, 10)]
    nodes = [
        const(name, part.astype(np.float32), FLOAT) for name, part in zip(("w1", "b1", "w2", "b2"), parts, strict=True)
    ]
    graph = quantized(graph.replace([*nodes, *graph], inputs=["x"], outputs=["y"]))
    distance, agree = compared(frozen(graph, tmp_path, capfd), tmp_path)
    assert agree == 1
    assert round(distance, 3) <= 1


def test_longer_sides_of_zero_are_kept_by_products(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Weights from -1 to 2 have 170 levels above zero, more than an int8 code, and still none is rounded."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 12, 12, 3])
        flat_shape = Const(int32 [-1, 432])
        flat = Reshape(x, flat_shape, T=float, Tshape=int32)
        sum = MatMul(flat, w, T=float, transpose_a=false, transpose_b=false)
        y = Softmax(sum, T=float)
    """)
    weights = np.random.default_rng(0).uniform(-1, 2, (432, 10)).astype(np.float32)
    graph = quantized(graph.replace([const("w", weights, FLOAT), *graph], inputs=["x"], outputs=["y"]))
    graph = frozen(graph, tmp_path, capfd)
    assert operations(graph, tmp_path / "other")["CONCATENATION", "float"] == 1
    distance, agree = compared(graph, tmp_path)
    assert agree == 1
    assert round(distance, 3) <= 1


def test_where_few_products_are_made_values_stay_float(tmp_path: Path) -> None:
    """LiteRT searches for ranges on one thread; where that costs more than it saves, weights are left as they are."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 12, 12, 3])
        thin = Conv2D(x, w1, T=float, strides=[1, 1, 1, 1], padding="SAME")
        y = Conv2D(thin, w2, T=float, strides=[1, 1, 1, 1], padding="SAME")
    """)
    random = np.random.default_rng(0)
    nodes = [
        const(name, random.normal(0, 1, shape).astype(np.float32), FLOAT)
        for name, shape in (("w1", (3, 3, 3, 16)), ("w2", (3, 3, 16, 64)))
    ]
    graph = quantized(graph.replace([*nodes, *graph], inputs=["x"], outputs=["y"]))
    with Session(graph, 1, engine="litert", cache_dir=tmp_path) as session:
        session.run("y", {"x": images(1)[0]})
        (prepared,) = session._calls.plans.values()
        (executable,) = prepared.executables
        program: Any = executable
        kinds = [op.inputs[1].dtype.name for op in program.program.operations if op.code == "CONV_2D"]
    assert kinds == ["float", "int8"]


def test_exact_keeps_the_integer_arithmetic(tmp_path: Path) -> None:
    graph = quantized(network())
    image = images(1)[0]
    expected = Session(graph, engine="reference").run("sum", {"x": image})[0]
    with Session(graph, exact=True, cache_dir=tmp_path) as session:
        np.testing.assert_array_equal(session.run("sum", {"x": image})[0], expected)
        assert any(part.runs_on == "reference" for part in session.plan("sum").parts)
    with Session(graph, cache_dir=tmp_path) as fast:  # it must not find what the other compiled
        assert all(part.runs_on == "litert" for part in fast.plan("sum").parts)


def test_codes_that_somebody_fetches_stay_codes(tmp_path: Path) -> None:
    graph = quantized(network())
    name = next(node.name for node in graph if node.op == "QuantizedRelu6")
    fetches = [f"{name}:{port}" for port in range(3)]
    image = images(1)[0]
    expected = Session(graph, engine="reference").run(fetches, {"x": image})
    with Session(graph, cache_dir=tmp_path) as fast:
        found = fast.run(fetches, {"x": image})
    assert found[0].dtype == np.uint8
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_graph_without_codes_is_left_alone() -> None:
    graph = network()
    assert without_codes(graph, {"y"}, [node.name for node in graph], {}) is graph


@pytest.mark.parametrize("limits", [(np.nan, 1.0), (1.0, -1.0), (0.0, np.inf)])
def test_a_range_that_is_none_is_an_error_not_a_crash(tmp_path: Path, limits: tuple[float, float]) -> None:
    from pocketgraph.errors import PocketgraphError

    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 4])
        codes = QuantizeV2(x, low, high, T=quint8, mode="MIN_FIRST")
        relu = QuantizedRelu(codes:0, codes:1, codes:2, Tinput=quint8, out_type=quint8)
        y = Dequantize(relu:0, relu:1, relu:2, T=quint8, mode="MIN_FIRST")
    """)
    ends = [const(name, np.float32(value), FLOAT) for name, value in zip(("low", "high"), limits, strict=True)]
    with Session(graph.replace([*ends, *graph]), cache_dir=tmp_path) as session, pytest.raises(PocketgraphError):
        session.run("y", {"x": np.ones((1, 4), np.float32)})


def test_weights_that_were_codes_stay_what_they_were() -> None:
    levels = np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 8)).astype(np.float32)
    levels[1] *= 2
    values = levels * np.float32(0.0173)
    coded = coded_weights(Value("w", FLOAT, values.shape, Constant.of(values)), 0)
    assert coded is not None
    assert coded.constant is not None
    assert coded.quantization is not None
    found = coded.constant.numpy().astype(np.float32)
    np.testing.assert_array_equal(found[[0, 2, 3]], levels[[0, 2, 3]])
    scales = np.array(coded.quantization.scales).reshape(-1, 1, 1, 1)
    assert np.abs(found * scales - values).max() <= 0.0173 * 1.01


def test_a_few_weights_beyond_the_codes_are_cut_and_made_up_for_beside_them() -> None:
    """All others keep their levels: the channel's scale is not widened for one."""
    levels = np.random.default_rng(0).integers(-120, 121, (4, 3, 3, 8)).astype(np.float32)
    levels[1, 1, 1, 3], levels[2, 0, 0, 0] = 128, -129
    values = levels * np.float32(0.0173)
    coded = coded_weights(Value("w", FLOAT, values.shape, Constant.of(values)), 0)
    assert coded is not None
    assert coded.constant is not None
    assert coded.quantization is not None
    np.testing.assert_allclose(coded.quantization.scales, 0.0173, rtol=1e-6)
    lost = levels - coded.constant.numpy()
    assert np.argwhere(lost).tolist() == [[1, 0, 1, 3], [1, 1, 1, 3], [2, 0, 0, 0], [2, 0, 1, 0]]
    assert lost[1, 1, 1, 3] == 1
    assert lost[2, 0, 0, 0] == -2
    np.testing.assert_array_equal(lost.sum(axis=(1, 2, 3)), 0)


def test_joined_codes_are_moved_as_in_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eight_bit_islands, "wants_codes", lambda *_: False)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 4, 4, 16])
        z = Placeholder(dtype=float, shape=[1, 4, 4, 16])
        axis = Const(int32 3)
        low1 = Const(float -0.7)
        high1 = Const(float 1.9)
        low2 = Const(float -1.1)
        high2 = Const(float 5.37)
        one = QuantizeV2(x, low1, high1, T=quint8, mode="MIN_FIRST")
        two = QuantizeV2(z, low2, high2, T=quint8, mode="MIN_FIRST")
        both = QuantizedConcat(axis, one, two, one:1, two:1, one:2, two:2, N=2, T=quint8)
        relu = QuantizedRelu(both, both:1, both:2, Tinput=quint8, out_type=quint8)
        y = Dequantize(relu, relu:1, relu:2, T=quint8, mode="MIN_FIRST")
    """)
    ends = {"x": (-0.7, 1.9), "z": (-1.1, 5.37)}
    feeds = {name: np.linspace(*pair, 256, dtype=np.float32).reshape(1, 4, 4, 16) for name, pair in ends.items()}
    results = []
    for exact in (True, False):
        with Session(graph, 1, exact=exact, cache_dir=tmp_path) as session:
            results.append(session.run("y", feeds)[0])
    np.testing.assert_allclose(results[1], results[0], atol=1e-5)
