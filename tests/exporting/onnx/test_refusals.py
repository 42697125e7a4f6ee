"""What ONNX has no words for is listed as a whole; opsets have their limits; texts need new ones."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_runs import assert_same, exported, onnx, run
from pocketgraph.errors import UsageError
from pocketgraph.exporting.programs import LackingError


def test_all_refused_nodes_are_named_at_once() -> None:
    with pytest.raises(LackingError) as refused:
        exported(
            """
            x = Placeholder(dtype=float, shape=[2,3])
            a = Lgamma(x, T=float)
            b = Digamma(a, T=float)
            c = AddV2(x, b, T=float)
            t = AsString(x, T=float)
            y = Identity(c, T=float)
            """,
            ["y", "t"],
        )
    assert set(refused.value.reasons) == {"a", "b", "t"}
    for text in ("3 nodes", "Lgamma ('a')", "Digamma ('b')", "AsString ('t')"):
        assert text in str(refused.value)


def test_who_comes_after_a_refused_node_is_not_blamed() -> None:
    with pytest.raises(LackingError) as refused:
        exported(
            """
            x = Placeholder(dtype=float, shape=[?,4,4,2])
            w = Const(float[3,3,2,2] 0.5)
            a = Lgamma(x, T=float)
            b = Conv2D(a, w, T=float, strides=[1,1,1,1], padding="SAME")
            y = Relu(b, T=float)
            """,
            ["y"],
        )
    assert set(refused.value.reasons) == {"a"}


def test_a_variable_says_what_helps() -> None:
    with pytest.raises(LackingError, match="freeze"):
        exported("v = VariableV2(dtype=float, shape=[2])\ny = Neg(v, T=float)", ["y"])


@pytest.mark.parametrize("opset", [12, 24])
def test_opsets_that_are_not_written(opset: int) -> None:
    with pytest.raises(UsageError, match="from 13 to 23"):
        exported("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)", ["y"], opset=opset)


NET = """
    x = Placeholder(dtype=float, shape=[?,8,8,3])
    w = Const(float[3,3,3,4] 0.05)
    a = Conv2D(x, w, T=float, strides=[1,2,2,1], padding="SAME")
    b = Relu6(a, T=float)
    p = Const(int32 [[0,0],[1,1],[1,1],[0,0]])
    q = Pad(b, p, T=float, Tpaddings=int32)
    axes = Const(int32 [1, 2])
    m = Mean(q, axes, T=float, Tidx=int32, keep_dims=false)
    l = Const(int32 1)
    s = Max(m, l, T=float, Tidx=int32, keep_dims=true)
    d = Sub(m, s, T=float)
    e = Softmax(d, T=float)
    h = Split(l, e, T=float, num_split=2)
    n = Const(int32 2)
    t = TopKV2(h:1, n, T=float, sorted=true)
    y = Cumsum(t, l, T=float, Tidx=int32, exclusive=false, reverse=true)
"""


@pytest.mark.parametrize("opset", range(13, 24))
def test_every_opset(opset: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype(np.float32)
    proto = assert_same(NET, {"x": x}, opset=opset)
    assert proto.opset_import[0].version == opset
    assert proto.ir_version == onnx.helper.find_min_ir_version_for(list(proto.opset_import))


def test_sums_by_index_need_opset_16() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[3,2])
        i = Const(int32 [[0],[2],[0]])
        s = Const(int32 [4, 2])
        y = ScatterNd(i, x, s, T=float, Tindices=int32)
    """
    with pytest.raises(LackingError, match="opset 16"):
        exported(text, ["y"], opset=13)
    assert_same(text, {"x": np.arange(6, dtype=np.float32).reshape(3, 2)}, opset=16)


def test_texts() -> None:
    text = """
        x = Placeholder(dtype=string, shape=[?])
        p = Const(string "<")
        a = StringJoin(p, x, N=2, separator="-")
        low = StringLower(x)
        is_word = StaticRegexFullMatch(x, pattern="[a-z]+")
        y = Identity(a, T=string)
    """
    with pytest.raises(LackingError, match="opset 20"):
        exported(text, ["y"])
    words = np.array([b"Hello", b"world", b""], object)
    proto = exported(text, ["y", "low", "is_word"], opset=20)
    joined, low, is_word = run(proto, {"x": words})
    assert joined.tolist() == [b"<-Hello", b"<-world", b"<-"]
    assert low.tolist() == [b"hello", b"world", b""]
    assert is_word.tolist() == [False, True, False]


def test_texts_that_are_only_passed_on() -> None:
    text = """
        i = Placeholder(dtype=int64, shape=[?])
        names = Const(string ["ant", "bee", "cat"])
        axis = Const(int32 0)
        y = GatherV2(names, i, axis, Tparams=string, Tindices=int64, Taxis=int32)
    """
    (found,) = run(exported(text, ["y"]), {"i": np.array([2, 0], np.int64)})
    assert found.tolist() == [b"cat", b"ant"]


def test_an_output_of_unknown_rank_is_refused() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?,?,?])
        axes = Placeholder(dtype=int32, shape=[?])
        y = Sum(x, axes, T=float, Tidx=int32, keep_dims=false)
    """
    with pytest.raises(LackingError, match="how many axes"):
        exported(text, ["y"])


@pytest.mark.parametrize(
    ("dtype", "text", "reason"),
    [
        (
            "complex64",
            "a = AddV2(x, x, T=complex64)\ny = Abs(r, T=float)\nr = Real(a, T=complex64)",
            "no complex numbers",
        ),
        ("uint64", "i = Const(int32 [0, 0, 2])\ny = SegmentMin(x, i, T=uint64)", "segments of uint64"),
    ],
)
def test_types_that_it_would_be_wrong_with_are_refused(dtype: str, text: str, reason: str) -> None:
    """Files with complex numbers did not load; the smallest of uint64 was 2^64 - 1."""
    with pytest.raises(LackingError, match=reason):
        exported(f"x = Placeholder(dtype={dtype}, shape=[3])\n{text}", ["y"])


def test_texts_are_compared_from_opset_19_on() -> None:
    """The values are TensorFlow 2.21's."""
    text = """
        x = Placeholder(dtype=string, shape=[?])
        empty = Const(string "")
        none = Const(string "none")
        is_empty = Equal(x, empty, T=string)
        is_said = NotEqual(x, none, T=string)
        y = SelectV2(is_empty, none, x, T=string)
    """
    with pytest.raises(LackingError, match="export with opset 19"):
        exported(text, ["is_empty:0"], opset=18)
    given = {"x": np.array([b"a b", b"", b"none"], object)}
    is_empty, is_said, chosen = run(exported(text, ["is_empty:0", "is_said:0", "y:0"], opset=19), given)
    assert (is_empty.tolist(), is_said.tolist()) == ([False, True, False], [True, True, False])
    assert chosen.tolist() == [b"a b", b"none", b"none"]


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_relu_of_whole_numbers_is_exact(kind: str, opset: int) -> None:
    largest = int(np.iinfo(kind).max)
    proto = exported(f"x = Placeholder(dtype={kind}, shape=[3])\ny = Relu(x, T={kind})", ["y"], opset=opset)
    (found,) = run(proto, {"x": np.array([-3, largest, largest - 1], kind)})
    assert (found.dtype.name, found.tolist()) == (kind, [0, largest, largest - 1])


def test_reshapes_to_nothing_need_opset_14() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2,0,3])
        shape = Const(int32 [3, 0])
        y = Reshape(x, shape, T=float, Tshape=int32)
    """
    with pytest.raises(LackingError, match="export with opset 14"):
        exported(text, ["y"], opset=13)
    assert run(exported(text, ["y"], opset=14), {"x": np.zeros((2, 0, 3), np.float32)})[0].shape == (3, 0)


def test_integers_of_64_bits_are_resized_to_known_sizes_only() -> None:
    """ONNX Runtime's Resize has no values of this type; pixels are picked by index, which needs the sizes."""
    text = """
        x = Placeholder(dtype=int64, shape=[1,2,2,1])
        size = Placeholder(dtype=int32, shape=[2])
        y = ResizeNearestNeighbor(x, size, T=int64)
    """
    with pytest.raises(LackingError, match="64-bit integers are resized only to sizes that are known beforehand"):
        exported(text, ["y"])
