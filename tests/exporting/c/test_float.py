"""Float kernels beside the reference engine, with sanitizers and all warnings as errors."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest

from c_programs import (
    OPTIMIZED,
    executable,
    filled,
    known,
    library_of,
    needs_cc,
    program,
    program_of,
    results,
    results_by_level,
)
from pocketgraph.exporting.c.building import XNNPACK_LINKS, CExecutable, has_xnnpack
from pocketgraph.exporting.opening import opened
from pocketgraph.exporting.programs import float_program as entry_program
from pocketgraph.formats import load
from pocketgraph.formats.files import write_files
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.runtime import Session
from support import assert_close, golden, model_dir, needs_shared

LAYERS = """
    x = Placeholder(dtype=float, shape=[2, 9, 11, 5])
    deep = Placeholder(dtype=float, shape=[1, 7, 7, 20])
    row = Placeholder(dtype=float, shape=[3, 20])
    k = Const(float[3, 3, 5, 17])
    kd = Const(float[3, 3, 20, 33])
    k1 = Const(float[1, 1, 20, 40])
    d3 = Const(float[3, 3, 20, 1])
    d5 = Const(float[5, 5, 5, 2])
    t = Const(float[3, 3, 6, 5])
    w = Const(float[20, 50])
    tsize = Const(int32 [2, 18, 22, 6])
    few = Conv2D(x, k, T=float, strides=[1, 2, 2, 1], padding="SAME")
    many = Conv2D(deep, kd, T=float, strides=[1, 1, 1, 1], padding="SAME")
    relu = Relu6(many, T=float)
    dilated = Conv2D(deep, kd, T=float, strides=[1, 1, 1, 1], padding="VALID", dilations=[1, 2, 2, 1])
    point = Conv2D(deep, k1, T=float, strides=[1, 1, 1, 1], padding="SAME")
    nine = DepthwiseConv2dNative(deep, d3, T=float, strides=[1, 2, 2, 1], padding="SAME")
    twice = DepthwiseConv2dNative(x, d5, T=float, strides=[1, 1, 1, 1], padding="SAME")
    back = Conv2DBackpropInput(tsize, t, x, T=float, strides=[1, 2, 2, 1], padding="SAME")
    dense = MatMul(row, w, T=float)
    soft = Softmax(dense, T=float)
    logs = LogSoftmax(dense, T=float)
    most = MaxPool(x, T=float, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
    average = AvgPool(x, T=float, ksize=[1, 3, 2, 1], strides=[1, 1, 2, 1], padding="SAME")
    near = LRN(x, T=float, depth_radius=2)
    size = Const(int32 [13, 8])
    larger = ResizeBilinear(x, size, T=float)
    nearest = ResizeNearestNeighbor(x, size, T=float)
    product = BatchMatMulV2(x, x, T=float, adj_y=true)
"""
MOVING = """
    x = Placeholder(dtype=float, shape=[2, 3, 4, 6])
    n = Placeholder(dtype=int32, shape=[4])
    order = Const(int32 [0, 3, 1, 2])
    turned = Transpose(x, order, T=float, Tperm=int32)
    begin = Const(int32 [0, 1, 3, 0])
    end = Const(int32 [2, 3, 0, 6])
    step = Const(int32 [1, 1, -2, 5])
    cut = StridedSlice(x, begin, end, step, T=float, Index=int32)
    borders = Const(int32 [[0, 0], [1, 2], [0, 1], [0, 0]])
    padded = Pad(x, borders, T=float, Tpaddings=int32)
    mirrored = MirrorPad(x, borders, T=float, Tpaddings=int32, mode="REFLECT")
    times = Const(int32 [1, 2, 1, 3])
    tiled = Tile(x, times, T=float, Tmultiples=int32)
    axis = Const(int32 3)
    joined = ConcatV2(x, x, axis, T=float, Tidx=int32, N=2)
    first = Split(axis, x, T=float, num_split=3)
    packed = Pack(x, x, T=float, N=2, axis=2)
    deep = SpaceToDepth(packed5, T=float, block_size=2)
    shallow = DepthToSpace(packed5, T=float, block_size=2)
    flat = Const(int32 [2, 3, 4, 6])
    packed5 = Pad(x, widths, T=float, Tpaddings=int32)
    widths = Const(int32 [[0, 0], [1, 0], [0, 0], [1, 1]])
    backwards = ReverseV2(x, which, T=float, Tidx=int32)
    which = Const(int32 [1, 3])
    lengths = Const(int64 [4, 1, 0, 2, 3, 4])
    sequences = ReverseSequence(x, lengths, T=float, Tlen=int64, seq_dim=2, batch_dim=3)
    fewer = Const(int32 [3, 2])
    later = ReverseSequence(x, fewer, T=float, Tlen=int32, seq_dim=1, batch_dim=0)
    looked = GatherV2(x, n, two, Tparams=float, Tindices=int32, Taxis=int32)
    two = Const(int32 2)
    depth = Const(int32 5)
    one = Const(float 2.0)
    none = Const(float -1.0)
    hot = OneHot(n, depth, one, none, T=float, TI=int32)
    values = TopKV2(x, depth, T=float)
    best = ArgMax(x, two, T=float, Tidx=int32)
    sums = Cumsum(x, two, T=float, Tidx=int32, exclusive=true, reverse=true)
"""
ARITHMETIC = """
    x = Placeholder(dtype=float, shape=[2, 3, 5])
    y = Placeholder(dtype=float, shape=[3, 1])
    i = Placeholder(dtype=int32, shape=[2, 3])
    j = Placeholder(dtype=int32, shape=[3])
    added = AddV2(x, y, T=float)
    less = Sub(y, x, T=float)
    over = RealDiv(x, y, T=float)
    power = Pow(size, x, T=float)
    size = Abs(y, T=float)
    larger = Maximum(x, y, T=float)
    angle = Atan2(x, y, T=float)
    apart = SquaredDifference(x, y, T=float)
    rest = FloorMod(x, y, T=float)
    wholes = FloorMod(i, j, T=int32)
    wrapped = Mul(i, i, T=int32)
    divided = FloorDiv(i, j, T=int32)
    smaller = Less(x, y, T=float)
    chosen = SelectV2(smaller, x, y, T=float)
    root = Rsqrt(size, T=float)
    s = Sigmoid(x, T=float)
    e = Elu(x, T=float)
    h = Tanh(x, T=float)
    l = LeakyRelu(x, T=float, alpha=0.3)
    r = Rint(x, T=float)
    c = Cast(x, SrcT=float, DstT=int32)
    axes = Const(int32 [0, 2])
    mean = Mean(x, axes, T=float, Tidx=int32)
    total = Sum(i, j0, T=int32, Tidx=int32)
    j0 = Const(int32 [1])
    highest = Max(x, axes, T=float, Tidx=int32)
    any = Any(smaller, axes, Tidx=int32)
"""


@needs_cc
@pytest.mark.parametrize("text", [LAYERS, MOVING, ARITHMETIC], ids=["layers at each level", "moving", "arithmetic"])
def test_kernels_give_what_the_reference_engine_gives(text: str, tmp_path: pathlib.Path) -> None:
    graph = parse(filled(text))
    outputs = [
        f"{node.name}:{place}"
        for node in graph
        if node.op not in ("Const", "Placeholder")
        for place in range({"Split": 3, "TopKV2": 2}.get(node.op, 1))
    ]
    program = program_of(graph, outputs)
    rng = np.random.default_rng(4)
    feeds = {}
    for value in program.inputs:
        is_whole = value.dtype.numpy.kind == "i"
        feeds[value.name] = (
            rng.integers(1, 4, value.shape).astype(np.int32)
            if is_whole
            else rng.normal(0, 1.5, value.shape).astype(np.float32)
        )
    with Session(graph, engine="reference") as session:
        wanted = session.run(outputs, feeds)
    arrays = list(feeds.values())
    if text is LAYERS:
        by_level = results_by_level(program, arrays, tmp_path)
    else:
        by_level = {"": executable(program, tmp_path, OPTIMIZED).run(arrays)}
    for level, computed in by_level.items():
        for name, given, right in zip(outputs, computed, wanted, strict=True):
            try:
                assert_close(given, np.asarray(right), 1e-5)
            except AssertionError as error:
                raise AssertionError(f"{name} {level}: {error}") from error


@needs_cc
def test_what_is_padded_with_keeps_all_its_digits(tmp_path: pathlib.Path) -> None:
    made, inputs, arrays = [], [], []
    for fill in (np.float64(0.1), np.int64(-(1 << 63)), np.float32(0.1), np.float64("-inf")):
        dtype = DType.of_numpy(fill.dtype)
        inputs.append(Value(f"x{len(made)}", dtype, (2,)))
        pairs = known(np.array([[1, 2]], np.int32), INT32)
        result = Value(f"y{len(made)}", dtype, (5,))
        made.append(Operation("PADV2", [inputs[-1], pairs, known(np.array([fill]), dtype)], [result]))
        arrays.append(np.array([3, 4], fill.dtype))
    for array, given, operation in zip(arrays, results(program(made, inputs), arrays, tmp_path), made, strict=True):
        fill = operation.inputs[2].constant.numpy()[0]
        np.testing.assert_array_equal(given, np.pad(array, (1, 2), constant_values=fill))


@needs_cc
def test_sums_of_whole_numbers_wrap_round(tmp_path: pathlib.Path) -> None:
    """As TensorFlow's do; the sanitizers stop at what C leaves undefined."""
    graph = parse("""
        i = Placeholder(dtype=int32, shape=[2, 3])
        axis = Const(int32 1)
        along = Cumsum(i, axis, T=int32, Tidx=int32)
        row = Const(int32 [[1], [1]])
        shape = Const(int32 [2, 3])
        put = ScatterNd(row, i, shape, T=int32, Tindices=int32)
    """)
    large = np.array([[2**30, 2**30, 7], [-(2**31), 2**30, -9]], np.int32)
    along, put = results(program_of(graph, ["along:0", "put:0"]), [large], tmp_path)
    assert along.tolist() == [[2**30, -(2**31), 7 - 2**31], [-(2**31), -(2**30), -(2**30) - 9]]
    assert put.tolist() == [[0, 0, 0], [-(2**30), -(2**31), -2]]


@needs_cc
def test_maxima_pass_over_nan_and_logarithms_of_shares_keep_their_digits_among_large_logits(
    tmp_path: pathlib.Path,
) -> None:
    """TensorFlow 2.21's results."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[3, 4])
        logits = Placeholder(dtype=float, shape=[1, 3])
        axis = Const(int32 1)
        highest = ArgMax(x, axis, T=float, Tidx=int32, output_type=int64)
        lowest = ArgMin(x, axis, T=float, Tidx=int32, output_type=int64)
        logs = LogSoftmax(logits, T=float)
        picture = Reshape(x, sizes, T=float, Tshape=int32)
        sizes = Const(int32 [3, 2, 2, 1])
        most = MaxPool(picture, T=float, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    """)
    nan = np.nan
    feeds = [np.float32([[nan, 2, 5, nan], [1, nan, -3, 4], [nan] * 4]), np.float32([[10000, 10001, 9998.5]])]
    names = ["highest", "lowest", "logs", "most"]
    highest, lowest, logs, most = results(program_of(graph, names), feeds, tmp_path)
    assert (highest.tolist(), lowest.tolist()) == ([2, 3, 0], [1, 2, 0])
    np.testing.assert_allclose(logs, [[-1.3715389966964722, -0.37153899669647217, -2.8715391159057617]], rtol=1e-6)
    assert most.reshape(3).tolist() == [5, 4, np.finfo(np.float32).min]


@pytest.mark.skipif(not has_xnnpack(), reason="XNNPACK is not here")
def test_layers_by_xnnpack_give_the_same(tmp_path: pathlib.Path) -> None:
    layers = """
        wide = DepthwiseConv2dNative(deep, d7, T=float, strides=[1, 1, 1, 1], padding="SAME")
        d7 = Const(float[7, 7, 20, 1])
        global = AvgPool(deep, T=float, ksize=[1, 7, 7, 1], strides=[1, 1, 1, 1], padding="VALID")
        sum = Add(few, few, T=float)
    """
    names = ["few", "many", "relu", "dilated", "nine", "dense", "most", "average", "wide", "global", "sum"]
    program = program_of(parse(filled(LAYERS + layers)), names)
    rng = np.random.default_rng(4)
    arrays = [rng.normal(0, 1.5, value.shape).astype(np.float32) for value in program.inputs]
    library = library_of(program, backend="xnnpack")
    write_files(str(tmp_path), library.files)
    given = CExecutable(str(tmp_path), "net", library.inputs, library.outputs, links=XNNPACK_LINKS).run(arrays)
    for array, right in zip(given, ProgramRunner(program)(arrays), strict=True):
        assert_close(array, right, 1e-5)


@pytest.mark.usefixtures("optimizing_compiler")
@needs_cc
@needs_shared
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mobilenet_v1_025_128", "frozen_graph.pb"),
        ("chatbot_tfdroid", "optimized_tfdroid.pb"),
        ("cms_ckf_2021run3", "CKF_2021Run3.pb"),
        ("fsrcnn_small_x4", "FSRCNN-small_x4.pb"),
        ("unity_reacher", "Reacher.bytes"),
    ],
)
def test_real_models_give_their_golden_outputs(name: str, file: str, tmp_path: pathlib.Path) -> None:
    feeds, wanted = golden(model_dir(name))
    graph = load(model_dir(name) / file)
    shapes = {key: array.shape for key, array in feeds.items() if array.ndim}
    model = opened(graph, inputs=list(feeds), outputs=list(wanted), shapes=shapes)
    given = results(entry_program(model.main, model), list(feeds.values()), tmp_path)
    for right, array in zip(wanted.values(), given, strict=True):
        assert_close(array, right)


@needs_cc
@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_floats_are_rounded_to_sixteen_bits_as_numpy_rounds_them(kind: str, tmp_path: pathlib.Path) -> None:
    program = program_of(
        parse(f"""
            x = Placeholder(dtype=float, shape=[1000])
            narrow = Cast(x, SrcT=float, DstT={kind}, Truncate=false)
            y = Cast(narrow, SrcT={kind}, DstT=float, Truncate=false)
        """),
        ["y"],
    )
    assert [operation.code for operation in program.operations] == ["CAST", "CAST"]
    rng = np.random.default_rng(4)
    special = [0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, -1e30, 2.0**-14, 2.0**-24, 2.0**-25, 3e-8,
               -6.1e-5, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38, 1e-45]  # fmt: skip
    x = np.float32([*special, *(rng.normal(size=980) * 10.0 ** rng.uniform(-9, 6, 980))])
    [given] = results(program, [x], tmp_path)
    with np.errstate(over="ignore"):
        wanted = x.astype(DType.named(kind).numpy).astype(np.float32)
    np.testing.assert_array_equal(given.view(np.uint32)[~np.isnan(x)], wanted.view(np.uint32)[~np.isnan(x)])
    assert np.isnan(given[np.isnan(x)]).all()


@needs_cc
@pytest.mark.parametrize("lengths", [[60], [-1], [50_000_000]])
def test_a_length_beyond_its_sequence_is_the_nearest_that_it_has(lengths: list[int], tmp_path: pathlib.Path) -> None:
    """As an index beyond a table is; nothing reads memory behind the tensor, which the sanitizers would tell."""
    program = program_of(
        parse("""
            x = Placeholder(dtype=float, shape=[1, 5, 2])
            n = Placeholder(dtype=int32, shape=[1])
            y = ReverseSequence(x, n, T=float, Tlen=int32, seq_dim=1, batch_dim=0)
        """),
        ["y"],
    )
    x = np.arange(10, dtype=np.float32).reshape(1, 5, 2)
    [given] = results(program, [x, np.array(lengths, np.int32)], tmp_path)
    np.testing.assert_array_equal(given, x[:, ::-1] if lengths[0] > 0 else x)


@needs_cc
def test_a_long_run_is_timed_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1, 4])\ny = Exp(x, T=float)")
    library, arrays = executable(program_of(graph, ["y:0"]), tmp_path), [np.ones((1, 4), np.float32)]
    assert library._call(arrays, "-n", "1", "-o", os.devnull).endswith(" ms a run\n")
    asked: list[str] = []
    for said in ("501 ms a run", "499 ms a run"):
        monkeypatch.setattr(library, "_call", lambda _, *words, said=said: asked.append(words[1]) or said)
        assert library.seconds(arrays) == float(said[:3]) / 1000
    assert asked == ["1", "1", "5"]
