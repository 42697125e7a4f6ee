"""The file: names, numbers, what is written beside it, what it says of itself; and bad input."""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from onnx_runs import exported, onnx, onnxruntime, run
from pocketgraph.errors import MissingExtraError, PocketgraphError, UsageError
from pocketgraph.exporting import targets
from pocketgraph.exporting.model import About
from pocketgraph.exporting.onnx import onnx_exporter, to_onnx
from pocketgraph.graph import Graph, Signature, const
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.identify import identify


def net(side: int = 64) -> Graph:
    weights = np.random.default_rng(1).normal(size=(3, 3, 3, side)).astype(np.float32)
    text = """
        image = Placeholder(dtype=float, shape=[?,8,8,3])
        w = Const(float 0.0)
        a = Conv2D(image, w, T=float, strides=[1,1,1,1], padding="SAME")
        axes = Const(int32 [1, 2])
        scores = Mean(a, axes, T=float, Tidx=int32, keep_dims=false)
    """
    return parse(text).map_nodes(lambda node: const("w", weights) if node.name == "w" else node)


def test_a_file_with_the_models_names(tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(net(), tmp_path / "net.onnx")
    assert made.target == "onnx"
    assert made.checks[0].passed
    model = onnx.load(made.path)
    assert [item.name for item in model.graph.input] == ["image"]
    assert [item.name for item in model.graph.output] == ["scores"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert model.opset_import[0].version == 17
    assert model.ir_version == 8
    assert model.producer_name == "pocketgraph"
    session = onnxruntime.InferenceSession(made.path, providers=["CPUExecutionProvider"])
    assert session.run(None, {"image": np.ones((5, 8, 8, 3), np.float32)})[0].shape == (5, 64)


def test_the_opset_is_the_first_that_has_all_operators(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=int32, shape=[?,2])\nc = Const(int32 6)\ny = BitwiseAnd(x, c, T=int32)")
    made = pocketgraph.export(graph, tmp_path / "net.onnx", samples=np.array([[5, 3]], np.int32))
    assert onnx.load(made.path).opset_import[0].version == 18
    assert "the file has opset 18: opset 17 lacks some of its operators" in made.notes
    session = onnxruntime.InferenceSession(made.path, providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.array([[5, 3], [7, 8]], np.int32)})[0].tolist() == [[4, 2], [6, 0]]
    with pytest.raises(PocketgraphError, match="export with opset 18"):
        pocketgraph.export(graph, tmp_path / "net.onnx", opset=17)


@pytest.mark.parametrize(("line", "opsets"), [("y = Invert(x, T=int32)", [17, 18]), ("", [17, 20]),
                                              ("y = PopulationCount(x, T=int32)", [17])])  # fmt: skip
def test_as_few_opsets_are_tried_as_there_are_needs(
    line: str, opsets: list[int], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no opset has ends that at once."""
    tried: list[int] = []

    def spied(*given: Any, opset: int, **named: Any) -> Any:
        tried.append(opset)
        return to_onnx.converted(*given, opset=opset, **named)

    monkeypatch.setattr(onnx_exporter, "converted", spied)
    texts = "t = Placeholder(dtype=string, shape=[2])\ny = StringJoin(t, t, N=2)\nz = Invert(x, T=int32)"
    graph = parse(f"x = Placeholder(dtype=int32, shape=[2])\n{line or texts}")
    with contextlib.nullcontext() if len(opsets) > 1 else pytest.raises(PocketgraphError, match="PopulationCount"):
        made = pocketgraph.export(graph, tmp_path / "net.onnx")
        assert onnx.load(made.path).opset_import[0].version == opsets[-1]
    assert tried == opsets


def test_counts_of_a_vector_have_one_axis(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[?])
        n = Const(int32 4)
        w = Const(float[0] 0)
        y = DenseBincount(x, n, w, T=float, Tidx=int32)
    """)
    made = pocketgraph.export(graph, tmp_path / "net.onnx", samples=np.array([1, 3, 3], np.int32))
    session = onnxruntime.InferenceSession(made.path, providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.array([3, 1, 3, 9], np.int32)})[0].tolist() == [0, 1, 0, 2]  # TensorFlow 2.21


def test_keys_of_the_signature_are_the_names(tmp_path: pathlib.Path) -> None:
    graph = net().replace(signatures={"serving_default": Signature({"picture": "image:0"}, {"classes": "scores:0"})})
    model = onnx.load(pocketgraph.export(graph, tmp_path / "net.onnx", fixed=True).path)
    assert [item.name for item in model.graph.input] == ["picture"]
    assert [item.name for item in model.graph.output] == ["classes"]
    assert [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim] == [1, 8, 8, 3]


def test_constants_in_a_file_beside(tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(net(1024), tmp_path / "net.onnx", external_data=True)
    assert sorted(os.listdir(tmp_path)) == ["net.onnx", "net.onnx.data"]
    assert len(made.files) == 2
    assert os.path.getsize(tmp_path / "net.onnx") < 5000
    assert os.path.getsize(tmp_path / "net.onnx.data") >= 3 * 3 * 3 * 1024 * 4
    assert identify(tmp_path / "net.onnx").bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    onnx.checker.check_model(str(tmp_path / "net.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    assert session.run(None, {"image": np.ones((1, 8, 8, 3), np.float32)})[0].shape == (1, 1024)


def test_an_earlier_file_beside_goes_with_its_model(tmp_path: pathlib.Path) -> None:
    (tmp_path / "other.onnx.data").write_bytes(b"of nobody here")
    (tmp_path / "plain.onnx.data").write_bytes(b"of nobody here")
    pocketgraph.export(net(64), tmp_path / "plain.onnx")
    pocketgraph.export(net(64), tmp_path / "plain.onnx")
    pocketgraph.export(net(1024), tmp_path / "net.onnx", external_data=True)
    pocketgraph.export(net(1024), tmp_path / "net.onnx", external_data=True)
    assert (tmp_path / "net.onnx.data").exists()
    pocketgraph.export(net(64), tmp_path / "net.onnx")
    left = ["net.onnx", "other.onnx.data", "plain.onnx", "plain.onnx.data"]
    assert sorted(os.listdir(tmp_path)) == left  # nothing but what the replaced file read


def test_the_file_beside_lies_where_a_link_leads(tmp_path: pathlib.Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "latest.onnx").symlink_to(tmp_path / "models" / "net.onnx")
    made = pocketgraph.export(net(1024), tmp_path / "latest.onnx", external_data=True)
    assert sorted(os.listdir(tmp_path / "models")) == ["net.onnx", "net.onnx.data"]
    assert [os.path.realpath(name) for name in made.files] == [
        os.path.realpath(tmp_path / "models" / name) for name in ("net.onnx", "net.onnx.data")
    ]
    assert made.bytes == sum(os.path.getsize(name) for name in made.files)


def test_what_it_says_of_itself(tmp_path: pathlib.Path) -> None:
    made = pocketgraph.export(
        net(2), tmp_path / "net.onnx", labels=["cat", "dog"], input_mean=127.5, input_std=127.5,
        about=About(name="pets", author="Ann", license="MIT", description="Tells cats from dogs."),
    )  # fmt: skip
    model = onnx.load(made.path)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["labels"] == "cat\ndog"
    assert (facts["mean"], facts["std"], facts["author"], facts["license"]) == ("127.5", "127.5", "Ann", "MIT")
    assert (model.graph.name, model.doc_string) == ("pets", "Tells cats from dogs.")


def test_an_input_that_is_an_output_too(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)")
    model = onnx.load(pocketgraph.export(graph, tmp_path / "x.onnx", inputs=["x"], outputs=["x", "y"]).path)
    assert [item.name for item in model.graph.output] == ["x_output", "y"]


def test_two_names_for_one_tensor(tmp_path: pathlib.Path) -> None:
    outputs = {"classes": "scores:0", "logits": "scores:0"}
    graph = net().replace(signatures={"serving_default": Signature({"image": "image:0"}, outputs)})
    made = pocketgraph.export(graph, tmp_path / "net.onnx")
    assert [item.name for item in onnx.load(made.path).graph.output] == ["classes", "logits"]


def test_nothing_is_left_of_a_model_that_onnx_cannot_say(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[2])\ny = Lgamma(x, T=float)")
    with pytest.raises(UsageError, match="Lgamma"):
        pocketgraph.export(graph, tmp_path / "x.onnx")
    assert os.listdir(tmp_path) == []


def test_a_bad_opset(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="from 13 to 23"):
        pocketgraph.export(net(), tmp_path / "x.onnx", opset=99)
    assert os.listdir(tmp_path) == []


def test_without_the_extra(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pocketgraph\[onnx\]"):
        pocketgraph.export(net(), tmp_path / "x.onnx")


def test_without_the_runtime_it_says_so(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.exporting.onnx import onnx_exporter

    monkeypatch.setattr(onnx_exporter, "find_spec", lambda name: None)
    made = pocketgraph.export(net(), tmp_path / "x.onnx")
    assert made.checks == ()
    assert "onnxruntime" in made.unchecked


def test_arithmetic_with_some_constants_is_made_quicker(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[2, 3])
        zero = Const(float 0)
        half = Const(float 0.5)
        third = Const(float 3)
        a = Add(x, zero, T=float)
        b = RealDiv(a, half, T=float)
        y = RealDiv(b, third, T=float)
    """)
    made = pocketgraph.export(graph, tmp_path / "a.onnx", outputs=["y"])
    assert made.checks[0].outputs[0].largest == 0
    assert [node.op_type for node in onnx.load(tmp_path / "a.onnx").graph.node] == ["Mul", "Div"]


def test_equal_weights_and_equal_work_are_in_the_file_once(tmp_path: pathlib.Path) -> None:
    text = """
        image = Placeholder(dtype=float, shape=[1,8,8,3])
        w = Const(float 0.0)
        v = Const(float 0.0)
        a = Conv2D(image, w, T=float, strides=[1,1,1,1], padding="SAME")
        b = Conv2D(a, v, T=float, strides=[1,1,1,1], padding="SAME")
        c = Sigmoid(b, T=float)
        d = Sigmoid(b, T=float)
        y = Add(c, d, T=float)
    """
    weights = np.random.default_rng(1).normal(size=(3, 3, 3, 3)).astype(np.float32)
    graph = parse(text).map_nodes(lambda node: const(node.name, weights) if node.name in "wv" else node)
    made = pocketgraph.export(graph, tmp_path / "net.onnx")
    assert made.checks[0].passed
    model = onnx.load(made.path)
    assert [list(item.dims) for item in model.graph.initializer].count([3, 3, 3, 3]) == 1
    assert [node.op_type for node in model.graph.node].count("Sigmoid") == 1


def test_open_sizes_are_fixed_where_onnx_has_operators_for_nothing_else(tmp_path: pathlib.Path) -> None:
    """The borders of a dilated convolution that TensorFlow 1 computes from the length."""
    text = """
        x = Placeholder(dtype=float, shape=[?,?,4])
        shape = Shape(x, T=float, out_type=int32)
        one = Const(int32 [1])
        two = Const(int32 [2])
        length = StridedSlice(shape, one, two, one, T=int32, Index=int32, shrink_axis_mask=1)
        block = Const(int32 [2])
        left = Const(int32 2)
        odd = FloorMod(length, two0, T=int32)
        two0 = Const(int32 2)
        right = Add(odd, left, T=int32)
        pair = Pack(left, right, N=2, T=int32, axis=0)
        axis = Const(int32 0)
        borders = ExpandDims(pair, axis, T=int32, Tdim=int32)
        y = SpaceToBatchND(x, block, borders, T=float, Tblock_shape=int32, Tpaddings=int32)
    """
    made = pocketgraph.export(parse(text), tmp_path / "net.onnx")
    assert made.checks[0].passed
    assert any(note.startswith("open sizes are fixed (x [1, ") for note in made.notes)


@pytest.mark.parametrize(("x", "place"), [([0.1, 0.7, 0.3], 1), ([2.0, 1.0, 1.5], 0)])
def test_the_place_of_one_number_is_one_row(x: list[float], place: int) -> None:
    """An index without axes gives a vector, as in TensorFlow; one that is below 0 has no place in it."""
    text = """
        x = Placeholder(dtype=float, shape=[3])
        axis = Const(int32 0)
        index = ArgMax(x, axis, T=float, Tidx=int32, output_type=int64)
        eight = Const(int64 8)
        below = Sub(index, eight, T=int64)
        depth = Const(int32 4)
        on = Const(float 1.0)
        off = Const(float 0.0)
        y = OneHot(index, depth, on, off, T=float, TI=int64, axis=-1)
        none = OneHot(below, depth, on, off, T=float, TI=int64, axis=-1)
    """
    row, none = run(exported(text, ["y", "none"]), {"x": np.float32(x)})
    np.testing.assert_array_equal(row, np.eye(4, dtype=np.float32)[place])
    np.testing.assert_array_equal(none, np.zeros(4, np.float32))


@pytest.mark.parametrize("kind", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("made", ["int32", "bool"])
def test_rows_of_whole_numbers_have_ones_at_the_places(kind: str, made: str) -> None:
    """ONNX Runtime has them in 64 bits and in floats alone."""
    on, off = ("true", "false") if made == "bool" else ("2147483647", "-7")
    text = f"""
        x = Placeholder(dtype={kind}, shape=[4])
        depth = Const(int32 3)
        on = Const({made} {on})
        off = Const({made} {off})
        y = OneHot(x, depth, on, off, T={made}, TI={kind}, axis=0)
    """
    (rows,) = run(exported(text, ["y"]), {"x": np.array([0, 200, 2, 255], kind)})
    expected = [[True, False, False, False], [False] * 4, [False, False, True, False]]  # TensorFlow 2.21's
    np.testing.assert_array_equal(rows, expected if made == "bool" else np.where(expected, 2147483647, -7))
    assert rows.dtype == np.dtype(made)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_no_class_and_no_row_of_nan_are_among_the_largest(count: int) -> None:
    text = f"""
        x = Placeholder(dtype=float, shape=[6,3])
        classes = Placeholder(dtype=int32, shape=[6])
        k = Const(int32 {count})
        y = InTopKV2(x, classes, k, T=int32)
    """
    scores = [[1, 2, 3], [1, np.nan, 3], [1, 2, 3], [1, 2, 3], [5, 5, np.inf], [5, 5, 2]]
    (among,) = run(exported(text, ["y"]), {"x": np.float32(scores), "classes": np.int32([2, 2, 3, -1, 0, 1])})
    np.testing.assert_array_equal(among, [True, False, False, False, False, True])  # TensorFlow 2.21's


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("begin", "end", "step", "mask"), [(-4, -5, -1, 0), (-3, 0, -2, 1), (-2, -4, -1, 0), (-3, -1, -1, 0)]
)
def test_a_way_back_from_before_the_first_element_takes_none(
    begin: int, end: int, step: int, mask: int, known: bool
) -> None:
    """Python's ranges are TensorFlow's."""
    for size in range(6):
        text = f"""
            x = Placeholder(dtype=float, shape=[{size if known else "?"}])
            begin = Const(int32 [{begin}])
            end = Const(int32 [{end}])
            step = Const(int32 [{step}])
            y = StridedSlice(x, begin, end, step, T=float, Index=int32, end_mask={mask})
        """
        x = np.arange(size, dtype=np.float32)
        (part,) = run(exported(text, ["y"]), {"x": x})
        np.testing.assert_array_equal(part, x[begin : None if mask else end : step])


@pytest.mark.parametrize(("op", "expected"), [("Any", False), ("All", True)])
def test_of_no_elements_none_is_true_and_all_are(op: str, expected: bool) -> None:
    text = f"""
        x = Placeholder(dtype=bool, shape=[?,2])
        axis = Const(int32 [0])
        y = {op}(x, axis, Tidx=int32, keep_dims=false)
    """
    (found,) = run(exported(text, ["y"]), {"x": np.zeros((0, 2), np.bool_)})
    np.testing.assert_array_equal(found, [expected, expected])  # TensorFlow 2.21's


def test_results_have_the_type_that_the_node_says() -> None:
    """Products of bytes as int32, and the places of the largest as int16 or int64: ONNX has one type for each."""
    product = """
        a = Placeholder(dtype=uint8, shape=[2,3])
        b = Placeholder(dtype=int8, shape=[3,2])
        y = BatchMatMulV3(a, b, Ta=uint8, Tb=int8, Tout=int32)
    """
    (made,) = run(exported(product, ["y"]), {"a": np.full((2, 3), 255, np.uint8), "b": np.full((3, 2), -128, np.int8)})
    assert made.dtype == np.int32
    assert (made == 3 * 255 * -128).all()
    for kind in ("int16", "int64"):
        largest = f"""
            x = Placeholder(dtype=float, shape=[4])
            k = Const(int32 2)
            y = TopKV2(x, k, T=float, index_type={kind})
        """
        (places,) = run(exported(largest, ["y:1"]), {"x": np.float32([1, 4, 2, 3])})
        assert places.dtype == kind
        assert places.tolist() == [1, 3]


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_signed_numbers_are_shifted_as_tensorflow_does(kind: str) -> None:
    """What TensorFlow 2.21 gives; by less than no bit is by none, by more bits than there are by all but one."""
    text = f"""
        a = Placeholder(dtype={kind}, shape=[6])
        b = Placeholder(dtype={kind}, shape=[6])
        right = RightShift(a, b, T={kind})
        left = LeftShift(a, b, T={kind})
    """
    low = np.iinfo(kind).min
    feeds = {"a": np.array([low, -5, 100, 5, low, 7], kind), "b": np.array([1, 1, 3, 100, 100, -2], kind)}
    right, left = run(exported(text, ["right", "left"]), feeds)
    assert right.tolist() == [low // 2, -3, 12, 0, -1, 7]
    assert left.tolist() == [0, -10, 32 if kind == "int8" else 800, low, 0, 7]


@pytest.mark.parametrize(
    ("shift", "axes", "wanted"),
    [
        ([1, -2], [0, 1], [[7, 8, 9, 5, 6], [2, 3, 4, 0, 1]]),
        ([2, -9], [1, -1], [[2, 3, 4, 0, 1], [7, 8, 9, 5, 6]]),
    ],
)
def test_rolled_along_open_sizes(shift: list[int], axes: list[int], wanted: list[list[int]]) -> None:
    """As in TensorFlow 2.21: shifts of one axis add up, also beyond its size."""
    text = f"""
        x = Placeholder(dtype=float, shape=[?,?])
        s = Const(int32 {shift})
        a = Const(int32 {axes})
        y = Roll(x, s, a, T=float, Tshift=int32, Taxis=int32)
    """
    (found,) = run(exported(text, ["y"]), {"x": np.arange(10, dtype=np.float32).reshape(2, 5)})
    assert found.tolist() == wanted


def test_nothing_is_rolled_to_nothing() -> None:
    """As in TensorFlow 2.21; ONNX Runtime divides by the size, which is 0."""
    text = """
        x = Placeholder(dtype=float, shape=[?,3])
        s = Const(int32 1)
        a = Const(int32 0)
        y = Roll(x, s, a, T=float, Tshift=int32, Taxis=int32)
    """
    (found,) = run(exported(text, ["y"]), {"x": np.zeros((0, 3), np.float32)})
    assert found.shape == (0, 3)


def test_sequences_of_a_beam_search() -> None:
    """What TensorFlow's gather_tree gives (its beam_search_ops_test), for a batch of any size."""
    text = """
        ids = Placeholder(dtype=int32, shape=[4,?,3])
        parents = Placeholder(dtype=int32, shape=[4,?,3])
        lengths = Placeholder(dtype=int32, shape=[?])
        end = Const(int32 10)
        y = GatherTree(ids, parents, lengths, end, T=int32)
    """
    ids = [[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]]
    parents = [[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, -1]]]
    feeds = {name: np.array(value, np.int32) for name, value in (("ids", ids), ("parents", parents), ("lengths", [3]))}
    (found,) = run(exported(text, ["y"]), feeds)
    assert found.tolist() == [[[2, 2, 2]], [[6, 5, 6]], [[7, 8, 9]], [[10, 10, 10]]]
    feeds["ids"][1, 0, 1] = 10  # of two beams the parent: they end there
    (found,) = run(exported(text, ["y"]), feeds)
    assert found.tolist() == [[[2, 2, 2]], [[6, 10, 6]], [[7, 10, 9]], [[10, 10, 10]]]


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "expected"),
    [  # TensorFlow 2.21
        (3, 4, "SAME", [1, 2, 3, 0, 2, 4, 6, 0, 3, 6, 9, 0, 4, 8, 12, 0]),
        (2, 3, "VALID", [1, 2, 0, 2, 4, 0, 3, 6, 0, 4, 8, 0]),
        (4, 3, "SAME", [1, 2, 3, 6, 4, 6, 11, 6, 9, 16, 8, 12]),
        (4, 3, "VALID", [1, 2, 3, 6, 4, 6, 11, 6, 9, 16, 8, 12, 16]),
    ],
)
def test_transposed_convolutions_of_open_sizes(kernel: int, stride: int, padding: str, expected: list[float]) -> None:
    """ONNX Runtime's own padding makes too little where a stride is larger than its window."""
    text = f"""
        x = Placeholder(dtype=float, shape=[?,?,?,1])
        seen = Shape(x, T=float, out_type=int32)
        strides = Const(int32 [1, 1, {stride}, 1])
        strided = Mul(seen, strides, T=int32)
        beyond = Const(int32 [0, 0, {max(kernel - stride, 0) * (padding == "VALID")}, 0])
        sizes = Add(strided, beyond, T=int32)
        w = Const(float 0.0)
        y = Conv2DBackpropInput(sizes, w, x, T=float, strides=[1,1,{stride},1], padding="{padding}")
    """
    weights = np.arange(1, kernel + 1, dtype=np.float32).reshape(1, kernel, 1, 1)
    graph = parse(text).map_nodes(lambda node: const("w", weights) if node.name == "w" else node)
    (found,) = run(exported(graph, ["y"]), {"x": np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4, 1)})
    np.testing.assert_array_equal(found.reshape(-1), np.float32(expected))


def test_an_angle_is_the_same_over_zeros_of_either_sign() -> None:
    text = """
        y = Placeholder(dtype=float, shape=[?])
        x = Placeholder(dtype=float, shape=[?])
        angle = Atan2(y, x, T=float)
    """
    feeds = {"y": np.float32([1, -1, 2.5, -0.25, 0, 0]), "x": np.float32([-0.0, -0.0, 0.0, 0.0, 1, -1])}
    (angle,) = run(exported(text, ["angle"]), feeds)
    expected = np.float32([1.5707964, -1.5707964, 1.5707964, -1.5707964, 0, 3.1415927])  # TensorFlow 2.21's
    np.testing.assert_allclose(angle, expected, rtol=1e-6)


def test_ellipses_of_an_einsum_may_stand_for_different_numbers_of_axes() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[2,1,1,2])
        z = Placeholder(dtype=float, shape=[3,2,1])
        y = Einsum(x, z, N=2, T=float, equation="...ab,...bc->...ac")
    """
    feeds = {"x": np.float32([[[[1, 2]]], [[[3, 4]]]]), "z": np.float32([[[1], [2]], [[3], [4]], [[5], [6]]])}
    (found,) = run(exported(text, ["y"]), feeds)
    assert found.shape == (2, 3, 1, 1)
    np.testing.assert_array_equal(found.ravel(), [5, 11, 17, 11, 25, 39])  # TensorFlow 2.21's


def test_a_batch_norm_that_trains_on_halves_has_statistics_of_32_bits() -> None:
    text = """
        x = Placeholder(dtype=half, shape=[2,1,2,1])
        g = Const(float [2.0])
        o = Const(float [0.5])
        e = Const(float [])
        b = FusedBatchNormV3(x, g, o, e, e, T=half, U=float, is_training=true, epsilon=0.001, data_format="NHWC")
        m = Identity(b:1, T=float)
        y = Identity(b, T=half)
    """
    made, mean = run(exported(text, ["y", "m"]), {"x": np.float16([1, 2, 3, 6]).reshape(2, 1, 2, 1)})
    assert made.dtype == np.float16
    np.testing.assert_allclose(made.ravel(), [-1.6377, -0.56885, 0.5, 3.707], rtol=1e-3)  # TensorFlow 2.21's
    np.testing.assert_array_equal(mean, [3])


LARGE = 2**31 - 2


@pytest.mark.parametrize(
    ("node", "fed", "expected"),
    [  # TensorFlow 2.21
        ("DepthToSpace(x, T=int32, block_size=2)", np.int32([[[[LARGE, -LARGE, LARGE - 1, 7]]]]),
         [LARGE, -LARGE, LARGE - 1, 7]),
        ("SpaceToDepth(x, T=int32, block_size=2)", np.int32([[[[LARGE], [5]], [[-LARGE], [LARGE - 1]]]]),
         [LARGE, 5, -LARGE, LARGE - 1]),
        ("ResizeNearestNeighbor(x, size, T=int64, align_corners=true)", np.int64([[[[2**62 + 1], [-7]], [[3], [4]]]]),
         [2**62 + 1, -7, -7, 3, 4, 4, 3, 4, 4]),
        ("ResizeNearestNeighbor(x, size, T=double)", np.float64([[[[1 / 3], [-7]], [[3], [4]]]]),
         [1 / 3, 1 / 3, -7, 1 / 3, 1 / 3, -7, 3, 3, 4]),
        ("QuantizeAndDequantizeV2(x, low, high, T=double, range_given=true)", np.float64([[[[0.3], [-1.0]]]]),
         [38 / 127, -127 / 127]),
    ],
)  # fmt: skip
def test_whole_numbers_and_doubles_are_exact(node: str, fed: np.ndarray, expected: list[float]) -> None:
    kind = {"int32": "int32", "int64": "int64", "float32": "float", "float64": "double"}[fed.dtype.name]
    text = f"""
        x = Placeholder(dtype={kind}, shape=[{",".join(map(str, fed.shape))}])
        size = Const(int32 [3, 3])
        low = Const(double -1.0)
        high = Const(double 1.0)
        y = {node}
    """
    (found,) = run(exported(text, ["y"]), {"x": fed})
    assert found.dtype == fed.dtype
    if fed.dtype.kind == "i":
        assert found.reshape(-1).tolist() == expected
    else:
        np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-6 if kind == "float" or "Quant" in node else 0)
