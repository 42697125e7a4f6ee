"""Convolutions and pools over three axes on LiteRT, against the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from litert.single_ops import run_node
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.registry import evaluate
from support import assert_close

RNG = np.random.default_rng(0)


def values(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def agrees(node: Node, inputs: tuple[Array, ...]) -> None:
    outcome = run_node(node, inputs, 1)
    assert not outcome.reason
    (expected,) = evaluate(node, list(inputs))
    assert outcome.outputs[0].shape == expected.shape
    assert_close(outcome.outputs[0], expected, 1e-5)


def turned(array: Array, layout: str) -> Array:
    return array if layout == "NDHWC" else np.ascontiguousarray(np.moveaxis(array, -1, 1))


def five(sizes: tuple[int, int, int], layout: str) -> tuple[int, ...]:
    return (1, *sizes, 1) if layout == "NDHWC" else (1, 1, *sizes)


STEPS = [
    ((1, 1, 1), (3, 3, 3)),
    ((2, 1, 2), (3, 2, 5)),
    ((1, 2, 1), (1, 3, 3)),
    ((3, 2, 2), (2, 1, 1)),
    ((2, 2, 2), (2, 2, 2)),
]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize(("strides", "window"), STEPS)
def test_convolutions(strides: tuple[int, int, int], window: tuple[int, int, int], layout: str, padding: str) -> None:
    attrs = {"T": FLOAT, "strides": five(strides, layout), "padding": padding.encode(), "data_format": layout.encode()}
    source = values(2, 5, 6, 7, 3)
    agrees(Node("c", "Conv3D", ("a", "b"), attrs), (turned(source, layout), values(*window, 3, 4)))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_dilated_convolution(padding: str) -> None:
    attrs = {"T": FLOAT, "strides": (1,) * 5, "padding": padding.encode(), "dilations": (1, 2, 1, 2, 1)}
    agrees(Node("c", "Conv3D", ("a", "b"), attrs), (values(1, 7, 5, 8, 2), values(3, 2, 3, 2, 3)))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("strides", "window"), STEPS)
def test_transposed_convolutions(strides: tuple[int, int, int], window: tuple[int, int, int], padding: str) -> None:
    sizes = (5, 6, 7)
    given = [
        -(-size // step) if padding == "SAME" else (size - reach) // step + 1
        for size, step, reach in zip(sizes, strides, window, strict=True)
    ]
    attrs = {"T": FLOAT, "strides": five(strides, "NDHWC"), "padding": padding.encode()}
    output = np.array([2, *sizes, 4], np.int32)
    agrees(
        Node("t", "Conv3DBackpropInputV2", ("a", "b", "c"), attrs),
        (output, values(*window, 4, 3), values(2, *given, 3)),
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("op", ["MaxPool3D", "AvgPool3D"])
@pytest.mark.parametrize(("strides", "window"), STEPS)
def test_pools(strides: tuple[int, int, int], window: tuple[int, int, int], op: str, padding: str) -> None:
    for layout in ("NDHWC", "NCDHW"):
        attrs = {
            "T": FLOAT, "ksize": five(window, layout), "strides": five(strides, layout), "padding": padding.encode(),
            "data_format": layout.encode(),
        }  # fmt: skip
        agrees(Node("p", op, ("a",), attrs), (turned(values(2, 5, 6, 7, 3), layout),))


@pytest.mark.parametrize("strides", [(2, 1, 1, 1, 1), (1, 1, 1, 1, 2)])
def test_strides_over_batch_or_channels_stay_with_the_reference_engine(strides: tuple[int, ...]) -> None:
    attrs = {"T": FLOAT, "ksize": (1, 2, 2, 2, 1), "strides": strides, "padding": b"SAME"}
    outcome = run_node(Node("p", "MaxPool3D", ("a",), attrs), (values(2, 4, 4, 4, 2),), 1)
    assert "over batch or channels" in outcome.reason


@pytest.mark.parametrize(
    ("block", "borders"),
    [((2, 2, 2), ((1, 2), (0, 2), (2, 1))), ((2, 1, 3), ((0, 1), (1, 0), (1, 1))), ((3,), ((2, 2),))],
)
def test_space_to_batch_and_back(block: tuple[int, ...], borders: tuple[tuple[int, int], ...]) -> None:
    amounts = np.array(borders, np.int32)
    attrs = {"T": FLOAT, "Tblock_shape": INT32, "Tpaddings": INT32, "Tcrops": INT32}
    sizes = np.array(block, np.int32)
    agrees(Node("s", "SpaceToBatchND", ("a", "b", "c"), attrs), (values(2, 5, 6, 7, 3), sizes, amounts))
    batches = values(2 * int(sizes.prod()), 4, 5, 4, 3)
    agrees(Node("s", "BatchToSpaceND", ("a", "b", "c"), attrs), (batches, sizes, amounts))


@pytest.mark.parametrize("op", ["Pad", "PadV2"])
def test_borders_around_volumes(op: str) -> None:
    attrs = {"T": FLOAT, "Tpaddings": INT32}
    pairs = np.array([[0, 0], [1, 0], [2, 1], [0, 3], [0, 0]], np.int32)
    fill = (np.float32(-1.5),) if op == "PadV2" else ()
    agrees(Node("p", op, ("a", "b", "c")[: 2 + len(fill)], attrs), (values(2, 3, 4, 5, 3), pairs, *fill))
