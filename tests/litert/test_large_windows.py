"""Large windows of depthwise convolutions are cut into parts, and compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

from litert.test_optimize_for_latency import check, floats, graph
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.cost_model import DEPTHWISE_WINDOWS
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.rewriting.large_windows import parts_of
from pocketgraph.runtime import Session


def depthwise(stride: int, padding: str, dilations: str = "1,1,1,1", layout: str = "NHWC") -> str:
    return (
        f"d = DepthwiseConv2dNative(x, w, T=float, strides=list[1,{stride},{stride},1], dilations=list[{dilations}], "
        f'padding="{padding}", data_format="{layout}")\nb = BiasAdd(d, bias, T=float)\ny = Relu6(b, T=float)\n'
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("window", "stride", "dilations", "multiplier"),
    [
        ((7, 7), 1, "1,1,1,1", 1),
        ((7, 7), 2, "1,1,1,1", 2),
        ((6, 9), 3, "1,1,1,1", 1),
        ((1, 31), 1, "1,1,1,1", 1),
        ((7, 5), 1, "1,2,3,1", 1),
        ((13, 13), 1, "1,1,1,1", 3),
    ],
)
def test_parts_add_up_to_the_whole(
    window: tuple[int, int], stride: int, dilations: str, multiplier: int, padding: str
) -> None:
    model = graph(
        depthwise(stride, padding, dilations),
        (2, 23, 37, 5),
        w=floats(*window, 5, multiplier),
        bias=floats(5 * multiplier),
    )
    codes = check(model, 2, 23, 37, 5)
    assert codes.count("DEPTHWISE_CONV_2D") > 1
    assert codes[-1] == "ADD", "which does the activation as well"


@pytest.mark.parametrize("multiplier", [1, 2])
def test_a_convolution_with_a_group_for_each_channel_is_a_depthwise_one(multiplier: int) -> None:
    line = 'y = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")\n'
    model = graph(line, (1, 15, 17, 6), w=floats(7, 7, 1, 6 * multiplier))
    codes = check(model, 1, 15, 17, 6)
    assert "CONV_2D" not in codes
    assert codes.count("DEPTHWISE_CONV_2D") == 3
    groups_of_two = graph(line, (1, 15, 17, 6), w=floats(3, 3, 2, 6))
    assert "CONV_2D" in check(groups_of_two, 1, 15, 17, 6)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("stride", "dilations"), [(1, "1,1,1,1"), (2, "1,1,1,1"), (1, "1,2,3,1")])
def test_a_window_that_is_a_column_times_a_row_is_these_two(stride: int, dilations: str, padding: str) -> None:
    column, row = floats(9, 1, 6, 1), floats(1, 7, 6, 1)
    column[..., 5, :] = 0
    text = depthwise(stride, padding, dilations)
    model = graph(text, (2, 33, 37, 6), w=column * row, bias=floats(6))
    assert check(model, 2, 33, 37, 6) == ["DEPTHWISE_CONV_2D"] * 2
    changed = column * row
    changed[4, 3, 2] += 1e-3  # one channel's is none
    model = graph(text, (2, 33, 37, 6), w=changed, bias=floats(6))
    assert check(model, 2, 33, 37, 6).count("DEPTHWISE_CONV_2D") > 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_weight_that_is_not_finite_stays_where_it_is(padding: str, odd: float) -> None:
    weights = floats(13, 1, 2, 1) * floats(1, 9, 2, 1)
    weights[2, 7, 0] = odd
    model = graph(depthwise(1, padding), (1, 35, 18, 2), w=weights, bias=floats(2))
    images = floats(1, 35, 18, 2)
    found = []
    for engine in ("reference", None):
        with Session(model, engine=engine) as session:
            found += session.run(["y"], {"x": images})
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-4)


def test_windows_that_there_are_kernels_for_stay() -> None:
    model = graph(depthwise(1, "SAME"), (1, 9, 9, 4), w=floats(5, 5, 4, 1), bias=floats(4))
    assert check(model, 1, 9, 9, 4) == ["DEPTHWISE_CONV_2D"]


def operation(height: int, width: int, *, constant: bool = True, padding: str = "VALID", stride: int = 1) -> Operation:
    content = Constant.of(np.zeros((1, height, width, 4), np.float32)) if constant else None
    weights = Value("w", FLOAT, (1, height, width, 4), content)
    values = [Value("x", FLOAT, (1, 64, 64, 4)), weights, Value("b", FLOAT, (4,))]
    options = {"padding": padding, "stride_h": stride, "stride_w": stride, "dilation_h": 1, "dilation_w": 1}
    return Operation("DEPTHWISE_CONV_2D", list(values), [Value("y", FLOAT, (1, 64, 64, 4))], options)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("height", "width"), [(6, 5), (7, 7), (8, 6), (15, 15), (1, 200), (29, 29), (26, 1)])
def test_parts_cover_each_element_once_and_have_kernels(height: int, width: int, padding: str) -> None:
    seen = np.zeros((height, width), np.int64)
    for part in parts_of(operation(height, width, padding=padding)):
        assert part.rows * part.columns <= DEPTHWISE_WINDOWS[-1]
        assert seen[part.place].shape == (part.rows, part.columns)
        seen[part.place] += 1
    np.testing.assert_array_equal(seen, 1)


@pytest.mark.parametrize(("stride", "dilation", "size"), [(1, 1, 23), (2, 1, 24), (2, 2, 37), (1, 3, 20), (7, 1, 28)])
@pytest.mark.parametrize("window", [(7, 7), (6, 8), (9, 5)])
def test_parts_around_the_middle_are_not_sliced(window: tuple[int, int], stride: int, dilation: int, size: int) -> None:
    dilations = f"1,{dilation},{dilation},1"
    model = graph(depthwise(stride, "SAME", dilations), (1, size, size + 3, 5), w=floats(*window, 5, 1), bias=floats(5))
    codes = check(model, 1, size, size + 3, 5)
    sliced = stride == 7 and window != (9, 5)  # windows that hardly reach beyond the image are moved by a pixel at most
    assert (codes.count("SLICE") > 0) == sliced
    assert codes.count("DEPTHWISE_CONV_2D") > 1


def test_windows_that_are_computed_or_far_too_large_stay() -> None:
    assert parts_of(operation(7, 7, constant=False)) == []
    assert parts_of(operation(200, 200)) == []
