"""Variables and gradients that are not finite: what TensorFlow 2.21 makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.graph import DType, Node, opdefs
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.state.variables import Variable

nan, inf = np.nan, np.inf
FLOAT = DType.named("float")
GRAD = [1, nan, 2, inf]
RATES = {"lr": 0.1, "rho": 0.9, "momentum": 0.5, "epsilon": 0.1}
FTRL = {"lr": 0.1, "l1": 0.5, "l2": 0.1, "lr_power": -0.5}
MEANS = {"var": [1] * 4, "ms": [inf, 1, 1, 1], "mom": [0, 0, 0, 1]}
SPARSE_MEANS = [[1, nan, 0.83096915, nan], [inf, nan, 1.3, inf], [0, nan, 0.16903085, nan]]
DENSE_MEANS = [[nan, nan, 0.83096915, nan], [nan, nan, 1.3, inf], [nan, nan, 0.16903085, nan]]
LINEAR = {"var": [1, 1, -inf, 1], "accum": [1] * 4, "linear": [0, 1, 1, 1]}
TERMS = [[2, nan, 5, inf], [-3.1421351, nan, inf, nan]]
SHRUNK = {**LINEAR, "var": [1] * 4}
SHRUNK_TERMS = [[2, nan, 5, inf], [-2.9421351, nan, -9.1606797, nan]]
ADAM = {"beta1_power": 0.9, "lr": 0.1, "beta1": 0.9, "beta2": 0.5, "epsilon": 0.1}
MOMENTS = {"var": [1] * 4, "m": [0] * 4, "v": [nan, 1, 1, 1]}
FIRST = [0.1, nan, 0.2, inf]

CASES: list[tuple[str, dict[str, Any], dict[str, float], list[list[float]]]] = [
    ("ResourceApplyRMSProp", MEANS, RATES, DENSE_MEANS),
    ("ResourceSparseApplyRMSProp", MEANS, RATES, SPARSE_MEANS),
    ("ResourceSparseApplyCenteredRMSProp", {**MEANS, "mg": [0] * 4}, RATES,
     [[1, nan, 0.8285014, nan], [inf, nan, 1.3, inf], [0, nan, 0.17149858, nan], [0.1, nan, 0.2, inf]]),
    ("ResourceApplyFtrl", LINEAR, FTRL, [[0.18422188, 0, -inf, 0], *TERMS]),
    ("ResourceSparseApplyFtrl", LINEAR, FTRL, [[0.18422188, nan, -inf, nan], *TERMS]),
    ("ResourceApplyFtrlV2", SHRUNK, {**FTRL, "l2_shrinkage": 0.1}, [[0.17027695, 0, 0.3838838, 0], *SHRUNK_TERMS]),
    ("ResourceSparseApplyFtrlV2", SHRUNK, {**FTRL, "l2_shrinkage": 0.1},
     [[0.17027695, nan, 0.3838838, nan], *SHRUNK_TERMS]),
    ("ResourceApplyAdaMax", MOMENTS, ADAM, [[nan, nan, 0.9047619, nan], FIRST, [nan, 0.5, 2, inf]]),
    ("ResourceApplyAdamWithAmsgrad", {**MOMENTS, "vhat": [2, 2, nan, 2]}, {**ADAM, "beta2_power": 0.9},
     [[0.979116, nan, nan, nan], FIRST, [nan, nan, 2.5, inf], [2, 2, nan, inf]]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "start", "rates", "after"), CASES, ids=[case[0] for case in CASES])
def test_a_step(op: str, start: dict[str, Any], rates: dict[str, float], after: list[list[float]]) -> None:
    variables = {name: Variable(name, FLOAT) for name in start}
    for name, made in variables.items():
        made.assign(np.array(start[name], np.float32))
    given: dict[str, Any] = {name: np.float32(value) for name, value in rates.items()}
    given |= {"grad": np.array(GRAD, np.float32), "indices": np.arange(4, dtype=np.int32)} | variables
    with np.errstate(all="ignore"):
        evaluate(
            Node("step", op, (), {"T": FLOAT}), [given[argument.name] for argument in opdefs.definition(op).inputs]
        )
    for (name, made), expected in zip(variables.items(), after, strict=True):
        np.testing.assert_allclose(made.read(), np.array(expected, np.float32), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("op", ["Scatter", "ScatterNd"])
@pytest.mark.parametrize(("how", "after"), [("Min", [[nan, 1], [1, 3], [4, -1]]), ("Max", [[nan, 1], [2, 9], [7, 5]])])
def test_the_least_and_the_largest(op: str, how: str, after: list[list[float]]) -> None:
    """A NaN that is there stays, one that comes is passed over."""
    held = Variable("v", FLOAT)
    held.assign(np.array([[nan, 1], [2, 3], [4, 5]], np.float32))
    rows = np.array([0, 1, 1, 2], np.int32)
    places = rows if op == "Scatter" else rows[:, None]
    updates = np.array([[0, nan], [nan, 9], [1, nan], [7, -1]], np.float32)
    evaluate(Node("n", f"Resource{op}{how}", ()), [held, places, updates])
    np.testing.assert_array_equal(held.read(), after)


def test_a_vector_names_a_row_of_a_variable_a_number() -> None:
    held = Variable("v", FLOAT)
    held.assign(np.arange(6, dtype=np.float32).reshape(3, 2))
    updates = np.array([[1, 2], [3, 4]], np.float32)
    evaluate(Node("n", "ResourceScatterNdAdd", ()), [held, np.array([2, 0], np.int32), updates])
    np.testing.assert_array_equal(held.read(), [[3, 5], [2, 3], [5, 7]])
