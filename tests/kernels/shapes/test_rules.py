"""Static shapes, types and values: rules stated as small graphs, checked against NumPy where it knows better."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, Versions, const, opdefs
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer, shape_rule
from pocketgraph.kernels.shapes.algebra import broadcast, window
from pocketgraph.kernels.shapes.array.indexing import sliced


def modern(graph: Graph) -> Graph:
    """With a version for which a placeholder's scalar shape is a scalar's."""
    return graph.replace(versions=Versions(producer=100))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y = Relu(x)", "[?,8,8,3]"),
        ("y = Add(x, v)", "[?,8,8,3]"),
        ("y = BiasAdd(x, v)", "[?,8,8,3]"),
        ("y = Select(x, x, x)", "[?,8,8,3]"),
        ('y = Conv2D(x, w, strides=[1,2,2,1], padding="SAME")', "[?,4,4,5]"),
        ('y = Conv2D(x, w, strides=[1,2,2,1], padding="VALID")', "[?,3,3,5]"),
        ('y = Conv2D(x, w, strides=[1,1,1,1], padding="VALID", dilations=[1,2,2,1])', "[?,4,4,5]"),
        (
            'y = Conv2D(x, w, strides=[1,1,1,1], padding="EXPLICIT", explicit_paddings=[0,0,1,0,2,1,0,0])',
            "[?,7,9,5]",
        ),
        ('y = DepthwiseConv2dNative(x, w, strides=[1,1,1,1], padding="SAME")', "[?,8,8,15]"),
        ('y = MaxPool(x, ksize=[1,3,3,1], strides=[1,2,2,1], padding="VALID")', "[?,3,3,3]"),
        ("y = Mean(x, space)", "[?,3]"),
        ("y = Mean(x, space, keep_dims=true)", "[?,1,1,3]"),
        ("y = ArgMax(x, one)", "[?,8,3]"),
        ("y = Transpose(x, order)", "[3,8,8,?]"),
        ("y = ConcatV2(x, x, three)", "[?,8,8,6]"),
        ("y = Pack(x, x, N=2, axis=1)", "[?,2,8,8,3]"),
        ("y = ExpandDims(x, one)", "[?,1,8,8,3]"),
        ("y = Pad(x, pads)", "[?,10,11,3]"),
        ("y = ResizeBilinear(x, space)", "[?,1,2,3]"),
        ("y = SpaceToDepth(x, block_size=2)", "[?,4,4,12]"),
        ("y = SpaceToBatchND(x, twos, zeros)", "[?,4,4,3]"),
        ("y = GatherV2(x, space, three)", "[?,8,8,2]"),
        ("y = OneHot(space, three, v, v)", "[2,3]"),
        ("y = Fill(space, one)", "[1,2]"),
        ("y = Reshape(x, flat)", "[?,192]"),
        ("y = Where(x)", "[?,4]"),
        ("y = TensorArrayV3(one)", "[2]"),
        ("y = NobodyKnowsThis(x)", "<unknown>"),
    ],
)
def test_rules(line: str, expected: str) -> None:
    text = f"""
        x = Placeholder(dtype=float, shape=[?,8,8,3])
        v = Const(float [1, 2, 3])
        w = Const(float[3,3,3,5] 1.0)
        space = Const(int32 [1, 2])
        twos = Const(int32 [2, 2])
        zeros = Const(int32 [[0, 0], [0, 0]])
        order = Const(int32 [3, 1, 2, 0])
        pads = Const(int32 [[0, 0], [1, 1], [1, 2], [0, 0]])
        flat = Const(int32 [-1, 192])
        one = Const(int32 1)
        three = Const(int32 3)
        {line}
    """
    assert str(infer(modern(parse(text))).shape("y")) == expected


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (("[]", "[]"), "[]"), (("[?]", "[]"), "[?]"), (("[]", "[2,?]", "[?,3]"), "[2,3]"), (("[1]", "[]"), "[1]"),
        (("<unknown>",), "<unknown>"), (("<unknown>", "[]"), "<unknown>"), (("<unknown>", "[2]"), "[2]"),
        (("[]", "[?,?]", "<unknown>"), "[?,?]"),
    ],
)  # fmt: skip
def test_joined_texts_have_the_shape_that_tensorflow_1_says(shapes: tuple[str, ...], expected: str) -> None:
    names = [f"x{at}" for at in range(len(shapes))]
    lines = [f"{name} = Placeholder(dtype=string, shape={shape})" for name, shape in zip(names, shapes, strict=True)]
    graph = parse("\n".join([*lines, f"y = StringJoin({', '.join(names)}, N={len(names)})"]))
    assert str(infer(modern(graph)).shape("y")) == expected


GRADIENTS = {
    'y = MaxPoolGrad(x, p, p, ksize=[1,2,2,1], strides=[1,2,2,1], padding="SAME")': "[2,8,6,3]",
    'y = AvgPoolGrad(sizes, p, ksize=[1,2,2,1], strides=[1,2,2,1], padding="SAME")': "[2,8,6,3]",
    "y = StridedSliceGrad(sizes, zeros, sizes, ones, x)": "[2,8,6,3]",
    "y = BiasAddGrad(x)": "[3]",
    'y = BiasAddGrad(x, data_format="NCHW")': "[8]",
    "y = FusedBatchNormGradV3(x, x, v, v, v, v)": "[2,8,6,3]",
    "y = ResizeBilinearGrad(p, x)": "[2,8,6,3]",
    "y = ResizeNearestNeighborGrad(p, pair)": "[2,5,7,3]",
    "y = MirrorPadGrad(x, borders)": "[2,6,5,3]",
}


@pytest.mark.parametrize(("line", "expected"), GRADIENTS.items())
def test_gradients_have_the_shapes_of_what_they_are_by(line: str, expected: str) -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[2,8,6,3])\np = Placeholder(dtype=float, shape=[2,4,3,3])\n"
        "v = Placeholder(dtype=float, shape=[3])\nsizes = Const(int32 [2,8,6,3])\nzeros = Const(int32 [0,0,0,0])\n"
        "ones = Const(int32 [1,1,1,1])\npair = Const(int32 [5,7])\n"
        "borders = Const(int32 [[0,0],[1,1],[0,1],[0,0]])\n" + line
    )
    assert str(infer(graph).shape("y:0")) == expected


def test_the_axes_that_a_gradient_is_summed_over_are_known() -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[2,8,6,3])\nv = Placeholder(dtype=float, shape=[3])\n"
        "sx = Shape(x, T=float)\nsv = Shape(v, T=float)\nb = BroadcastGradientArgs(sx, sv, T=int32)\n"
        "y = Sum(x, b:1, T=float, Tidx=int32)\n"
    )
    found = infer(graph)
    assert [found.value(f"b:{port}").tolist() for port in range(2)] == [[], [0, 1, 2]]
    assert str(found.shape("y:0")) == "[3]"


def test_sizes_are_followed_through_a_flattening() -> None:
    found = infer(
        parse("""
        x = Placeholder(dtype=float, shape=[?,7,7,64])
        shape = Shape(x, T=float, out_type=int32)
        zero = Const(int32 [0])
        one = Const(int32 [1])
        four = Const(int32 [4])
        batch = StridedSlice(shape, zero, one, one, T=int32, Index=int32, shrink_axis_mask=1)
        rest = StridedSlice(shape, one, four, one, T=int32, Index=int32)
        axis = Const(int32 [0])
        size = Prod(rest, axis, T=int32, Tidx=int32)
        pair = Pack(batch, size, N=2, T=int32)
        y = Reshape(x, pair, T=float, Tshape=int32)
    """)
    )
    assert found.numbers("shape") == [None, 7, 7, 64]
    assert found.value("size") == 7 * 7 * 64
    assert found.value("pair") is None
    assert found.numbers("pair") == [None, 3136]
    assert str(found.shape("y")) == "[?,3136]"
    assert found.dtype("pair") is INT32


def test_all_of_an_axis_is_known_where_another_size_of_a_slice_is_not() -> None:
    found = infer(
        parse("""
        x = Placeholder(dtype=float, shape=[1,?])
        table = Placeholder(dtype=float, shape=[512,64])
        shape = Shape(x, T=float, out_type=int32)
        one = Const(int32 [1])
        two = Const(int32 [2])
        steps = StridedSlice(shape, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
        rest = Const(int32 -1)
        size = Pack(steps, rest, N=2, T=int32)
        start = Const(int32 [0, 0])
        y = Slice(table, start, size, T=float, Index=int32)
        later = Const(int32 [0, 4])
        z = Slice(table, later, size, T=float, Index=int32)
    """)
    )
    assert str(found.shape("y")) == "[?,64]"
    assert str(found.shape("z")) == "[?,?]"


@pytest.mark.parametrize(
    ("begin", "problem"),
    [
        ("[-5, 0]", "a slice begins at -5 of axis 0 of [2,3]; begin counts from 0 up"),
        ("0", "a slice begins at one place for each of 2 axes, and begin is of shape []"),
        ("[0]", "a slice begins at one place for each of 2 axes, and begin is of shape [1]"),
        ("[0, 0, 0]", "a slice begins at one place for each of 2 axes, and begin is of shape [3]"),
        ("[[0, 0]]", "a slice begins at one place for each of 2 axes, and begin is of shape [1, 2]"),
        ("[1, 2]", ""),
    ],
)
@pytest.mark.parametrize("size", ["Const(int32 [1, 1])", "Placeholder(dtype=int32, shape=[2])"])
def test_where_a_slice_cannot_begin_is_told(begin: str, size: str, problem: str) -> None:
    found = infer(
        parse(f"""
            x = Placeholder(dtype=float, shape=[2, 3])
            b = Const(int32 {begin})
            s = {size}
            y = Slice(x, b, s, T=float, Index=int32)
        """)
    )
    said = found.problems.get("y", "")
    assert said.endswith(problem) if problem else not said


def test_an_unknown_size_does_not_pass_for_a_known_one() -> None:
    """What divides or compares by an unknown size is unknown, even where most sizes would give the same."""
    found = infer(
        parse("""
        x = Placeholder(dtype=float, shape=[?,7])
        shape = Shape(x, T=float, out_type=int32)
        three = Const(int32 [3, 3])
        quotient = FloorDiv(three, shape, T=int32)
        other = FloorDiv(shape, three, T=int32)
        less = Minimum(shape, three, T=int32)
        difference = Sub(shape, shape, T=int32)
        nothing = Mul(shape, zeros, T=int32)
        zeros = Const(int32 [0, 0])
    """)
    )
    assert found.numbers("quotient") is None
    assert found.numbers("other") == [None, 2]
    assert found.numbers("less") is None
    assert found.numbers("difference") == [None, 0]
    assert found.numbers("nothing") == [0, 0]


def test_feeds_hold_for_any_tensor_and_values_for_constants() -> None:
    graph = parse("""
        x = Placeholder(dtype=float)
        y = Relu(x, T=float)
        z = Relu(y, T=float)
        size = Placeholder(dtype=int32)
        filled = Fill(size, one)
        one = Const(float 1)
    """)
    feeds = {"y:0": (FLOAT, Shape((2, 3)))}
    found = infer(graph, feeds, {"size": np.array([4, 5], np.int32)})
    assert found.shape("x").rank is None
    assert found.shape("z") == Shape((2, 3))
    assert found.shape("filled") == Shape((4, 5))
    assert found.dtype("size") is INT32
    assert infer(graph, {"one:0": (FLOAT, Shape(()))}).value("one") is None  # what is fed is no constant any more


def test_a_default_holds_when_all_feeds_are_known() -> None:
    graph = parse("""
        default = Const(int32 [4, 5])
        size = PlaceholderWithDefault(default, dtype=int32, shape=[?])
        one = Const(float 1)
        filled = Fill(size, one)
    """)
    assert str(infer(graph).shape("filled")) == "<unknown>"
    assert str(infer(graph, {}).shape("filled")) == "[4,5]"
    assert str(infer(graph, {"size": (INT32, Shape((3,)))}).shape("filled")) == "[?,?,?]"
    assert str(infer(graph, {}, complete=False).shape("size")) == "[?]"


def test_only_what_the_outputs_need_is_looked_at() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2])
        y = Relu(x, T=float)
        z = Neg(x, T=float)
    """)
    found = infer(graph, outputs=["y:0"])
    assert found.shape("y") == Shape((2,))
    assert found.shapes("z") == ()
    assert found.shape("z").rank is None


@pytest.mark.parametrize(("producer", "expected"), [(0, "<unknown>"), (21, "<unknown>"), (22, "[]"), (134, "[]")])
def test_a_scalar_placeholder_of_an_old_graph_has_no_shape(producer: int, expected: str) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[])").replace(versions=Versions(producer=producer))
    assert str(infer(graph).shape("x")) == expected


@pytest.mark.parametrize(("producer", "expected"), [(21, "[?,?,3]"), (22, "[]")])
def test_a_placeholder_of_an_old_graph_has_the_shape_that_its_training_wrote_beside(
    producer: int, expected: str
) -> None:
    """As TensorFlow's importer takes it: a MetaGraphDef of 1.1 says no shape of a placeholder but there."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[], _output_shapes=[[?, ?, 3]])
        y = Relu(x, T=float)
    """).replace(versions=Versions(producer=producer))
    assert str(infer(graph).shape("y:0")) == expected


def test_a_conditional_knows_what_both_branches_agree_on() -> None:
    found = infer(
        modern(
            parse("""
        p = Placeholder(dtype=bool, shape=[])
        a = Placeholder(dtype=float, shape=[2,3])
        left = Switch(a, p, T=float)
        half = Mean(left:1, axes, T=float, Tidx=int32, keep_dims=true)
        axes = Const(int32 [0])
        y = Merge(left, half, T=float, N=2)
    """)
        )
    )
    assert found.shape("left:1") == Shape((2, 3))
    assert str(found.shape("y")) == "[?,3]"
    assert found.shape("y:1") == Shape(())


def test_a_loop_ends_and_its_variables_are_unknown() -> None:
    found = infer(
        parse("""
        start = Const(int32 0)
        enter = Enter(start, T=int32, frame_name="loop")
        merge = Merge(enter, next, T=int32, N=2)
        limit = Const(int32 3)
        fixed = Enter(limit, T=int32, frame_name="loop", is_constant=true)
        less = Less(merge, fixed, T=int32)
        cond = LoopCond(less)
        switch = Switch(merge, cond, T=int32)
        body = Identity(switch:1, T=int32)
        w = Const(int32 [1, 2])
        tiled = Tile(w, fixed, T=int32)
        add = AddV2(body, w, T=int32)
        next = NextIteration(add, T=int32)
        exit = Exit(switch, T=int32)
    """)
    )
    assert found.shape("exit").rank is None
    assert found.shape("cond") == Shape(())
    assert found.value("fixed") == 3
    assert found.value("merge") is None


def test_large_constants_are_not_read() -> None:
    def read() -> np.ndarray:
        raise AssertionError("the weights were read")

    weights = Node("w", "Const", (), {"dtype": FLOAT, "value": Tensor(FLOAT, (1000, 1000), read=read)})
    again = Node("y", "Identity", ("w",), {"T": FLOAT})
    assert infer(Graph([weights, again])).shape("y") == Shape((1000, 1000))


def test_inputs_that_cannot_fit_are_named() -> None:
    graph = parse("""
        a = Placeholder(dtype=float, shape=[2,3])
        b = Placeholder(dtype=float, shape=[4,5])
        y = MatMul(a, b, T=float)
        z = Relu(y, T=float)
    """)
    found = infer(graph)
    assert found.shape("z").rank is None
    assert "[2,3], [4,5]" in found.problems["y"]
    with pytest.raises(GraphError, match=r"node 'y': MatMul cannot take inputs of shapes \[2,3\], \[4,5\]"):
        infer(graph, strict=True)


@pytest.mark.parametrize(
    ("dims", "begin", "stride", "problem"),
    [
        ("[3]", 0, 0, "a single index has a stride of 0, not 1"),
        ("[?]", 0, 0, "a single index has a stride of 0, not 1"),
        ("[3]", 0, -1, "a single index has a stride of -1, not 1"),
        ("[?]", 0, -1, ""),
        ("[3]", 0, 2, ""),
        ("[3]", 3, 1, r"slice index 3 of dimension 0 of [3] is out of bounds"),
        ("[3]", -4, 1, r"slice index -4 of dimension 0 of [3] is out of bounds"),
        ("[3]", -3, 1, ""),
        ("[?]", 3, 1, ""),
    ],
)
def test_a_single_index_is_checked_as_tensorflow_does_on_import(
    dims: str, begin: int, stride: int, problem: str
) -> None:
    """As 1.15.5 and 2.21 refuse them: strides[0] must be non-zero, only stride 1 allowed, slice index out of bounds."""
    found = infer(
        parse(f"""
            x = Placeholder(dtype=float, shape={dims})
            b = Const(int32 [{begin}])
            s = Const(int32 [{stride}])
            y = StridedSlice(x, b, b, s, T=float, Index=int32, shrink_axis_mask=1)
        """)
    )
    said = found.problems.get("y", "")
    assert said.endswith(problem) if problem else not said


@pytest.mark.parametrize(
    "line",
    [
        "y = Conv2D(x, x)",
        'y = Conv2D(x, x, strides=["a","b"], padding="SAME")',
        'y = Conv2D(x, x, strides=[1,0,0,1], padding="SAME")',
        "y = Conv2D(x)",
        "y = MatMul(x)",
        "y = Relu()",
        "y = Shape()",
        "y = Rank(x, out_type=3)",
        "y = Split(axis, x, num_split=-3)",
        "y = Split(axis, x, num_split=1000000000000, T=float)",
        "y = Unpack(x, num=999999999, T=float)",
        "y = Squeeze(x, squeeze_dims=[17])",
        "y = StridedSlice(x, huge, huge, huge)",
        "y = Fill(huge, axis)",
        "y = Range(axis, far, axis)",
        "y = Tile(x, huge)",
        "y = Reshape(x, huge)",
        "y = Size(vast, out_type=int32)",
        "y = Placeholder(dtype=float, shape=3)",
        "y = Const(dtype=float)",
        "y = SpaceToDepth(x, block_size=0)",
    ],
)
def test_nodes_that_make_no_sense_do_no_harm(line: str) -> None:
    found = infer(
        parse(f"""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        vast = Placeholder(dtype=float, shape=[4000000000,4000000000,4000000000])
        axis = Const(int32 0)
        far = Const(int64 9000000000000000000)
        huge = Const(int64 [9000000000000000000, -5, 9000000000000000000, 3])
        {line}
    """)
    )
    assert found.value("y") is None


@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_no_op_without_attributes_does_harm(count: int) -> None:
    """Every rule meets nodes that lack what it looks for, with inputs of no use to it."""
    inputs = [
        const("a", np.int32([3, -1])),
        const("b", np.float32([[0.5]])),
        parse("c = Placeholder(dtype=float)")["c"],
    ]
    refs = (["a", "b", "c"] * 3)[:count]
    nodes = [Node(f"n{i}", op, refs) for i, op in enumerate(opdefs.names())]
    found = infer(Graph([*inputs, *nodes]))
    assert len(nodes) > 1000
    assert all(isinstance(shape, Shape) for node in nodes for shape in found.shapes(node.name))


def test_a_node_before_its_inputs_and_dangling_inputs_are_fine() -> None:
    found = infer(parse("y = Add(x, gone)\nx = Placeholder(dtype=float, shape=[3])"))
    assert found.shape("x") == Shape((3,))
    assert found.shape("y").rank is None
    assert found.shape("gone").rank is None
    assert found.dtype("gone") is None


def test_two_rules_for_one_op_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="Relu has two shape rules"):
        shape_rule("Relu")(lambda call: call.shape(0))


DIMS = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(DIMS, DIMS)
@settings(max_examples=150, deadline=None)
def test_broadcasting_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = Shape(np.broadcast_shapes(a, b))
    except ValueError:
        with pytest.raises(GraphError):
            broadcast(Shape(a), Shape(b))
    else:
        assert broadcast(Shape(a), Shape(b)) == expected


@given(DIMS, DIMS, st.data())
@settings(max_examples=150, deadline=None)
def test_unknown_sizes_never_lead_to_a_wrong_one(a: tuple[int, ...], b: tuple[int, ...], data: st.DataObject) -> None:
    """Hiding sizes may only hide sizes of the result."""
    try:
        expected = Shape(np.broadcast_shapes(a, b))
    except ValueError:
        return
    hidden = [Shape(data.draw(st.sampled_from([d, None])) for d in dims) for dims in (a, b)]
    assert broadcast(*hidden).fits(expected)


ENTRY = st.integers(-6, 6)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.lists(st.tuples(ENTRY, ENTRY, st.sampled_from([-2, -1, 1, 2]), st.integers(0, 5)), min_size=1, max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_slices_are_numpys(dims: list[int], entries: list[tuple[int, int, int, int]]) -> None:
    masks = dict.fromkeys(["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"], 0)
    index: list[object] = []
    used = 0
    for i, (first, last, step, kind) in enumerate(entries):
        if kind == 5 and masks["ellipsis_mask"] == 0:
            masks["ellipsis_mask"] |= 1 << i
            index.append(Ellipsis)
        elif kind == 4:
            masks["new_axis_mask"] |= 1 << i
            index.append(None)
        else:
            used += 1
            masks["begin_mask"] |= (kind == 1) << i
            masks["end_mask"] |= (kind == 2) << i
            if kind == 3:
                masks["shrink_axis_mask"] |= 1 << i
                index.append(0)
                entries[i] = (0, last, abs(step), kind)
            else:
                index.append(slice(None if kind == 1 else first, None if kind == 2 else last, step))
    if used > len(dims) or (masks["shrink_axis_mask"] and 0 in dims):
        return
    begin, end, strides = ([entry[k] for entry in entries] for k in range(3))
    found = sliced(Shape(dims), len(entries), begin, end, strides, masks.get)
    assert found == Shape(np.empty(dims)[tuple(index)].shape)


@given(
    st.integers(1, 40), st.integers(1, 7), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(0, 3)
)
@settings(max_examples=200, deadline=None)
def test_windows_are_counted_one_by_one(
    size: int, kernel: int, stride: int, dilation: int, before: int, after: int
) -> None:
    span = (kernel - 1) * dilation + 1
    places = sum(1 for start in range(0, size + before + after - span + 1, stride))
    if places:
        assert window(size, kernel, stride, "EXPLICIT", dilation=dilation, pads=(before, after)) == places
    assert window(size, kernel, stride, "SAME", dilation=dilation) == math.ceil(size / stride)
    assert window(None, kernel, stride, "SAME") is None


def test_types_follow_the_signature() -> None:
    found = infer(
        parse("""
        x = Placeholder(dtype=half, shape=[2])
        y = Cast(x, SrcT=half, DstT=double)
        best = TopKV2(x, k, T=half)
        k = Const(int32 1)
    """)
    )
    assert [found.dtype(name) for name in ("x", "y", "best:0", "best:1")] == [
        DType.named(name) for name in ("half", "double", "half", "int32")
    ]
    assert found.dtype("best:2") is None


def test_of_an_identity_is_known_what_is_known_of_its_source() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 3])
        c = Const(int32 [4, 5])
        pair = Split(axis, x, T=float, num_split=1)
        axis = Const(int32 1)
        of_c = Identity(c, T=int32)
        again = Identity(of_c, T=int32)
        of_x = Identity(x, T=float)
        of_port = Identity(pair:0, T=float)
        waits = Identity(c, ^x, T=int32)
        untyped = Identity(c)
        fed = Identity(c, T=int32)
        of_fed = Identity(fed, T=int32)
        of_none = Identity(missing, T=float)
    """)
    found = infer(graph, {"x": (FLOAT, Shape((2, 3))), "fed": (INT32, Shape((7,)))})
    for name in ("of_c", "again", "waits"):
        assert (found.shape(name), found.dtype(name)) == (Shape((2,)), INT32)
        np.testing.assert_array_equal(found.value(name), [4, 5])
    for name in ("of_x", "of_port"):
        assert (found.shape(name), found.dtype(name), found.value(name)) == (Shape((2, 3)), FLOAT, None)
    assert (found.shape("untyped"), found.dtype("untyped")) == (Shape((2,)), None)
    for name in ("fed", "of_fed"):
        assert (found.shape(name), found.dtype(name), found.value(name)) == (Shape((7,)), INT32, None)
    assert (found.shape("of_none").rank, found.dtype("of_none")) == (None, FLOAT)


def test_a_picture_that_became_empty_holds_no_integers() -> None:
    """Its average is NaN, as TensorFlow's; that of as many integers would be 0."""
    found = infer(
        parse("""
        x = Placeholder(dtype=float, shape=[1,1,0,2])
        axis = Const(int32 3)
        wide = ConcatV2(x, x, axis, N=2, T=float, Tidx=int32)
        sides = Const(int32 [1, 2])
        y = Mean(wide, sides, T=float, Tidx=int32)
    """)
    )
    assert found.value("wide").dtype == np.float32
    assert np.isnan(found.value("y")).all()


@pytest.mark.parametrize(
    ("values", "sizes", "types", "wanted"),
    [
        ("[?]", "-1", ["ROW_SPLITS"], "[?,?]"),
        ("[?,5]", "-1", ["ROW_SPLITS"], "[?,?,5]"),
        ("[?]", "-1", ["ROW_SPLITS", "ROW_SPLITS"], "[?,?,?]"),
        ("[?,5]", "-1", ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], "[?,?,5]"),
        ("[?]", "[-1, 7]", ["ROW_SPLITS"], "[?,7]"),
        ("[?,5]", "[4, -1, -1]", ["ROW_SPLITS"], "[4,?,5]"),
    ],
)
def test_padded_rows_have_the_axes_that_tensorflow_says(values: str, sizes: str, types: list[str], wanted: str) -> None:
    """As TensorFlow 2.21 infers them."""
    parts = [f"part{at}" for at in range(len(types))]
    listed = ", ".join(f'"{kind}"' for kind in types)
    graph = parse(
        f"values = Placeholder(dtype=float, shape={values})\nzero = Const(float 0.0)\nsizes = Const(int64 {sizes})\n"
        + "".join(f"{part} = Placeholder(dtype=int64)\n" for part in parts)
        + f"y = RaggedTensorToTensor(sizes, values, zero, {', '.join(parts)}, T=float, Tindex=int64, Tshape=int64, "
        f"num_row_partition_tensors={len(parts)}, row_partition_types=[{listed}])"
    )
    assert str(infer(graph).shape("y:0")) == wanted


def test_a_transposed_convolution_of_another_size_is_refused() -> None:
    """TensorFlow's kernel refuses it when it runs: out_backprop has to be what the convolution gives."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, ?, ?, 4])
        w = Placeholder(dtype=float, shape=[4, 4, 3, 4])
        sides = Const(int32[4] [1, 16, 16, 3])
        y = Conv2DBackpropInput(sides, w, x, T=float, strides=[1, 2, 2, 1], padding="SAME")
    """)
    assert infer(graph, strict=True).shape("y:0").dims == (1, 16, 16, 3)
    fits, does_not = ({"x:0": (FLOAT, Shape([1, 8, side, 4]))} for side in (8, 9))
    assert infer(graph, fits, strict=True).shape("y:0").dims == (1, 16, 16, 3)
    with pytest.raises(GraphError, match="does not come from one of"):
        infer(graph, does_not, strict=True)


@pytest.mark.parametrize("op", ["BatchMatMul", "BatchMatMulV2", "MatrixSolve", "MatrixTriangularSolve"])
@pytest.mark.parametrize("order", ["unknown, vector", "vector, unknown"])
def test_an_operand_of_a_wrong_rank_is_told_beside_one_of_unknown_rank(op: str, order: str) -> None:
    """As TensorFlow does, which asks for two dimensions or more of both."""
    graph = parse(f"""
        unknown = Placeholder(dtype=float)
        vector = Placeholder(dtype=float, shape=[3])
        y = {op}({order}, T=float)
    """)
    with pytest.raises(GraphError, match=r"shape \[3\] should have rank 2 or more"):
        infer(graph, strict=True)
