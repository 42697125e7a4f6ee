"""fold_constants: the shapes, ranks and sizes that it knows beforehand, and those that it does not believe."""

from __future__ import annotations

import numpy as np
import pytest

from folding import fold, lines, wiring
from pocketgraph.graph import Shape, Versions
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import transform


def test_shapes_that_are_known_beforehand_are_constants() -> None:
    """The names count the two shapes, too, and the constants wait for what had the shape."""
    result = fold(
        """
        x = Placeholder(dtype=float, shape=[2,3])
        p = Placeholder(dtype=float, shape=[4])
        e = Exp(x, T=float)
        sn = ShapeN(x, e, T=float, N=2, out_type=int32)
        q = AddV2(sn, sn:1, T=int32)
        axis = Const(int32 0)
        cc = ConcatV2(sn, sn:1, axis, T=int32, N=2, Tidx=int32)
        t2 = Cast(cc, SrcT=int32, DstT=float)
        z = Mul(t2, p, T=float)
        idb = Identity(sn:1, T=int32)
        """,
        "x,p", "z,idb",
    )  # fmt: skip
    assert wiring(result) == lines("""
        e = Exp(x:0)
        sn = ShapeN(x:0, e)
        z = Mul(t2/_1__cf__3, p:0)
        idb = Identity(sn:1)
        t2/_1__cf__3 = Const(^x, ^e)
        p = Placeholder()
        x = Placeholder()
    """)
    np.testing.assert_array_equal(result["t2/_1__cf__3"].tensor.numpy(), np.float32([2, 3, 2, 3]))
    assert result["z"].attrs.keys() == {"T"}
    assert result["sn"].attrs["N"] == 2


def test_ranks_sizes_and_unknown_shapes() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?,3])
        r = Rank(x, T=float)
        s = Size(x, T=float, out_type=int32)
        h = Shape(x, T=float, out_type=int32)
        y = Pack(r, s, N=2, T=int32)
        z = AddV2(h, r, T=int32)
    """
    assert wiring(fold(text, "x", "y,z")) == lines("""
        s = Size(x:0)
        h = Shape(x:0)
        y = Pack(r/_0__cf__1, s)
        z = AddV2(h, r/_0__cf__1)
        r/_0__cf__1 = Const(^x)
        x = Placeholder()
    """)


def test_the_shape_of_a_scalar_placeholder_is_not_believed() -> None:
    """strip_unused_nodes writes [] where it does not know better."""
    text = """
        x = Placeholder(dtype=float, shape=[])
        h = Shape(x, T=float, out_type=int32)
        y = Fill(h, x, T=float)
    """
    assert [node.name for node in fold(text, "x", "y")] == ["h", "y", "x"]


def test_output_shapes_of_the_file_are_dropped_unless_asked_for() -> None:
    text = """
        x = Placeholder(dtype=float, _output_shapes=[[1,1,3]])
        h = Shape(x, T=float, out_type=int32)
        f = Cast(h, SrcT=int32, DstT=float)
        y = Mul(f, x, T=float)
    """
    graph = parse(text)
    x = graph["x"].with_attrs(_output_shapes=(Shape((1, 1, 3)),))
    graph = graph.replace([x, *list(graph)[1:]])
    kept = transform(graph, "fold_constants(clear_output_shapes=false)", "x", "y")
    assert [node.name for node in kept] == ["y", "f/_0__cf__1", "x"]
    assert [node.name for node in transform(graph, "fold_constants", "x", "y")] == ["h", "f", "y", "x"]


def test_output_shapes_stay_only_at_inputs_even_when_they_are_heeded() -> None:
    """TensorFlow takes the attribute off every node that it imports; the inputs are put back as they were."""
    text = """
        x = Placeholder(dtype=float, shape=[2])
        c = Const(float [1, 2])
        m = Mul(x, c, T=float)
        y = Tanh(m, T=float)
    """
    shapes = (Shape((2,)),)
    graph = parse(text).map_nodes(lambda node: node.with_attrs(_output_shapes=shapes))
    kept = transform(graph, "fold_constants(clear_output_shapes=false)", "x", "y")
    assert [node.name for node in kept if "_output_shapes" in node.attrs] == ["x"]


def test_a_shape_that_only_values_tell_takes_no_number() -> None:
    """As TensorFlow 1.15 names them: how many values are unique is computed, and no shape that is known beforehand."""
    result = fold(
        """
        x = Placeholder(dtype=float, shape=[2,3])
        c = Const(int32 [1, 2, 1, 3])
        u = Unique(c, T=int32, out_idx=int32)
        d = Cast(u, SrcT=int32, DstT=float)
        n = Size(d, T=float, out_type=int32)
        f = Cast(n, SrcT=int32, DstT=float)
        y = AddV2(x, f, T=float)
        """,
        "x", "y",
    )  # fmt: skip
    assert wiring(result) == lines("""
        y = AddV2(x:0, f/_0__cf__0)
        f/_0__cf__0 = Const()
        x = Placeholder()
    """)
    assert result["f/_0__cf__0"].tensor.numpy() == 3


@pytest.mark.parametrize(
    ("producer", "parameters", "names"),
    [
        (21, "(clear_output_shapes=false)", ["s", "z", "y", "v", "x"]),
        (22, "(clear_output_shapes=false)", ["v", "y/_0__cf__1", "x"]),
        (22, "", ["s", "z", "y", "v", "x"]),
    ],
)
def test_the_original_believes_a_scalar_where_it_does_not_lose_the_version(
    producer: int, parameters: str, names: list[str]
) -> None:
    """The names are TensorFlow 1.15.5's; clearing ``_output_shapes`` makes a graph without a version there."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[])
        s = Shape(x, T=float, out_type=int32)
        z = Const(float 0.0)
        y = Fill(s, z, T=float, index_type=int32)
        v = Add(x, y, T=float)
    """).replace(versions=Versions(producer))
    assert list(transform(graph, f"fold_constants{parameters}", ["x"], ["v"], compat="original").nodes) == names


ASKED = """
    x = Placeholder(dtype=float, shape=[2])
    m = Placeholder(dtype=float, shape=[5,6])
    im = Placeholder(dtype=float, shape=[1,5,5,1])
    b = Placeholder(dtype=float, shape=[?,4,3])
    a = Placeholder(dtype=int32)
    k = Size(x, T=float, out_type=int32)
    b_sizes = Shape(b, T=float, out_type=int32)
    begin = Const(int32 [1])
    end = Const(int32 [3])
    one = Const(int32 [1])
    tail = StridedSlice(b_sizes, begin, end, one, T=int32, Index=int32)
    scale = Const(int32 [1,1])
    scaled = Mul(tail, scale, T=int32)
    f = Const(float 2.0)
    behind = Identity(k, T=int32)
"""
"""What asks for a shape of which all sizes are known, and for one with an unknown size."""
TAIL = ["b_sizes", "begin", "end", "one", "tail"]


@pytest.mark.parametrize(
    ("node", "names"),
    [
        ("y = TopKV2(m, k, T=float)", ["y", "r", "q", "v", "k/_0__cf__1"]),
        ("y = TopKV2(m, behind, T=float)", ["y", "v", "behind/_0__cf__2", "q/_1__cf__3"]),
        ("y = ExpandDims(m, k, T=float, Tdim=int32)", ["y", "r", "q", "v", "k/_0__cf__1"]),
        ("y = Fill(tail, f, T=float, index_type=int32)", [*TAIL, "f", "y", "v", "q/_0__cf__1"]),
        ("y = Fill(scaled, f, T=float, index_type=int32)", [*TAIL, "scale", "scaled", "f", "y", "r", "q", "v"]),
        ("y = ResizeBilinear(im, tail, T=float)", [*TAIL, "y", "r", "q", "v"]),
    ],
)
def test_the_original_knows_some_values_only_where_they_are_read_as_a_shape(node: str, names: list[str]) -> None:
    """The names are TensorFlow 1.15.5's: what it does not know beforehand takes no number."""
    graph = parse(f"""{ASKED}
        {node}
        r = Shape(y, T=float, out_type=int32)
        q = Add(r, r, T=int32)
        v = Add(a, q, T=int32)
    """)
    inputs = ["x", "m", "im", "b", "a"]
    result = transform(graph, "fold_constants(clear_output_shapes=false)", inputs, ["v"], compat="original")
    assert [name for name in result.nodes if name not in inputs] == names
