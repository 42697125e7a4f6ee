"""Gamma, Poisson and binomial draws are TensorFlow's: the numbers are those of 2.21 (of seeded ops, of 1.15 too)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels import Context, evaluate
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.state.variables import Variable

INT32, FLOAT = DType.named("int32"), DType.named("float")
SEED = np.array([7, -3], np.int32)
ALPHA = np.array([0.05, 0.5, 1, 3, 200], np.float32)
RATE = np.array([0, 0.3, 9.5, 10, 1000], np.float32)
COUNTS = np.array([5, 20, 100, 3000, 7.5], np.float32)
PROBS = np.array([0.3, 0.7, 0.95, 0.4, 1.0], np.float32)
STATELESS: dict[str, tuple[tuple[Array, ...], dict[str, Any], list[list[float]]]] = {
    "StatelessRandomGammaV2": ((ALPHA,), {}, [
        [0.0030775214545428753, 0.0002108845510520041, 0.8938157558441162, 2.3228559494018555, 207.0131072998047],
        [0.545066237449646, 0.786710798740387, 0.8953056335449219, 2.46168851852417, 216.198974609375],
        [0.0, 0.033764760941267014, 0.28346243500709534, 2.2094717025756836, 182.47166442871094],
    ]),
    "StatelessRandomPoisson": ((RATE,), {"dtype": INT32},
        [[0, 0, 10, 12, 1039], [0, 1, 3, 8, 956], [0, 0, 10, 12, 1010]]),
    "StatelessRandomBinomial": ((COUNTS, PROBS), {"dtype": FLOAT},
        [[2, 12, 98, 1218, 7.5], [0, 12, 98, 1181, 7.5], [2, 15, 96, 1218, 7.5]]),
}  # fmt: skip


@pytest.mark.parametrize("op", STATELESS)
def test_stateless_draws(op: str) -> None:
    parameters, attrs, expected = STATELESS[op]
    (found,) = evaluate(Node("y", op, (), attrs), [np.array([3, 5]), SEED, *parameters])
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=0)


def test_gamma_draws_go_on_from_run_to_run() -> None:
    node = Node("y", "RandomGamma", (), {"seed": 5, "seed2": 8})
    context = Context(node)
    first, second = (evaluate(node, [np.array([2]), ALPHA], context)[0] for _ in range(2))
    expected = [1.2407696885929909e-05, 0.33368271589279175, 1.4203256368637085, 4.390939712524414, 227.3982391357422]
    np.testing.assert_allclose(first[0], expected, rtol=2e-7)
    expected = [2.1048235794296488e-05, 0.043638698756694794, 3.3207895755767822, 2.9218578338623047, 189.9351806640625]
    np.testing.assert_allclose(second[1], expected, rtol=2e-7)


def test_poisson_draws_go_on_from_run_to_run() -> None:
    node = Node("y", "RandomPoissonV2", (), {"seed": 5, "seed2": 8, "dtype": INT32})
    context = Context(node)
    runs = [evaluate(node, [np.array([2]), RATE], context)[0].tolist() for _ in range(2)]
    assert runs == [[[0, 0, 6, 5, 1091], [0, 2, 6, 11, 974]], [[0, 0, 7, 12, 1039], [0, 0, 16, 10, 1014]]]


def test_binomial_draws_move_the_variable_on() -> None:
    held = Variable("state", DType.named("int64"), resource=True)
    held.assign(np.array([1, 2, 3], np.int64))
    node = Node("y", "StatefulRandomBinomial", (), {"dtype": INT32})
    runs = []
    for _ in range(2):
        (drawn,) = evaluate(node, [held, np.array(1), np.array([2, 5]), COUNTS, PROBS])
        runs.append((drawn.tolist(), held.read().tolist()))
    assert runs == [
        ([[3, 15, 92, 1142, 7], [1, 17, 96, 1262, 7]], [320001, 2, 3]),
        ([[2, 11, 97, 1218, 7], [1, 12, 92, 1222, 7]], [640001, 2, 3]),
    ]


def test_parameters_without_a_distribution_give_what_tensorflow_gives_and_never_hang() -> None:
    odd = np.array([-1, np.nan, np.inf, 0], np.float32)
    shape = np.array([1, 4])
    gamma, poisson, binomial = (Node("y", op, (), attrs) for op, (_, attrs, _) in STATELESS.items())
    (drawn,) = evaluate(gamma, [shape, SEED, odd])
    np.testing.assert_array_equal(drawn, [[np.nan, np.nan, np.inf, 0]])
    (drawn,) = evaluate(poisson.replace(attrs={"dtype": FLOAT}), [shape, SEED, odd])
    np.testing.assert_array_equal(drawn, [[0, np.nan, np.inf, 0]])  # TensorFlow does not end for NaN
    (drawn,) = evaluate(binomial, [shape, SEED, np.full(4, 5, np.float32), odd])
    np.testing.assert_array_equal(drawn, [[0, np.nan, 5, 0]])
    (drawn,) = evaluate(binomial, [shape, SEED, odd, np.full(4, 0.25, np.float32)])
    np.testing.assert_array_equal(drawn, [[0, np.nan, np.nan, 0]])  # nor for NaN here


@pytest.mark.parametrize("mean", [1e12, 2**31 + 5 * 2**15.5])  # of the second, one in 3,000,000 is held
def test_poisson_numbers_that_a_type_cannot_hold_are_refused(mean: float) -> None:
    with pytest.raises(RunError, match=r"Poisson numbers of mean .* are beyond what int32 holds"):
        evaluate(Node("y", "StatelessRandomPoisson", (), {"dtype": INT32}), [np.array([20]), SEED, np.float64(mean)])


def test_poisson_numbers_whose_factorials_no_double_holds() -> None:
    attrs = {"dtype": DType.named("double")}
    (drawn,) = evaluate(Node("y", "StatelessRandomPoisson", (), attrs), [np.array([300]), SEED, np.float64(1e307)])
    np.testing.assert_allclose(drawn, 1e307)


def test_a_shape_that_does_not_end_with_that_of_the_parameters_is_refused() -> None:
    with pytest.raises(RunError, match=r"do not fit: \[3\] must end with \[1\]"):
        evaluate(Node("y", "StatelessRandomGammaV2"), [np.array([3]), SEED, np.ones(1, np.float32)])
