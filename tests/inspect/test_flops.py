"""Operation counts: each formula against a count worked out by hand, and models against published figures."""

import json
import pathlib

import pytest

from kernels.cases import cases, from_list
from pocketgraph.formats.tflite import OPERATORS
from pocketgraph.graph import opdefs
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.flop_formulas import FORMULAS, FREE
from pocketgraph.inspect.flops import ORIGINAL, count, count_graph
from pocketgraph.inspect.litert_flop_formulas import LITERT_FORMULAS, LITERT_FREE

CONV = 'strides=[1, 1, 1, 1], padding="SAME", T=float'


@pytest.mark.parametrize(
    ("node", "inputs", "output", "wanted"),
    [
        (f"Conv2D(a, b, {CONV})", [(1, 8, 8, 3), (3, 3, 3, 16)], (1, 8, 8, 16), 8 * 8 * 16 * 27 * 2),
        (f"Conv2D(a, b, {CONV})", [(1, 8, 8, 8), (3, 3, 4, 16)], (1, 8, 8, 16), 8 * 8 * 16 * 36 * 2),  # two groups
        (f"DepthwiseConv2dNative(a, b, {CONV})", [(1, 8, 8, 3), (3, 3, 3, 2)], (1, 8, 8, 6), 8 * 8 * 6 * 9 * 2),
        (
            f"Conv2DBackpropInput(a, b, c, {CONV})",
            [(4,), (3, 3, 5, 7), (1, 4, 4, 7)],
            (1, 8, 8, 5),
            4 * 4 * 7 * 45 * 2,
        ),
        ("MatMul(a, b, transpose_a=false)", [(4, 5), (5, 6)], (4, 6), 4 * 6 * 5 * 2),
        ("MatMul(a, b, transpose_a=true)", [(5, 4), (5, 6)], (4, 6), 4 * 6 * 5 * 2),
        ("BatchMatMulV2(a, b, adj_x=true)", [(2, 3, 5, 4), (3, 5, 6)], (2, 3, 4, 6), 6 * 4 * 6 * 5 * 2),
        ('Einsum(a, b, equation="bij,bjk->bik")', [(2, 3, 4), (2, 4, 5)], (2, 3, 5), 2 * 3 * 4 * 5 * 2),
        ("MaxPool(a, ksize=[1, 2, 3, 1])", [(1, 4, 6, 5)], (1, 2, 2, 5), 20 * 6),
        ("FusedBatchNorm(a, b, b, b, b, is_training=false)", [(2, 3, 4), (4,)], (2, 3, 4), 24 * 2 + 16),
        ("Mean(a, b)", [(4, 5), (1,)], (4,), 20),
        ("Max(a, b)", [(4, 5), (1,)], (4,), 16),
        ("AddN(a, a, a)", [(4, 5)], (4, 5), 40),
        ("Softmax(a)", [(4, 5)], (4, 5), 100),
        ("SquaredDifference(a, b)", [(4, 5), (5,)], (4, 5), 40),
        ("LRN(a, depth_radius=2)", [(1, 1, 1, 8)], (1, 1, 1, 8), 8 * 9),
        ("ResizeBilinear(a, b)", [(1, 2, 2, 3), (2,)], (1, 4, 4, 3), 48 * 9),
        ("FFT(a)", [(3, 8)], (3, 8), 3 * 5 * 8 * 3),
        (
            "LSTMBlockCell(a, b, b, c, b, b, b, d)",
            [(2, 3), (2, 4), (7, 16), (16,)],
            (2, 4),
            2 * (7 * 16 * 2 + 16 + 11 * 4),
        ),
        ("Cholesky(a)", [(2, 6, 6)], (2, 6, 6), 2 * 72),
        ("ApplyAdam(a, a, a, b, b, b, b, b, b, a)", [(10,), ()], (10,), 120),
    ],
)
def test_formulas(node: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], wanted: int) -> None:
    names = "abcd"[: len(inputs)]
    graph = parse("".join(f"{n} = Placeholder(dtype=float)\n" for n in names) + f"y = {node}")
    shapes = {f"{name}:0": shape for name, shape in zip(names, inputs, strict=True)} | {"y:0": output}
    found = count([graph["y"]], shapes)
    assert found.total == wanted
    assert found.original == (wanted if graph["y"].op in ORIGINAL else 0)


PROFILER_IS_OFF = ("Conv2DBackpropInput", "Conv2DBackpropFilter")
"""Where TensorFlow's profiler counts from the picture's size over the strides, which is not how often the filter is
laid on when the size is no multiple or the padding VALID (docs/benchmarking.md)."""

PROFILED = json.loads((pathlib.Path(__file__).parent.parent / "fixtures/flops.json").read_text())


@pytest.mark.parametrize("group", PROFILED)
def test_counts_are_those_of_tensorflows_profiler(group: str) -> None:
    by_name = {case.name: case for case in cases(group)}
    ran = 0
    for name, profiled in PROFILED[group].items():
        case = by_name[name]
        turned = case.node.op.startswith("BatchMatMul") and case.node.attr("adj_x", False)  # the profiler overlooks it
        if case.node.op in PROFILER_IS_OFF or turned or any(0 in array.shape for array in case.inputs):
            continue
        shapes = {f"{name}:0": array.shape for name, array in zip(case.node.data_inputs, case.inputs, strict=True)}
        found = count([case.node], shapes | {f"{case.node.name}:0": case.expected[0].shape})
        assert found.total == profiled, case.node
        ran += 1
    assert ran


def test_gradients_of_convolutions_cost_what_the_convolution_costs() -> None:
    for op in PROFILER_IS_OFF:
        for case in from_list("networks"):
            if case.node.op != op:
                continue
            shapes = {f"{n}:0": a.shape for n, a in zip(case.node.data_inputs, case.inputs, strict=True)}
            found = count([case.node], shapes | {f"{case.node.name}:0": case.expected[0].shape})
            kernel = case.inputs[1].shape if op == "Conv2DBackpropInput" else case.expected[0].shape
            forward = {"x:0": (1, 1, 1, 1), "w:0": kernel, "y:0": case.inputs[2].shape}
            node = parse(f"x = Placeholder(dtype=float)\nw = Placeholder(dtype=float)\ny = Conv2D(x, w, {CONV})")["y"]
            assert found.total == count([node], forward).total


def test_executions_unknown_shapes_and_unknown_ops() -> None:
    graph = parse("""
        x = Placeholder(dtype=float)
        loop = Neg(x, T=float)
        what = Neg(y, T=float)
        y = NonMaxSuppression(x, x, x)
        z = Reshape(x, x, T=float)
    """)
    found = count(graph, {"x:0": (4,), "loop:0": (4,)}, {"loop": 3})
    assert found.by_node == {"loop": 12}
    assert found.unknown == ["what"]
    assert found.uncounted == {"NonMaxSuppression": 1}


def test_tables_name_real_ops_and_no_op_twice() -> None:
    assert not FREE & set(FORMULAS)
    ours = {"ClipByValue", "L2Normalize", "Lerp", "_FusedAdd", "MergeV2Summary", "QuantizedConcatV2"}
    unknown = {op for op in [*FORMULAS, *FREE] if opdefs.find(op) is None and not op.startswith("_")}
    assert unknown <= ours


def test_a_graph_counts_from_what_is_fed() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 3])
        w = Const(float[3, 2] [[1, 2], [3, 4], [5, 6]])
        y = MatMul(x, w, T=float, transpose_a=false)
        z = Relu(y, T=float)
    """)
    found = count_graph(graph, {"x": (5, 3)})
    assert found.by_node == {"y": 60, "z": 10}
    assert found.by_op == {"MatMul": 60, "Relu": 10}
    assert count_graph(graph, {}, seen={"y:0": (5, 2), "x:0": (5, 3), "z:0": (5, 2)}).total == 70
    assert count_graph(graph, {}).unknown == ["y", "z"]


def test_operators_of_litert_files_cost_what_their_nodes_cost() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 8, 8, 4])
        w = Placeholder(dtype=float, shape=[6, 3, 3, 4])
        d = Placeholder(dtype=float, shape=[1, 3, 3, 4])
        f = Placeholder(dtype=float, shape=[10, 16])
        t = Placeholder(dtype=float, shape=[6, 2, 2, 4])
        a = Placeholder(dtype=float, shape=[2, 3, 5])
        s = Placeholder(dtype=int32, shape=[4])
        conv = tfl.conv_2d(x, w)
        deep = tfl.depthwise_conv_2d(x, d)
        full = tfl.fully_connected(f, f)
        back = tfl.transpose_conv(s, t, x)
        many = tfl.batch_matmul(a, a)
        mean = tfl.mean(x, s)
        same = tfl.reshape(x, s)
        odd = tfl.custom_thing(x)
    """)
    shapes = {
        f"{name}:0": tuple(node.attrs["shape"].known) for name, node in graph.nodes.items() if "shape" in node.attrs
    }
    shapes |= {"conv:0": (1, 4, 4, 6), "deep:0": (1, 8, 8, 4), "full:0": (10, 10), "back:0": (1, 16, 16, 6),
               "many:0": (2, 3, 3), "mean:0": (1, 4)}  # fmt: skip
    found = count(graph, shapes)
    assert found.by_node == {
        "conv": 4 * 4 * 6 * (3 * 3 * 4) * 2, "deep": 8 * 8 * 4 * 9 * 2, "full": 10 * 10 * 16 * 2,
        "back": 8 * 8 * 4 * (2 * 2 * 6) * 2, "many": 2 * 3 * 3 * 5 * 2, "mean": 8 * 8 * 4,
    }  # fmt: skip
    assert found.uncounted == {"tfl.custom_thing": 1}


def test_tables_of_operators_name_litert_operators() -> None:
    known = {f"tfl.{name.lower()}" for name in OPERATORS}
    assert set(LITERT_FORMULAS) <= known
    assert known >= LITERT_FREE
    assert not set(LITERT_FORMULAS) & LITERT_FREE
