"""Zeros around an image are added by the convolution or max pool that reads them."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_runs import assert_same, operators

HEAD = """
    x = Placeholder(dtype=float, shape=[2,9,10,3])
    w0 = Const(float[3,3,3,4] 0.05)
    w1 = Const(float[3,3,4,4] 0.04)
    p = Const(int32 [[0,0],[1,2],[3,0],[0,0]])
    c = Conv2D(x, w0, T=float, strides=[1,1,1,1], padding="SAME")
"""
CONV = 'Conv2D({}, w1, T=float, strides=[1,2,2,1], padding="{}")'
POOL = 'MaxPool({}, T=float, ksize=[1,{},{},1], strides=[1,2,2,1], padding="VALID")'


@pytest.mark.parametrize(
    ("text", "pads"),
    [
        ("q = Pad(x, p, T=float, Tpaddings=int32)\n    y = " + CONV.format("q", "VALID").replace("w1", "w0"), 0),
        ("r = Relu(c, T=float)\n    q = Pad(r, p, T=float, Tpaddings=int32)\n    y = " + CONV.format("q", "SAME"), 0),
        ("q = Pad(c, p, T=float, Tpaddings=int32)\n    y = Conv2D(q, w1, T=float, strides=[1,1,1,1], "
         'dilations=[1,2,2,1], padding="VALID")', 0),
        ("r = Relu(c, T=float)\n    q = Pad(r, p, T=float, Tpaddings=int32)\n    y = " + POOL.format("q", 4, 4), 0),
        ("r = Relu6(c, T=float)\n    q = Pad(r, p, T=float, Tpaddings=int32)\n    y = " + POOL.format("q", 4, 4), 0),
        # borders that are as wide as the window, or the largest there
        ("r = Relu(c, T=float)\n    q = Pad(r, p, T=float, Tpaddings=int32)\n    y = " + POOL.format("q", 3, 3), 1),
        ("q = Pad(c, p, T=float, Tpaddings=int32)\n    y = " + POOL.format("q", 4, 4), 1),
        # read by others, of other numbers, of channels
        ("q = Pad(c, p, T=float, Tpaddings=int32)\n    z = " + CONV.format("q", "VALID")
         + "\n    s = Const(int32 [1, 2])\n    m = Mean(q, s, T=float, Tidx=int32, keep_dims=true)\n"
         "    y = Add(z, m, T=float)", 1),
        ("v = Const(float 0.5)\n    q = PadV2(c, p, v, T=float, Tpaddings=int32)\n    y = "
         + CONV.format("q", "VALID"), 1),
        ("n = Const(int32 [[0,0],[0,0],[0,0],[1,0]])\n    q = Pad(x, n, T=float, Tpaddings=int32)\n    y = "
         + CONV.format("q", "VALID"), 1),
        ('q = MirrorPad(c, p, T=float, Tpaddings=int32, mode="REFLECT")\n    y = ' + CONV.format("q", "VALID"), 1),
    ],
)  # fmt: skip
def test_zeros_around_an_image(text: str, pads: int) -> None:
    image = np.random.default_rng(5).normal(size=(2, 9, 10, 3)).astype(np.float32)
    proto = assert_same(HEAD + f"    {text}\n", {"x": image})
    assert operators(proto)["Pad"] == pads
