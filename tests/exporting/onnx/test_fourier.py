"""Fourier transforms and what is computed with complex numbers, beside NumPy's, which are TensorFlow's to 2e-6."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_runs import exported, run
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
