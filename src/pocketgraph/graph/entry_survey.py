"""What a graph's nodes tell of where it begins and ends: ends ranked by what they are and how they are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from pocketgraph.graph.adversarial_networks import generated
from pocketgraph.graph.exploration import OVERRULING, greedy_scores
from pocketgraph.graph.graph import Graph
from pocketgraph.graph.loss_arithmetic import answer_before_loss, averaged_answers
from pocketgraph.graph.node import Node, canonical, node_name, parse_ref
from pocketgraph.graph.op_traits import VARIABLES, ops_with
from pocketgraph.graph.order import inside_loops, reachable
from pocketgraph.graph.output_likelihood import (
    GOOD_NAME,
    LOSS_SCOPES,
    OF_SAVERS,
    OWN_NAME,
    POOR_OPS,
    is_of_training,
    likelihood,
    state_ends,
)
from pocketgraph.graph.picked_scores import ends_without_normalizer, picked_scores
from pocketgraph.graph.summary_nodes import summary_only_nodes
from pocketgraph.graph.tensor import Tensor

_PLACEHOLDERS = ops_with("placeholder")
PIPELINES = re.compile(
    r"IteratorGetNext|(Queue|Stage).*(Dequeue|Unstage)|QueueDequeue|ReaderRead|ParseExample|ParseSingle"
)
_PARSES = re.compile(r"ParseExample|ParseSingle")
_SIZES = ops_with("shape") | {"ZerosLike", "OnesLike"}  # their results tell of their input no more than its shape
_THROUGH = frozenset({
    "Identity", "ReadVariableOp", "Reshape", "Transpose", "Cast", "Dequantize", "Enter", "Switch", "Squeeze",
    "ExpandDims", "ConcatV2", "Slice", "StridedSlice", "Unpack", "Split", "SplitV", "RefSwitch",
})  # fmt: skip
"""Not a trait: ops behind which weights are still weights, as far as exporters put them there."""
_WEIGHING = ops_with("layer", "sum", "bias", "difference", "product") | {"RealDiv"}
_TRIVIAL = ops_with("passes", "checks", "view", "exit") | {"Flatten", "Pack"}
"""What exporters put behind the op that a model ends in."""
_OF_EIGHT_BITS = re.compile(r"_eightbit/")  # where quantize_nodes puts what one node takes
_PICKS = frozenset({"ArgMax", "ArgMin", "TopK", "TopKV2", "Round", "Greater", "GreaterEqual", "Cast"})
"""Not a trait: what makes an answer of scores."""
NAMED = {"AsString": 0, "LookupTableFind": 1, "LookupTableFindV2": 1}
"""Not a trait: what names an answer, and which of its inputs that is."""
_TRAINING_TOWER = re.compile(r"(^|/)train(ing)?(_\d+)?/", re.I)  # a second copy of the net, where training has its own
SIDE_RESULTS = re.compile(r"(Stateless)?If$|FusedBatchNorm|Merge$|Unique|SparseSoftmax")
"""Ops whose second and later results serve training."""
OTHER_BRANCH = re.compile(r"(Ref)?Switch|.*Quantize|SoftmaxCross")
"""Ops whose second and later results stand beside the first only for the ops behind them."""
_LOADERS = frozenset({"StatefulPartitionedCall", "ReadVariableOp"})
"""Not a trait: what saves, restores and reads the variables of a module whose functions nothing in its graph calls."""
_CLEAR = 4.0  # so much less likely than the best is no rival: a named softmax against an unnamed sum
_GENERATED = 6.0  # more for the pictures of a generator than for what its judge says of them
_CREDIBLE = 2.5  # an end that scores this and does not lead to the best, or come from it, is a rival


class LikelyEntry(NamedTuple):
    """A likely input or output: its tensor (``node``, or ``node:1`` and so on for what is not a node's first result),
    and why it was chosen, in a few words."""

    name: str
    why: str


class _Ranked(NamedTuple):
    score: float
    name: str
    why: str


class EntrySurvey:
    """What reaches what, worked out once for the questions above. Every step visits each edge at most once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        left_over = self._left_over() | summary_only_nodes(graph)
        self._model = [
            node
            for node in graph
            if node.name not in left_over and not self._serves_training(node) and not self._only_checks(node)
        ]
        self._users: dict[str, list[tuple[int, Node]]] = {}
        for node in self._model:
            for ref in node.data_inputs:
                name, port, _ = parse_ref(ref)
                self._users.setdefault(name, []).append((port, node))

    def _serves_training(self, node: Node) -> bool:
        return is_of_training(node) or (self.is_trained and LOSS_SCOPES.search(node.name) is not None)

    def _only_checks(self, node: Node) -> bool:  # as add_check_numerics_ops leaves them
        return node.op == "CheckNumerics" and not self._takers(node)

    def _takers(self, node: Node) -> list[Node]:
        """The nodes that take a result of a node, not those that only wait for it."""
        users = self._graph.consumers.get(node.name, ())
        return [user for user in users if any(node_name(ref) == node.name for ref in user.data_inputs)]

    def _left_over(self) -> set[str]:
        """What leads to nothing but tensors in eight bits that quantize_nodes made, and then read elsewhere."""
        waiting = [node for node in self._graph if node.op == "QuantizeV2" and _OF_EIGHT_BITS.search(node.name)]
        found: set[str] = set()
        while waiting:
            node = waiting.pop()
            if node.name in found or any(user.name not in found for user in self._takers(node)):
                continue
            found.add(node.name)
            waiting += [self._graph[name] for name in map(node_name, node.data_inputs) if name in self._graph]
        return found

    def inputs(self) -> list[LikelyEntry]:
        main = {name for name, _ in self._main_sources}
        first, second, last = [], [], []
        for node in self._graph:
            if node.op in _PLACEHOLDERS and not OF_SAVERS.search(node.name):
                if node.name in main:
                    first.append(LikelyEntry(node.name, f"{node.op} that meets the model's weights"))
                else:
                    second.append(LikelyEntry(node.name, f"{node.op} that no weight is applied to"))
            elif self._is_pipeline(node) and (node.name in main or not main):
                last.append(LikelyEntry(node.name, f"{node.op}, training's input pipeline"))
        return first + second + last

    @cached_property
    def outputs(self) -> list[_Ranked]:
        reached = self._forward(self._main_sources or self._sources)
        labelled, labels = set[str](), set[str]()
        # In a frozen graph, what no weight meets is noise or a size, no label.
        if self._main_sources and self.is_trained:
            labelled = self._forward(self._sources - self._main_sources)
            labels = labelled - reached | {name for name, _ in self._sources - self._main_sources}
        inner = (reached - labelled) or reached or {node.name for node in self._model}
        found: dict[str, _Ranked] = {}
        looping = inside_loops(self._graph)
        for node in self._model:
            if node.name not in inner or node.op in _PLACEHOLDERS or node.op in VARIABLES or node.op == "Const":
                continue
            if node.name in looping or {user.op for user in self._takers(node)} == {"Assert"}:
                continue
            if any(user.name in inner for _, user in self._users.get(node.name, ())):
                continue
            if self._is_shaped_for_losses(node):
                source = self._graph.find_producer(node.data_inputs[0])
                users = self._users.get(source.name, ()) if source is not None else ()
                if source is None or any(user is not node and user.name in inner for _, user in users):
                    continue
                node = source
            elif any(user.name in labelled for _, user in self._users.get(node.name, ())):
                node = answer_before_loss(self._graph, node, labels)
            averaged = averaged_answers(self._graph, node) if self.is_trained else []
            if averaged:
                found |= {one.name: ranked for one in averaged if (ranked := self._rank(one)) is not None}
                continue
            ranked = self._rank(node)
            scores = greedy_scores(self._graph, [node.name]) if node.op in OVERRULING else None
            if scores is not None and ranked is not None:
                node, ranked = scores, ranked._replace(name=scores.name, why="the action's scores")
            if ranked is not None:
                found[node.name] = ranked
            if self.is_trained and node.op in _PICKS and node.data_inputs:
                scores = self._graph.find_producer(node.data_inputs[0])
                ranked = self._rank(scores) if scores is not None and scores.name in inner else None
                if ranked is not None:
                    found.setdefault(ranked.name, ranked)
        layers = self._weighing if self.is_trained else []
        for name in generated(self._graph, layers, self._weights, self._behind_weights) if layers else ():
            ranked = self._rank(self._graph[name]) if name in inner else None
            if ranked is not None:  # what judges it serves training
                found[name] = ranked._replace(score=ranked.score + _GENERATED, why="given to what judges it")
        found = self._with_picked_scores(found, labelled)
        ends = sorted(found.values(), key=lambda ranked: -ranked.score)
        if len(ends) > 1 and not self.is_trained:  # frozen results keep what they wait for, as what leaves loops
            before = reachable(self._graph, [ends[0].name], missing_ok=True)
            ends = [ends[0], *(end for end in ends[1:] if end.name not in before)]
        return ends

    def _with_picked_scores(self, found: dict[str, _Ranked], labelled: set[str]) -> dict[str, _Ranked]:
        """The ends, with the scores that labels pick from in place of what a loss makes of them.

        Args:
            found: the ends.
            labelled: the nodes that labels reach.
        """
        for scores in self._picked:
            after = self._forward({(scores.name, 0)})
            kept = ends_without_normalizer(self._graph, found, after, labelled)
            ranked = None if any(name in after for name in kept) else self._rank(scores)
            found = {name: found[name] for name in kept}
            if ranked is not None:
                found.setdefault(scores.name, ranked._replace(why="the scores that labels pick from"))
        return found

    def _is_shaped_for_losses(self, node: Node) -> bool:
        """Whether a tensor has another shape only for what training computes, such as rows of all places' logits."""
        takers = self._takers(node) if self.is_trained and node.op == "Reshape" else []
        return bool(takers) and all(self._serves_training(user) for user in takers)

    def sole_outputs(self) -> list[str] | None:
        ranked = self.outputs
        if not ranked or ranked[0].score < 0:
            return None
        equals = self.equals()
        return [*equals, *self.states()] if set(self.rivals()) <= {*equals, *self.states()} else None

    def states(self) -> list[str]:
        """The ends that give a recurrent network's next states, where the likeliest end needs the last ones."""
        best, *others = (entry.name for entry in self.outputs)
        before = reachable(self._graph, [best], data_only=True, missing_ok=True)
        return state_ends([name for name in before if self._graph[name].op in _PLACEHOLDERS], others)

    def cached_layers(self, name: str) -> set[str]:
        """The placeholders in front of a node whose default is a layer of the network, as in a retrained model: its old
        classes are not behind them."""
        before = reachable(self._graph, [name], data_only=True, missing_ok=True)
        return {one for one in before if self._caches_a_layer(self._graph[one])}

    def _caches_a_layer(self, node: Node) -> bool:
        if node.op != "PlaceholderWithDefault" or not node.data_inputs:
            return False
        default = self._graph.find_producer(node.data_inputs[0])
        return default is not None and default.op != "Const"

    def rivals(self) -> list[str]:
        """The ends that are about as likely as the likeliest, and neither lead to it nor come from it."""
        ranked = self.outputs
        if not ranked:
            return []
        best = ranked[0]
        found = []
        copy = re.compile(re.escape(best.name) + r"(_\d+)+")  # the same layer built again for evaluation
        for rival in ranked[1:]:
            if copy.fullmatch(rival.name):
                continue
            if _TRAINING_TOWER.search(rival.name) and not _TRAINING_TOWER.search(best.name):
                continue
            if rival.score <= best.score - _CLEAR:
                continue
            is_rival = rival.score >= min(_CREDIBLE, best.score) and not self._related(best.name, rival.name)
            if is_rival and not self._picks_of(rival.name, best.name):
                found.append(rival.name)
        return found

    def equals(self) -> list[str]:
        """The likeliest end, and those rivals that are named like results, as it is, and are exactly as likely, or are
        handed on under a name of their own, as it is: a detector's boxes, scores and classes."""
        ranked = self.outputs
        if not ranked:
            return []
        best, scores = ranked[0], {entry.name: entry.score for entry in ranked}
        if not GOOD_NAME.search(best.name):
            return [best.name]
        own = {name for name in scores if self._graph[name].op == "Identity" and OWN_NAME.match(name)}
        alike = (name for name in self.rivals() if scores[name] == best.score or {name, best.name} <= own)
        return [best.name, *(name for name in alike if GOOD_NAME.search(name))]

    def is_apart(self, name: str, others: Sequence[str]) -> bool:
        """Whether a node is none of these, comes from none, leads to none and picks from none's scores."""
        nodes = {node_name(other) for other in others}
        return name not in nodes and not any(
            self._related(other, name) or self._picks_of(name, other) for other in nodes
        )

    def _is_pipeline(self, node: Node) -> bool:
        """Whether values come into the graph here that nobody feeds; not where what a placeholder takes is parsed."""
        return PIPELINES.match(node.op) is not None and node.name not in self._served

    @cached_property
    def _served(self) -> set[str]:
        """The ops that parse records which a placeholder takes, as models that are served do."""
        return {node.name for node in self._model if _PARSES.match(node.op) and self._takes_placeholder(node)}

    def _takes_placeholder(self, node: Node) -> bool:
        before = reachable(self._graph, node.data_inputs, data_only=True, missing_ok=True)
        return any(self._graph[name].op in _PLACEHOLDERS for name in before)

    def _picks_of(self, name: str, best: str) -> bool:
        """Whether a node only picks from what another makes scores of: the class beside the probabilities."""
        node = self._graph[name]
        has_picked = False
        for _ in range(8):
            if not node.data_inputs or node.op not in _PICKS | _TRIVIAL | NAMED.keys():
                return False
            has_picked |= node.op in _PICKS
            source = node_name(node.data_inputs[NAMED.get(node.op, 0)])
            before = self._graph.nodes.get(source)
            if before is None or before.op in _PLACEHOLDERS:
                return False
            node = before
            if has_picked and (source == best or self._related(best, source)):
                return True
        return False

    @cached_property
    def _sources(self) -> set[tuple[str, int]]:
        """Where values come in, by node and output."""
        found = set()
        for node in self._model:
            if node.op in _PLACEHOLDERS and not OF_SAVERS.search(node.name):
                found.add((node.name, 0))
            elif self._is_pipeline(node):
                found |= {(node.name, port) for port, _ in self._users.get(node.name, ())}
        return found

    @cached_property
    def is_trained(self) -> bool:
        """Whether the graph is of training: it has variables."""
        return any(node.op in VARIABLES for node in self._graph)

    @cached_property
    def _weights(self) -> set[str]:
        """Nodes whose value is weights: variables or constant arrays of numbers, looked at but not computed with."""
        found: set[str] = set()
        waiting = []
        for node in self._model:
            if node.op in VARIABLES or (node.op == "Const" and not self.is_trained and _is_array(node)):
                found.add(node.name)
                waiting.append(node.name)
        while waiting:
            for _, user in self._users.get(waiting.pop(), ()):
                if user.op in _THROUGH and user.name not in found:
                    found.add(user.name)
                    waiting.append(user.name)
        return found

    @cached_property
    def _weighing(self) -> list[Node]:
        """The nodes that apply weights to something."""
        weights = self._weights
        return [
            node
            for node in self._model
            if node.op in _WEIGHING and any(node_name(ref) in weights for ref in node.data_inputs)
        ]

    @cached_property
    def _before_weights(self) -> set[str]:
        """The nodes that weights are applied to and what these are made from, up to the sources."""
        refs = [ref for node in self._weighing for ref in node.data_inputs]
        sources = {name for name, _ in self._sources}
        return reachable(self._graph, refs, stop=sources, data_only=True, missing_ok=True)

    @cached_property
    def _main_sources(self) -> set[tuple[str, int]]:
        """The sources that weights are applied to somewhere behind them: not labels, not learning rates."""
        return self._weighed - self._picking.keys() or self._weighed

    @cached_property
    def _picking(self) -> dict[tuple[str, int], list[Node]]:
        """The labels that weights are applied to, too, and the scores that they pick from."""
        layers = {node.name for node in self._weighing}
        found = {
            source: picked_scores(self._graph, self._forward({source}), layers, self._behind_weights)
            for source in (sorted(self._weighed) if self.is_trained else ())
        }
        return {source: scores for source, scores in found.items() if scores}

    @cached_property
    def _picked(self) -> list[Node]:
        labels = {} if self._picking.keys() & self._main_sources else self._picking
        return [scores for picked in labels.values() for scores in picked]

    @cached_property
    def _weighed(self) -> set[tuple[str, int]]:
        """The sources that weights are applied to, of whatever kind."""
        fed = {name for name, _ in self._sources}
        before = (self._graph[name] for name in self._before_weights - fed if name in self._graph)
        refs = {parse_ref(ref)[:2] for node in (*self._weighing, *before) for ref in node.data_inputs}
        return refs & self._sources

    def _forward(self, sources: set[tuple[str, int]]) -> set[str]:
        found: set[str] = set()
        waiting = [user for name, port in sources for at, user in self._users.get(name, ()) if at == port]
        while waiting:
            node = waiting.pop()
            if node.op in _PLACEHOLDERS or self._is_pipeline(node):
                continue  # what comes out of these is a source itself
            if node.op in _SIZES:
                continue  # a table of labels that is repeated for each example is no answer
            if node.name not in found:
                found.add(node.name)
                waiting.extend(user for _, user in self._users.get(node.name, ()))
        return found

    def _rank(self, node: Node) -> _Ranked | None:
        """How likely a node is an output; None when it only hands an input on."""
        end, port = node, 0
        for _ in range(8):
            if end.op not in _TRIVIAL or not end.data_inputs:
                break
            source, port, _ = parse_ref(end.data_inputs[0])
            if source not in self._graph:
                break
            end = self._graph[source]
        is_loader = end.op in _LOADERS and self._graph.functions and not self._sources
        if end.op in _PLACEHOLDERS or (end.op in VARIABLES and self._sources) or is_loader:
            return None
        if end.op in ("Switch", "RefSwitch") and len(set(map(canonical, end.data_inputs))) == 1:
            return None  # the pivots of a condition, switch_t and switch_f: its predicate switched by itself
        is_last = end.name in self._behind_weights and end.name not in self._before_weights
        is_result = is_last or not self._main_sources
        score, why = likelihood(node.name, end.op, is_handed_on=is_result and node.op == "Identity")
        if self._main_sources and node.name in self._behind_weights:
            score += 2
        if _TRAINING_TOWER.search(node.name):
            score -= 1
        takers = self._takers(node)
        score -= any(user.op in _SIZES for user in takers)
        if takers and all(user.op.startswith("Assign") for user in takers):
            score -= 4  # the next value of a variable, as quantized training keeps ranges
        if end.op in POOR_OPS or (port and SIDE_RESULTS.match(end.op)) or self._merges_side_results(end):
            score -= 2
        return _Ranked(score, node.name, why)

    def _merges_side_results(self, node: Node) -> bool:
        """Whether branches meet here that give training's results, such as a batch norm's mean and variance."""
        ports = dict(parse_ref(ref)[:2] for ref in node.data_inputs) if node.op == "Merge" else {}
        sources = [self._graph[name] for name in ports if name in self._graph]
        return any(is_of_training(one) or (ports[one.name] and SIDE_RESULTS.match(one.op)) for one in sources)

    @cached_property
    def _behind_weights(self) -> set[str]:
        """The nodes that weights went into, not those that only know how large such a result is."""
        found: set[str] = set()
        waiting = list(self._weighing)
        while waiting:
            node = waiting.pop()
            if node.name not in found and node.op not in _SIZES:
                found.add(node.name)
                waiting.extend(user for _, user in self._users.get(node.name, ()))
        return found

    def _related(self, a: str, b: str) -> bool:
        """Whether one of two nodes feeds the other."""
        reach_a = self._forward({(a, port) for port, _ in self._users.get(a, ())})
        return b in reach_a or a in self._forward({(b, port) for port, _ in self._users.get(b, ())})


def _is_array(node: Node) -> bool:
    value = node.attrs.get("value")
    return isinstance(value, Tensor) and value.size > 1 and (value.dtype.is_floating or value.dtype.is_quantized)
