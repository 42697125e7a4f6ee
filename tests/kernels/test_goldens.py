"""Every kernel against what TensorFlow computed for the same node: types, attributes, broadcasting, NaN, empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.cases import Case, cases
from pocketgraph.kernels import evaluate

GROUPS = (
    "elementwise",
    "binary",
    "reductions",
    "arrays",
    "networks",
    "images",
    "quantization",
    "quantized",
    "sequences",
    "records",
)

ELEMENTWISE = ("elementwise", "binary")
ULPS = 6
"""Float results may differ by this many units in the last place: of each element in element-wise ops, of the largest
element where sums are taken."""

LOOSER = {
    # TensorFlow sums 120,000 floats in float32 where ours are summed in double
    "Sum": 32,
    # sine and logarithm of Eigen and NumPy, magnified near zero
    "TruncatedNormal": 16, "RandomStandardNormal": 16, "StatelessTruncatedNormal": 16, "StatelessRandomNormal": 16,
    # series and continued fractions
    "Igamma": 32, "Igammac": 64, "Zeta": 32, "Polygamma": 32, "Betainc": 64, "Lgamma": 64, "Digamma": 128,
    "Erfinv": 32, "Ndtri": 32,
    "Mfcc": 2000, "AudioSpectrogram": 200,
}  # fmt: skip
UNDEFINED = {"FusedBatchNorm": 3, "FusedBatchNormV2": 3, "FusedBatchNormV3": 3}
"""Outputs from this one on hold whatever memory held when the op does not train."""

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}
DENORMAL = {"float16": 7e-5}
"""What TensorFlow flushes to zero and NumPy does not, by dtype."""


def assert_same(case: Case, actual: Any, expected: np.ndarray[Any, Any], by_element: bool) -> None:
    assert isinstance(actual, np.ndarray), f"{type(actual)} is no array"
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if expected.dtype.kind in "OiubSU":
        np.testing.assert_array_equal(actual, expected)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    mine, theirs = actual.astype(wide), expected.astype(wide)
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(mine[~finite], theirs[~finite])
    assert np.isfinite(mine[finite]).all()
    if not finite.any():
        return
    size = np.abs(theirs[finite])
    unit = EPSILON.get(expected.dtype.name, 2.0**-52) * (size if by_element else size.max())
    allowed = LOOSER.get(case.node.op, ULPS) * unit + DENORMAL.get(expected.dtype.name, 1.2e-38)
    difference = np.abs(mine[finite] - theirs[finite])
    worst = int(np.argmax(difference - allowed))
    assert (difference <= allowed).all(), f"{mine[finite][worst]!r} instead of {theirs[finite][worst]!r}"


@pytest.mark.parametrize(
    ("group", "case"),
    [pytest.param(group, case, id=f"{group}-{case.node.name}") for group in GROUPS for case in cases(group)],
)
def test_a_kernel_gives_what_tensorflow_gives(group: str, case: Case) -> None:
    results = evaluate(case.node, case.inputs)
    assert len(results) == len(case.expected)
    count = len(results)
    if case.node.op in UNDEFINED and not case.node.attrs["is_training"]:
        count = UNDEFINED[case.node.op]
    for actual, expected in zip(results[:count], case.expected[:count], strict=True):
        assert_same(case, actual, expected, by_element=group in ELEMENTWISE and case.node.op not in LOOSER)


@pytest.mark.parametrize("group", GROUPS)
def test_kernels_leave_their_inputs_alone(group: str) -> None:
    for case in cases(group):
        before = [value.copy() for value in case.inputs]
        evaluate(case.node, case.inputs)
        for value, copy in zip(case.inputs, before, strict=True):
            np.testing.assert_array_equal(value, copy)
