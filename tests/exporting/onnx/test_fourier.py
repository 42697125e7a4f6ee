"""Fourier transforms and what is computed with complex numbers, beside NumPy's, which are TensorFlow's to 2e-6."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_runs import exported, run
from pocketgraph.exporting.onnx.converter_table import BY_PARTS
from pocketgraph.exporting.programs import LackingError

X = np.random.default_rng(3).normal(size=(2, 3, 8)).astype(np.float32)
HEAD = "x = Placeholder(dtype=float, shape=[2,?,8])\nn = Const(int32 [8])\n"


def numbers(text: str, opset: int, fetch: str = "y") -> np.ndarray:
    content = exported(HEAD + text, [fetch], opset=opset)
    return run(content, {"x": X})[0]


@pytest.mark.parametrize("opset", [17, 20])
def test_spectra_of_real_numbers(opset: int) -> None:
    spectrum = np.fft.rfft(X)
    made = "s = RFFT(x, n, Treal=float, Tcomplex=complex64)\n"
    for line, wanted in (
        ("y = ComplexAbs(s, T=complex64, Tout=float)", abs(spectrum)),
        ("y = Imag(s, T=complex64, Tout=float)", spectrum.imag),
        ("y = Angle(s, T=complex64, Tout=float)", np.angle(spectrum)),
        ("p = Mul(s, s, T=complex64)\ny = Real(p, T=complex64, Tout=float)", (spectrum * spectrum).real),
        ("y = IRFFT(s, n, Treal=float, Tcomplex=complex64)", X),
        ("k = Const(int32 [7])\ny = IRFFT(s, k, Treal=float, Tcomplex=complex64)", np.fft.irfft(spectrum, 7)),
    ):
        np.testing.assert_allclose(numbers(made + line, opset), wanted, atol=5e-6)


def test_complex_numbers_of_both_parts_and_back() -> None:
    whole = X * 1j - X
    made = """
        m = Neg(x, T=float)
        c = Complex(m, x, T=float, Tout=complex64)
        s = FFT(c, Tcomplex=complex64)
        order = Const(int32 [2, 0, 1])
        t = Transpose(s, order, T=complex64, Tperm=int32)
        i = IFFT(s, Tcomplex=complex64)
        y = Real(t, T=complex64, Tout=float)
        z = Cast(i, SrcT=complex64, DstT=float)
    """.replace("?", "3")
    fixed = HEAD.replace("?", "3")
    spectrum, back = (run(exported(fixed + made, [fetch], opset=17), {"x": X})[0] for fetch in ("y", "z"))
    np.testing.assert_allclose(spectrum, np.fft.fft(whole).real.transpose(2, 0, 1), atol=5e-6)
    np.testing.assert_allclose(back, -X, atol=5e-6)


S = np.fft.rfft(X)  # [2, 3, 5]
BY_PART = {
    "y = Add(s, s, T=complex64)": S + S,
    "y = AddN(s, s, s, T=complex64, N=3)": 3 * S,
    "y = AddV2(s, s, T=complex64)": S + S,
    "y = ConcatV2(s, s, one, T=complex64, N=2, Tidx=int32)": np.concatenate([S, S], 1),
    "y = Conj(s, T=complex64)": S.conj(),
    "y = ExpandDims(s, one, T=complex64, Tdim=int32)": S[:, None],
    "y = GatherV2(s, order, one, Tparams=complex64, Tindices=int32, Taxis=int32)": S[:, [2, 0, 1]],
    "y = Identity(s, T=complex64)": S,
    "y = Mul(s, t, T=complex64)": S * (1 + 2j),
    "y = Neg(s, T=complex64)": -S,
    "y = Pack(s, s, T=complex64, N=2, axis=-1)": np.stack([S, S], -1),
    "y = Pad(s, borders, T=complex64, Tpaddings=int32)": np.pad(S, ((0, 0), (1, 0), (0, 2))),
    "y = Reshape(s, sizes, T=complex64, Tshape=int32)": S.reshape(2, 15),
    "y = Slice(s, begin, size, T=complex64, Index=int32)": S[:, 1:2, 2:],
    "p = Split(one, s, T=complex64, num_split=3)\ny = Identity(p:1, T=complex64)": S[:, 1:2],
    "p = SplitV(s, parts, one, T=complex64, Tlen=int32, num_split=2)\ny = Neg(p:1, T=complex64)": -S[:, 1:],
    "p = Slice(s, begin, size, T=complex64, Index=int32)\ny = Squeeze(p, T=complex64, squeeze_dims=[1])": S[:, 1, 2:],
    "y = StridedSlice(s, begin, end, steps, T=complex64, Index=int32, begin_mask=1, end_mask=3, shrink_axis_mask=4)": (
        S[:, 1::2, 2]
    ),
    "y = Sub(s, t, T=complex64)": S - (1 + 2j),
    "y = Transpose(s, order, T=complex64, Tperm=int32)": S.transpose(2, 0, 1),
    "p = Unpack(s, T=complex64, num=3, axis=1)\ny = Sub(p:2, p, T=complex64)": S[:, 2] - S[:, 0],
    "y = Cast(x, SrcT=float, DstT=complex64)": X,
    "y = RFFT(x, nine, Treal=float, Tcomplex=complex64)": np.fft.rfft(X, 9),
    "y = RFFT(x, one1, Treal=float, Tcomplex=complex64)": np.fft.rfft(X, 1),
    "p = Reshape(x, all, T=float, Tshape=int32)\ny = RFFT(p, n, Treal=float, Tcomplex=complex64)": np.fft.rfft(
        X.reshape(-1), 8
    ),
    "p = Reshape(s, all, T=complex64, Tshape=int32)\ny = IFFT(p, Tcomplex=complex64)": np.fft.ifft(S.reshape(-1)),
}
"""What is computed of the spectrum S, and NumPy's answer."""


@pytest.mark.parametrize("line", BY_PART)
def test_real_and_imaginary_parts(line: str) -> None:
    made = f"""
        s = RFFT(x, n, Treal=float, Tcomplex=complex64)
        r = Const(float 1)
        i = Const(float 2)
        t = Complex(r, i, T=float, Tout=complex64)
        one = Const(int32 1)
        nine = Const(int32 [9])
        one1 = Const(int32 [1])
        all = Const(int32 [-1])
        sizes = Const(int32 [2, 15])
        parts = Const(int32 [1, -1])
        begin = Const(int32 [0, 1, 2])
        size = Const(int32 [-1, 1, -1])
        end = Const(int32 [0, 0, 3])
        steps = Const(int32 [1, 2, 1])
        order = Const(int32 [2, 0, 1])
        borders = Const(int32 [[0, 0], [1, 0], [0, 2]])
        {line}
        re = Real(y, T=complex64, Tout=float)
        im = Imag(y, T=complex64, Tout=float)
    """
    content = exported(HEAD.replace("?", "3") + made, ["re", "im"], opset=17)
    real, imaginary = run(content, {"x": X})
    np.testing.assert_allclose(real + 1j * imaginary, BY_PART[line], atol=5e-6)


def test_all_that_is_done_to_both_parts_is_in_the_table() -> None:
    assert all(any(f" = {op}(" in line for line in BY_PART) for op in BY_PARTS)


def test_what_is_not_exported_is_no_hindrance() -> None:
    made = "s = RFFT(x, n, Treal=float, Tcomplex=complex64)\nz = Exp(s, T=complex64)\n"
    np.testing.assert_allclose(numbers(f"{made}y = ComplexAbs(s, T=complex64, Tout=float)", 17), abs(S), atol=5e-6)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("y = Exp(s, T=complex64)", "no complex numbers, as 'y' would"),
        ("y = Identity(s, T=complex64)", "take its real and imaginary part"),
    ],
)
def test_complex_numbers_that_onnx_has_no_operators_for_are_refused(line: str, reason: str) -> None:
    with pytest.raises(LackingError, match=reason):
        numbers(f"s = RFFT(x, n, Treal=float, Tcomplex=complex64)\n{line}", 17)
    with pytest.raises(LackingError, match="from opset 17 on"):
        numbers("s = RFFT(x, n, Treal=float, Tcomplex=complex64)\ny = Real(s, T=complex64, Tout=float)", 16)
