"""Dropout is taken out of a graph: what went in comes out."""

from __future__ import annotations

from pocketgraph.freezing.known import Known
from pocketgraph.graph import Graph, Node, Tensor, node_name
from pocketgraph.graph.op_traits import ops_with

_PRODUCTS = frozenset({"Mul", "Multiply"})
_ADDS = frozenset({"Add", "AddV2"})
_DIVIDES = ops_with("quotient")
_RANDOM = frozenset({"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"})
"""Not a trait: what tf.nn.dropout draws its noise with."""
_ARITHMETIC = frozenset({"Add", "AddV2", "Sub", "Mul", "Identity", "Cast"})
"""Not a trait: what tf.nn.dropout makes of its noise."""
_OF_RATE = frozenset(
    {"Sub", "Add", "AddV2", "Mul", "RealDiv", "Div", "Inv", "Reciprocal", "Identity", "Cast", "Switch", "RefSwitch"}
)
"""Not a trait: what tf.nn.dropout computes its rate with."""
DEPTH = 8  # nodes between a mask and its random numbers, or a scale and its rate


def repaired(graph: Graph) -> tuple[Graph, list[str]]:
    """Takes every dropout out.

    Given:   scaled = RealDiv(x, keep_prob)
             noise = RandomUniform(shape)
             mask = Floor(keep_prob + noise)
             y = Mul(scaled, mask)
    Result:  y = Identity(x)

    Given:   scaled = Mul(x, scale)
             kept = GreaterEqual(noise, rate)
             y = Mul(scaled, Cast(kept))
    Result:  y = Identity(x)

    SelectV2(kept, scaled, zero), as newer versions write it, likewise.
    """
    return taken_out(graph, only_idle=False)


def taken_out(graph: Graph, *, only_idle: bool) -> tuple[Graph, list[str]]:
    """The graph without dropout.

    Args:
        only_idle: take out only the dropouts whose rate is known to be 0 (a keep_prob bound to 1), which do nothing.
    """
    known = Known(graph) if only_idle else None
    found: dict[str, Node] = {}
    lines = []
    for node in graph:
        if node.op not in _PRODUCTS and node.op not in ("SelectV2", "Select"):
            continue
        match = _input(graph, node, known)
        if match is not None:
            source, noise = match
            found[node.name] = Node(
                node.name, "Identity", [source, *node.control_inputs], {"T": node.dtype()}, node.device
            )
            lines.append(f"'{node.name}' dropped out what '{noise}' said; it hands on '{source}'")
    return graph.map_nodes(lambda node: found.get(node.name, node)), lines


def _input(graph: Graph, node: Node, known: Known | None) -> tuple[str, str] | None:
    """What goes into the dropout that ends at ``node``, and the name of its random numbers; None when it is none."""
    inputs = node.data_inputs
    if node.op in _PRODUCTS and len(inputs) == 2:
        choices = [(inputs[0], inputs[1]), (inputs[1], inputs[0])]
    elif node.op not in _PRODUCTS and len(inputs) == 3 and _is_zero(graph, inputs[2]):
        choices = [(inputs[1], inputs[0])]
    else:
        return None
    for scaled, mask in choices:
        noise = _noise_of_mask(graph, mask, known)
        if noise is None:
            continue
        source = _unscaled(graph, scaled, noise)
        return (source or scaled), noise
    return None


def _noise_of_mask(graph: Graph, ref: str, known: Known | None) -> str | None:
    """The random numbers behind a mask, floor(keep + noise) or cast(noise >= rate)."""
    node = _node(graph, ref)
    if node is None or len(graph.consumers.get(node.name, ())) != 1:
        return None  # alpha dropout also adds what the mask leaves out
    for _ in range(DEPTH):
        if node is None or node.op not in ("Cast", "Identity") or not node.data_inputs:
            break
        node = _node(graph, node.data_inputs[0])
    if node is None:
        return None
    if node.op == "Floor":
        total = _node(graph, node.data_inputs[0])
        if total is None or total.op not in _ADDS or len(total.data_inputs) != 2:
            return None
        for keep, noise in (total.data_inputs, total.data_inputs[::-1]):
            name = _noise(graph, noise)
            if name is not None and _is_rate(graph, keep) and _may_keep(graph, keep):
                return name if known is None or _is(known, keep, 1.0) else None
    if node.op in ("GreaterEqual", "Less", "Greater", "LessEqual") and len(node.data_inputs) == 2:
        for noise, rate in (node.data_inputs, node.data_inputs[::-1]):
            name = _noise(graph, noise)
            if name is not None and _is_rate(graph, rate):
                kept_when_above = node.op in ("GreaterEqual", "Greater") and noise == node.data_inputs[0]
                return name if known is None or (kept_when_above and _is(known, rate, 0.0)) else None
    return None


def _noise(graph: Graph, ref: str) -> str | None:
    """The uniform random numbers that a tensor comes from through arithmetic with constants."""
    waiting = [ref]
    for _ in range(DEPTH * 2):
        if not waiting:
            break
        node = _node(graph, waiting.pop())
        if node is None:
            continue
        if node.op in _RANDOM:
            return node.name
        if node.op in _ARITHMETIC:
            waiting.extend(node.data_inputs)
    return None


def _unscaled(graph: Graph, ref: str, noise: str) -> str | None:
    """``x`` of x / keep or x * scale; the random numbers mostly have the shape of x, which tells them apart."""
    node = _node(graph, ref)
    if node is None or len(node.data_inputs) != 2 or node.op not in _DIVIDES | _PRODUCTS:
        return None
    first, second = node.data_inputs
    shape = _node(graph, graph[noise].data_inputs[0])
    like = shape.data_inputs[0] if shape is not None and shape.op == "Shape" else ""
    if second == like and node.op in _PRODUCTS and _is_rate(graph, first):
        return second
    if _is_rate(graph, second):
        return first
    if node.op in _PRODUCTS and _is_rate(graph, first):
        return second
    return None


def _is_rate(graph: Graph, ref: str) -> bool:
    """Whether a tensor is one number that follows from constants and placeholders of one number."""
    waiting = [ref]
    steps = 0
    while waiting:
        steps += 1
        node = _node(graph, waiting.pop())
        if node is None or steps > 4 * DEPTH:
            return False
        if node.op == "Const":
            value = node.attrs.get("value")
            if not isinstance(value, Tensor) or value.size != 1:
                return False
        elif node.op.startswith("Placeholder"):
            shape = node.shape()
            if shape is not None and shape.rank not in (None, 0):
                return False
        elif node.op in _OF_RATE:
            data = node.data_inputs[:1] if node.op in ("Switch", "RefSwitch") else node.data_inputs
            waiting.extend(data)
        else:
            return False
    return True


def _may_keep(graph: Graph, ref: str) -> bool:
    """Whether a number can be the part that is kept: more than 0 and at most 1, where it is known."""
    value = graph.constant(ref)
    return value is None or 0.0 < float(value.numpy().reshape(-1)[0]) <= 1.0


def _is_zero(graph: Graph, ref: str) -> bool:
    value = graph.constant(ref)
    return value is not None and value.size == 1 and float(value.numpy().reshape(-1)[0]) == 0.0


def _is(known: Known, ref: str, number: float) -> bool:
    value = known.value(ref)
    return value is not None and value.size == 1 and float(value.reshape(-1)[0]) == number


def _node(graph: Graph, ref: str) -> Node | None:
    return graph.nodes.get(node_name(ref))
