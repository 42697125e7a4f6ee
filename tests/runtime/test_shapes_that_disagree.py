"""Shapes that disagree deep in a graph, and sizes that nobody can mean: the error names the node and what does not fit.

Each case is run with constants, which are computed before the run, with fed values of unknown and of declared shape,
and with one fed value beside constants, such as weights.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pocketgraph import Session, save
from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape, const
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.feeding.fed_sizes import FedSizes, reshapes_by

F, I, L, B, S = (DType.named(name) for name in ("float", "int32", "int64", "bool", "string"))  # noqa: E741
BIG = 2**31 - 1
POOL = {"T": F, "ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": b"SAME"}
CONV = {"T": F, "strides": (1, 1, 1, 1), "padding": b"SAME"}


def z(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def i(*values: Any) -> Array:
    return np.array(values, np.int32)


def one(value: int) -> Array:
    return np.array(value, np.int32)


DISAGREE: list[tuple[str, tuple[Array, ...], dict[str, Any], str]] = [
    ("Add", (z(2, 3), z(2, 4)), {"T": F}, r"\[2, 3\].*\[2, 4\]"),
    ("ReluGrad", (z(3), z(4)), {"T": F}, r"(\[3\].*\[4\]|\[4\].*\[3\])"),
    ("MatMul", (z(2, 3), z(4, 5)), {"T": F}, r"\[2, 3\].*\[4, 5\]"),
    ("MatMul", (z(2, 3), z(2, 2)), {"T": F}, r"\[2, 3\].*\[2, 2\]"),  # as many numbers as a product of 3 x 2 has
    ("BatchMatMulV2", (z(2, 2, 3), z(3, 3, 2)), {"T": F}, r"\[2, 2, 3\].*\[3, 3, 2\]"),
    ("Conv2D", (z(1, 5, 5, 3), z(3, 3, 4, 2)), CONV, r"\[1, 5, 5, 3\].*\[3, 3, 4, 2\]"),
    ("DepthwiseConv2dNative", (z(1, 5, 5, 3), z(3, 3, 4, 2)), CONV, r"\[1, 5, 5, 3\].*\[3, 3, 4, 2\]"),
    ("Conv2DBackpropInput", (i(1, 5, 5, 3), z(3, 3, 3, 2), z(1, 5, 5, 4)), CONV, r"\[5, 5, 4\].*\[5, 5, 2\]"),
    ("Conv2DBackpropInput", (i(1, 5, 5, 3), z(3, 3, 3, 2), z(2, 5, 5, 2)), CONV, r"batch of 1.*\[2, 5, 5, 2\]"),
    ("BiasAdd", (z(1, 5, 5, 3), z(4)), {"T": F}, r"\[1, 5, 5, 3\].*\[4\]"),
    ("ConcatV2", (z(2, 3), z(3, 4), one(0)), {"T": F, "N": 2, "Tidx": I}, r"\[2, 3\].*\[3, 4\]"),
    ("Pack", (z(2, 3), z(3, 4)), {"T": F, "N": 2, "axis": 0}, r"\[2, 3\].*\[3, 4\]"),
    ("AddN", (z(2, 3), z(3, 4)), {"T": F, "N": 2}, r"(\[2, 3\].*\[3, 4\]|\[3, 4\].*\[2, 3\])"),
    ("Reshape", (z(2, 3), i(4, 2)), {"T": F, "Tshape": I}, r"6.*\[4, 2\]"),
    ("Transpose", (z(2, 3), i(0, 1, 2)), {"T": F, "Tperm": I}, r"\[2, 3\].*\[3\]"),
    ("Slice", (z(2, 3), i(0, 2), i(1, 5)), {"T": F, "Index": I}, r"\[2, 3\]"),
    ("Tile", (z(2, 3), i(2)), {"T": F, "Tmultiples": I}, r"\[2, 3\].*\[1\]"),
    ("GatherV2", (z(2, 3), i(5), one(0)), {"Tparams": F, "Tindices": I, "Taxis": I}, r"\[2, 3\].*\[1\]"),
    ("SegmentSum", (z(3, 2), i(0, 0)), {"T": F, "Tindices": I}, r"\[3, 2\].*\[2\]"),
    ("SoftmaxCrossEntropyWithLogits", (z(2, 3), z(2, 4)), {"T": F}, r"\[2, 3\].*\[2, 4\]"),
    ("MaxPoolGrad", (z(1, 4, 4, 1), z(1, 3, 3, 1), z(1, 4, 4, 1)), POOL, r"\[1, 4, 4, 1\].*\[1, 3, 3, 1\]"),
    ("Mfcc", (z(3, 3), one(8000)), {}, r"\[3, 3\]"),
    ("BroadcastTo", (z(2, 3), i(2, 4)), {"T": F, "Tidx": I}, r"\[2, 3\].*\[2\]|\[2, 3\].*\[2, 4\]"),
]  # fmt: skip

HOSTILE: list[tuple[str, tuple[Array, ...], dict[str, Any]]] = [
    ("Fill", (i(BIG, BIG), z()), {"T": F, "index_type": I}),
    ("Range", (np.float32(0), np.float32(np.inf), np.float32(1)), {"Tidx": F}),
    ("Range", (one(0), one(BIG), one(1)), {"Tidx": I}),
    ("LinSpace", (z(), np.float32(1), one(BIG)), {"T": F, "Tidx": I}),
    ("Tile", (z(1, 1), i(BIG, BIG)), {"T": F, "Tmultiples": I}),
    ("Pad", (z(1), i([BIG, BIG])), {"T": F, "Tpaddings": I}),
    ("OneHot", (i(0, 1), one(BIG), z(), z()), {"T": F, "TI": I, "axis": -1}),
    ("ResizeBilinear", (z(1, 2, 2, 1), i(100000, 100000)), {"T": F}),
    ("BroadcastTo", (z(), i(BIG, BIG)), {"T": F, "Tidx": I}),
    ("Add", (z(100000, 1), z(1, 100000)), {"T": F}),
    ("MatMul", (z(100000, 1), z(1, 100000)), {"T": F}),
    ("MaxPool", (z(1, 2, 2, 1),), {**POOL, "ksize": (1, BIG, BIG, 1)}),
    ("AvgPoolGrad", (i(1, 100000, 100000, 1), z(1, 2, 2, 1)), POOL),
    ("Conv2DBackpropFilter", (z(1, 2, 2, 3), i(100000, 100000, 3, 3), z(1, 2, 2, 3)), CONV),
    ("RFFT", (z(3), i(BIG)), {"Treal": F, "Tcomplex": DType.named("complex64")}),
    ("Mfcc", (z(1, 1, 9), one(8000)), {"filterbank_channel_count": BIG}),
    ("DynamicPartition", (z(1), i(0)), {"T": F, "num_partitions": 1 << 30}),
    ("Split", (one(0), z(0)), {"T": F, "num_split": 1 << 30}),
    ("Split", (one(0), z(0)), {"T": F, "num_split": 0}),
]


CONSTANT, OPEN, DECLARED, FIRST = "constants", "fed, of open shape", "fed, of declared shape", "the first one fed"


def graph(op: str, inputs: tuple[Array, ...], attrs: dict[str, Any], fed: str) -> tuple[Graph, dict[str, Array]]:
    nodes, feeds = [], {}
    for number, value in enumerate(inputs):
        name, dtype = f"i{number}", DType.of_numpy(np.asarray(value).dtype)
        is_float = np.asarray(value).dtype == np.float32
        if is_float and fed != CONSTANT and not (fed == FIRST and feeds):
            shape = Shape(None if fed == OPEN else np.asarray(value).shape)
            nodes.append(Node(name, "Placeholder", (), {"dtype": dtype, "shape": shape}))
            feeds[name] = value
        else:
            nodes.append(const(name, np.asarray(value), dtype))
        nodes.append(Node(f"{name}/again", "Identity", (name,), {"T": dtype}))
    nodes.append(Node("deep/bad", op, tuple(f"i{number}/again" for number in range(len(inputs))), attrs))
    return Graph(nodes), feeds


@pytest.mark.parametrize("fed", [CONSTANT, OPEN, DECLARED, FIRST])
@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "shapes"), DISAGREE, ids=[f"{n}-{case[0]}" for n, case in enumerate(DISAGREE)]
)
def test_shapes_that_disagree(op: str, inputs: tuple[Array, ...], attrs: dict[str, Any], shapes: str, fed: str) -> None:
    made, feeds = graph(op, inputs, attrs, fed)
    with Session(made, 1) as session, pytest.raises(RunError, match=f"deep/bad.*{shapes}"):
        session.run("deep/bad", feeds)


@pytest.mark.parametrize("fed", [CONSTANT, OPEN, DECLARED])
@pytest.mark.parametrize(("op", "inputs", "attrs"), HOSTILE, ids=[f"{n}-{case[0]}" for n, case in enumerate(HOSTILE)])
def test_sizes_that_nobody_can_mean(op: str, inputs: tuple[Array, ...], attrs: dict[str, Any], fed: str) -> None:
    made, feeds = graph(op, inputs, attrs, fed)
    tracemalloc.start()
    try:
        with Session(made, 1) as session, pytest.raises(RunError) as caught:
            session.run("deep/bad", feeds)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "deep/bad" in str(caught.value)
    assert "out of memory" not in str(caught.value)  # it was seen before memory was asked for
    assert most < 64 << 20


@pytest.mark.parametrize("count", [0, -2])
@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_split_into_no_parts_is_refused_where_it_is_read_on(count: int, engine: str | None) -> None:
    split = Node("split", "Split", ["axis", "x"], {"T": F, "num_split": count})
    x = Node("x", "Placeholder", (), {"dtype": F, "shape": Shape((4,))})
    graph = Graph([x, const("axis", one(0)), split, Node("y", "Relu", ["split"], {"T": F})])
    said = r"'split'.*(0 equal parts|-2 outputs)"
    with Session(graph, engine=engine) as session, pytest.raises(RunError, match=said):
        session.run("y:0", {"x:0": z(4)})


FED_SIZES = parse("""
    x = Placeholder(dtype=float, shape=[?, 12])
    n = Placeholder(dtype=int32, shape=[])
    two = Const(int32 2)
    half = FloorDiv(n, two, T=int32)
    four = Const(int32 4)
    sizes = Pack(half, four, T=int32, N=2)
    a = Tanh(x, T=float)
    b = Reshape(a, sizes, T=float, Tshape=int32)
    weights = Const(float [[1, 2], [3, 4], [5, 6], [7, 8]])
    y = MatMul(b, weights, T=float)
""")


def test_a_fed_size_that_does_not_fit_is_refused_where_the_other_sizes_would_give_it(tmp_path: Path) -> None:
    """TensorFlow: Input to reshape is a tensor with 24 values, but the requested shape has 20."""
    save(FED_SIZES, tmp_path / "model.pb")
    for _ in range(2):  # the second process's plan is an earlier one's
        with Session(str(tmp_path / "model.pb"), cache_dir=tmp_path) as session:
            for rows in (2, 3, 5, 7, 2):
                feeds = {"x": z(rows, 12)}
                assert session.run("y", {**feeds, "n": one(6 * rows)})[0].shape == (3 * rows, 2)
                assert session.run("y", {**feeds, "n": one(-2)})[0].shape == (3 * rows, 2)
                said = rf"node 'b': Reshape.* {12 * rows} values, but the requested shape \[{3 * rows - 1}, 4\]"
                for _ in range(2):
                    with pytest.raises(RunError, match=said):
                        session.run("y", {**feeds, "n": one(6 * rows - 2)})


def test_a_fed_size_is_no_matter_where_what_is_reshaped_by_it_does_not_run() -> None:
    with Session(FED_SIZES) as session:
        assert session.run("y", {"x": z(2, 12), "n": one(5), "b": z(3, 4)})[0].shape == (3, 2)
        assert session.run("a", {"x": z(2, 12), "n": one(5)})[0].shape == (2, 12)


def test_only_the_values_that_sizes_come_from_are_looked_at_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids whose shape makes sizes, and a number that is an id and a size, which reaches what is reshaped first."""
    graph = parse("""
        ids = Placeholder(dtype=int32, shape=[?])
        n = Placeholder(dtype=int32, shape=[])
        table = Const(float [[1, 2], [3, 4], [5, 6], [7, 8]])
        axis = Const(int32 0)
        two = Const(int32 2)
        rows = GatherV2(table, ids, axis, Tparams=float, Tindices=int32, Taxis=int32)
        row = GatherV2(table, n, axis, Tparams=float, Tindices=int32, Taxis=int32)
        sum = AddV2(rows, row, T=float)
        two_sizes = Const(int32 [2])
        shape = Shape(ids, T=int32, out_type=int32)
        both = ConcatV2(shape, two_sizes, axis, T=int32, Tidx=int32, N=2)
        b = Reshape(sum, both, T=float, Tshape=int32)
        sizes = Pack(n, two, T=int32, N=2)
        c = Reshape(sum, sizes, T=float, Tshape=int32)
        y = MatMul(b, table, T=float, transpose_b=true)
        z = MatMul(c, table, T=float, transpose_b=true)
    """)
    assert reshapes_by(graph, "ids:0", graph.nodes) == []
    assert reshapes_by(graph, "n:0", graph.nodes) == ["c"]
    looked_at: list[object] = []
    look_at = FedSizes._look_at
    monkeypatch.setattr(FedSizes, "_look_at", lambda self, values: (looked_at.append(values), look_at(self, values))[1])
    with Session(graph) as session:
        for ids in ([0, 1], [2, 3], [1, 1]):
            assert session.run("y", {"ids": i(*ids), "n": one(1)})[0].shape == (2, 4)
            assert not looked_at
        for ids in ([0, 1], [2, 3], [1, 1]):
            assert session.run("z", {"ids": i(*ids), "n": one(2)})[0].shape == (2, 4)
        assert len(looked_at) == 1
        with pytest.raises(RunError, match=r"node 'c': Reshape.* 4 values, but the requested shape \[3, 2\] has 6"):
            session.run("z", {"ids": i(0, 1), "n": one(3)})


@pytest.mark.parametrize("dtype", ["uint8", "float", "int64"])
@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_fed_size_of_a_type_that_is_cast_is_refused_in_the_same_words(dtype: str, engine: str | None) -> None:
    nodes = [node for node in FED_SIZES if node.name != "n"]
    fed = parse(f"fed = Placeholder(dtype={dtype}, shape=[])\nn = Cast(fed, SrcT={dtype}, DstT=int32)")
    numpy = DType.named(dtype).numpy
    said = r"node 'b': Reshape\(float32\[2, 12\], int32\[2\]\) failed: .* requested shape \[5, 4\] has 20"
    with Session(Graph([*fed, *nodes]), engine=engine) as session:
        for size in (12, 12):
            assert session.run("y", {"x": z(2, 12), "fed": np.array(size, numpy)})[0].shape == (6, 2)
            with pytest.raises(RunError, match=said):
                session.run("y", {"x": z(2, 12), "fed": np.array(10, numpy)})
