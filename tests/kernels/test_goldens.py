"""Every kernel against what TensorFlow computed for the same node: types, attributes, broadcasting, NaN, empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.cases import FAMILIES, Case, cases
from pocketgraph.kernels import evaluate, registry

ELEMENTWISE = ("elementwise", "binary")  # lists of cases
ULPS = 2
"""Float results may differ by this many units in the last place: of each element in element-wise ops, of the largest
element where sums are taken."""

LOOSER = {
    # TensorFlow sums 120,000 floats in float32 where ours are summed in double and rounded once
    "Sum": 20,
    # sine and logarithm of Eigen and NumPy, magnified near zero
    "TruncatedNormal": 12, "RandomStandardNormal": 4, "StatelessTruncatedNormal": 12,
    # series and continued fractions that TensorFlow cuts off earlier
    "Igammac": 4, "Zeta": 3, "Betainc": 3, "Lgamma": 32, "Digamma": 32,
    # sums in float32 in another order: over a picture's area, over steps, over a window
    "ResizeArea": 4, "BlockLSTM": 3, "BlockLSTMV2": 3, "BlockLSTMGradV2": 3, "LRNGrad": 3,
    "DepthwiseConv2dNativeBackpropFilter": 3,
    "CTCBeamSearchDecoder": 4,
    # logarithms of some ten units added in float32, where ours are added in double
    "CTCLoss": 32, "ResizeBicubicGrad": 4,
    # sine and logarithm once more
    "StatelessRandomNormalV2": 4, "StatelessTruncatedNormalV2": 12,
    # a power of a large number by its logarithm, in float32
    "LRN": 3,
    # a solution by decomposition, magnified by the matrix's condition
    "MatrixSolveLs": 16,
    # a factorisation, and functions of matrices, in steps that TensorFlow rounds to the type
    "Lu": 16, "MatrixExponential": 64, "MatrixSquareRoot": 32, "MatrixLogarithm": 32,
    # series of a hundred terms, which TensorFlow differentiates term by term
    "IgammaGradA": 32, "RandomGammaGrad": 32,
    # weights of sines, divided by their sum
    "ScaleAndTranslate": 4, "ScaleAndTranslateGrad": 4,
    # six float32 steps through hue and back
    "AdjustHue": 3,
}  # fmt: skip
"""By op: what is allowed instead, of the largest element, and why."""

SINGLE = ("CTCLoss", "ResizeBicubicGrad", "FusedResizeAndPadConv2D")
"""Ops in which TensorFlow computes doubles in float32 too, so that units are those of float32."""

UNDEFINED = {"FusedBatchNorm": 3, "FusedBatchNormV2": 3, "FusedBatchNormV3": 3}
"""Outputs from this one on hold whatever memory held when the op does not train."""

OF_NO_USE = {"ParseSequenceExampleV2": (13, 14, 29, 30)}
"""Row splits that are numbers without meaning, whatever memory held, when the op parses a record that is no batch."""

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
    finest = 2.0**-23 if case.node.op in SINGLE else 2.0**-52
    unit = EPSILON.get(expected.dtype.name, finest) * (size if by_element else size.max())
    allowed = LOOSER.get(case.node.op, ULPS) * unit + DENORMAL.get(expected.dtype.name, 1.2e-38)
    difference = np.abs(mine[finite] - theirs[finite])
    worst = int(np.argmax(difference - allowed))
    assert (difference <= allowed).all(), f"{mine[finite][worst]!r} instead of {theirs[finite][worst]!r}"


def by_op() -> list[Any]:
    """The cases of each op: tests of one case each would take longer to be told of than to run."""
    found: dict[str, list[Case]] = {}
    for family in FAMILIES:
        for case in cases(family):
            found.setdefault(f"{family}-{case.node.op}", []).append(case)
    return [pytest.param(each, id=name) for name, each in found.items()]


@pytest.mark.parametrize("found", by_op())
def test_a_kernel_gives_what_tensorflow_gives(found: list[Case]) -> None:
    wrong = {}
    for case in found:
        try:
            assert_gives(case)
        except Exception as error:
            wrong[case.name] = f"{type(error).__name__}: {error}"
    assert not wrong, "\n".join(f"{name}: {why}" for name, why in wrong.items())


def assert_gives(case: Case) -> None:
    results = evaluate(case.node, case.inputs)
    assert len(results) == len(case.expected)
    count = len(results)
    if case.node.op in UNDEFINED and not case.node.attrs["is_training"]:
        count = UNDEFINED[case.node.op]
    of_no_use = OF_NO_USE.get(case.node.op, ()) if case.inputs and case.inputs[0].ndim == 0 else ()
    for number, (actual, expected) in enumerate(zip(results[:count], case.expected[:count], strict=True)):
        if number in of_no_use:
            assert (actual.dtype, actual.shape) == (expected.dtype, ())
            continue
        assert_same(case, actual, expected, by_element=case.source in ELEMENTWISE and case.node.op not in LOOSER)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_leave_their_inputs_alone(family: str) -> None:
    for case in cases(family):
        before = [value.copy() for value in case.inputs]
        evaluate(case.node, case.inputs)
        for value, copy in zip(case.inputs, before, strict=True):
            assert value.tolist() == copy.tolist() if value.dtype == object else value.tobytes() == copy.tobytes()


def test_the_goldens_lie_with_the_family_of_their_kernel() -> None:
    found = [(family, case) for family in FAMILIES for case in cases(family)]
    assert not [
        case.node for family, case in found if registry.KERNELS.homes([case.node.op])[0].split(".")[0] != family
    ]
    assert len(found) >= 6854
    assert len({case.node.op for _, case in found}) >= 564
    assert len({case.name for _, case in found}) == len(found)
