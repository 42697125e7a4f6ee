"""The optimizers: which slots a variable has, and which op applies a gradient.

Each is TensorFlow 1.15's class of that name with its defaults, slots and names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Optimizer(NamedTuple):
    """One optimizer.

    Attributes:
        scope: what TensorFlow calls it: the scope of its nodes, the train operation and the slots.
        op: the op that applies a gradient; ``Resource`` before it for variables by resource.
        slots: for each slot the parameter, or the number, that it begins with everywhere.
        arguments: what the op takes between the slots and the end: parameters, ``lr``, ``grad``, or a power's name.
        defaults: its parameters with their defaults.
        powers: variables that are multiplied by a parameter after each step, by name.
    """

    scope: str
    op: str
    slots: tuple[str | float, ...]
    arguments: tuple[str, ...]
    defaults: Mapping[str, float | bool]
    powers: Mapping[str, str] = {}


OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": Optimizer("GradientDescent", "ApplyGradientDescent", (), ("lr", "grad"), {}),
    "momentum": Optimizer(
        "Momentum", "ApplyMomentum", (0.0,), ("lr", "grad", "momentum"), {"momentum": 0.9, "use_nesterov": False}
    ),
    "adagrad": Optimizer(
        "Adagrad", "ApplyAdagrad", ("initial_accumulator",), ("lr", "grad"), {"initial_accumulator": 0.1}
    ),
    "rmsprop": Optimizer(
        "RMSProp", "ApplyRMSProp", (1.0, 0.0), ("lr", "rho", "momentum", "epsilon", "grad"),
        {"rho": 0.9, "momentum": 0.0, "epsilon": 1e-10},
    ),
    "adam": Optimizer(
        "Adam", "ApplyAdam", (0.0, 0.0),
        ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"),
        {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "use_nesterov": False},
        {"beta1_power": "beta1", "beta2_power": "beta2"},
    ),
    "adadelta": Optimizer(
        "Adadelta", "ApplyAdadelta", (0.0, 0.0), ("lr", "rho", "epsilon", "grad"), {"rho": 0.95, "epsilon": 1e-8}
    ),
    "ftrl": Optimizer(
        "Ftrl", "ApplyFtrl", ("initial_accumulator", 0.0), ("grad", "lr", "l1", "l2", "lr_power"),
        {"initial_accumulator": 0.1, "l1": 0.0, "l2": 0.0, "lr_power": -0.5},
    ),
}  # fmt: skip
"""Not a trait: the table of optimizers, by the name that a caller gives."""
