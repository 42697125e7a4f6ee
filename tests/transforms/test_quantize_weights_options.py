"""quantize_weights with num_bits, per_channel and symmetric: error bounds, exact zeros, and graphs that run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pocketgraph.errors import TransformError
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.shape import Shape
from pocketgraph.runtime import Session
from pocketgraph.transforms import transform
from pocketgraph.transforms.parts.integer_weights import channel_axes

RNG = np.random.default_rng(3)


def weights(*shape: int) -> np.ndarray[Any, Any]:
    """Values whose ranges differ from channel to channel (along the last dimension) by factors."""
    return (RNG.uniform(-1, 2, shape) * 2.0 ** -np.arange(shape[-1])).astype(np.float32)


def restored(values: np.ndarray[Any, Any], options: str, reader: Node | None = None) -> np.ndarray[Any, Any]:
    """The weights as the quantized graph gives them."""
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape(None)})
    reader = reader or Node("y", "MatMul", ("x", "w"), {"T": FLOAT})
    graph = Graph([const("w", values), x, reader], inputs=["x"], outputs=["y"])
    after = transform(graph, f"quantize_weights(minimum_size=1, {options})")
    assert after["w"].op in ("Dequantize", "Mul")
    result: np.ndarray[Any, Any] = Session(after, engine="reference").run("w")[0]
    assert result.dtype == np.float32
    return result


def step(values: np.ndarray[Any, Any], bits: int, symmetric: bool, axis: int | None = None) -> Any:
    low, high = np.minimum(values.min(axis), 0), np.maximum(values.max(axis), 0)
    return np.maximum(-low, high) / (2 ** (bits - 1) - 1) if symmetric else (high - low) / (2**bits - 1)


@pytest.mark.parametrize("bits", [2, 4, 7, 8, 12, 16])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
def test_no_weight_is_off_by_more_than_half_a_step(bits: int, symmetric: bool, per_channel: bool) -> None:
    values = weights(40, 6)
    values[3] = 0
    options = f"num_bits={bits}, symmetric={str(symmetric).lower()}, per_channel={str(per_channel).lower()}"
    found = restored(values, options)
    steps = step(values, bits, symmetric, 0 if per_channel else None)
    if (bits, symmetric, per_channel) != (8, False, False):  # that is the original's formula
        assert np.all(np.abs(found - values) <= steps * 0.5001 + 1e-6)
        assert not found[3].any()
    columns = [found[:, i] for i in range(6)] if per_channel else [found]
    assert all(len(np.unique(column)) <= 2**bits for column in columns)


def test_a_range_for_each_channel_is_more_exact() -> None:
    values = weights(64, 8)
    one = np.abs(restored(values, "symmetric=true") - values)
    many = np.abs(restored(values, "symmetric=true, per_channel=true") - values)
    assert many[:, -1].max() < one[:, -1].max() / 20


@example([0.0, 8.407790785948902e-45], 4, False, False)  # the step is no float32
@example([5.877639122255872e16, 1.1529214358873702e18, -1.152921504606847e18], 8, False, False)
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=2, max_size=20),
    st.integers(2, 16), st.booleans(), st.booleans(),
)  # fmt: skip
def test_any_values(listed: list[float], bits: int, symmetric: bool, per_channel: bool) -> None:
    values = np.array(listed, np.float32)[:, np.newaxis]
    options = f"num_bits={bits}, symmetric={str(symmetric).lower()}, per_channel={str(per_channel).lower()}"
    found = restored(values, options)
    assert np.isfinite(found).all()
    is_original = (bits, symmetric, per_channel) == (8, False, False)  # see test_a_zero_between_two_codes
    most = 1.51 if is_original else 1.01
    assert np.all(np.abs(found - values) <= most * step(values, bits, symmetric) + 1e-30)


def test_a_zero_between_two_codes() -> None:
    """The original rounds zero's code in double to write and in float to read; numbers of TensorFlow 1.15.5."""
    values = np.array([[5.877639122255872e16], [1.1529214358873702e18], [-1.152921504606847e18]], np.float32)
    expected = np.array([[7.2340169e16], [1.1574427e18], [-1.1484003e18]], np.float32)
    np.testing.assert_array_equal(restored(values, "num_bits=8"), expected)


@pytest.mark.parametrize(
    ("op", "shape", "attrs", "axes"),
    [
        ("Conv2D", (3, 3, 4, 5), {}, (3,)),
        ("DepthwiseConv2dNative", (3, 3, 4, 2), {}, (2, 3)),
        ("MatMul", (4, 5), {}, (1,)),
        ("MatMul", (5, 4), {"transpose_b": True}, (0,)),
        ("Relu", (4, 5), {}, ()),
    ],
)
def test_the_channels_are_those_of_who_reads(op: str, shape: Any, attrs: Any, axes: Any) -> None:
    inputs = ("x", "read") if op != "Relu" else ("read",)
    read = Node("read", "Identity", ("w",), {"T": FLOAT})
    graph = Graph([const("w", weights(*shape)), read, Node("y", op, inputs, {"T": FLOAT, **attrs})])
    assert channel_axes(graph, "w", len(shape)) == axes
    other = Node("z", "Relu", ("w",), {"T": FLOAT})
    assert channel_axes(graph.replace([*graph, other]), "w", len(shape)) == ()


@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("options", ["per_channel=true, symmetric=true", "per_channel=true", "symmetric=true"])
def test_a_convolution_runs_with_them(options: str, engine: str | None) -> None:
    x = Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((1, 8, 8, 4))})
    attrs = {"T": FLOAT, "strides": (1, 1, 1, 1), "padding": b"SAME"}
    graph = Graph([x, const("w", weights(3, 3, 4, 6)), Node("y", "Conv2D", ("x", "w"), attrs)], outputs=["y"])
    after = transform(graph, f"quantize_weights(minimum_size=1, {options})")
    feed = {"x": RNG.uniform(-1, 1, (1, 8, 8, 4)).astype(np.float32)}
    expected, found = (Session(g, engine=engine).run("y", feed)[0] for g in (graph, after))
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


@pytest.mark.parametrize("bits", [1, 17, 0, -8])
def test_bits_out_of_range_are_an_error(bits: int) -> None:
    with pytest.raises(TransformError, match=f"num_bits must be from 2 to 16, not {bits}"):
        transform(Graph(), f"quantize_weights(num_bits={bits})")
