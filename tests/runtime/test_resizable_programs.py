"""Calls that differ in sizes alone: one program serves them where it holds for all, and only there."""

from __future__ import annotations

import math
import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.formats import save
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import program_building
from pocketgraph.litert.rewriting import winograd
from pocketgraph.litert.sizes import open_program
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates.first_comparison import FirstComparison
from pocketgraph.runtime.planning.sizes import opened_programs, resizable_calls, served_calls
from pocketgraph.runtime.planning.sizes.open_sizes import SizedCalls

ATTENTION = parse("""
    x = Placeholder(dtype=float, shape=[?, ?, 8])
    s = Shape(x, T=float, out_type=int32)
    zero = Const(int32[1] [0])
    one = Const(int32[1] [1])
    two = Const(int32[1] [2])
    batch = StridedSlice(s, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
    steps = StridedSlice(s, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
    heads = Const(int32 2)
    depth = Const(int32 4)
    split = Pack(batch, steps, heads, depth, T=int32, N=4, axis=0)
    whole = Const(int32[2] [-1, 8])
    wq = Const(float[8, 8] 0.25)
    flat = Reshape(x, whole, T=float, Tshape=int32)
    q = MatMul(flat, wq, T=float, transpose_a=false, transpose_b=false)
    q4 = Reshape(q, split, T=float, Tshape=int32)
    order = Const(int32[4] [0, 2, 1, 3])
    qt = Transpose(q4, order, T=float, Tperm=int32)
    scores = BatchMatMulV2(qt, qt, T=float, adj_x=false, adj_y=true)
    shares = Softmax(scores, T=float)
    mixed = BatchMatMulV2(shares, qt, T=float, adj_x=false, adj_y=false)
    back = Transpose(mixed, order, T=float, Tperm=int32)
    joined = Reshape(back, s, T=float, Tshape=int32)
    y = AddV2(joined, x, T=float)
""")
CONVOLUTIONS = parse("""
    x = Placeholder(dtype=float, shape=[1, ?, ?, 3])
    w = Const(float[3, 3, 3, 6] 0.25)
    c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    r = Relu(c, T=float)
    v = Const(float[3, 3, 6, 4] 0.1)
    y = Conv2D(r, v, T=float, strides=[1, 1, 1, 1], padding="VALID")
""")


def of_text(body: str) -> Graph:
    return parse(f"""
        x = Placeholder(dtype=float, shape=[1, ?, 4])
        s = Shape(x, T=float, out_type=int32)
        zero = Const(int32[1] [0])
        one = Const(int32[1] [1])
        two = Const(int32[1] [2])
        steps = StridedSlice(s, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
        w = Const(float[4, 4] 0.25)
        rows = Const(int32[2] [-1, 4])
        flat = Reshape(x, rows, T=float, Tshape=int32)
        h = MatMul(flat, w, T=float, transpose_a=false, transpose_b=false)
        {body}
    """)


UNFIT = {
    # All of a short text, and the beginning of a long one.
    "beginning": """
        begin = Const(int32[2] [0, 0])
        end = Const(int32[2] [6, 4])
        by = Const(int32[2] [1, 1])
        y = StridedSlice(h, begin, end, by, T=float, Index=int32)
    """,
    # Half the length, which 4 and 5 have in common.
    "half": """
        halves = Const(int32 2)
        half = FloorDiv(steps, halves, T=int32)
        number = Cast(half, SrcT=int32, DstT=float)
        y = Mul(h, number, T=float)
    """,
    # No more than six.
    "clipped": """
        six = Const(int32 6)
        most = Minimum(steps, six, T=int32)
        number = Cast(most, SrcT=int32, DstT=float)
        y = Mul(h, number, T=float)
    """,
    # A picture of sizes that turn with the length, four of which are the channels.
    "turned": """
        four = Const(int32 4)
        sizes = Pack(four, steps, T=int32, N=2, axis=0)
        other = Reshape(h, sizes, T=float, Tshape=int32)
        columns = Const(int32[1] [1])
        y = Mean(other, columns, T=float, Tidx=int32, keep_dims=false)
    """,
    # A window that is wider than a short text.
    "pooled": """
        at = Const(int32 0)
        plane = ExpandDims(x, at, T=float, Tdim=int32)
        y = AvgPool(plane, T=float, ksize=[1, 1, 6, 1], strides=[1, 1, 6, 1], padding="SAME")
    """,
    "positions": """
        start = Const(int32 0)
        step = Const(int32 1)
        places = Range(start, steps, step, Tidx=int32)
        numbers = Cast(places, SrcT=int32, DstT=float)
        at = Const(int32 1)
        column = ExpandDims(numbers, at, T=float, Tdim=int32)
        y = Mul(h, column, T=float)
    """,
    "length": "y = Cast(steps, SrcT=int32, DstT=float)",
}


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape, np.float32)


def asked(session: Session, values: Array) -> Array:
    (found,) = session.run(["y"], {"x": values})
    return np.asarray(found)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled for fixed sizes."""
    found: list[str] = []
    built = program_building.build

    def noted(program: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
        found.append(str([value.shape for value in program.inputs]))
        return built(program, inputs, *rest, **more)

    monkeypatch.setattr(resizable_calls, "ANSWERED_AGAIN", 0.0)  # which depends on what the machine does
    monkeypatch.setattr(program_building, "build", noted)
    return found


def assert_equal_for(graph: Graph, shapes: list[tuple[int, ...]], **how: Any) -> None:
    with Session(graph, cache_dir="", **how) as session, Session(graph, engine="reference") as reference:
        for shape in shapes:
            values = numbers(*shape)
            np.testing.assert_allclose(asked(session, values), asked(reference, values), rtol=1e-4, atol=1e-5)


def test_one_program_serves_all_lengths(compiled: list[str]) -> None:
    assert_equal_for(ATTENTION, [(1, n, 8) for n in (5, 7, 12, 3, 7, 5, 40, 12)])
    assert len(compiled) == 1


def test_each_batch_has_its_own(compiled: list[str]) -> None:
    assert_equal_for(ATTENTION, [(batch, n, 8) for batch in (1, 3) for n in (5, 7, 12, 3)])
    assert len(compiled) == 2


def test_pictures_of_all_sizes(compiled: list[str]) -> None:
    assert_equal_for(CONVOLUTIONS, [(1, n, n + 2, 3) for n in (5, 9, 16, 7)])
    assert len(compiled) == 1


def test_a_length_that_is_a_fixed_size_too(compiled: list[str]) -> None:
    """Whether the program can be followed for it or not."""
    assert_equal_for(ATTENTION, [(1, n, 8) for n in (8, 16, 4, 2, 9, 32, 11)])
    assert_equal_for(ATTENTION, [(4, n, 8) for n in (4, 8, 6)])


def test_a_single_step_has_its_own(compiled: list[str]) -> None:
    assert_equal_for(ATTENTION, [(1, n, 8) for n in (5, 1, 7, 1)])
    assert len(compiled) == 2


@pytest.mark.parametrize("name", UNFIT)
@pytest.mark.parametrize("lengths", [(4, 5, 8, 12, 9), (5, 4, 3, 20), (4, 6, 10, 2)])
def test_what_does_not_hold_for_all_is_planned_for(name: str, lengths: tuple[int, ...]) -> None:
    assert_equal_for(of_text(UNFIT[name]), [(1, n, 4) for n in lengths])


ONE = (
    "Abs",
    "Neg",
    "Exp",
    "Square",
    "Tanh",
    "Sigmoid",
    "Relu",
    "Relu6",
    "LeakyRelu",
    "Elu",
    "Erf",
    "Erfc",
    "Expm1",
    "Inv",
    "IsFinite",
    "IsInf",
    "IsNan",
    "Reciprocal",
    "Selu",
    "Sign",
    "Softplus",
    "Softsign",
    "Tan",
    "Softmax",
    "StopGradient",
)
TWO = ("Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "Div", "DivNoNan", "MulNoNan", "Xdivy")
"""Not a trait: those of ``any_size`` that take one tensor of any sign, or two."""


@pytest.mark.parametrize("op", ONE)
def test_an_op_of_one_tensor(op: str, compiled: list[str]) -> None:
    assert_equal_for(of_text(f"y = {op}(h, T=float)"), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


@pytest.mark.parametrize("op", ["Log1p(a", "Xlogy(h, a", "Xlog1py(h, a", "AddN(h, a, N=2", "AccumulateNV2(h, a, N=2"])
def test_an_op_of_several_tensors_one_of_which_is_positive(op: str, compiled: list[str]) -> None:
    body = f"a = Square(h, T=float)\n y = {op}, T=float)"
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


@pytest.mark.parametrize("op", TWO)
def test_an_op_of_two_tensors(op: str, compiled: list[str]) -> None:
    by_vector = f"""
        b = Const(float[4] [0.5, -1.0, 2.0, 0.25])
        a = {op}(h, b, T=float)
        back = Reshape(a, s, T=float, Tshape=int32)
        y = {op}(back, x, T=float)
    """
    assert_equal_for(of_text(by_vector), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


@pytest.mark.parametrize("op", ["Mean", "Sum", "Max"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("keeps", ["true", "false"])
def test_a_reduction(op: str, axis: int, keeps: str, compiled: list[str]) -> None:
    body = f"""
        axes = Const(int32[1] [{axis}])
        m = {op}(h, axes, T=float, Tidx=int32, keep_dims={keeps})
        y = Tanh(m, T=float)
    """
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


SLICES = {
    # begin, end, begin_mask, end_mask, shrink_axis_mask of the length's axis and the one after it; whether it opens
    "the first": ("0, 0", "1, 4", 0, 0, 0, True),
    "the first, without its axis": ("0, 1", "1, 3", 0, 0, 1, True),
    "the first, from the beginning on": ("7, 0", "1, 4", 1, 0, 0, True),
    "some channels of all": ("0, 1", "0, 3", 1, 1, 0, False),
    "the second": ("1, 0", "2, 4", 0, 0, 0, False),
    "all but the last": ("0, 0", "-1, 4", 1, 0, 0, False),
    "the last": ("-1, 0", "0, 4", 0, 1, 0, False),
    "the last, without its axis": ("-1, 0", "0, 4", 0, 0, 1, False),
    "the first two": ("0, 0", "2, 4", 0, 0, 0, False),
}


@pytest.mark.parametrize("name", SLICES)
def test_a_slice(name: str, compiled: list[str]) -> None:
    """What comes first is the same program's for each length."""
    begin, end, whole_before, whole_after, shrinks, opens = SLICES[name]
    body = f"""
        begin = Const(int32[2] [{begin}])
        end = Const(int32[2] [{end}])
        by = Const(int32[2] [1, 1])
        a = StridedSlice(h, begin, end, by, T=float, Index=int32, begin_mask={whole_before}, end_mask={whole_after},
            shrink_axis_mask={shrinks})
        y = Tanh(a, T=float)
    """.replace(",\n            shrink", ", shrink")
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3, 2)])
    if opens:
        assert len(compiled) == 1


@pytest.mark.parametrize("masks", ["ellipsis_mask=1, new_axis_mask=2", "begin_mask=1, end_mask=1, new_axis_mask=2"])
def test_axes_of_size_one_are_put_in(masks: str, compiled: list[str]) -> None:
    """``x[..., None]`` and ``x[:, None]``, between layers."""
    body = f"""
        begin = Const(int32[2] [0, 0])
        end = Const(int32[2] [0, 0])
        by = Const(int32[2] [1, 1])
        more = StridedSlice(h, begin, end, by, T=float, Index=int32, {masks})
        axis = Const(int32[1] [{2 if "ellipsis" in masks else 1}])
        less = Mean(more, axis, T=float, Tidx=int32, keep_dims=false)
        v = MatMul(less, w, T=float, transpose_a=false, transpose_b=false)
        y = Tanh(v, T=float)
    """
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3, 2)])
    assert len(compiled) == 1


EINSUMS = {
    "heads": ("abc,cde->abde", "float[4, 2, 3] 0.25"),
    "joined": ("abc,cd->adb", "float[4, 3] 0.25"),
}


@pytest.mark.parametrize("name", EINSUMS)
def test_products_that_are_spelled(name: str, compiled: list[str]) -> None:
    """Keras' attention layers are made of them."""
    equation, weights = EINSUMS[name]
    body = f"""
        v = Const({weights})
        curved = Tanh(x, T=float)
        a = Einsum(curved, v, T=float, N=2, equation="{equation}")
        y = Tanh(a, T=float)
    """
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


@pytest.mark.parametrize("op", ["BatchMatMulV2", "BatchMatMulV3"])
def test_products_of_batches(op: str, compiled: list[str]) -> None:
    types = "Ta=float, Tb=float, Tout=float" if op == "BatchMatMulV3" else "T=float"
    body = f"""
        scores = {op}(x, x, {types}, adj_x=false, adj_y=true)
        y = Softmax(scores, T=float)
    """
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


def test_scores_of_attention_that_are_spelled(compiled: list[str]) -> None:
    body = """
        scores = Einsum(x, x, T=float, N=2, equation="bqc,bkc->bkq")
        shares = Softmax(scores, T=float)
        y = Einsum(shares, x, T=float, N=2, equation="bkq,bkc->bqc")
    """
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


def test_several_tensors_as_they_are(compiled: list[str]) -> None:
    """What Keras keeps of a curve with a gradient of its own, as swish."""
    body = """
        shares = Sigmoid(h, T=float)
        curved = Mul(h, shares, T=float)
        both = IdentityN(curved, h, T=[float, float])
        y = MatMul(both, w, T=float, transpose_a=false, transpose_b=false)
    """
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


def test_a_wait_for_weights_makes_no_difference(compiled: list[str]) -> None:
    """TensorFlow 2 freezes a function's reads of variables to constants, for which its results still wait."""
    body = """
        read = NoOp(^w)
        y = Identity(h, ^read, T=float)
    """
    assert_equal_for(of_text(body), [(1, n, 4) for n in (5, 7, 12, 3)])
    assert len(compiled) == 1


def test_channels_before_rows_and_columns(compiled: list[str]) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 3, ?, ?])
        w = Const(float[3, 3, 3, 6] 0.25)
        c = Conv2D(x, w, T=float, strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW")
        b = Const(float[6] [0.5, -1.0, 2.0, 0.25, 0.0, 1.0])
        biased = BiasAdd(c, b, T=float, data_format="NCHW")
        r = Relu(biased, T=float)
        m = MaxPool(r, T=float, ksize=[1, 1, 2, 2], strides=[1, 1, 2, 2], padding="VALID", data_format="NCHW")
        v = Const(float[3, 3, 6, 4] 0.1)
        y = Conv2D(m, v, T=float, strides=[1, 1, 1, 1], padding="SAME", data_format="NCHW")
    """)
    assert_equal_for(graph, [(1, 3, *sizes) for sizes in ((16, 16), (18, 21), (33, 12), (7, 9), (40, 40))])
    assert len(compiled) == 1


def test_rows_and_columns_that_are_repeated(compiled: list[str]) -> None:
    """As Keras 3 makes pictures larger."""

    def repeated(source: str, axis: int) -> str:
        times = [2 if place == axis + 1 else 1 for place in range(5)]
        return f"""
            s{axis} = Shape({source}, T=float, out_type=int32)
            at{axis} = Const(int32[1] [{axis}])
            next{axis} = Const(int32[1] [{axis + 1}])
            first{axis} = StridedSlice(s{axis}, zero, at{axis}, one, T=int32, Index=int32)
            size{axis} = StridedSlice(s{axis}, at{axis}, next{axis}, one, T=int32, Index=int32, shrink_axis_mask=1)
            more{axis} = Mul(size{axis}, twice, T=int32)
            made{axis} = Pack(more{axis}, T=int32, N=1, axis=0)
            last{axis} = StridedSlice(s{axis}, next{axis}, zero, one, T=int32, Index=int32, end_mask=1)
            sizes{axis} = ConcatV2(first{axis}, made{axis}, last{axis}, start, T=int32, Tidx=int32, N=3)
            place{axis} = Const(int32 {axis + 1})
            apart{axis} = ExpandDims({source}, place{axis}, T=float, Tdim=int32)
            times{axis} = Const(int32[5] {times})
            tiled{axis} = Tile(apart{axis}, times{axis}, T=float, Tmultiples=int32)
            r{axis} = Reshape(tiled{axis}, sizes{axis}, T=float, Tshape=int32)
        """

    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, ?, ?, 3])
        k = Const(float[1, 1, 3, 4] {np.random.default_rng(3).standard_normal((1, 1, 3, 4)).round(3).tolist()})
        zero = Const(int32[1] [0])
        one = Const(int32[1] [1])
        start = Const(int32 0)
        twice = Const(int32 2)
        h = Conv2D(x, k, T=float, strides=[1, 1, 1, 1], padding="SAME")
        {repeated("h", 1)}
        {repeated("r1", 2)}
        y = Tanh(r2, T=float)
    """)
    assert_equal_for(graph, [(1, *size, 3) for size in ((5, 7), (8, 6), (12, 12), (3, 9), (4, 2), (40, 31))])
    assert len(compiled) == 1


def test_words_are_looked_up(compiled: list[str]) -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[?, ?])
        words = Const(float[9, 4] 0.25)
        axis = Const(int32 0)
        found = GatherV2(words, x, axis, Tparams=float, Tindices=int32, Taxis=int32)
        last = Const(int32 -1)
        more = ExpandDims(found, last, T=float, Tdim=int32)
        less = Squeeze(more, T=float, squeeze_dims=[3])
        b = Const(float[4] [0.5, -1.0, 2.0, 0.25])
        biased = BiasAdd(less, b, T=float)
        w = Const(float[4, 512] 0.25)
        rows = Const(int32[2] [-1, 4])
        flat = Reshape(biased, rows, T=float, Tshape=int32)
        y = MatMul(flat, w, T=float, transpose_a=false, transpose_b=false)
    """)
    with Session(graph, cache_dir="") as session, Session(graph, engine="reference") as reference:
        for shape in ((2, 5), (2, 7), (2, 12)):
            values = np.random.default_rng(shape).integers(0, 9, shape).astype(np.int32)
            np.testing.assert_allclose(asked(session, values), asked(reference, values), rtol=1e-6)
    assert len(compiled) == 1


def test_it_is_switched_off_by_its_name(compiled: list[str]) -> None:
    assert_equal_for(ATTENTION, [(1, n, 8) for n in (5, 7)], without=["resizable_programs", "open_sizes"])
    assert len(compiled) == 2


def test_a_program_that_is_wrong_serves_nobody(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_program.opened

    def wrong(*args: Any) -> Any:
        program = opened(*args)
        for operation in program.program.operations if program else ():
            if operation.code == "ADD":
                operation.code = "SUB"
        return program

    monkeypatch.setattr(opened_programs, "with_open_sizes", wrong)
    with pytest.warns(RuntimeWarning, match="other numbers"):
        assert_equal_for(ATTENTION, [(1, n, 8) for n in (5, 7, 9)])
    assert len(compiled) == 2


def test_a_call_that_comes_while_the_program_is_compared_does_not_end_it(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare, sessions = FirstComparison.__call__, list[Session]()

    def interrupted(*arguments: Any) -> Any:
        np.testing.assert_allclose(asked(sessions[0], numbers(1, 9, 8)), wanted, rtol=1e-4, atol=1e-5)
        return compare(*arguments)

    monkeypatch.setattr(FirstComparison, "__call__", interrupted)
    without = ["first_on_reference"]
    with Session(ATTENTION, engine="reference") as reference, Session(ATTENTION, cache_dir="", without=without) as it:
        wanted = asked(reference, numbers(1, 9, 8))
        sessions.append(it)
        for length in (5, 7, 12, 20):
            values = numbers(1, length, 8)
            np.testing.assert_allclose(asked(it, values), asked(reference, values), rtol=1e-4, atol=1e-5)
    assert len(compiled) == 2


def test_who_waits_long_for_the_program_gets_one_of_its_own(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_calls, "WAITED", 0.0)
    assert_equal_for(ATTENTION, [(1, n, 8) for n in (5, 7, 9, 7, 9, 9)])
    assert len(compiled) == 2


WIDE = parse("""
    x = Placeholder(dtype=float, shape=[1, ?, ?, 64])
    w = Const(float[3, 3, 64, 64] 0.01)
    c = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
    y = Relu(c, T=float)
""")


@pytest.mark.parametrize(("without", "plans"), [((), 2), (("winograd_convolutions",), 1)])
def test_a_size_that_repeats_gets_a_plan_with_tiles(
    without: tuple[str, ...], plans: int, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(winograd, "is_used", lambda: True)
    monkeypatch.setattr(SizedCalls, "price", 0.0)  # seconds that a plan takes, for which each call has run
    monkeypatch.setattr(served_calls, "WAITED", math.inf)  # on a busy machine a size waits long for its program
    monkeypatch.setattr(resizable_calls, "SECOND_SHARE", math.inf)  # and comparing takes longer than a plan
    sizes = (24, 26, 28, 28, 28)
    assert_equal_for(WIDE, [(1, n, n, 64) for n in sizes], without=("first_on_reference", *without))
    assert len(compiled) == plans


def test_a_later_process_compiles_nothing(compiled: list[str], tmp_path: pathlib.Path) -> None:
    save(ATTENTION, tmp_path / "text.pb")
    made = []
    for _ in range(2):
        with Session(tmp_path / "text.pb", cache_dir=tmp_path / "cache") as session:
            made.append([asked(session, numbers(1, length, 8)) for length in (9, 5, 7)])
    with Session(tmp_path / "text.pb", cache_dir=tmp_path / "cache") as session:
        made.append([asked(session, numbers(1, length, 8)) for length in (9, 5, 7)])
    assert len(compiled) == 1
    for one, two, three in zip(*made, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)
        np.testing.assert_array_equal(two, three)


@pytest.mark.filterwarnings("error")
def test_a_slice_that_was_moved_before_a_transposition_is_not_told_the_places_of_other_axes() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, ?, ?, 3])
        w = Const(float[3, 3, 3, 4] 0.25)
        t = Tanh(x, T=float)
        order = Const(int32[4] [0, 2, 1, 3])
        turned = Transpose(t, order, T=float, Tperm=int32)
        begin = Const(int32[4] [0, 1, 0, 0])
        end = Const(int32[4] [0, 0, -1, 0])
        by = Const(int32[4] [1, 1, 1, 1])
        cut = StridedSlice(turned, begin, end, by, T=float, Index=int32, begin_mask=9, end_mask=11)
        y = Conv2D(cut, w, T=float, strides=[1, 2, 2, 1], padding="SAME")
    """)
    with Session(graph) as session, Session(graph, engine="reference") as reference:
        for rows, columns in ((8, 8), (16, 16), (32, 32), (21, 7), (7, 22)):
            images = numbers(1, rows, columns, 3)
            np.testing.assert_allclose(asked(session, images), asked(reference, images), rtol=1e-4, atol=1e-5)
