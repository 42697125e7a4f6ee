"""Where values come into a graph, which of them weights are applied to, and what lies behind the weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

from pocketgraph.graph.graph import Graph
from pocketgraph.graph.groups import by_key, closure
from pocketgraph.graph.node import Node, node_name, parse_ref
from pocketgraph.graph.op_traits import PLACEHOLDERS, VARIABLES, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.output_likelihood import LOSS_SCOPES, OF_SAVERS, is_of_training
from pocketgraph.graph.picked_scores import picked_scores
from pocketgraph.graph.summary_nodes import summary_only_nodes
from pocketgraph.graph.tensor import Tensor

PIPELINES = re.compile(
    r"IteratorGetNext|(Queue|Stage).*(Dequeue|Unstage)|QueueDequeue|ReaderRead|ParseExample|ParseSingle"
)
_UPDATES = re.compile(r"(Resource|Sparse|ResourceSparse)?Apply[A-Z]|(Resource)?Scatter(Add|Sub|Update)$")
_PARSES = re.compile(r"ParseExample|ParseSingle")
SIZES = ops_with("shape") | {"ZerosLike", "OnesLike"}  # their results tell of their input no more than its shape
_THROUGH = frozenset({
    "Identity", "ReadVariableOp", "Reshape", "Transpose", "Cast", "Dequantize", "Enter", "Switch", "Squeeze",
    "ExpandDims", "ConcatV2", "Slice", "StridedSlice", "Unpack", "Split", "SplitV", "RefSwitch",
})  # fmt: skip
"""Not a trait: ops behind which weights are still weights, as far as exporters put them there."""
_WEIGHING = ops_with("layer", "sum", "bias", "difference", "product") | {"RealDiv"}
_OF_EIGHT_BITS = re.compile(r"_eightbit/")  # where quantize_nodes puts what one node takes
_ASSERTIONS = re.compile(r"(^|/)Assert(_\d+)?/")  # where TensorFlow puts what an assertion is made of
_CONDITIONS = frozenset({
    "All", "Any", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr",
    "LogicalNot", "IsFinite",
})  # fmt: skip
"""Not a trait: what assertions are told of a tensor."""
Source = tuple[str, int]
"""A node and one of its outputs."""


class WeightReach:
    """What reaches what in the model of a graph, worked out once. Every step visits each edge at most once.

    Attributes:
        model: the nodes that are left without those that serve training, summaries and checks.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        left_over = self._left_over() | self._asserted() | self._of_updates() | summary_only_nodes(graph)
        self.model = [
            node
            for node in graph
            if node.name not in left_over and not self.serves_training(node) and not self._only_checks(node)
        ]
        refs = ((parse_ref(ref), node) for node in self.model for ref in node.data_inputs)
        self._users = by_key((ref.name, (ref.port, node)) for ref, node in refs)

    @cached_property
    def is_trained(self) -> bool:
        """Whether the graph is of training: it has variables."""
        return any(node.op in VARIABLES for node in self._graph)

    def serves_training(self, node: Node) -> bool:
        """Whether a node is training's own, or computes its loss."""
        return is_of_training(node) or (self.is_trained and LOSS_SCOPES.search(node.name) is not None)

    def _only_checks(self, node: Node) -> bool:  # as add_check_numerics_ops leaves them
        return node.op == "CheckNumerics" and not self.takers(node)

    def takers(self, node: Node) -> list[Node]:
        """The nodes that take a result of a node, not those that only wait for it; also those outside of the model."""
        users = self._graph.consumers.get(node.name, ())
        return [user for user in users if any(node_name(ref) == node.name for ref in user.data_inputs)]

    def users(self, name: str) -> list[Node]:
        """The model's nodes that take a result of a node."""
        return [user for _, user in self._users.get(name, ())]

    def _left_over(self) -> set[str]:
        """What leads to nothing but tensors in eight bits that quantize_nodes made, and then read elsewhere."""
        made = [node for node in self._graph if node.op == "QuantizeV2" and _OF_EIGHT_BITS.search(node.name)]
        return self._leading_only_to(set(), made, lambda node: True)

    def _asserted(self) -> set[str]:
        """Conditions that nothing but assertions take, as those of a confusion matrix."""
        asserting = [node for node in self._graph if node.op == "Assert" or _ASSERTIONS.search(node.name)]
        told = [self._graph[name] for node in asserting for name in map(node_name, node.data_inputs)
                if name in self._graph]  # fmt: skip
        return self._leading_only_to({node.name for node in asserting}, told, lambda node: node.op in _CONDITIONS)

    def _of_updates(self) -> set[str]:
        """What is computed for an optimizer's update alone, such as a gradient times a learning rate that is kept."""
        updates = {node.name: node for node in self._graph if _UPDATES.match(node.op)}
        taken = {name for node in updates.values() for name in map(node_name, node.data_inputs) if name in self._graph}
        return {name for name in taken if all(user.name in updates for user in self.takers(self._graph[name]))}

    def _leading_only_to(self, ends: set[str], waiting: list[Node], is_one: Callable[[Node], bool]) -> set[str]:
        """The nodes of a kind that lead to nothing but these ends, from those that wait on back."""
        found: set[str] = set()
        while waiting:
            node = waiting.pop()
            if node.name in found or not is_one(node):
                continue
            if any(user.name not in found and user.name not in ends for user in self.takers(node)):
                continue
            found.add(node.name)
            waiting += [self._graph[name] for name in map(node_name, node.data_inputs) if name in self._graph]
        return found

    def is_pipeline(self, node: Node) -> bool:
        """Whether values come into the graph here that nobody feeds; not where what a placeholder takes is parsed."""
        return PIPELINES.match(node.op) is not None and node.name not in self._served

    @cached_property
    def _served(self) -> set[str]:
        """The ops that parse records which a placeholder takes, as models that are served do."""
        return {node.name for node in self.model if _PARSES.match(node.op) and self._takes_placeholder(node)}

    def _takes_placeholder(self, node: Node) -> bool:
        before = reachable(self._graph, node.data_inputs, data_only=True, missing_ok=True)
        return any(self._graph[name].op in PLACEHOLDERS for name in before)

    @cached_property
    def sources(self) -> set[Source]:
        """Where values come in."""
        found = set()
        for node in self.model:
            if node.op in PLACEHOLDERS and not OF_SAVERS.search(node.name):
                found.add((node.name, 0))
            elif self.is_pipeline(node):
                found |= {(node.name, port) for port, _ in self._users.get(node.name, ())}
        return found

    @cached_property
    def weights(self) -> set[str]:
        """Nodes whose value is weights: variables or constant arrays of numbers, looked at but not computed with."""
        first = (
            node.name
            for node in self.model
            if node.op in VARIABLES or (node.op == "Const" and not self.is_trained and _is_array(node))
        )
        return set(closure(first, lambda name: (user.name for user in self.users(name) if user.op in _THROUGH)))

    @cached_property
    def layers(self) -> list[Node]:
        """The nodes that apply weights to something."""
        weights = self.weights
        return [
            node
            for node in self.model
            if node.op in _WEIGHING and any(node_name(ref) in weights for ref in node.data_inputs)
        ]

    @cached_property
    def before_weights(self) -> set[str]:
        """The nodes that weights are applied to and what these are made from, up to the sources."""
        refs = [ref for node in self.layers for ref in node.data_inputs]
        sources = {name for name, _ in self.sources}
        return reachable(self._graph, refs, stop=sources, data_only=True, missing_ok=True)

    @cached_property
    def behind_weights(self) -> set[str]:
        """The nodes that weights went into, not those that only know how large such a result is."""
        return self._behind(self.layers, lambda node: node.op not in SIZES)

    @cached_property
    def main_sources(self) -> set[Source]:
        """The sources that weights are applied to somewhere behind them: not labels, not learning rates."""
        return self._weighed - self._picking.keys() or self._weighed

    @cached_property
    def _weighed(self) -> set[Source]:
        """The sources that weights are applied to, of whatever kind."""
        fed = {name for name, _ in self.sources}
        before = (self._graph[name] for name in self.before_weights - fed if name in self._graph)
        refs = {parse_ref(ref)[:2] for node in (*self.layers, *before) for ref in node.data_inputs}
        return refs & self.sources

    @cached_property
    def _picking(self) -> dict[Source, list[Node]]:
        """The labels that weights are applied to, too, and the scores that they pick from."""
        layers = {node.name for node in self.layers}
        found = {
            source: picked_scores(self._graph, self.forward({source}), layers, self.behind_weights)
            for source in (sorted(self._weighed) if self.is_trained else ())
        }
        return {source: scores for source, scores in found.items() if scores}

    @cached_property
    def picked(self) -> list[Node]:
        """The scores that labels pick from."""
        labels = {} if self._picking.keys() & self.main_sources else self._picking
        return [scores for picked in labels.values() for scores in picked]

    @cached_property
    def labelled(self) -> set[str]:
        """The nodes that labels reach; in a frozen graph, what no weight meets is noise or a size, no label."""
        has_labels = self.main_sources and self.is_trained
        return self.forward(self.sources - self.main_sources) if has_labels else set()

    @cached_property
    def reached(self) -> set[str]:
        """The nodes that the model's inputs reach."""
        return self.forward(self.main_sources or self.sources)

    def forward(self, sources: set[Source]) -> set[str]:
        """The nodes that values reach, up to where others come in or only their sizes count."""
        first = [user for name, port in sources for at, user in self._users.get(name, ()) if at == port]
        # what comes out of placeholders is a source itself; labels repeated for each example are no answer
        ends = PLACEHOLDERS | SIZES
        return self._behind(first, lambda node: node.op not in ends and not self.is_pipeline(node))

    def _behind(self, first: Iterable[Node], goes_on: Callable[[Node], bool]) -> set[str]:
        """The names of these nodes and of those that take what they give, as far as it goes on."""
        return {node.name for node in closure(first, lambda node: self.users(node.name), goes_on)}

    def are_related(self, a: str, b: str) -> bool:
        """Whether one of two nodes feeds the other."""
        reach_a = self.forward({(a, port) for port, _ in self._users.get(a, ())})
        return b in reach_a or a in self.forward({(b, port) for port, _ in self._users.get(b, ())})


def _is_array(node: Node) -> bool:
    value = node.attrs.get("value")
    return isinstance(value, Tensor) and value.size > 1 and (value.dtype.is_floating or value.dtype.is_quantized)
