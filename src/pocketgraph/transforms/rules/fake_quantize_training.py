"""Prepares a graph for training with the rounding of eight bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import AttrValue, DType, Graph, Node, Shape, Tensor, const
from pocketgraph.graph.dtype import FLOAT, INT32, STRING
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.constant_folding.flow import Flow, FlowStep, imported
from pocketgraph.transforms.tool import transform

PRODUCTS = frozenset({"MatMul", "Conv2D"})
GRADIENTS = "gradients"  # how the names of the nodes begin that training adds


@transform
def fake_quantize_training(graph: Graph, *, compat: Compat = Compat.FIXED) -> Graph:
    """Rounds the inputs of products and convolutions to eight bits, so that training can get used to it.

    Given:   x = Placeholder(dtype=float, shape=[?,2])
             r = Relu6(x, T=float)
             y = MatMul(r, r, T=float)
             ; fake_quantize_training remove_attribute(attribute_name=transpose_a, op_name=MatMul)
             ; remove_attribute(attribute_name=transpose_b) remove_attribute(attribute_name=narrow_range)
    Result:  x = Placeholder(dtype=float, shape=[?,2])
             r = Relu6(x, T=float)
             y = MatMul(r/FakeQuantWithMinMaxVars, r/FakeQuantWithMinMaxVars, T=float)
             r/InputMin = Const(float 0.0)
             r/InputMax = Const(float 6.0)
             r/FakeQuantWithMinMaxVars = FakeQuantWithMinMaxVars(r, r/InputMin, r/InputMax, num_bits=8)

    Inputs behind Relu6, Sigmoid and Tanh have their fixed range; of others, training keeps moving averages of the least
    and the greatest value in new variables, which the graph's Saver saves, too. Nodes whose names begin with
    ``gradients`` stay as they are. Every node gets the attributes that are its op's defaults.

    Differs from the original: two outputs of one node are rounded apart (there, the one that is found first takes the
    place of the other).

    Raises:
        TransformError: inputs that cannot be followed are more than two; or the Saver is not as TensorFlow makes it.
        GraphError: the graph does not fit together.
    """
    steps = imported(graph)
    edges: list[tuple[FlowStep, int, Activation]] = []
    unknown: list[str] = []
    for step in steps.values():
        if step.node.op in PRODUCTS and not step.node.name.startswith(GRADIENTS):
            for place, (source, _) in enumerate(step.data):
                edges.append((step, place, activation_of(steps, source, unknown)))
    roundings: dict[tuple[str, int], Rounding] = {}
    variables: list[str] = []
    added: list[FlowStep] = []
    for step, place, activation in edges:
        name, port = step.data[place]
        key = (name, 0 if compat.original else port)
        if key not in roundings:
            roundings[key] = rounding_steps(name, port, name if not key[1] else f"{name}_{port}", activation)
            added += roundings[key].steps
            variables += roundings[key].variables
        step.data[place] = (roundings[key].name, 0)
    steps.update({step.node.name: step for step in added})
    if variables:
        saved_too(steps, variables)
    return graph.replace(Flow(steps).export())


Activation: TypeAlias = tuple[float, float] | None
"""The range of an input, or None where it has to be watched."""

FIXED: dict[str, Activation] = {"Relu6": (0.0, 6.0), "Sigmoid": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
WATCHED = frozenset({"Const", "Variable", "VariableV2", "Relu"})
"""Not a trait: the original's list of what gets a range of its own."""
PASSING = frozenset({
    "Reshape", "ConcatV2", "Identity", "MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D",
})  # fmt: skip
"""Not a trait: the original's list of ops whose results have the range of their first input."""
MOST_UNKNOWN = 2  # inputs of products that may be the model's own


def activation_of(steps: Mapping[str, FlowStep], name: str, unknown: list[str]) -> Activation:
    """The range of what a step gives.

    Args:
        unknown: gets the name when it comes from an op that says nothing of ranges; it is taken for the model's input.

    Raises:
        TransformError: that makes more than two.
    """
    passed: set[str] = set()
    current = steps[name].node
    while current.op in PASSING and current.name not in passed and steps[current.name].data:
        passed.add(current.name)
        current = steps[steps[current.name].data[0][0]].node
    if current.op in FIXED:
        return FIXED[current.op]
    if current.op not in WATCHED:
        unknown.append(name)
        if len(unknown) > MOST_UNKNOWN:
            node = steps[name].node
            raise TransformError(
                f"Found an unknown op: {node.name} with type: {node.op}; Unknown ops are considered as model input for "
                f"now and only {MOST_UNKNOWN} inputs are supported currently"
            )
    return None


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


def saved_too(steps: dict[str, FlowStep], variables: Sequence[str]) -> None:
    """Adds float variables to the one SaveV2 among the steps, if there is one, and nodes that restore them.

    Raises:
        TransformError: there are several SaveV2, or there is no restore_all beside it.
    """
    saves = [name for name, step in steps.items() if step.node.op == "SaveV2"]
    if not saves:
        return
    if len(saves) > 1:
        raise TransformError(f"Found multiple SaveV2 nodes: '{saves[0]}' and '{saves[1]}'")
    save = steps.pop(saves[0])
    prefix = save.node.name.rpartition("/")[0]
    waiting = steps.get(f"{prefix}/restore_all")
    if waiting is None:
        raise TransformError(f"Could not find the restore_all node '{prefix}/restore_all' of '{save.node.name}'")
    for count, variable in enumerate(variables):
        waiting.control.add(_restored(steps, save, prefix, variable, 2 * count))
    for place, values in ((1, [name.encode() for name in variables]), (2, [b""] * len(variables))):
        listed = steps[save.data[place][0]]
        longer = [*listed.node.tensor.numpy().ravel().tolist(), *values]
        listed.node = listed.node.with_attrs(value=Tensor.from_numpy(np.array(longer, dtype=object), STRING))
    dtypes = save.node.attr("dtypes", ())
    save.node = save.node.with_attrs(dtypes=(*dtypes, *[FLOAT] * len(variables))).replace(device="")
    save.data += [(name, 0) for name in variables]
    steps[save.node.name] = save


def _restored(steps: dict[str, FlowStep], save: FlowStep, prefix: str, variable: str, count: int) -> str:
    """Adds the nodes that restore one variable; gives the name of the last."""
    scope = f"{prefix}/RestoreV2/_{count}_qt"
    texts = ((f"{scope}/tensor_names", variable.encode()), (f"{scope}/shape_and_slices", b""))
    parts = [const(name, [text], STRING) for name, text in texts]
    restore = Node(scope, "RestoreV2", (), {"dtypes": (FLOAT,)})
    assign = Node(
        f"{prefix}/Assign/_{count + 1}_qt", "Assign", (), {"T": FLOAT, "validate_shape": True, "use_locking": True}
    )
    steps.update({part.name: FlowStep(part, [], set()) for part in parts})
    steps[restore.name] = FlowStep(restore, [save.data[0], *((part.name, 0) for part in parts)], set())
    steps[assign.name] = FlowStep(assign, [(variable, 0), (restore.name, 0)], set())
    return assign.name
