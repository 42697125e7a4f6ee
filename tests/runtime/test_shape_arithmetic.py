"""Shapes of what layers make, computed of those of what is fed: as the reference engine's, for all sizes."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgraph.graph import Shape, canonical
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer
from pocketgraph.kernels.shapes.infer import postorder
from pocketgraph.runtime import Session
from pocketgraph.runtime.planning.rewriting.shape_arithmetic import with_shape_arithmetic

PICTURE = """
    x = Placeholder(dtype=float, shape=[?, ?, ?, 3])
    k = Const(float[3, 2, 3, 5] 0.1)
    d = Const(float[3, 3, 3, 2] 0.1)
    v = Const(float[3] 0.5)
    axes = Const(int32[2] [1, 2])
    sides = Const(int32[2] [1, 2])
    zero = Const(int32 0)
    first = Const(int32[4] [0, 1, 0, 0])
    counts = Const(int32[4] [-1, 2, -1, 1])
"""
LAYERS = {
    "same": 'h = Conv2D(x, k, T=float, strides=[1, 2, 3, 1], padding="SAME")',
    "valid": 'h = Conv2D(x, k, T=float, strides=[1, 2, 1, 1], padding="VALID")',
    "dilated": 'h = Conv2D(x, k, T=float, strides=[1, 1, 1, 1], dilations=[1, 2, 3, 1], padding="VALID")',
    "depthwise": 'h = DepthwiseConv2dNative(x, d, T=float, strides=[1, 2, 2, 1], padding="VALID")',
    "pool": 'h = MaxPool(x, T=float, ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding="VALID")',
    "pool twice": 'p = AvgPool(x, T=float, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")\n'
    'h = MaxPool(p, T=float, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")',
    "repeated": "m = Mean(x, axes, T=float, Tidx=int32, keep_dims=true)\n c = SquaredDifference(x, m, T=float)\n"
    "h = Mul(c, v, T=float)",
    "larger": "c = Const(float[1, 4, 9, 1] 1)\n m = Mean(x, axes, T=float, Tidx=int32, keep_dims=true)\n"
    "h = Add(c, m, T=float)",
    "padded": "b = Const(int32[4, 2] [[0, 0], [1, 2], [3, 0], [0, 1]])\n h = Pad(x, b, T=float, Tpaddings=int32)",
    "turned": "o = Const(int32[4] [0, 3, 1, 2])\n t = Transpose(x, o, T=float, Tperm=int32)\n"
    "e = Const(int32 -2)\n h = ExpandDims(t, e, T=float, Tdim=int32)",
    "resized": "s = Shape(x, T=float, out_type=int32)\n one = Const(int32[1] [1])\n three = Const(int32[1] [3])\n"
    "n = StridedSlice(s, one, three, one, T=int32, Index=int32)\n m = Mul(n, sides, T=int32)\n"
    "h = ResizeNearestNeighbor(x, m, T=float)",
    "tiled": "m = Const(int32[4] [1, 3, 2, 1])\n h = Tile(x, m, T=float, Tmultiples=int32)",
    "joined": "a = Const(int32 -2)\n r = Relu(x, T=float)\n h = ConcatV2(x, r, x, a, T=float, N=3, Tidx=int32)",
    "sliced": "h = Slice(x, first, counts, T=float, Index=int32)",
    "reshaped": "s = Shape(x, T=float, out_type=int64)\n o = Const(int64[4] [3, 1, 1, 0])\n z = Const(int32 0)\n"
    "q = Const(int32[4] [3, 2, 1, 0])\n"
    "g = GatherV2(s, q, z, Tparams=int64, Tindices=int32, Taxis=int32, batch_dims=0)\n"
    "h = Reshape(x, g, T=float, Tshape=int64)",
    "transposed": "s = Const(int32[4] [2, 9, 13, 3])\n w = Const(float[3, 3, 3, 3] 0.1)\n"
    "p = Const(int32[4, 2] [[0, 0], [0, 0], [0, 0], [0, 0]])\n r = Pad(x, p, T=float, Tpaddings=int32)\n"
    "y0 = Shape(r, T=float, out_type=int32)\n two = Const(int32[4] [1, 2, 2, 1])\n m = Mul(y0, two, T=int32)\n"
    'h = Conv2DBackpropInput(m, w, r, T=float, strides=[1, 2, 2, 1], padding="SAME")',
}
SIZES = [(2, 9, 11, 3), (3, 8, 7, 3), (2, 13, 6, 3), (5, 10, 10, 3)]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("out_type", ["int32", "int64"])
def test_shapes_are_those_that_layers_make(layer: str, out_type: str) -> None:
    graph = parse(f"{PICTURE}\n{LAYERS[layer]}\ny = Shape(h, T=float, out_type={out_type})")
    nodes = postorder(graph, ["y"])
    fixed = infer(graph, {"x:0": (FLOAT, Shape(SIZES[0]))})
    found = with_shape_arithmetic(graph, nodes, ["x:0"], fixed)
    left = [node for node in postorder(found, ["y"]) if node.op == "Shape"]
    assert all(canonical(node.inputs[0]) == "x:0" for node in left)
    with Session(graph, engine="reference") as whole, Session(found, engine="reference") as arithmetic:
        for each in SIZES:
            fed = {"x": np.zeros(each, np.float32)}
            (expected,), (computed,) = (session.run(["y"], fed) for session in (whole, arithmetic))
            assert computed.tolist() == expected.tolist()
            assert computed.dtype == expected.dtype


@pytest.mark.parametrize(
    "layer",
    [
        "flat = Const(int32[2] [-1, 3])\n h = Reshape(x, flat, T=float, Tshape=int32)",
        "h = Cumsum(x, zero, T=float, Tidx=int32)",
        "w = Where(x, T=float)\n h = Cast(w, SrcT=int64, DstT=float)",
    ],
)
def test_other_shapes_stay(layer: str) -> None:
    graph = parse(f"{PICTURE}\n{layer}\ny = Shape(h, T=float, out_type=int32)")
    fixed = infer(graph, {"x:0": (FLOAT, Shape(SIZES[0]))})
    assert with_shape_arithmetic(graph, postorder(graph, ["y"]), ["x:0"], fixed) is graph
