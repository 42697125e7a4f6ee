"""Static shapes of Fourier transforms from and to real numbers."""

from __future__ import annotations

import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer


@pytest.mark.parametrize(
    ("op", "shape", "lengths", "expected"),
    [
        ("RFFT", "3, 400", "[512]", "[3,257]"),
        ("RFFT", "?, 40", "[41]", "[?,21]"),
        ("RFFT2D", "2, 8, 9", "[8, 16]", "[2,8,9]"),
        ("RFFT3D", "8, 9, 10", "[4, 4, 6]", "[4,4,4]"),
        ("IRFFT", "3, 257", "[512]", "[3,512]"),
        ("IRFFT2D", "2, 8, 9", "[8, 16]", "[2,8,16]"),
    ],
)
def test_the_last_axes_have_the_lengths_asked_for(op: str, shape: str, lengths: str, expected: str) -> None:
    kind = "complex64" if op.startswith("I") else "float"
    graph = parse(f"""
        x = Placeholder(dtype={kind}, shape=[{shape}])
        n = Const(int32 {lengths})
        y = {op}(x, n)
    """)
    assert str(infer(graph).shape("y:0")) == expected


def test_lengths_that_are_fed_leave_the_axes_open() -> None:
    graph = parse(
        "x = Placeholder(dtype=float, shape=[3, 400])\nn = Placeholder(dtype=int32, shape=[1])\ny = RFFT(x, n)"
    )
    assert str(infer(graph).shape("y:0")) == "[3,?]"
