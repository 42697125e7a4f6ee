"""Takes out nodes that only hand on their first input."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.edit import rename_inputs, replace_matches
from pocketgraph.graph.pattern import Match, Pattern
from pocketgraph.transforms.compat import Compat
from pocketgraph.transforms.parts.branch_gates import pivots
from pocketgraph.transforms.rule_parameters import Int32
from pocketgraph.transforms.tool import transform

PATIENCE = 2_000_000  # nodes gone through, in all passes, before the rest is taken out at once


@transform
def remove_nodes(graph: Graph, *, op: tuple[str, ...], max_inputs: Int32 = 1, compat: Compat = Compat.FIXED) -> Graph:
    """Takes out the nodes of these ops; who read them reads their first input instead.

    Given:   x = Placeholder(dtype=float)
             checked = CheckNumerics(x, T=float, message="")
             y = Relu(checked, T=float)
             ; remove_nodes(op=CheckNumerics)
    Result:  x = Placeholder(dtype=float)
             y = Relu(x, T=float)

    Inputs and outputs of the graph stay. The control inputs of the removed nodes are lost.

    Args:
        op: op types, done one after the other. The rule trusts that a graph without them computes the same.
        max_inputs: also take out nodes with up to so many data inputs; what produced the others goes with them.

    Differs from the original: a node stays when it says for others, by control, which way a Switch went, and without it
    a Merge, a loop, an output or an op with a state would see values of a branch that was not taken. A producer that
    goes with a removed node stays when something else reads it. In large graphs where very many such nodes read one
    producer, that producer may come to stand in another place.
    """
    protected = {node_name(ref) for ref in (*graph.inputs, *graph.outputs)}
    kept = set() if compat.original else pivots(graph, _candidates(graph, op, protected))
    for name in op:
        for count in range(1, max_inputs + 1):
            graph = _removed(graph, Pattern(name, ["*"] * count), protected, kept, compat)
    return graph


def _candidates(graph: Graph, ops: tuple[str, ...], protected: set[str]) -> set[str]:
    """The names of the nodes with one input that the rule would take out."""
    patterns = [Pattern(op, ["*"]) for op in ops]
    return {
        node.name
        for node in graph
        if node.name not in protected and len(node.data_inputs) == 1
        if any(pattern.ops is None or node.op in pattern.ops for pattern in patterns)
    }


def _removed(graph: Graph, pattern: Pattern, protected: set[str], kept: set[str], compat: Compat) -> Graph:
    """Goes in passes as the original does: matches share no node, so of several readers of one node a pass takes out
    one, and that moves the node to the reader's place; one that is protected may keep another one of them there."""
    visits = 0
    while visits <= PATIENCE or len(pattern.inputs) > 1:
        visits += len(graph)
        renames: dict[str, str] = {}

        def rewrite(match: Match, used: frozenset[str], renames: dict[str, str] = renames) -> list[Node]:
            if match.node.name in protected:
                return list(match.nodes)
            producer = match.inputs[0].node
            renames.update(_renames(match.node, producer.name))
            needed = used | {node_name(ref) for ref in producer.inputs}
            others = [node for node in match.nodes[1:] if node.name in needed and node is not producer]
            return [producer] if compat.original else [producer, *others]

        replaced = replace_matches(
            graph, pattern, rewrite, accept=lambda match: match.node.name not in kept, may_lose_names=True
        )
        graph = rename_inputs(replaced.graph, renames)
        if not renames:
            return graph
    return _removed_at_once(graph, pattern, protected | kept)


def _removed_at_once(graph: Graph, pattern: Pattern, protected: set[str]) -> Graph:
    """Takes out every node with one input that is left, all in one pass. What they read comes to stand where the first
    of its readers stood, as it does in passes when all the readers can be reached from it."""
    removed: dict[str, str] = {}
    for node in graph:
        fits = pattern.ops is None or node.op in pattern.ops
        if fits and len(node.data_inputs) == 1 and node.name not in protected:
            removed[node.name] = node_name(node.data_inputs[0])
    moved = {producer for producer in removed.values() if producer not in removed}
    nodes: dict[str, Node] = {}
    renames: dict[str, str] = {}
    for node in graph:
        producer = removed.get(node.name)
        if producer is not None:
            renames.update(_renames(node, producer))
            if producer in moved:
                nodes.setdefault(producer, graph[producer])
        elif node.name not in moved:
            nodes[node.name] = node
    return rename_inputs(graph.replace(nodes.values()), renames)


def _renames(node: Node, producer: str) -> dict[str, str]:
    """What readers of a removed node read instead, by data and by control."""
    source = next((ref for ref in node.data_inputs if node_name(ref) == producer), producer)
    return {node.name: source, "^" + node.name: "^" + producer}
