"""Operation counts: each formula against a count worked out by hand, and models against published figures."""

import pytest

from pocketgraph.graph import opdefs
from pocketgraph.graph.text import parse
from pocketgraph.inspect.flops import FORMULAS, FREE, ORIGINAL, count, count_graph

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
        ("Mean(a, b)", [(4, 5), (1,)], (4,), 24),
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
