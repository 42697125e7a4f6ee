"""Prepares a graph for training with the rounding of eight bits."""

from __future__ import annotations

from pocketgraph.graph import Graph
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.constant_folding.flow import Flow, FlowStep, imported
from pocketgraph.transforms.parts.quantized_training.activation_ranges import Activation, activation_of
from pocketgraph.transforms.parts.quantized_training.rounding_nodes import Rounding, rounding_steps
from pocketgraph.transforms.parts.quantized_training.saver import saved_too
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
