"""The nodes that round a tensor to eight bits in its range, fixed or watched."""

from __future__ import annotations

from typing import NamedTuple

from pocketgraph.graph import AttrValue, DType, Node, Shape, const
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.transforms.parts.constant_folding.flow import FlowStep
from pocketgraph.transforms.parts.quantized_training.activation_ranges import Activation

OP = "FakeQuantWithMinMaxVars"
BITS = 8
DECAY = 0.999  # of the moving averages


class Rounding(NamedTuple):
    """New steps, the name of the one that gives the rounded tensor, and the names of the variables among them."""

    steps: list[FlowStep]
    name: str
    variables: list[str]


def rounding_steps(source: str, port: int, scope: str, activation: Activation) -> Rounding:
    """Rounds ``source:port``; the new names begin with ``scope``."""
    made = _Steps()
    variables: list[str] = []
    if activation is not None:
        low, high = (
            made.constant(f"{scope}/Input{end}", value, FLOAT)
            for end, value in zip(("Min", "Max"), activation, strict=True)
        )
    else:
        decay = made.constant(f"{scope}/Decay", DECAY, FLOAT)
        axes = _all_axes(made, source, port, scope)
        extremes = [
            made.add(f"{scope}/{op}", op, [(source, port), axes], T=FLOAT, Tidx=INT32, keep_dims=False)
            for op in ("Min", "Max")
        ]
        low, high = (_moving_average(made, extreme, decay) for extreme in extremes)
        variables = [f"{name}/Variable" for name, _ in extremes]
    name, _ = made.add(f"{scope}/{OP}", OP, [(source, port), low, high], num_bits=BITS, narrow_range=False)
    return Rounding(made.steps, name, variables)


class _Steps:
    def __init__(self) -> None:
        self.steps: list[FlowStep] = []

    def add(self, name: str, op: str, data: list[tuple[str, int]], **attrs: AttrValue) -> tuple[str, int]:
        self.steps.append(FlowStep(Node(name, op, (), attrs), data, set()))
        return name, 0

    def constant(self, name: str, value: float, dtype: DType) -> tuple[str, int]:
        self.steps.append(FlowStep(const(name, value, dtype), [], set()))
        return name, 0


def _all_axes(made: _Steps, source: str, port: int, scope: str) -> tuple[str, int]:
    prefix = f"{scope}/ReductionAxes"
    start = made.constant(f"{prefix}/RangeStart", 0, INT32)
    delta = made.constant(f"{prefix}/RangeDelta", 1, INT32)
    rank = made.add(f"{prefix}/InputRank", "Rank", [(source, port)], T=FLOAT)
    return made.add(f"{prefix}/ReductionAxes", "Range", [start, rank, delta], Tidx=INT32)


def _moving_average(made: _Steps, value: tuple[str, int], decay: tuple[str, int]) -> tuple[str, int]:
    """``variable - (variable - value) * (1 - decay)``, from the second time on; assigned to the variable."""
    scope = value[0]
    variable = made.add(
        f"{scope}/Variable", "VariableV2", [], dtype=FLOAT, shape=Shape(()), container=b"", shared_name=b""
    )
    known = made.add(f"{scope}/IsInitialized", "IsVariableInitialized", [variable], dtype=FLOAT)
    switch, _ = made.add(f"{scope}/Switch", "Switch", [value, known], T=FLOAT)
    one = made.constant(f"{scope}/EMA/OneConst", 1.0, FLOAT)
    share = made.add(f"{scope}/EMA/DecayComplement", "Sub", [one, decay], T=FLOAT)
    change = made.add(f"{scope}/EMA/ValueDiff", "Sub", [variable, (switch, 1)], T=FLOAT)
    update = made.add(f"{scope}/EMA/UpdateValue", "Mul", [change, share], T=FLOAT)
    average = made.add(f"{scope}/EMA/EMAValue", "Sub", [variable, update], T=FLOAT)
    merged = made.add(f"{scope}/Merge", "Merge", [(switch, 0), average], T=FLOAT, N=2)
    return made.add(
        f"{scope}/AssignValue", "Assign", [variable, merged], T=FLOAT, validate_shape=True, use_locking=True
    )
