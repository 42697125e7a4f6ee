"""What training saw behind batch norms, fused and spelled out."""

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.passes.trained_statistics import trained_statistics

PARAMETERS = """
    x = Placeholder(dtype=float, shape=[1, 1, 1, 2])
    gamma = Const(float [2.0, -1.0])
    beta = Const(float [0.5, 4.0])
    mean = Const(float [1.0, 0.0])
    variance = Const(float [4.0, 0.25])
    small = Const(float 0.001)
"""
FUSED = "y = FusedBatchNormV3(x, gamma, beta, mean, variance, T=float, is_training={})"
SPELLED_OUT = """
    read = Identity(gamma, T=float)
    root = Rsqrt(sum, T=float)
    sum = Add(variance, small, T=float)
    scale = Mul({}, T=float)
    scaled = Mul({}, T=float)
    shift = Mul(mean, scale, T=float)
    offset = Sub(beta, shift, T=float)
    y = AddV2({}, T=float)
"""


@pytest.mark.parametrize(
    "text",
    [
        FUSED.format("false"),
        SPELLED_OUT.format("root, read", "x, scale", "scaled, offset"),
        SPELLED_OUT.format("read, root", "scale, x", "offset, scaled"),
    ],
)
def test_the_mean_is_beta_and_the_deviation_is_that_of_gamma(text: str) -> None:
    found = trained_statistics(parse(PARAMETERS + text))
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"].mean, [0.5, 4.0])
    np.testing.assert_array_equal(found["y"].deviation, [2.0, 1.0])


def test_without_gamma_the_deviation_is_one() -> None:
    text = SPELLED_OUT.replace("scale = Mul({}, T=float)", "scale = Rsqrt(sum, T=float)")
    found = trained_statistics(parse(PARAMETERS + text.format("x, scale", "scaled, offset")))
    np.testing.assert_array_equal(found["y"].deviation, [1.0, 1.0])


def test_nothing_is_known_of_a_batch_norm_in_training_or_of_a_plain_sum() -> None:
    assert not trained_statistics(parse(PARAMETERS + FUSED.format("true")))
    assert not trained_statistics(parse(PARAMETERS + "y = Add(x, beta, T=float)"))


def test_a_parameter_that_is_fed_tells_nothing() -> None:
    fed = PARAMETERS.replace("gamma = Const(float [2.0, -1.0])", "gamma = Placeholder(dtype=float, shape=[2])")
    assert not trained_statistics(parse(fed + FUSED.format("false")))
