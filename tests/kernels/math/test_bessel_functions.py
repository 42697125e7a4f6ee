"""Bessel functions and their like against TensorFlow's, over small, middling and large arguments."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.cases import Case, cases
from pocketgraph.graph import DType, Node
from pocketgraph.kernels import evaluate

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
ZEROS = ("BesselJ0", "BesselJ1", "BesselY0", "BesselY1", "FresnelCos", "FresnelSin", "Spence")
"""Functions that have zeros, or waves that large arguments shift: units of the larger of 1 and the result."""
UNITS = {"FresnelCos": 32, "FresnelSin": 32}
"""In units; the others 8. TensorFlow's polynomials for these two are that coarse."""


@pytest.mark.parametrize("case", [pytest.param(case, id=case.node.name) for case in cases("bessel")])
def test_as_tensorflow_has_them(case: Case) -> None:
    (expected,), (actual,) = case.expected, evaluate(case.node, case.inputs)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    mine, theirs = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(mine[~finite], theirs[~finite])
    size = np.maximum(np.abs(theirs[finite]), 1.0 if case.node.op in ZEROS else 1.2e-38)
    off = np.abs(mine[finite] - theirs[finite]) / (EPSILON[expected.dtype.name] * size)
    tiny = np.abs(theirs[finite]) < (7e-5 if expected.dtype == np.float16 else 1.2e-38)  # taken for 0 by TensorFlow
    assert np.all((off <= UNITS.get(case.node.op, 8)) | tiny), f"{off.max():.1f} units at {case.inputs[0]}"


@pytest.mark.parametrize(
    ("op", "x", "value"),
    [  # Abramowitz and Stegun, Handbook of Mathematical Functions, tables 5.1, 7.7, 9.1, 9.8 and 27.7
        ("BesselJ0", 2.0, 0.223890779141236),
        ("BesselJ1", 5.0, -0.327579137591465),
        ("BesselY0", 1.0, 0.088256964215677),
        ("BesselI0e", 5.0, 0.183540812609328),
        ("BesselK1e", 5.0, 0.600273858788313),
        ("Expint", 1.0, 1.895117816355937),
        ("FresnelCos", 1.0, 0.779893400376823),
        ("Spence", 0.5, 0.582240526465012),
    ],
)
def test_values_of_tables(op: str, x: float, value: float) -> None:
    node = next(case.node for case in cases("bessel") if case.node.op == op)
    assert evaluate(node, [np.array(x)])[0] == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("BesselI0", [np.inf, np.inf]), ("BesselI1", [np.inf, -np.inf]), ("BesselK0e", [1.25331414e-154, np.inf]),
        ("FresnelCos", [0.5, -0.5]), ("FresnelSin", [0.5, -0.5]),
        ("BesselI0e", [3.98942280e-155, 3.98942280e-155]), ("BesselI1e", [3.98942280e-155, -3.98942280e-155]),
    ],
)  # fmt: skip
def test_arguments_whose_double_is_infinite(op: str, expected: list[float]) -> None:
    """TensorFlow 2.21's numbers."""
    (found,) = evaluate(Node("n", op, (), {"T": DType.named("double")}), (np.array([1e308, -1e308]),))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_j1_of_negative_zero() -> None:
    """TensorFlow 2.21's sign."""
    (found,) = evaluate(Node("n", "BesselJ1", (), {"T": DType.named("float")}), (np.float32([0.0, -0.0]),))
    assert np.signbit(found).tolist() == [False, True]
