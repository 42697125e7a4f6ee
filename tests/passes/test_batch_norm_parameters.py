"""What a batch norm does to a channel, beside what the engine computes for it."""

import numpy as np
import pytest

from pocketgraph import Session
from pocketgraph.errors import GraphError
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.batch_norm_parameters import affine_of, arranged

PARAMETERS = """
    x = Placeholder(dtype=float, shape=[1, 1, 1, 2])
    gamma = Const(float [2.0, -1.0])
    beta = Const(float [0.5, 4.0])
    mean = Const(float [1.0, 0.0])
    variance = Const(float [4.0, 0.25])
"""
FUSED = "y = FusedBatchNorm(x, gamma, beta, mean, variance, T=float, epsilon=0.125, is_training=false)\n"
OLD = "y = BatchNormWithGlobalNormalization(x, mean, variance, beta, gamma, T=float, variance_epsilon=0.125{})\n"
X = np.array([[[[3.0, -2.0]]]], np.float32)


@pytest.mark.parametrize(
    "text",
    [FUSED, OLD.format(", scale_after_normalization=true"), OLD.format(", scale_after_normalization=false")],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_channels_are_those_of_the_engine(text: str, dtype: type) -> None:
    graph = parse(PARAMETERS + text)
    values = [graph.constant(ref).numpy() for ref in arranged(graph["y"], graph["y"].data_inputs[1:])]
    assert arranged(graph["y"], graph["y"].data_inputs[1:]) == ("gamma", "beta", "mean", "variance")
    scale, offset = affine_of(graph["y"], *values, dtype)
    assert scale.dtype == offset.dtype == dtype
    (y,) = Session(graph, engine="reference").run("y", {"x": X})
    np.testing.assert_allclose(X * scale + offset, y, rtol=1e-6)


def test_an_attribute_without_default_must_be_there() -> None:
    node = parse(PARAMETERS + OLD.format(""))["y"]
    with pytest.raises(GraphError, match="scale_after_normalization"):
        affine_of(node, *[np.ones(2, np.float32)] * 4, np.float32)
