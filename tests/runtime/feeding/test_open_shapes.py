"""Shapes of inputs that a graph leaves open, found from the weights that read them."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from command_line import call
from pocketgraph import Session, export, load, quantize, save
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.graph import Versions
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.benchmark_layers import layers_from_graph
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds, synthetic_shapes
from support import with_weights


def graph(text: str, **shapes: tuple[int, ...]) -> Graph:
    rng = np.random.default_rng(0)
    weights = [const(name, rng.normal(0, 0.1, shape).astype(np.float32)) for name, shape in shapes.items()]
    return Graph([*parse(text), *weights])


CONVOLUTION = """
    conv = Conv2D(x, w, strides=[1,2,2,1], padding="SAME", T=float)
    flat = Reshape(conv, sizes, T=float, Tshape=int32)
    sizes = Const(int32 [-1, 512])
    y = MatMul(flat, v, T=float)
"""


@pytest.mark.parametrize("declared", ["", ", shape=[]", ", shape=[?,?,?,1]"])
def test_a_picture_has_the_size_that_the_last_layer_takes(declared: str) -> None:
    model = graph(f"x = Placeholder(dtype=float{declared}){CONVOLUTION}", w=(3, 3, 1, 8), v=(512, 3))
    assert synthetic_shapes(model, ["y"]) == {"x": (1, 16, 16, 1)}
    with Session(model) as session:
        assert session.run("y", synthetic_feeds(model, ["y"]))[0].shape == (1, 3)


def test_where_nothing_tells_the_rank_its_sizes_are_asked_for() -> None:
    with pytest.raises(UsageError, match=r"how many dimensions the input 'x' has; give .*: shapes={\"x\": \(1, …\)}"):
        synthetic_shapes(parse("x = Placeholder(dtype=float)\ny = Softmax(x, T=float)"), ["y"])


@pytest.mark.parametrize(("mode", "length"), [("REFLECT", 4), ("SYMMETRIC", 2)])
def test_an_open_length_is_long_enough_to_be_mirrored(mode: str, length: int) -> None:
    model = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?,4])
        borders = Const(int32[3,2] 0)
        y = MirrorPad(x, borders, T=float, Tpaddings=int32, mode="{mode}")
    """)
    amounts = np.array([[0, 0], [2, 2], [0, 0]], np.int32)
    model = model.map_nodes(lambda node: const("borders", amounts) if node.name == "borders" else node)
    assert synthetic_shapes(model, ["y"]) == {"x": (1, length, 4)}


def test_no_open_side_is_so_short_that_windows_have_no_place() -> None:
    """As of a network that reads lines of text: its height is stated, and its width is open."""
    model = graph(
        """
        x = Placeholder(dtype=float, shape=[?,32,?,1])
        halved = MaxPool(x, ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID", T=float)
        conv = Conv2D(halved, w, strides=[1,1,1,1], padding="SAME", T=float)
        quartered = MaxPool(conv, ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID", T=float)
        y = Where(quartered, T=float)
        """,
        w=(3, 3, 1, 8),
    )
    (shape,) = synthetic_shapes(model, ["y"]).values()
    with Session(model) as session:
        assert 0 not in session.run("quartered", {"x": np.zeros(shape, np.float32)})[0].shape


def test_a_row_has_as_many_numbers_as_the_matrix_has_rows() -> None:
    model = graph("x = Placeholder(dtype=float)\nz = Relu(x, T=float)\ny = MatMul(z, w, T=float)", w=(7, 2))
    assert synthetic_shapes(model, ["y"]) == {"x": (1, 7)}
    turned = graph("x = Placeholder(dtype=float)\ny = MatMul(x, w, T=float, transpose_b=true)", w=(7, 2))
    assert synthetic_shapes(turned, ["y"]) == {"x": (1, 2)}


def test_a_row_that_is_no_batch_is_as_long_as_what_it_meets(tmp_path: pathlib.Path, capsys: Any) -> None:
    """Lengths of series, one for each sample, are a batch, and stay one."""
    biased = """
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 2, 1]])
        product = MatMul(x, w, T=float)
        bias = Placeholder(dtype=float, shape=[?])
        y = BiasAdd(product, bias, T=float)
    """
    assert synthetic_shapes(parse(biased), ["y"]) == {"x": (1, 4), "bias": (3,)}
    mixed = """
        lengths = Placeholder(dtype=float, shape=[?])
        one = Const(int32 1)
        steps = ExpandDims(lengths, one, T=float, Tdim=int32)
        rows = Placeholder(dtype=float, shape=[?])
        w = Const(float [[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 2, 1]])
        column = ExpandDims(rows, one, T=float, Tdim=int32)
        weighed = MatMul(w, column, transpose_a=true, T=float)
        y = MatMul(steps, weighed, transpose_b=true, T=float)
    """
    assert synthetic_shapes(parse(mixed), ["y"]) == {"lengths": (1,), "rows": (4,)}

    save(parse(biased), tmp_path / "net.pb")
    assert call("benchmark_model", f"--graph={tmp_path / 'net.pb'}", "--max_num_runs=1") == 0
    said = capsys.readouterr()
    assert "--input_layer=x,bias --input_layer_shape=1,4:3" in said.err
    assert "Input shapes: [1,4:3]" in said.out
    assert call("export", tmp_path / "net.pb", "-o", tmp_path / "net.tflite") == 0
    capsys.readouterr()
    assert call("export", tmp_path / "net.pb", "-o", tmp_path / "c", "--target=c") == 2
    assert "say them: --input_shape=bias:3" in capsys.readouterr().err
    assert call("export", tmp_path / "net.pb", "-o", tmp_path / "c", "--target=c", "--input_shape=bias:3") == 0


def test_a_share_that_is_divided_by_is_one_number_and_keeps_all() -> None:
    model = graph(
        """
        x = Placeholder(dtype=float, shape=[?,4])
        keep = Placeholder(dtype=float)
        shared = RealDiv(x, keep, T=float)
        y = MatMul(shared, w, T=float)
        """,
        w=(4, 2),
    )
    feeds = synthetic_feeds(model, ["y"])
    assert feeds["keep"] == np.float32(1)
    assert feeds["keep"].shape == ()


def test_a_share_that_is_known_leaves_the_other_shapes_to_be_found() -> None:
    model = graph(
        """
        x = Placeholder(dtype=float)
        keep = Placeholder(dtype=float)
        sizes = Const(int32 [1, 7])
        drawn = RandomUniform(sizes, T=int32, dtype=float, seed=0, seed2=0)
        sum = Add(drawn, keep, T=float)
        mask = Floor(sum, T=float)
        hidden = MatMul(x, v, T=float)
        scaled = RealDiv(hidden, keep, T=float)
        dropped = Mul(scaled, mask, T=float)
        y = MatMul(dropped, w, T=float)
        """,
        v=(5, 7), w=(7, 2),
    )  # fmt: skip
    assert synthetic_shapes(model, ["y"], ["keep"]) == {"x": (1, 5)}


def test_sizes_that_fit_stay_what_they_were() -> None:
    text = 'x = Placeholder(dtype=float, shape=[?,?,?,3])\ny = Conv2D(x, w, strides=[1,1,1,1], padding="SAME", T=float)'
    assert synthetic_shapes(graph(text, w=(3, 3, 3, 4)), ["y"]) == {"x": (1, 224, 224, 3)}
    planes = parse("x = Placeholder(dtype=float, shape=[?,3,?,?])\ny = Relu(x, T=float)")
    assert synthetic_shapes(planes, ["y"]) == {"x": (1, 3, 224, 224)}
    mask = parse("x = Placeholder(dtype=float, shape=[?,1,?,?])\ny = Relu(x, T=float)")
    assert synthetic_shapes(mask, ["y"]) == {"x": (1, 1, 1, 1)}
    plain = parse("x = Placeholder(dtype=float, shape=[?,?])\ny = Relu(x, T=float)")
    assert synthetic_shapes(plain, ["y"]) == {"x": (1, 1)}


def test_a_sequence_is_as_long_as_what_is_cut_off_asks_for() -> None:
    model = graph(
        """
        x = Placeholder(dtype=float, shape=[?,?,4])
        begin = Const(int32 [0, 5000, 0])
        end = Const(int32 [0, -5000, 0])
        strides = Const(int32 [1, 1, 1])
        y = StridedSlice(x, begin, end, strides, T=float, Index=int32, begin_mask=5, end_mask=5)
        """
    )
    assert synthetic_shapes(model, ["y"]) == {"x": (1, 16384, 4)}
    with Session(model) as session:
        assert session.run("y", synthetic_feeds(model, ["y"]))[0].shape == (1, 6384, 4)


@pytest.mark.parametrize(
    ("sizes", "shape"), [("[-1, 4, 4, 1]", (1, 4, 4, 1)), ("[-1, 16]", (1, 16)), ("[1, 4, 4, 1]", (1, 4, 4, 1))]
)
def test_what_is_reshaped_at_once_has_the_shape_that_comes_out(sizes: str, shape: tuple[int, ...]) -> None:
    text = f"""
        x = Placeholder(dtype=float)
        to = Const(int32 {sizes})
        picture = Reshape(x, to, T=float, Tshape=int32)
        flat = Const(int32 [-1, 16])
        row = Reshape(picture, flat, T=float, Tshape=int32)
        y = MatMul(row, w, T=float)
    """
    model = graph(text, w=(16, 3))
    assert synthetic_shapes(model, ["y"]) == {"x": shape}
    with Session(model) as session:
        assert session.run("y", synthetic_feeds(model, ["y"]))[0].shape == (1, 3)


def test_a_number_that_becomes_a_row_of_one_stays_a_number() -> None:
    model = graph(
        "x = Placeholder(dtype=float, shape=[])\nto = Const(int32 [1, 1])\n"
        "row = Reshape(x, to, T=float, Tshape=int32)\ny = MatMul(row, w, T=float)",
        w=(1, 3),
    )
    assert synthetic_feeds(model, ["y"])["x"].shape == ()


GENERATOR = """
    z = Placeholder(dtype=float, shape=[?,{numbers}])
    w = Const(float 0.0)
    rows = Const(int32 [-1, 8])
    flat = Reshape(z, rows, T=float, Tshape=int32)
    h = MatMul(flat, w, T=float)
    four = Const(int32 [-1, 2, 2, 4])
    picture = Reshape(h, four, T=float, Tshape=int32)
    kernel = Const(float 0.0)
    size = Const(int32 [6, 4, 4, 2])
    y = Conv2DBackpropInput(size, kernel, picture, T=float, strides=[1,2,2,1], padding="SAME")
"""


@pytest.mark.parametrize(("numbers", "shape"), [(8, (6, 8)), (48, (1, 48)), (40, (1, 40))])
def test_a_batch_is_what_transposed_convolutions_state(numbers: int, shape: tuple[int, ...]) -> None:
    """As DCGANs do; not where one sample makes that many rows, nor where no batch fits."""
    weights = {"w": np.ones((8, 16), np.float32), "kernel": np.ones((3, 3, 2, 4), np.float32)}
    graph = with_weights(GENERATOR.format(numbers=numbers), **weights)
    assert synthetic_shapes(graph, ["y"]) == {"z": shape}
    assert [layer.shape for layer in layers_from_graph(graph, ["z"])] == [shape]
    if numbers != 40:
        with Session(graph) as session:
            [made] = session.run(["y"], synthetic_feeds(graph, ["y"]))
        assert made.shape == (6, 4, 4, 2)


@pytest.mark.parametrize(
    ("middle", "shape"),
    [
        ("to = Const(int32 [4, -1, 8])\nm = Reshape(h, to, T=float, Tshape=int32)\none = Const(int32 [0])\n"
         "y = Mean(m, one, T=float, Tidx=int32)", (4, 8)),
        ("to = Const(int32 [2, 4])\ny = Reshape(h, to, T=float, Tshape=int32)", (1, 8)),  # one sample is enough
        ("s = Squeeze(h, T=float)\ny = MatMul(s, w, T=float)", (2, 8)),
        ("s = Squeeze(h, T=float, squeeze_dims=[0])\ny = MatMul(s, w, T=float)", (1, 8)),
        ("s = Squeeze(h, T=float)\ny = Relu(s, T=float)", (1, 8)),
    ],
)  # fmt: skip
def test_a_batch_is_one_that_the_graph_computes(middle: str, shape: tuple[int, ...]) -> None:
    text = f"x = Placeholder(dtype=float, shape=[?,8])\nw = Const(float 0.0)\nh = MatMul(x, w, T=float)\n{middle}"
    graph = with_weights(text, w=np.ones((8, 8), np.float32))
    assert synthetic_shapes(graph, ["y"]) == {"x": shape}
    assert [layer.shape for layer in layers_from_graph(graph, ["x"])] == [shape]
    if "squeeze_dims" not in middle:
        with Session(graph) as session:
            assert session.run(["y"], synthetic_feeds(graph, ["y"]))[0].size


@pytest.mark.parametrize(("declared", "of_z"), [("[?,?]", (1, 4)), ("[1,?]", (1, 1))])
def test_inputs_that_are_declared_alike_get_the_same_length(declared: str, of_z: tuple[int, ...]) -> None:
    """As reading frames of one sequence do: no one of them can be longer than the others."""
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[?,?])
        z = Placeholder(dtype=float, shape={declared})
        both = Pack(x, z, T=float, N=2)
        last = Const(int32 -1)
        picture = ExpandDims(both, last, T=float, Tdim=int32)
        windows = MaxPool(picture, T=float, ksize=[1,1,4,1], strides=[1,1,1,1], padding="VALID")
        axes = Const(int32 [0, 2, 3])
        y = Mean(windows, axes, T=float, Tidx=int32)
    """)
    assert synthetic_shapes(graph, ["y"])["z"] == of_z
    if of_z == (1, 4):
        with Session(graph) as session:
            assert session.run(["y"], synthetic_feeds(graph, ["y"]))[0].shape == (1,)


@pytest.mark.parametrize("is_node", [True, False])
def test_a_batch_is_one_that_an_onnx_file_runs_with(is_node: bool, tmp_path: pathlib.Path, capsys: Any) -> None:
    """As ICLabel: a reshape to four groups; its sizes are an initializer or a node."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    sizes = onnx.numpy_helper.from_array(np.array([4, -1, 6], np.int64), "sizes")
    nodes = [helper.make_node("Constant", [], ["sizes"], value=sizes)] if is_node else []
    nodes += [
        helper.make_node("Reshape", ["x", "sizes"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["y"], axes=[0], keepdims=0),
    ]
    x, y = (helper.make_tensor_value_info(name, floats, [size, 6]) for name, size in (("x", "n"), ("y", "m")))
    graph = helper.make_graph(nodes, "g", [x], [y], [] if is_node else [sizes])
    path = tmp_path / "groups.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    )
    loaded = load(path)
    assert [node.op for node in loaded].count("Const") == 1
    assert synthetic_shapes(loaded, ["y"]) == {"x": (4, 6)}
    assert call("benchmark_model", f"--graph={path}", "--max_num_runs=2") == 0
    assert "Input shapes: [4,6]" in capsys.readouterr().out


WINDOWS = """
    small = MaxPool(conv, ksize=[1,2,2,1], strides=[1,2,2,1], padding="{pool}", T=float)
    flat = Reshape(small, sizes, T=float, Tshape=int32)
    sizes = Const(int32 [-1, {row}])
    y = MatMul(flat, v, T=float)
"""


@pytest.mark.parametrize(
    ("padding", "places", "side"),
    [("SAME", 45 * 45, 180), ("SAME", 38 * 38, 152), ("VALID", 25 * 25, 104), ("VALID", 56 * 56, 227)],
)
def test_any_side_is_found_that_the_last_layer_takes(padding: str, places: int, side: int) -> None:
    """Sides of 177 to 180 give the same map where borders are padded, and 180 without padding."""
    text = f"""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        conv = Conv2D(x, w, strides=[1,2,2,1], padding="{padding}", T=float)
    """ + WINDOWS.format(pool=padding, row=places * 2)
    model = graph(text, w=(5, 5, 3, 2), v=(places * 2, 3))
    assert synthetic_shapes(model, ["y"]) == {"x": (1, side, side, 3)}
    with Session(model) as session:
        assert session.run("y", synthetic_feeds(model, ["y"]))[0].shape == (1, 3)


@pytest.mark.parametrize("declared", ["", ", shape=[?,?,?,1]"])
def test_the_average_at_the_end_is_that_of_the_whole_map(declared: str) -> None:
    """MinhNKB's smile detector: of 64 x 64 pixels its last average is one number, of 224 x 224 a map of 441."""
    model = graph(
        f"""
        x = Placeholder(dtype=float{declared})
        conv = Conv2D(x, w, strides=[1,4,4,1], padding="VALID", T=float)
        mean = AvgPool(conv, ksize=[1,15,15,1], strides=[1,1,1,1], padding="VALID", T=float)
        y = Sigmoid(mean, T=float)
        """,
        w=(5, 5, 1, 1),
    )
    assert synthetic_shapes(model, ["y"]) == {"x": (1, 64, 64, 1)}


def test_a_series_is_as_long_as_what_it_is_split_into() -> None:
    model = graph(
        """
        x = Placeholder(dtype=float)
        steps_first = Transpose(x, order, T=float, Tperm=int32)
        order = Const(int32 [1, 0, 2])
        rows = Reshape(steps_first, sizes, T=float, Tshape=int32)
        sizes = Const(int32 [-1, 3])
        made = MatMul(rows, w, T=float)
        axis = Const(int32 0)
        y = Split(axis, made, num_split=90, T=float)
        """,
        w=(3, 4),
    )
    assert synthetic_shapes(model, ["y"]) == {"x": (1, 90, 3)}


def test_a_picture_is_large_enough_that_the_mean_at_the_end_is_of_something() -> None:
    model = graph(
        """
        x = Placeholder(dtype=float, shape=[?,8,?,1])
        first = AvgPool(x, ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID", T=float)
        second = AvgPool(first, ksize=[1,2,2,1], strides=[1,2,2,1], padding="VALID", T=float)
        axes = Const(int32 [1, 2])
        pooled = Mean(second, axes, T=float, Tidx=int32)
        y = MatMul(pooled, w, T=float)
        """,
        w=(1, 3),
    )
    (shape,) = synthetic_shapes(model, ["y"]).values()
    assert shape[2] >= 4
    with Session(model) as session:
        (answer,) = session.run(["y"], synthetic_feeds(model, ["y"]))
    assert np.isfinite(answer).all()


OLD = """
    x = Placeholder(dtype=int32, shape=[], _output_shapes=[[?,?,?]])
    size = Shape(x, T=int32, out_type=int32)
    last = Const(int32 [2])
    behind = Const(int32 [3])
    one = Const(int32 [1])
    y = StridedSlice(size, last, behind, one, T=int32, Index=int32, shrink_axis_mask=1)
"""


@pytest.mark.parametrize(("producer", "shape"), [(21, (1, 1, 1)), (22, ())])
def test_what_training_inferred_tells_how_many_dimensions_an_old_placeholder_has(
    producer: int, shape: tuple[int, ...]
) -> None:
    """Up to version 21, [] says that nothing is known of a shape."""
    old = Graph([*parse(OLD)], versions=Versions(producer))
    assert synthetic_shapes(old, ["y"]) == {"x": shape}


def test_sizes_of_an_old_placeholder_are_taken_as_they_are_given(tmp_path: pathlib.Path) -> None:
    old = Graph([*parse(OLD)], versions=Versions(21))
    assert export(old, tmp_path / "net.onnx", shapes={"x": (1, 3, 9)}).checks[0].passed
    with pytest.raises(UsageError, match="'x'"):
        quantize(old, mode="dynamic", shapes={"x": (3, 9)})


@pytest.mark.parametrize(("channels", "side"), [(3, 224), (7, 1)])
def test_whole_numbers_of_three_colours_are_a_picture(channels: int, side: int, tmp_path: pathlib.Path) -> None:
    """As MoveNet takes them; the C library names the size that it would have."""
    model = parse(f"""
        x = Placeholder(dtype=int32, shape=[1,?,?,{channels}])
        f = Cast(x, SrcT=int32, DstT=float)
        y = Relu(f, T=float)
    """)
    assert synthetic_shapes(model, ["y"]) == {"x": (1, side, side, channels)}
    with pytest.raises(UsageError, match=rf'shapes={{"x": \(1, {side}, {side}, {channels}\)}}'):
        export(model, tmp_path / "out", target="c")


def test_a_size_that_is_given_leaves_a_state_without_one_to_be_one_number(tmp_path: pathlib.Path) -> None:
    """Of a model that is called frame by frame, of which nothing tells how many dimensions a state has."""
    model = parse("""
        frame = Placeholder(dtype=float, shape=[?,?,?,3])
        state = Placeholder(dtype=float)
        sizes = Shape(frame, T=float, out_type=int32)
        before = BroadcastTo(state, sizes, T=float, Tidx=int32)
        sum = AddV2(frame, before, T=float)
        y = Relu(sum, T=float)
    """)
    made = export(model, tmp_path / "net.tflite", shapes={"frame": (1, 8, 6, 3)})
    assert made.checks[0].passed
    assert synthetic_shapes(model, ["y"], ["frame"]) == {"state": (1,)}
