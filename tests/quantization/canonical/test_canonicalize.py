"""What graphs spell out around their layers becomes part of the layers, and the numbers stay what they were."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph import quantize
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.rewriting import reshape_sinking
from pocketgraph.quantization.canonical import function_recognition
from pocketgraph.quantization.core.program_runner import ProgramRunner, as_fed
from pocketgraph.quantization.float_program import lowered_graph
from pocketgraph.runtime import Session
from quantize_nets import float_program

rng = np.random.default_rng(5)


def graph_of(text: str, **constants: object) -> Graph:
    graph = Graph([*parse(text), *(const(name, np.asarray(value)) for name, value in constants.items())])
    return graph.replace(inputs=["x"], outputs=["y"])


def reference(graph: Graph, x: np.ndarray) -> np.ndarray:
    with Session(graph, exact=True) as session:
        (result,) = session.run(["y:0"], {"x:0": x})
    return np.asarray(result)


def codes_of(graph: Graph) -> list[str]:
    return [operation.code for operation in float_program(graph, ["y"]).operations]


def assert_same_numbers(graph: Graph, x: np.ndarray, within: float = 2e-5) -> None:
    (given,) = ProgramRunner(float_program(graph, ["y"]))([x])
    wanted = reference(graph, x)
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, atol=within * max(np.abs(wanted).max(), 1))


def dilated(rate: int, before: int, after: int, axis: int = 1) -> Graph:
    """A convolution over 24 steps with a bias, a factor and a rectifier, as Keras writes it."""
    steps = 24
    total = -(-(steps + before + after) // rate) * rate
    kernel = rng.normal(size=(1, 3, 6, 8) if axis == 1 else (3, 1, 6, 8))
    return graph_of(
        f"""
        x = Placeholder(dtype=float, shape=[1, {steps}, 6])
        batches = SpaceToBatchND(x, block, borders, T=float, Tblock_shape=int32, Tpaddings=int32)
        picture = ExpandDims(batches, axis, T=float, Tdim=int32)
        conv = Conv2D(picture, w, T=float, strides=[1, 1, 1, 1], padding="VALID")
        row = Squeeze(conv, T=float, squeeze_dims=[{axis}])
        space = BatchToSpaceND(row, block, crops, T=float, Tblock_shape=int32, Tcrops=int32)
        sum = BiasAdd(space, b, T=float)
        scaled = Mul(sum, k, T=float)
        y = Relu(scaled, T=float)
        """,
        block=np.array([rate], np.int32),
        borders=np.array([[before, total - steps - before]], np.int32),
        crops=np.array([[0, total - steps - before - after]], np.int32),
        axis=np.array(axis, np.int32),
        w=kernel.astype(np.float32),
        b=rng.normal(size=8).astype(np.float32),
        k=rng.uniform(0.5, 2, 8).astype(np.float32),
    )


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize(("rate", "before", "after"), [(2, 4, 0), (2, 2, 2), (4, 8, 0), (3, 3, 3), (2, 0, 0)])
def test_a_dilated_convolution_over_steps_is_one_layer(rate: int, before: int, after: int, axis: int) -> None:
    graph = dilated(rate, before, after, axis)
    found = codes_of(graph)
    assert "SPACE_TO_BATCH_ND" not in found
    assert "BATCH_TO_SPACE_ND" not in found
    assert not {"ADD", "MUL", "RELU"} & set(found)
    (layer,) = [o for o in float_program(graph, ["y"]).operations if o.code == "CONV_2D"]
    assert (layer.options["dilation_w" if axis == 1 else "dilation_h"], layer.options["activation"]) == (rate, "RELU")
    assert_same_numbers(graph, rng.normal(size=(1, 24, 6)).astype(np.float32))


def test_steps_that_go_to_batches_for_other_reasons_stay() -> None:
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 8, 6])
        batches = SpaceToBatchND(x, block, borders, T=float, Tblock_shape=int32, Tpaddings=int32)
        y = Relu(batches, T=float)
        """,
        block=np.array([2], np.int32),
        borders=np.array([[0, 0]], np.int32),
    )
    assert "SPACE_TO_BATCH_ND" in codes_of(graph)
    assert_same_numbers(graph, rng.normal(size=(1, 8, 6)).astype(np.float32))


def product(text: str, **constants: object) -> Graph:
    return graph_of(f"x = Placeholder(dtype=float, shape=[1, 5, 12])\n{text}", **constants)


def test_a_product_by_a_constant_is_a_layer_with_its_bias() -> None:
    graph = product(
        """
        m = BatchMatMulV2(x, w, T=float, adj_x=false, adj_y=false)
        heads = Reshape(m, shape, T=float, Tshape=int32)
        s = AddV2(heads, b, T=float)
        y = Relu(s, T=float)
        """,
        w=rng.normal(size=(12, 8)).astype(np.float32),
        shape=np.array([1, 5, 2, 4], np.int32),
        b=rng.normal(size=(2, 4)).astype(np.float32),
    )
    assert codes_of(graph) == ["FULLY_CONNECTED", "RESHAPE"]
    assert_same_numbers(graph, rng.normal(size=(1, 5, 12)).astype(np.float32))


def test_a_turned_constant_is_turned_back() -> None:
    graph = product(
        "y = BatchMatMulV2(x, w, T=float, adj_x=false, adj_y=true)", w=rng.normal(size=(7, 12)).astype(np.float32)
    )
    assert codes_of(graph) == ["FULLY_CONNECTED"]
    assert_same_numbers(graph, rng.normal(size=(1, 5, 12)).astype(np.float32))


def test_an_offset_for_each_place_is_no_bias() -> None:
    graph = product(
        """
        m = BatchMatMulV2(x, w, T=float, adj_x=false, adj_y=false)
        heads = Reshape(m, shape, T=float, Tshape=int32)
        y = AddV2(heads, b, T=float)
        """,
        w=rng.normal(size=(12, 8)).astype(np.float32),
        shape=np.array([1, 5, 2, 4], np.int32),
        b=rng.normal(size=(5, 2, 4)).astype(np.float32),
    )
    assert "ADD" in codes_of(graph)
    assert_same_numbers(graph, rng.normal(size=(1, 5, 12)).astype(np.float32))


def test_a_layer_that_others_read_before_the_offset_stays() -> None:
    graph = product(
        """
        m = BatchMatMulV2(x, w, T=float, adj_x=false, adj_y=false)
        flat = Reshape(m, shape, T=float, Tshape=int32)
        s = AddV2(flat, b, T=float)
        back = Reshape(m, shape, T=float, Tshape=int32)
        y = Mul(s, back, T=float)
        """,
        w=rng.normal(size=(12, 8)).astype(np.float32),
        shape=np.array([5, 8], np.int32),
        b=rng.normal(size=8).astype(np.float32),
    )
    assert_same_numbers(graph, rng.normal(size=(1, 5, 12)).astype(np.float32))


@pytest.mark.parametrize("slope", [0.2, -0.3])
def test_a_slope_for_each_channel_is_one_operation(slope: float) -> None:
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 6, 6, 3])
        conv = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        above = Relu(conv, T=float)
        size = Abs(conv, T=float)
        below = Sub(conv, size, T=float)
        scaled = Mul(alpha, below, T=float)
        halved = Mul(scaled, half, T=float)
        y = Add(above, halved, T=float)
        """,
        w=rng.normal(size=(3, 3, 3, 5)).astype(np.float32),
        alpha=(slope * np.arange(1, 6) / 5).astype(np.float32),
        half=np.float32(0.5),
    )
    assert codes_of(graph) == ["CONV_2D", "PRELU"]
    assert_same_numbers(graph, rng.normal(size=(1, 6, 6, 3)).astype(np.float32))


ROOT = float(np.sqrt(0.5))
GELUS = {
    "erf": ("scaled = Mul(x, root, T=float)\n e = Erf(scaled, T=float)\n one_more = AddV2(one, e, T=float)\n"
            " h = Mul(half, x, T=float)\n y = Mul(h, one_more, T=float)", False),
    "erfc": ("turned = Neg(x, T=float)\n scaled = Mul(turned, root, T=float)\n e = Erfc(scaled, T=float)\n"
             " h = Mul(half, x, T=float)\n y = Mul(h, e, T=float)", False),
    "cdf": ("scaled = RealDiv(x, two_root, T=float)\n e = Erf(scaled, T=float)\n s = AddV2(e, one, T=float)\n"
            " cdf = Mul(s, half, T=float)\n y = Mul(x, cdf, T=float)", False),
    "tanh": ("cube = Pow(x, three, T=float)\n c = Mul(cube, small, T=float)\n s = AddV2(x, c, T=float)\n"
             " k = Mul(s, pi, T=float)\n t = Tanh(k, T=float)\n o = AddV2(t, one, T=float)\n"
             " h = Mul(half, x, T=float)\n y = Mul(h, o, T=float)", True),
}  # fmt: skip
NUMBERS = {"root": ROOT, "two_root": 1 / ROOT, "one": 1, "half": 0.5, "three": 3, "small": 0.044715, "pi": 0.7978846}


def spelled(body: str, **numbers: float) -> Graph:
    used = {name: np.float32(value) for name, value in {**NUMBERS, **numbers}.items() if name in body}
    return graph_of(f"x = Placeholder(dtype=float, shape=[1, 4, 7])\n {body}", **used)


@pytest.mark.parametrize("spelling", GELUS)
def test_a_gelu_is_found_however_it_is_spelled(spelling: str) -> None:
    body, is_approximate = GELUS[spelling]
    graph = spelled(body)
    (operation,) = float_program(graph, ["y"]).operations
    assert (operation.code, operation.options) == ("GELU", {"approximate": is_approximate})
    assert "y" in operation.nodes
    assert_same_numbers(graph, rng.normal(0, 3, (1, 4, 7)).astype(np.float32))


def test_what_is_nearly_a_gelu_is_none() -> None:
    graph = spelled(GELUS["erf"][0], root=0.7)
    assert "GELU" not in codes_of(graph)
    assert_same_numbers(graph, rng.normal(0, 3, (1, 4, 7)).astype(np.float32))


def test_constants_of_long_chains_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    look = function_recognition._only_number
    monkeypatch.setattr(function_recognition, "_only_number", lambda value: looked.append(value.name) or look(value))
    steps = "\n".join(
        f"m{at} = Mul(a{at - 1}, factor, T=float)\nt{at} = Tanh(m{at}, T=float)\na{at} = Add(t{at}, x, T=float)"
        for at in range(1, 101)
    )
    body = f"x = Placeholder(dtype=float, shape=[1, 4])\na0 = Abs(x, T=float)\n{steps}\ny = Relu(a100, T=float)"
    assert len(codes_of(graph_of(body, factor=np.float32(0.3)))) > 300
    assert 0 < len(looked) <= 100  # a factor is in each third of the operations, and in 16 of each stretch of 48


def test_a_function_of_two_tensors_is_none() -> None:
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 4, 7])
        other = Softmax(x, T=float)
        scaled = Mul(x, root, T=float)
        e = Erf(scaled, T=float)
        s = AddV2(e, one, T=float)
        h = Mul(half, other, T=float)
        y = Mul(h, s, T=float)
        """,
        **{name: np.float32(NUMBERS[name]) for name in ("root", "one", "half")},
    )
    assert "GELU" not in codes_of(graph)
    assert_same_numbers(graph, rng.normal(0, 3, (1, 4, 7)).astype(np.float32))


def steps(parts: int, odd: bool) -> Graph:
    """What the steps of a cell make of their inputs; the first one of ``odd`` has a bias of its own."""
    products = "\n".join(
        f"m{step} = MatMul(p{'' if step == 0 else f':{step}'}, w, T=float, transpose_a=false, transpose_b=false)\n"
        f"s{step} = BiasAdd(m{step}, {'c' if odd and step == 0 else 'b'}, T=float)"
        for step in range(parts)
    )
    names = ", ".join(f"s{step}" for step in range(parts))
    return graph_of(
        f"""
        x = Placeholder(dtype=float, shape=[{parts}, 2, 6])
        p = Unpack(x, T=float, num={parts}, axis=0)
        {products}
        y = Pack({names}, T=float, N={parts}, axis=0)
        """,
        w=rng.normal(size=(6, 5)).astype(np.float32),
        b=rng.normal(size=5).astype(np.float32),
        c=rng.normal(size=5).astype(np.float32),
    )


@pytest.mark.parametrize(("parts", "odd", "layers"), [(6, False, 1), (6, True, 2), (2, False, 2)])
def test_steps_are_multiplied_together(parts: int, odd: bool, layers: int) -> None:
    graph = steps(parts, odd)
    assert codes_of(graph).count("FULLY_CONNECTED") == layers
    assert_same_numbers(graph, rng.normal(size=(parts, 2, 6)).astype(np.float32))


def test_graphs_of_codes_stay_as_they_are() -> None:
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 5, 4])
        flat = Reshape(x, shape, T=float, Tshape=int32)
        q = FakeQuantWithMinMaxVars(flat, low, high, num_bits=8, narrow_range=false, _eight_bit=true)
        m = MatMul(q, w, T=float, transpose_a=false, transpose_b=false, _eight_bit=true)
        r = FakeQuantWithMinMaxVars(m, low, high, num_bits=8, narrow_range=false, _eight_bit=true)
        y = Relu(r, T=float)
        """,
        shape=np.array([5, 4], np.int32),
        low=np.float32(-3),
        high=np.float32(3),
        w=rng.normal(size=(4, 3)).astype(np.float32),
    )
    plain, _ = lowered_graph(graph, ["y"])
    has_codes = any(v.quantization is not None for o in plain.operations for v in o.outputs)
    made = [operation.code for operation in plain.operations]
    assert has_codes
    assert codes_of(graph) == made


@pytest.mark.parametrize(("channels", "stride", "padding"), [(1, 1, "VALID"), (3, 1, "VALID"), (1, 2, "SAME")])
def test_rows_are_pixels_where_a_window_is_as_wide_as_the_picture(channels: int, stride: int, padding: str) -> None:
    width = 9
    across = width if padding == "SAME" else 1  # so that there is one result a row
    graph = graph_of(
        f"""
        x = Placeholder(dtype=float, shape=[1, 30, {width}, {channels}])
        conv = Conv2D(x, w, T=float, strides=[1, {stride}, {across}, 1], padding="{padding}")
        y = Relu(conv, T=float)
        """,
        w=rng.normal(size=(4, width, channels, 8)).astype(np.float32),
    )
    (layer,) = [o for o in float_program(graph, ["y"]).operations if o.code == "CONV_2D"]
    assert layer.inputs[0] is not None
    assert layer.inputs[0].shape == (1, 30, 1, width * channels)
    assert_same_numbers(graph, rng.normal(size=(1, 30, width, channels)).astype(np.float32))


@pytest.mark.parametrize("width", [8, 10])
def test_rows_stay_rows_where_the_window_is_narrower(width: int) -> None:
    """With 10 columns a window of 9 has two results a row; with 8 it reaches into the padding."""
    graph = graph_of(
        f"""
        x = Placeholder(dtype=float, shape=[1, 12, {width}, 1])
        y = Conv2D(x, w, T=float, strides=[1, 1, {width if width == 8 else 1}, 1],
            padding="{"SAME" if width == 8 else "VALID"}")
        """.replace(",\n           ", ","),
        w=rng.normal(size=(4, 9, 1, 8)).astype(np.float32),
    )
    (layer,) = [o for o in float_program(graph, ["y"]).operations if o.code == "CONV_2D"]
    assert layer.inputs[0] is not None
    assert layer.inputs[0].shape == (1, 12, width, 1)
    assert_same_numbers(graph, rng.normal(size=(1, 12, width, 1)).astype(np.float32))


def upwards(extent: int, wide: int) -> Graph:
    """A convolution of ``wide`` outputs and a transposed one by two behind it."""
    return graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 6, 6, 4])
        deep = Conv2D(x, v, T=float, strides=[1, 1, 1, 1], padding="SAME")
        y = Conv2DBackpropInput(size, w, deep, T=float, strides=[1, 2, 2, 1], padding="SAME")
        """,
        v=rng.normal(size=(3, 3, 4, wide)).astype(np.float32),
        w=rng.normal(size=(extent, extent, 3, wide)).astype(np.float32),
        size=np.array([1, 12, 12, 3], np.int32),
    )


@pytest.mark.parametrize(("extent", "is_turned"), [(2, True), (4, True), (5, False)])
def test_transposed_convolutions_are_plain_ones_unless_the_file_would_grow(extent: int, is_turned: bool) -> None:
    """A filter of 5 x 5 would have 11 zeros for 25 weights, more than a twelfth of all that there are."""
    graph = upwards(extent, 8)
    assert ("TRANSPOSE_CONV" not in codes_of(graph)) == is_turned
    assert_same_numbers(graph, rng.normal(size=(1, 6, 6, 4)).astype(np.float32))


def test_the_gelu_of_a_large_tensor_is_found_in_the_error_function_that_spells_it() -> None:
    """As Keras writes it: 0.5 x erfc(-x / sqrt 2)."""
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 20, 20, 256])
        turned = Neg(x, T=float)
        small = Mul(turned, k, T=float)
        rest = Erfc(small, T=float)
        half = Mul(x, h, T=float)
        y = Mul(half, rest, T=float)
        """,
        k=np.float32(np.sqrt(0.5)),
        h=np.float32(0.5),
    )
    assert codes_of(graph) == ["GELU"]
    assert_same_numbers(graph, rng.normal(0, 3, (1, 20, 20, 256)).astype(np.float32))


def scaled(steps: str, **constants: np.ndarray) -> Graph:
    graph = f"x = Placeholder(dtype=float, shape=[1, 6, 6, 3])\n{steps}\ny = Sin(d, T=float)"
    return graph_of("\n".join(line.strip() for line in graph.splitlines()), **constants)


@pytest.mark.parametrize(
    ("means", "deviations", "left"),
    [([0.4, 0.5, 0.6], [0.2, 0.3, 0.1], ["MUL", "ADD", "SIN"]), ([0, 0, 0], [1, 1, 1], ["MUL", "SIN"])],
)
def test_pictures_are_scaled_in_one_step(means: list[float], deviations: list[float], left: list[str]) -> None:
    graph = scaled(
        """a = Mul(x, k, T=float)
        b = AddV2(a, z, T=float)
        c = Sub(b, m, T=float)
        d = RealDiv(c, s, T=float)""",
        k=np.float32(1 / 255), z=np.float32(0), m=np.float32([[[means]]]), s=np.float32([[[deviations]]]),
    )  # fmt: skip
    assert codes_of(graph) == left
    assert_same_numbers(graph, rng.uniform(0, 255, (1, 6, 6, 3)).astype(np.float32))


def test_a_number_may_stand_in_front_of_what_it_scales() -> None:
    graph = scaled(
        """a = Sub(x, m, T=float)
        b = RealDiv(a, s, T=float)
        c = Mul(two, b, T=float)
        d = AddV2(one, c, T=float)""",
        m=np.float32([1, 2, 3]), s=np.float32([2, 4, 5]), two=np.float32(2), one=np.float32(-1),
    )  # fmt: skip
    assert codes_of(graph) == ["MUL", "ADD", "SIN"]
    assert_same_numbers(graph, rng.uniform(0, 9, (1, 6, 6, 3)).astype(np.float32))


def chosen(axis: int, also: str = "") -> Graph:
    """The place of the largest share among logits, and what else reads the shares."""
    return graph_of(
        f"""
        x = Placeholder(dtype=float, shape=[4, 6])
        shares = Softmax(x, T=float)
        y = ArgMax(shares, axis, T=float, Tidx=int32, output_type=int32)
        {also}
        """,
        axis=np.int32(axis),
    )


@pytest.mark.parametrize(("axis", "left"), [(1, ["ARG_MAX"]), (-1, ["ARG_MAX"]), (0, ["SOFTMAX", "ARG_MAX"])])
def test_the_largest_share_is_that_of_the_largest_logit(axis: int, left: list[str]) -> None:
    graph = chosen(axis)
    assert codes_of(graph) == left
    assert_same_numbers(graph, rng.normal(0, 30, (4, 6)).astype(np.float32))


@pytest.mark.parametrize(("shape", "axis", "left"), [
    ((2, 2, 6), 2, ["RESHAPE", "ARG_MAX"]), ((4, 2, 3), 2, ["SOFTMAX", "RESHAPE", "ARG_MAX"]),
    ((4, 6, 1), 1, ["SOFTMAX", "RESHAPE", "ARG_MAX"]),
])  # fmt: skip
def test_the_largest_share_is_found_behind_a_reshape_too(shape: tuple[int, ...], axis: int, left: list[str]) -> None:
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[4, 6])
        shares = Softmax(x, T=float)
        rows = Reshape(shares, sizes, T=float, Tshape=int32)
        y = ArgMax(rows, axis, T=float, Tidx=int32, output_type=int32)
        """,
        sizes=np.array(shape, np.int32), axis=np.int32(axis),
    )  # fmt: skip
    assert codes_of(graph) == left
    assert_same_numbers(graph, rng.normal(0, 9, (4, 6)).astype(np.float32))


def test_shares_that_something_else_reads_are_chosen_from() -> None:
    program = float_program(chosen(1, "z = Sqrt(shares, T=float)"), ["y", "z"])
    (choice,) = [operation for operation in program.operations if operation.code == "ARG_MAX"]
    assert choice.inputs[0] is next(o.outputs[0] for o in program.operations if o.code == "SOFTMAX")


@pytest.mark.parametrize(
    "last", ["d = Sub(k, b, T=float)", "d = Mul(b, b, T=float)", "d = RealDiv(b, n, T=float)", "d = Mul(b, i, T=float)"]
)
def test_other_steps_stay_what_they_are(last: str) -> None:
    """A number less x, a product of two tensors, a division by zero, a product with NaN."""
    graph = scaled(
        f"""a = Mul(x, k, T=float)
        b = AddV2(a, m, T=float)
        {last}""",
        k=np.float32(0.5), m=np.float32([1, 2, 3]), n=np.float32([1, 0, 2]), i=np.float32([1, np.nan, 1]),
    )  # fmt: skip
    assert len(codes_of(graph)) == 4


def test_a_bias_behind_frames_as_pictures_goes_into_its_layer_however_large_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reshape_sinking, "MOST_SPREAD", 1)
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 4, 6, 6, 2])
        conv = Conv3D(x, w, T=float, strides=[1, 1, 1, 1, 1], padding="SAME")
        sum = BiasAdd(conv, b, T=float)
        y = Relu(sum, T=float)
        """,
        w=rng.normal(size=(3, 3, 3, 2, 5)).astype(np.float32),
        b=rng.normal(size=5).astype(np.float32),
    )
    assert "ADD" not in codes_of(graph)
    assert_same_numbers(graph, rng.normal(size=(1, 4, 6, 6, 2)).astype(np.float32))


def test_a_last_axis_of_one_is_not_reduced_with_the_others() -> None:
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=[1, 6, 7, 8, 1])
        axes = Const(int32 [1, 2, 4])
        y = Mean(x, axes, T=float, Tidx=int32, keep_dims=true)
        """
    )
    assert_same_numbers(graph, rng.normal(size=(1, 6, 7, 8, 1)).astype(np.float32))
    (mean,) = (o for o in float_program(graph, ["y"]).operations if o.code == "MEAN")
    assert [value.shape for value in mean.operands] == [(42, 8), (1,)]


@pytest.mark.parametrize(("side", "parts"), [(5, 1), (7, 3)])
def test_large_windows_are_sums_of_small_ones_in_every_mode(side: int, parts: int) -> None:
    """XNNPACK has kernels of up to 25 elements; LiteRT takes 100 times as long for 49 codes."""
    channels = 40
    graph = graph_of(
        f"""
        x = Placeholder(dtype=float, shape=[1, 12, 12, {channels}])
        deep = DepthwiseConv2dNative(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")
        normal = FusedBatchNorm(deep, gamma, beta, mean, variance, T=float, is_training=false, epsilon=0.001)
        y = Relu(normal, T=float)
        """,
        w=rng.normal(size=(side, side, channels, 1)).astype(np.float32),
        gamma=np.ones(channels, np.float32),
        beta=rng.normal(size=channels).astype(np.float32),
        mean=rng.normal(size=channels).astype(np.float32),
        variance=np.full(channels, 50, np.float32),
    )
    samples = rng.normal(size=(20, 12, 12, channels)).astype(np.float32)
    assert_same_numbers(graph, samples[:1])
    for mode, io, activations in (
        ("static", "float", "int8"), ("static", "int8", "int8"), ("static", "float", "int16"),
        ("dynamic", "float", "int8"), ("weights", "float", "int8"),
    ):  # fmt: skip
        given = samples if mode == "static" else None
        made = quantize(graph, given, mode=mode, io=io, activations=activations)
        program = made.program
        windows = [o.inputs[1] for o in program.operations if o.code == "DEPTHWISE_CONV_2D"]
        whole = io == "int8" or activations == "int16"
        assert len(windows) == (1 if whole else parts)
        assert all(w is not None and w.shape[1] * w.shape[2] <= 25 for w in windows) != (whole and side == 7)
        if side == 7:  # the parts count as the one layer that they are
            stored = [v.dtype.name for o in program.operations for v in o.inputs if v is not None and v.constant]
            assert stored.count("int8") == len(windows)
        (wanted,) = ProgramRunner(float_program(graph, ["y"]))([samples[:1]])
        (found,) = ProgramRunner(program).numbers(as_fed([samples[:1]], program.inputs))
        assert np.square(wanted - found).sum() < 10**-2.5 * np.square(wanted).sum(), mode


@pytest.mark.parametrize("shape", [[2, 5, 6], [4, 2, 5, 6]])
def test_layers_take_tensors_of_many_axes(shape: list[int]) -> None:
    """As Keras writes a Dense over more than two axes, between what tells the axes apart."""
    graph = graph_of(
        """
        x = Placeholder(dtype=float, shape=SHAPE)
        m = Mean(x, one, T=float, Tidx=int32, keep_dims=true)
        p = Sub(x, m, T=float)
        rows = Reshape(p, flat, T=float, Tshape=int32)
        a = MatMul(rows, w, T=float)
        c = Reshape(a, back, T=float, Tshape=int32)
        y = Mean(c, one, T=float, Tidx=int32, keep_dims=true)
        """.replace("SHAPE", str(shape)),
        one=np.array(1, np.int32),
        w=rng.normal(size=(6, 3)).astype(np.float32),
        flat=np.array([-1, 6], np.int32),
        back=np.array([*shape[:-1], 3], np.int32),
    )
    assert_same_numbers(graph, rng.normal(size=shape).astype(np.float32))
    (layer,) = (o for o in float_program(graph, ["y"]).operations if o.code == "FULLY_CONNECTED")
    assert layer.outputs[0].shape == (*shape[:-1], 3)
    assert "RESHAPE" not in codes_of(graph)
