"""The less common optimizers against two steps of TensorFlow's."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import Context, evaluate

RECORD = json.loads((pathlib.Path(__file__).parents[2] / "fixtures" / "optimizers.json").read_text())
FLOAT = DType.named("float")


def variable(name: str, value: Any) -> Any:
    node = Node(name, "VariableV2", (), {"shape": Shape([5]), "dtype": FLOAT})
    (made,) = evaluate(node, (), Context(node, {}))
    made.assign(np.asarray(value, np.float32))
    return made


def names(case: dict[str, Any]) -> str:
    return f"{case['op']}-{'-'.join(map(str, case['scalars'].values()))}"


@pytest.mark.parametrize("prefix", ["", "Resource"])
@pytest.mark.parametrize("case", RECORD["cases"], ids=names)
def test_two_steps_are_tensorflows(case: dict[str, Any], prefix: str) -> None:
    variables = {"var": variable("var", RECORD["start"])}
    variables |= {name: variable(name, np.full(5, value)) for name, value in case["slots"].items()}
    node = Node("step", prefix + case["op"], (), {"T": FLOAT})
    for gradient in RECORD["gradients"]:
        given = variables | {name: np.float32(value) for name, value in case["scalars"].items()}
        given |= dict.fromkeys(("grad", "delta"), np.array(gradient, np.float32)) | {"global_step": np.array(3)}
        evaluate(node, [given[name] for name in case["inputs"]])
    for (name, made), expected in zip(variables.items(), case["after"], strict=True):
        np.testing.assert_allclose(made.read(), np.float32(expected), rtol=2e-6, atol=1e-7, err_msg=name)


def test_a_gradient_of_another_shape_is_refused() -> None:
    node = Node("step", "ApplyProximalGradientDescent", (), {"T": FLOAT})
    scalars = [np.float32(v) for v in (0.1, 0.2, 0.3)]
    with pytest.raises(RunError, match="shape"):
        evaluate(node, [variable("var", RECORD["start"]), *scalars, np.ones((3, 5), np.float32)])


@pytest.mark.parametrize(
    ("op", "slots", "scalars", "problem"),
    [
        ("ApplyProximalAdagrad", 1, [0, 0.1, 0.1], "lr must be above 0, not 0"),
        ("ApplyProximalAdagrad", 1, [0.1, -0.1, 0.1], "a strength of regularization must be 0 or more, not -0.1"),
        ("ApplyProximalAdagrad", 1, [0.1, 0.1, np.nan], "a strength of regularization must be 0 or more, not nan"),
        ("SparseApplyFtrl", 2, [-0.1, 0.1, 0.1, -0.5], "lr must be above 0, not -0.1"),
        ("SparseApplyFtrl", 2, [0.1, 0.1, 0.1, 0.5], "lr_power must be 0 or less, not 0.5"),
        (
            "SparseApplyFtrlV2",
            2,
            [0.1, 0.1, 0.1, -0.1, -0.5],
            "a strength of regularization must be 0 or more, not -0.1",
        ),
    ],
)
def test_what_tensorflow_refuses_of_rates_and_strengths(
    op: str, slots: int, scalars: list[float], problem: str
) -> None:
    variables = [variable(f"v{n}", np.ones(5)) for n in range(slots + 1)]
    given = [np.float32(value) for value in scalars]
    grad = np.ones(5, np.float32)
    inputs = [*variables, grad, np.arange(5), *given] if "Ftrl" in op else [*variables, *given, grad]
    with pytest.raises(RunError, match=problem):
        evaluate(Node("step", op, (), {"T": FLOAT}), inputs)
    np.testing.assert_array_equal(variables[0].read(), np.ones(5))


def test_a_dense_step_of_ftrl_takes_any_rate() -> None:
    """TensorFlow 2.21 checks the sparse one alone."""
    variables = [variable(f"v{n}", np.ones(5)) for n in range(3)]
    scalars = [np.float32(value) for value in (-1, 0.1, -0.1, -0.5)]
    evaluate(Node("step", "ApplyFtrl", (), {"T": FLOAT}), [*variables, np.ones(5, np.float32), *scalars])
    assert (variables[1].read() == 2).all()
