"""The two ways to run rules: to the original's letter, or right where the original is not."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from click.testing import CliRunner

from pocketgraph import formats
from pocketgraph.cli.change.transform_graph import command
from pocketgraph.errors import TransformError, UsageError
from pocketgraph.graph import Graph, Versions
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.transforms import Compat, TransformGraph, tool, transform

GRAPH = """
    x = Placeholder(dtype=float, shape=[2])
    a = Relu(x, T=float)
    b = Relu(x, T=float)
    y = Add(a, b, T=float)
"""


def both(text: str, rule: str, inputs: str = "x", outputs: str = "y") -> tuple[Graph, Graph]:
    graph = parse(text)
    return transform(graph, rule, inputs, outputs, compat="original"), transform(graph, rule, inputs, outputs)


def test_the_original_forgets_who_wrote_the_graph() -> None:
    graph = parse(GRAPH).replace(versions=Versions(27, 12))
    assert transform(graph, "remove_device").versions == Versions(27, 12)
    assert transform(graph, "remove_device", compat="original").versions == Versions()
    assert transform(graph, "add_default_attributes", compat=Compat.ORIGINAL).versions == Versions(27, 12)


def test_the_original_passes_over_what_it_does_not_know() -> None:
    assert len(transform(parse(GRAPH), "remove_device(devise=1)", compat="original")) == 4
    with pytest.raises(UsageError, match="unknown parameter 'devise'"):
        transform(parse(GRAPH), "remove_device(devise=1)")


@pytest.mark.parametrize("text", ["rename_op(", "rename_op(old_op_name=", "rename_op(old_op_name=Relu"])
def test_the_original_drops_a_transform_without_its_end(text: str) -> None:
    assert [name for name, _ in tool.parse_transforms(f"remove_device {text}", compat=Compat.ORIGINAL)] == [
        "remove_device"
    ]
    with pytest.raises(UsageError):
        tool.parse_transforms(text)


def test_a_backslash_at_the_end_of_a_line() -> None:
    assert len(tool.parse_transforms("remove_device \\\n remove_device")) == 2
    with pytest.raises(UsageError, match="Looking for transform name"):
        tool.parse_transforms("remove_device \\\n remove_device", compat=Compat.ORIGINAL)


def test_ports_of_outputs_protect_nothing_in_the_original() -> None:
    original, fixed = both(GRAPH, "obfuscate_names", "x:0", "y:0")
    assert (list(original.nodes), list(fixed.nodes)) == (["0", "1", "2", "3"], ["x", "0", "1", "y"])
    original, fixed = both(GRAPH, "merge_duplicate_nodes", "x", "b:0")
    assert ("b" in original, "b" in fixed) == (False, True)


def test_backport_concatv2_with_a_control_input() -> None:
    text = "x = Placeholder(dtype=float)\naxis = Const(int32 0)\ny = ConcatV2(x, x, axis, ^x, N=2, T=float, Tidx=int32)"
    original, fixed = both(text, "backport_concatv2")
    assert original["y"].inputs == ("^x", "x", "x", "axis")
    assert fixed["y"].inputs == ("axis", "x", "x", "^x")


CONV = """
    x = Placeholder(dtype=float)
    sizes = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
    before = {before}
    w = Const(float[1,1,1,1] 2.0)
    y = Conv2D(before, w, ^x, T=float, padding="VALID", strides=[1,1,1,1], data_format="{layout}")
"""
MIRROR = 'MirrorPad(x, sizes, T=float, mode="REFLECT")'
RESIZE = "ResizeBilinear(x, sizes, T=float, align_corners=false, half_pixel_centers={half})"


@pytest.mark.parametrize(
    ("before", "layout"),
    [(MIRROR, "NCHW"), (RESIZE.format(half="false"), "NCHW"), (RESIZE.format(half="true"), "NHWC")],
)
def test_convolutions_that_the_fused_ops_do_otherwise(before: str, layout: str) -> None:
    original, fixed = both(CONV.format(before=before, layout=layout), "fuse_convolutions")
    assert original["y"].op.startswith("Fused")
    assert fixed["y"].op == "Conv2D"


@pytest.mark.parametrize("before", [MIRROR, RESIZE.format(half="false")])
def test_fused_convolutions_wait_for_what_they_waited_for(before: str) -> None:
    original, fixed = both(CONV.format(before=before, layout="NHWC"), "fuse_convolutions")
    assert fixed["y"].inputs == (*original["y"].inputs, "^x")


ATROUS = """
    x = Placeholder(dtype=float, shape=[1,6,6,1])
    block = Const(int32 [2, 2])
    pads = Const(int32 {pads})
    space = SpaceToBatchND(x, block, pads, T=float, Tblock_shape=int32, Tpaddings=int32)
    w = Const(float [[[[1.0]], [[2.0]], [[3.0]]]])
    conv = Conv2D(space, w, T=float, padding="{inner}", strides=[1,1,1,1], data_format="NHWC")
    crops = Const(int32 {crops})
    y = BatchToSpaceND(conv, block, crops, T=float, Tblock_shape=int32, Tcrops=int32)
"""


@pytest.mark.parametrize(
    ("pads", "inner", "crops", "expected"),
    [
        ("[[0,0],[2,2]]", "VALID", "[[0,0],[0,0]]", b"SAME"),
        ("[[0,0],[0,0]]", "SAME", "[[0,0],[0,0]]", b"SAME"),
        ("[[0,0],[0,0]]", "VALID", "[[0,0],[0,0]]", b"VALID"),
        ("[[0,0],[2,4]]", "VALID", "[[0,0],[0,2]]", b"SAME"),
        ("[[2,2],[2,2]]", "VALID", "[[0,0],[0,0]]", None),
        ("[[0,0],[4,0]]", "VALID", "[[0,0],[0,0]]", None),
    ],
)
def test_an_atrous_convolution_keeps_its_padding(pads: str, inner: str, crops: str, expected: bytes | None) -> None:
    from pocketgraph.runtime import Session

    text = ATROUS.format(pads=pads, inner=inner, crops=crops)
    original, fixed = both(text, "flatten_atrous_conv")
    assert original["y"].attr("padding") == b"SAME"
    assert fixed["y"].attr("padding") == expected
    x = np.arange(36, dtype=np.float32).reshape(1, 6, 6, 1)
    (want,), (have,) = (Session(graph).run(["y:0"], {"x:0": x}) for graph in (parse(text), fixed))
    np.testing.assert_allclose(have, want)


DILATED = """
    x = Placeholder(dtype=float, shape=[1,9,9,1])
    block = Const(int32 [2, 2])
    pads = Const(int32 [[2, 3], [2, 3]])
    space = SpaceToBatchND(x, block, pads, T=float)
    w = Const(float [[[[1]], [[2]], [[3]]], [[[4]], [[5]], [[6]]], [[[7]], [[8]], [[9]]]])
    conv = Conv2D(space, w, T=float, padding="VALID", strides=[1,1,1,1])
    crops = Const(int32 [[0, 1], [0, 1]])
    y = BatchToSpaceND(conv, block, crops, T=float)
"""
MIRRORED = """
    x = Placeholder(dtype=float, shape=[1,5,5,1])
    size = Const(int32 [7, 7])
    resize = ResizeBilinear(x, size, T=float)
    sizes = Const(int32 [[0, 0], [1, 1], [1, 1], [0, 0]])
    pad = MirrorPad(resize, sizes, T=float, Tpaddings=int32, mode="REFLECT")
    w = Const(float [[[[2]]]])
    y = Conv2D(pad, w, T=float, padding="VALID", strides=[1,1,1,1])
"""
RESIZED = """
    x = Placeholder(dtype=double, shape=[1,5,5,1])
    size = Const(int32 [7, 7])
    resize = ResizeBilinear(x, size, T=double)
    w = Const(float [[[[2]]]])
    y = Conv2D(resize, w, T=float, padding="VALID", strides=[1,1,1,1])
"""
NORMALIZED = """
    x = Placeholder(dtype=float, shape=[1,2,2,2])
    w = Const(float [[[[1, 2], [3, 4]]]])
    c = Conv2D(x, w, T=float, padding="VALID", strides=[1,1,1,1], data_format="NCHW")
    m = Const(float [0.5, 1])
    v = Const(float [1.5, 2])
    y = BatchNormWithGlobalNormalization(c, m, v, m, v, T=float, variance_epsilon=0.1,
        scale_after_normalization=true)
"""


@pytest.mark.parametrize(
    ("text", "rule", "outputs"),
    [
        (DILATED.replace("T=float, padding", "T=float, dilations=[1,2,2,1], padding"), "flatten_atrous_conv", "y"),
        (DILATED.replace('"VALID"', '"EXPLICIT", explicit_paddings=[0,0,1,1,1,1,0,0]'), "flatten_atrous_conv", "y"),
        (DILATED + "z = Conv2D(x, w, T=float, padding=\"SAME\", strides=[1,1,1,1])", "flatten_atrous_conv", "y,z"),
        (DILATED, "flatten_atrous_conv", "y,w"), (DILATED, "flatten_atrous_conv", "conv,y"),
        (MIRRORED, "fuse_resize_pad_and_conv", "y,resize"), (MIRRORED, "fuse_pad_and_conv", "pad,y"),
        (RESIZED.replace("double", "float"), "fuse_resize_and_conv", "y,resize"),
        (RESIZED, "fuse_resize_and_conv", "y"),
        (NORMALIZED, "fold_old_batch_norms", "y"),
    ],
)  # fmt: skip
def test_left_alone_is_what_would_come_out_wrong_or_lose_an_output(text: str, rule: str, outputs: str) -> None:
    original, fixed = both(text, rule, outputs=outputs)
    assert set(map(str, fixed)) == set(map(str, parse(text)))
    assert set(map(str, original)) != set(map(str, fixed))


def test_parameters_of_a_normalization_that_are_outputs_stay() -> None:
    text = NORMALIZED.replace(', data_format="NCHW"', "")
    fixed = transform(parse(text), "fold_old_batch_norms", "x", "y,m")
    assert fixed["y"].op == "BiasAdd"
    assert fixed["m"].tensor.numpy().tolist() == [0.5, 1]
    assert "v" not in fixed


def test_negative_weights_are_rounded_within_their_own_range() -> None:
    values = "[-4.0, -3.0, -2.5, -2.0, -1.0, -4.0, -3.0, -2.5, -2.0, -1.0, -4.0, -3.0, -2.5, -2.0, -1.0, -1.0]"
    original, fixed = both(f"y = Const(float {values})", "round_weights(num_steps=2)", "")
    assert sorted(set(original["y"].tensor.numpy().tolist())) == [-3.0, -1.0]  # the steps reach from -4 to 0
    assert sorted(set(fixed["y"].tensor.numpy().tolist())) == [-4.75, -3.25, -1.75]  # half a step beyond, as above zero


def test_what_is_not_a_finite_number_stays_so() -> None:
    numbers = "[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, nan, inf]"
    _, fixed = both(f"y = Const(float {numbers})", "round_weights(num_steps=3)", "")
    rounded = fixed["y"].tensor.numpy()
    np.testing.assert_array_equal(rounded[:4], [1.5, 2.5, 3.5, 4.5])
    np.testing.assert_array_equal(rounded[14:], [np.nan, np.inf])


@pytest.mark.parametrize("value", [3.0, 0.0])
def test_one_value_is_rounded_as_the_original_does(value: float) -> None:
    original, fixed = both(f"y = Const(float[16] {value})", "round_weights", "")
    assert original["y"].tensor.numpy().tobytes() == fixed["y"].tensor.numpy().tobytes()


def test_one_negative_value_stays() -> None:
    original, fixed = both("y = Const(float[16] -3.0)", "round_weights", "")
    assert fixed["y"].tensor.numpy()[0] == -3.0
    assert original["y"].tensor.numpy()[0] != -3.0


def test_a_constant_keeps_what_it_waits_for() -> None:
    text = "x = Placeholder(dtype=float)\nw = Const(float[16] 3.0, ^x)\ny = Add(x, w, T=float)"
    original, fixed = both(text, "round_weights")
    assert (original["w"].inputs, fixed["w"].inputs) == ((), ("^x",))


def test_ops_that_tensorflow_1_does_not_know() -> None:
    graph = parse("x = Placeholder(dtype=float)\ny = StatelessRandomGetKeyCounter(x)")
    assert len(transform(graph, "add_default_attributes")) == 2
    with pytest.raises(TransformError, match="Op type not registered 'StatelessRandomGetKeyCounter'"):
        transform(graph, "add_default_attributes", compat="original")


@pytest.mark.parametrize(
    "rule",
    [
        "fuse_remote_graph(remote_fused_graph_executor_name=hexagon, fused_nodes=a)",
        "place_remote_graph_arguments",
        'rewrite_quantized_stripped_model_for_hexagon(input_shape0="1,2", input_type0=float)',
    ],
)
def test_hexagon_is_refused_by_name(rule: str) -> None:
    with pytest.raises(TransformError, match="needs the Hexagon SDK"):
        transform(parse(GRAPH), rule)


def test_the_name_of_the_mode_is_checked() -> None:
    with pytest.raises(UsageError, match="unknown compatibility 'orginal'; did you mean 'original'"):
        transform(parse(GRAPH), "remove_device", compat="orginal")


def test_the_python_call_and_the_command_take_it(tmp_path: pathlib.Path) -> None:
    data = formats.to_bytes(parse(GRAPH))
    result = formats.from_bytes(TransformGraph(data, ["x:0"], ["y:0"], ["obfuscate_names"], compat="original"))
    assert list(result.nodes) == ["0", "1", "2", "3"]
    (tmp_path / "in.pb").write_bytes(data)
    arguments = [
        f"--in_graph={tmp_path}/in.pb", f"--out_graph={tmp_path}/out.pb", "--inputs=x:0", "--outputs=y:0",
        "--transforms=obfuscate_names", "--compat=original",
    ]  # fmt: skip
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 0, ran.output
    assert print_graph(formats.load(tmp_path / "out.pb")) == print_graph(result)
    assert CliRunner().invoke(command, [*arguments[:-1], "--compat=precise"]).exit_code == 2


SHARED = """
    x = Placeholder(dtype=float, shape=[1,2,2,1])
    w = Const(float [[[[3.0]]]])
    conv = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
    gamma = Const(float [2.0])
    beta = Const(float [0.5])
    mean = Const(float [1.0])
    variance = Const(float [4.0])
    norm = FusedBatchNorm(conv, gamma, beta, mean, variance, T=float, epsilon=0.0)
"""


def test_the_original_scales_what_others_read() -> None:
    original, fixed = both(SHARED + "y = Add(norm, conv, T=float)", "fold_old_batch_norms")
    assert (original["norm"].op, fixed["norm"].op) == ("BiasAdd", "FusedBatchNorm")
    assert original["y"].inputs == ("norm", "conv")


def test_where_the_original_never_ends_is_an_error() -> None:
    graph = parse(SHARED + "y = Add(norm, mean, T=float)")
    with pytest.raises(TransformError, match="something else reads 'mean', too, and the original never ends"):
        transform(graph, "fold_old_batch_norms", "x", "y", compat="original")
    assert transform(graph, "fold_old_batch_norms", "x", "y")["norm"].op == "BiasAdd"


def test_where_the_original_aborts_is_an_error() -> None:
    atrous = ATROUS.format(pads="[[0,0],[2,2]]", inner="VALID", crops="[[0,0],[0,0]]")
    read = parse(atrous.replace("Conv2D(space, w,", "Conv2D(space, r,") + "\n    r = Identity(w, T=float)")
    with pytest.raises(TransformError, match="no constants of types int32 and float"):
        transform(read, "flatten_atrous_conv", compat="original")
    assert transform(read, "flatten_atrous_conv")["y"].op == "BatchToSpaceND"


def test_a_transposed_product_is_scaled_along_its_own_axis() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[1,2])
        w = Const(float [[1.0, 2.0], [3.0, 4.0]])
        product = MatMul(x, w, T=float, transpose_b=true)
        factor = Const(float [10.0, 100.0])
        y = Mul(product, factor, T=float)
    """
    original, fixed = both(text, "fold_batch_norms")
    assert original["w"].tensor.numpy().tolist() == [[10, 200], [30, 400]]
    assert fixed["w"].tensor.numpy().tolist() == [[10, 20], [300, 400]]


def test_an_attribute_that_tensorflow_1_does_not_know() -> None:
    graph = parse("x = Placeholder(dtype=float)\ny = Relu(x, T=float, newer=3)")
    assert len(transform(graph, "fold_constants", "x", "y")) == 2
    with pytest.raises(TransformError, match="NodeDef mentions attr 'newer' not in Op<name=Relu>"):
        transform(graph, "fold_constants", "x", "y", compat="original")


@pytest.mark.parametrize("compat", ["original", "fixed"])
def test_new_constants_are_numbered_through_a_run(compat: str) -> None:
    text = "x = Placeholder(dtype=float)\na = Const(float 1.0)\nb = Neg(a, T=float)\ny = Add(x, b, T=float)"
    run = transform(parse(text), "fold_constants", "x", "y", compat=compat)
    assert run["y"].inputs == ("x:0", "b/_0__cf__0")
    again = "fold_constants quantize_weights(minimum_size=1) fold_constants(clear_output_shapes=false)"
    twice = transform(parse(text.replace("1.0", "[1.0, 2.0]")), again, "x", "y", compat=compat)
    assert twice["y"].inputs == ("x:0", "b/_0__cf__0/_0__cf__1")
    assert transform(parse(text), "fold_constants", "x", "y", compat=compat)["y"].inputs == ("x:0", "b/_0__cf__0")
