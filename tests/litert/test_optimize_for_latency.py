"""What is done to a program so that it takes less time: fewer pixels, several at once, simpler operations."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from litert.parts import compiled_part
from litert.single_ops import run_graph, run_reference
from pocketgraph import Session
from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation
from pocketgraph.litert.rewriting import narrow_convolutions
from support import assert_close

random = np.random.default_rng(5)
LEAKS = (
    "r = Relu(x, T=float)\nb = Abs(x, T=float)\nd = Sub(x, b, T=float)\nm = Mul(alpha, d, T=float)\n"
    "h = Mul(m, half, T=float)\ny = Add(r, h, T=float)\n",
    "r = Relu(x, T=float)\nn = Neg(x, T=float)\ns = Relu(n, T=float)\nm = Mul(alpha, s, T=float)\n"
    "y = Sub(r, m, T=float)\n",
    "r = Relu(x, T=float)\nn = Neg(x, T=float)\ns = Relu(n, T=float)\nt = Neg(s, T=float)\n"
    "m = Mul(alpha, t, T=float)\ny = AddV2(m, r, T=float)\n",
    "r = Relu(x, T=float)\ns = Minimum(x, zero, T=float)\nm = Mul(s, alpha, T=float)\ny = Add(r, m, T=float)\n",
    "c = Greater(x, zero, T=float)\nm = Mul(x, alpha, T=float)\ny = Select(c, x, m, T=float)\n",
    "c = LessEqual(x, zero, T=float)\nm = Mul(alpha, x, T=float)\ny = SelectV2(c, m, x, T=float)\n",
)
"""Ways in which networks spell a rectifier with a slope."""


def floats(*shape: int) -> np.ndarray:
    return random.uniform(-1, 1, shape).astype(np.float32)


def graph(text: str, shape: tuple[int, ...], **constants: np.ndarray) -> Graph:
    """The graph of this text form with an input x of this shape and these constants in front."""
    sizes = ",".join(map(str, shape))
    text = f"x = Placeholder(dtype=float, shape=[{sizes}])\n{text}"
    return Graph([*(const(name, value) for name, value in constants.items()), *parse(text)])


def check(model: Graph, *shape: int, outputs: tuple[str, ...] = ("y",), relative: float = 1e-5) -> list[str]:
    """The graph computes what the reference kernels compute; the operators that it became."""
    feeds, names = {"x:0": floats(*shape)}, [f"{name}:0" for name in outputs]
    actual, codes = run_graph(model, feeds, names)
    for one, other in zip(actual, run_reference(model, feeds, names), strict=True):
        assert one.shape == other.shape
        assert_close(one, other, relative)
    return codes


def convolution(name: str, source: str, weights: str, stride: int, padding: str = "SAME") -> str:
    strides = f"strides=list[1,{stride},{stride},1]"
    return f'{name} = Conv2D({source}, {weights}, T=float, {strides}, padding="{padding}")\n'


@pytest.mark.parametrize("size", [12, 13])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("step", [2, 3])
def test_only_the_pixels_that_a_stride_takes_are_computed(size: int, padding: str, kernel: int, step: int) -> None:
    text = convolution("a", "x", "w", 1, padding) + "r = Relu(a, T=float)\n" + convolution("y", "r", "v", step)
    model = graph(text, (2, size, size, 16), w=floats(kernel, kernel, 16, 32), v=floats(1, 1, 32, 64))
    operations = compiled(model, (2, size, size, 16))
    small = [o for o in operations if o.code == "CONV_2D"][-2]
    assert small.options["stride_h"] == step
    check(model, 2, size, size, 16)


def compiled(model: Graph, shape: tuple[int, ...], outputs: tuple[str, ...] = ("y",)) -> list[Operation]:
    """The operations of the whole graph on LiteRT."""
    names = [f"{name}:0" for name in outputs]
    executable = compiled_part(model, list(model), ["x:0"], names, {"x:0": (FLOAT, shape)})
    try:
        assert executable.program is not None
        return executable.program.operations
    finally:
        executable.close()


RESIDUAL = (
    convolution("a", "x", "w", 1)
    + convolution("b", "a", "u", 1)
    + "s = AddV2(b, x, T=float)\nr = Relu(s, T=float)\n"
    + convolution("y", "r", "v", 2)
    + convolution("z", "r", "t", 2)
)


@pytest.mark.parametrize("size", [16, 15])
def test_a_stride_goes_through_a_sum_to_both_branches(size: int) -> None:
    weights = {"w": floats(3, 3, 32, 32), "u": floats(1, 1, 32, 32), "v": floats(1, 1, 32, 64)}
    model = graph(RESIDUAL, (1, size, size, 32), **weights, t=floats(1, 1, 32, 16))
    codes = check(model, 1, size, size, 32, outputs=("y", "z"))
    assert ("SLICE" in codes) == (size == 16)  # an odd image cannot be parted into pairs of pixels


def test_what_others_read_keeps_all_its_pixels() -> None:
    text = convolution("a", "x", "w", 1) + convolution("b", "a", "v", 2) + "c = Relu(a, T=float)\n"
    model = graph(text, (1, 12, 12, 8), w=floats(3, 3, 8, 32), v=floats(1, 1, 32, 32))
    check(model, 1, 12, 12, 8, outputs=("b", "c"))
    check(model, 1, 12, 12, 8, outputs=("b", "a"))


@pytest.mark.parametrize("length", [20, 1500])
def test_chains_of_any_length_are_looked_through_or_left(length: int) -> None:
    chain = "".join(f"n{i} = Neg({f'n{i - 1}' if i else 'a'}, T=float)\n" for i in range(length))
    text = convolution("a", "x", "w", 1) + chain + convolution("y", f"n{length - 1}", "v", 2)
    model = graph(text, (1, 12, 12, 8), w=floats(3, 3, 8, 32), v=floats(1, 1, 32, 32))
    assert [o.options["stride_h"] for o in compiled(model, (1, 12, 12, 8)) if o.code == "CONV_2D"] == (
        [2, 1] if length == 20 else [1, 2]
    )
    check(model, 1, 12, 12, 8)


def test_a_wider_kernel_reads_more_than_every_other_pixel() -> None:
    text = convolution("a", "x", "w", 1) + convolution("y", "a", "v", 2)
    model = graph(text, (1, 12, 12, 32), w=floats(3, 3, 32, 32), v=floats(3, 3, 32, 32))
    assert [o.options["stride_h"] for o in compiled(model, (1, 12, 12, 32)) if o.code == "CONV_2D"] == [1, 2]
    check(model, 1, 12, 12, 32)


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
def test_pooling_of_one_pixel_is_no_operation(op: str) -> None:
    pool = f'p = {op}({{}}, T=float, ksize=list[1,1,1,1], strides=list[1,2,2,1], padding="SAME")\n'
    behind = convolution("a", "x", "w", 1) + pool.format("a") + "y = Tanh(p, T=float)\n"
    codes = check(graph(behind, (1, 12, 12, 32), w=floats(3, 3, 32, 32)), 1, 12, 12, 32)
    assert codes == ["PAD", "CONV_2D", "TANH"] or codes == ["CONV_2D", "TANH"]
    alone = pool.format("x") + "y = Tanh(p, T=float)\n"
    assert "SLICE" in check(graph(alone, (1, 12, 12, 32)), 1, 12, 12, 32)
    assert check(graph(alone, (1, 13, 12, 32)), 1, 13, 12, 32) == ["DEPTHWISE_CONV_2D", "TANH"]
    assert check(graph(alone, (2, 7, 9, 3)), 2, 7, 9, 3) == ["DEPTHWISE_CONV_2D", "TANH"]


@pytest.mark.parametrize("text", LEAKS)
@pytest.mark.parametrize("channels", [5, 48])
@pytest.mark.parametrize("largest", [0.9, 1.7])
def test_rectifiers_with_a_slope_are_found(text: str, channels: int, largest: float) -> None:
    alpha = random.uniform(-largest, largest, channels).astype(np.float32)
    alpha[0] = largest
    numbers = {"alpha": alpha, "half": np.float32(0.5), "zero": np.float32(0)}
    shape = (1, 12, 12, channels)
    is_narrow = largest < 1 and channels < 16
    assert check(graph(text, shape, **numbers), *shape) == (["MUL", "MAXIMUM"] if is_narrow else ["PRELU"])
    for same in (np.full(channels, abs(largest), np.float32), np.float32(abs(largest))):
        codes = check(graph(text, shape, **{**numbers, "alpha": np.asarray(same)}), *shape)
        assert codes == (["LEAKY_RELU"] if largest < 1 else ["PRELU"])


@pytest.mark.parametrize(
    "text",
    [
        "r = Relu(x, T=float)\nb = Abs(x, T=float)\nd = Sub(b, x, T=float)\ny = Add(r, d, T=float)\n",
        "z = Neg(x, T=float)\nr = Relu(z, T=float)\ns = Minimum(x, zero, T=float)\ny = Add(r, s, T=float)\n",
        "r = Relu(x, T=float)\ns = Minimum(x, half, T=float)\ny = Add(r, s, T=float)\n",
    ],
)
def test_other_sums_stay_sums(text: str) -> None:
    codes = check(graph(text, (1, 8, 8, 4), half=np.float32(0.5), zero=np.float32(0)), 1, 8, 8, 4)
    assert codes[-1] == "ADD"


@pytest.mark.parametrize(
    "text",
    [
        "c = Greater(x, half, T=float)\nm = Mul(x, alpha, T=float)\ny = Select(c, x, m, T=float)\n",
        "c = Less(x, zero, T=float)\nm = Mul(x, alpha, T=float)\ny = Select(c, x, m, T=float)\n",
        "c = Less(x, zero, T=float)\nz = Neg(x, T=float)\nm = Mul(z, alpha, T=float)\ny = Select(c, m, x, T=float)\n",
    ],
)
def test_other_choices_stay_choices(text: str) -> None:
    numbers = {"half": np.float32(0.5), "zero": np.float32(0), "alpha": floats(4)}
    assert "SELECT_V2" in check(graph(text, (1, 8, 8, 4), **numbers), 1, 8, 8, 4)


def test_nothing_of_a_rectifier_is_lost_that_others_read() -> None:
    model = graph(LEAKS[1], (1, 8, 8, 4), alpha=floats(4))
    check(model, 1, 8, 8, 4, outputs=("y", "r", "m"))


@pytest.mark.parametrize("columns", [24, 22, 25, 23])
@pytest.mark.parametrize("channels", [1, 3, 6, 8, 16, 20])
@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "SAME"), (1, "VALID"), (3, "VALID")])
def test_several_pixels_at_once_are_the_same_pixels(columns: int, channels: int, stride: int, padding: str) -> None:
    text = convolution("c", "x", "w", stride, padding) + "b = BiasAdd(c, v, T=float)\ny = Relu(b, T=float)\n"
    model = graph(text, (2, 24, columns, 5), w=floats(5, 5, 5, channels), v=floats(channels))
    check(model, 2, 24, columns, 5)


def test_a_narrow_convolution_makes_several_pixels_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_convolutions, "LANES", 16)
    monkeypatch.setattr(narrow_convolutions, "has_wide_kernels", lambda: False)
    model = graph(convolution("y", "x", "w", 1), (1, 60, 60, 1), w=floats(5, 5, 1, 6))
    first, second = compiled(model, (1, 60, 60, 1))
    assert first.outputs[0].shape == (1, 60, 30, 12)
    assert (second.code, second.outputs[0].shape) == ("RESHAPE", (1, 60, 60, 6))
    check(model, 1, 60, 60, 1)


def test_small_wide_and_dilated_convolutions_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_convolutions, "has_wide_kernels", lambda: False)
    dilated = 'y = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME", dilations=list[1,2,2,1])\n'
    cases = [
        (graph(convolution("y", "x", "w", 1), (1, 6, 6, 3), w=floats(3, 3, 3, 4)), (1, 6, 6, 3)),
        (graph(convolution("y", "x", "w", 1), (1, 40, 40, 3), w=floats(3, 3, 3, 32)), (1, 40, 40, 3)),
        (graph(dilated, (1, 40, 40, 3), w=floats(3, 3, 3, 4)), (1, 40, 40, 3)),
    ]
    for model, shape in cases:
        assert [operation.code for operation in compiled(model, shape)] == ["CONV_2D"]
        check(model, *shape)


@pytest.mark.parametrize("op", ["Mul", "AddV2", "Sub", "Maximum", "RealDiv"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "channels"), [(20, 6), (20, 1), (3, 6), (200, 32), (20, 64)])
def test_vectors_written_out_compute_the_same(op: str, turned: bool, rows: int, channels: int) -> None:
    operands = "v, t" if turned else "t, v"
    model = graph(
        f"t = Sigmoid(x, T=float)\ny = {op}({operands}, T=float)\n", (1, rows, rows, channels), v=floats(channels) + 2
    )
    check(model, 1, rows, rows, channels)


def test_one_number_scales_without_a_convolution() -> None:
    text = convolution("c", "x", "w", 1) + "b = BiasAdd(c, v, T=float)\ny = Relu(b, T=float)\n"
    model = graph(text, (1, 9, 7, 1), w=floats(1, 1, 1, 1), v=floats(1))
    assert check(model, 1, 9, 7, 1) == ["MUL", "ADD"]


def test_infinities_and_nan_reach_the_same_pixels_of_a_sampled_convolution() -> None:
    text = convolution("a", "x", "w", 1) + convolution("y", "a", "v", 2)
    model = graph(text, (1, 8, 8, 16), w=floats(1, 1, 16, 32), v=floats(1, 1, 32, 32))
    image = floats(1, 8, 8, 16)
    image[0, 1, 1], image[0, 4, 4] = np.nan, np.inf
    (actual,), _ = run_graph(model, {"x:0": image}, ["y:0"])
    expected = np.zeros((4, 4), bool)
    expected[2, 2] = True  # the pixel (1, 1) is not taken
    np.testing.assert_array_equal(~np.isfinite(actual).all(axis=3)[0], expected)


def test_repeated_runs_give_new_arrays_and_keep_none_of_the_callers(tmp_path: pathlib.Path) -> None:
    text = convolution("c", "x", "w", 1) + "y = Relu(c, T=float)\nz = Tanh(c, T=float)\n"
    model = graph(text, (1, 8, 8, 4), w=floats(3, 3, 4, 4))
    reference = Session(model, engine="reference")
    with Session(model, cache_dir=tmp_path) as session:
        seen = []
        for _ in range(6):
            image = floats(1, 8, 8, 4)
            wide = np.repeat(image, 2, axis=3)[..., ::2]  # not contiguous
            expected = reference.run(["y", "z"], {"x": image})
            results = session.run(["y", "z"], {"x": wide})
            image[...] = 0
            wide[...] = 7
            for one, other in zip(results, expected, strict=True):
                assert_close(one, other, 1e-5)
                assert one.flags.owndata
                assert one.flags.writeable
            seen.append((results, expected))
        for results, expected in seen:  # later runs have not written into what was given earlier
            assert_close(results[0], expected[0], 1e-5)


LAST = {
    "y": "y = Reshape(t, flat, T=float, Tshape=int32)\n",
    "y t": "y = Reshape(t, flat, T=float, Tshape=int32)\n",
    "y z": "y = Reshape(t, flat, T=float, Tshape=int32)\nz = Reshape(t, long, T=float, Tshape=int32)\n",
    "y z ": "y = Reshape(t, flat, T=float, Tshape=int32)\nz = Neg(y, T=float)\n",
    "y  z": "y = Reshape(x, flat, T=float, Tshape=int32)\nz = Reshape(t, long, T=float, Tshape=int32)\n",
    "z y": "z = Reshape(t, long, T=float, Tshape=int32)\ny = Transpose(t, moved, T=float, Tperm=int32)\n",
}


@pytest.mark.parametrize("fetched", LAST)
def test_results_have_their_shapes_whatever_litert_gives(fetched: str, tmp_path: pathlib.Path) -> None:
    numbers = {"flat": [4, 18], "long": [2, 36], "moved": [3, 0, 1, 2]}
    constants = {name: np.array(value, np.int32) for name, value in numbers.items()}
    model = graph("t = Tanh(x, T=float)\n" + LAST[fetched], (4, 6, 3, 1), **constants)
    names = fetched.split()
    check(model, 4, 6, 3, 1, outputs=tuple(names))
    for _ in range(2):  # compiled, then from the cache
        with Session(model, cache_dir=tmp_path) as session, Session(model, engine="reference") as reference:
            for _ in range(4):
                image = floats(4, 6, 3, 1)
                pairs = zip(session.run(names, {"x": image}), reference.run(names, {"x": image}), strict=True)
                for one, other in pairs:
                    assert one.shape == other.shape
                    assert one.flags.owndata or one.base is None or one.base.flags.owndata
                    assert_close(one, other, 1e-5)


def test_a_transpose_of_axes_of_one_element_moves_nothing() -> None:
    model = graph(
        "t = Tanh(x, T=float)\ns = Transpose(t, order, T=float, Tperm=int32)\ny = Neg(s, T=float)\n",
        (1, 9, 8, 1),
        order=np.array([0, 3, 1, 2], np.int32),
    )
    assert "TRANSPOSE" not in check(model, 1, 9, 8, 1)
    turned = graph(
        "t = Tanh(x, T=float)\ny = Transpose(t, order, T=float, Tperm=int32)\n",
        (1, 9, 8, 1),
        order=np.array([0, 3, 2, 1], np.int32),
    )
    assert "TRANSPOSE" in check(turned, 1, 9, 8, 1)
