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
