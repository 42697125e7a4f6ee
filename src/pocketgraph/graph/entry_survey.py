"""Where a graph begins and ends: its ends ranked by what they are and how they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from pocketgraph.graph.adversarial_networks import generated
from pocketgraph.graph.epsilon_greedy import greedy_scores
from pocketgraph.graph.graph import Graph
from pocketgraph.graph.loss_arithmetic import answer_before_loss, averaged_answers
from pocketgraph.graph.node import Node, canonical, node_name, parse_ref
from pocketgraph.graph.op_traits import PLACEHOLDERS, SELECTS, SOURCES, SUMS, SWITCH, VARIABLES, ops_with
from pocketgraph.graph.order import descendants, inside_loops, reachable
from pocketgraph.graph.output_likelihood import (
    GOOD_NAME,
    OF_SAVERS,
    OWN_NAME,
    POOR_OPS,
    is_of_training,
    likelihood,
    state_ends,
)
from pocketgraph.graph.picked_scores import ends_without_normalizer
from pocketgraph.graph.weight_reach import SIZES, WeightReach

_TRIVIAL = ops_with("passes", "checks", "view", "exit") | {"Flatten", "Pack"}
"""What exporters put behind the op that a model ends in."""
_PICKS = frozenset({"ArgMax", "ArgMin", "TopK", "TopKV2", "Round", "Greater", "GreaterEqual", "Cast"})
"""Not a trait: what makes an answer of scores."""
NAMED = {"AsString": 0, "LookupTableFind": 1, "LookupTableFindV2": 1}
"""Not a trait: what names an answer, and which of its inputs that is."""
_TRAINING_TOWER = re.compile(r"(^|/)train(ing)?(_\d+)?/", re.I)  # a second copy of the net, where training has its own
SIDE_RESULTS = re.compile(r"(Stateless)?If$|FusedBatchNorm|Merge$|Unique|SparseSoftmax")
"""Ops whose second and later results serve training."""
_LOADERS = frozenset({"StatefulPartitionedCall", "ReadVariableOp"})
"""Not a trait: what saves, restores and reads the variables of a module whose functions nothing in its graph calls."""
_RESULT = re.compile(r"Identity(_\d+)?")
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
    """The likely inputs and outputs of a graph, and which of the outputs stand out."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._reach = WeightReach(graph)

    @property
    def is_trained(self) -> bool:
        """Whether the graph is of training: it has variables."""
        return self._reach.is_trained

    def inputs(self) -> list[LikelyEntry]:
        main = {name for name, _ in self._reach.main_sources}
        first, second, last = [], [], []
        for node in self._graph:
            if node.op in PLACEHOLDERS and not OF_SAVERS.search(node.name):
                if node.name in main:
                    first.append(LikelyEntry(node.name, f"{node.op} that meets the model's weights"))
                else:
                    second.append(LikelyEntry(node.name, f"{node.op} that no weight is applied to"))
            elif self._reach.is_pipeline(node) and (node.name in main or not main):
                last.append(LikelyEntry(node.name, f"{node.op}, training's input pipeline"))
        return first + second + last

    @cached_property
    def outputs(self) -> list[_Ranked]:
        """The ends, the likeliest first."""
        found: dict[str, _Ranked] = {}
        for end in self._last_nodes():
            node = self._before_loss(end)
            if node is not None:
                self._add_results(node, found)
        self._add_generated(found)
        found = self._with_picked_scores(found)
        ends = sorted(found.values(), key=lambda ranked: -ranked.score)
        if len(ends) > 1 and not self.is_trained:  # frozen results keep what they wait for, as what leaves loops
            before = reachable(self._graph, [ends[0].name], missing_ok=True)
            ends = [ends[0], *(end for end in ends[1:] if end.name not in before)]
        return ends

    @cached_property
    def _inner(self) -> set[str]:
        """The nodes that the model's inputs reach, and labels do not."""
        reach = self._reach
        return (reach.reached - reach.labelled) or reach.reached or {node.name for node in reach.model}

    @cached_property
    def _labels(self) -> set[str]:
        """Labels, and what is computed of them alone."""
        reach = self._reach
        if not reach.main_sources or not self.is_trained:
            return set()
        return reach.labelled - reach.reached | {name for name, _ in reach.sources - reach.main_sources}

    @cached_property
    def _of_boxes(self) -> set[str]:
        """What comes from selected boxes and is called like a result, be it only how many they are."""
        selections = [node.name for node in self._graph if node.op in ops_with("box_selection")]
        behind = descendants(self._graph, selections) if selections else set()
        return {name for name in behind if OWN_NAME.match(name) and GOOD_NAME.search(name)}

    def _last_nodes(self) -> Iterator[Node]:
        """The nodes whose results nothing of the model takes."""
        reach, inner, looping = self._reach, self._inner, inside_loops(self._graph)
        ends = inner | self._of_boxes
        for node in reach.model:
            if node.name not in ends or node.op in SOURCES or node.name in looping:
                continue
            if {user.op for user in reach.takers(node)} == {"Assert"}:
                continue
            if not any(user.name in inner for user in reach.users(node.name)):
                yield node

    def _before_loss(self, end: Node) -> Node | None:
        """The answer that a loss computes with, where it is other than the end; None where it is none of its own."""
        if self._is_shaped_for_losses(end):
            source = self._graph.find_producer(end.data_inputs[0])
            users = self._reach.users(source.name) if source is not None else ()
            return None if any(user is not end and user.name in self._inner for user in users) else source
        if any(user.name in self._reach.labelled for user in self._reach.users(end.name)):
            return answer_before_loss(self._graph, end, self._labels)
        return end

    def _add_results(self, node: Node, found: dict[str, _Ranked]) -> None:
        """Adds what somebody wants of an end: itself, what it is the mean of, or the scores that it picks from."""
        averaged = averaged_answers(self._graph, node) if self.is_trained else []
        if averaged:
            found.update({one.name: ranked for one in averaged if (ranked := self._rank(one)) is not None})
            return
        ranked = self._rank(node)
        scores = greedy_scores(self._graph, [node.name]) if node.op in SELECTS else None
        if scores is not None and ranked is not None:
            node, ranked = scores, ranked._replace(name=scores.name, why="the action's scores")
        if ranked is not None:
            found[node.name] = ranked
        pick = self._behind_trivial(node)[0] if self._reach.takers(node) else node
        if self.is_trained and pick.op in _PICKS and pick.data_inputs:
            scores = self._graph.find_producer(pick.data_inputs[0], _PICKS)
            ranked = self._rank(scores) if scores is not None and scores.name in self._inner else None
            if ranked is not None:
                found.setdefault(ranked.name, ranked)

    def _add_generated(self, found: dict[str, _Ranked]) -> None:
        """Adds what a generator makes, and another network judges for its training."""
        reach = self._reach
        if not self.is_trained or not reach.layers:
            return
        for name in generated(self._graph, reach.layers, reach.weights, reach.behind_weights):
            ranked = self._rank(self._graph[name]) if name in self._inner else None
            if ranked is not None:  # what judges it serves training
                found[name] = ranked._replace(score=ranked.score + _GENERATED, why="given to what judges it")

    def _with_picked_scores(self, found: dict[str, _Ranked]) -> dict[str, _Ranked]:
        """The ends, with the scores that labels pick from in place of what a loss makes of them."""
        for scores in self._reach.picked:
            after = self._reach.forward({(scores.name, 0)})
            kept = ends_without_normalizer(self._graph, found, after, self._reach.labelled)
            ranked = None if any(name in after for name in kept) else self._rank(scores)
            found = {name: found[name] for name in kept}
            if ranked is not None:
                found.setdefault(scores.name, ranked._replace(why="the scores that labels pick from"))
        return found

    def _is_shaped_for_losses(self, node: Node) -> bool:
        """Whether a tensor has another shape only for what training computes, such as rows of all places' logits."""
        takers = self._reach.takers(node) if self.is_trained and node.op == "Reshape" else []
        return bool(takers) and all(self._reach.serves_training(user) for user in takers)

    def sole_outputs(self) -> list[str] | None:
        ranked = self.outputs
        if not ranked or ranked[0].score < 0:
            return None
        equals = self.results() or self.equals()
        return [*equals, *self.states()] if set(self.rivals()) <= {*equals, *self.states()} else None

    def results(self) -> list[str]:
        """All results of a function that TensorFlow 2 froze, in order, which it calls Identity, Identity_1 and so on
        without a gap; none where the likeliest end is called otherwise. What only hands an input on is left over."""
        if self.is_trained or not self.outputs or not _RESULT.fullmatch(self.outputs[0].name):
            return []
        named = [node.name for node in self._graph if node.op == "Identity" and _RESULT.fullmatch(node.name)]
        named.sort(key=_place)
        ends = {entry.name for entry in self.outputs}
        return [name for name in named if name in ends] if _place(named[-1]) == len(named) - 1 else []

    def states(self) -> list[str]:
        """The ends that give a recurrent network's next states, where the likeliest end needs the last ones."""
        best, *others = (entry.name for entry in self.outputs)
        before = reachable(self._graph, [best], data_only=True, missing_ok=True)
        return state_ends([name for name in before if self._graph[name].op in PLACEHOLDERS], others)

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
            is_rival = rival.score >= min(_CREDIBLE, best.score)
            if is_rival and not self._belong_together(best.name, rival.name):
                found.append(rival.name)
        return found

    def equals(self) -> list[str]:
        """The likeliest end, and those rivals that are named like results, as it is, and are exactly as likely, or are
        handed on under a name of their own, as it is: a detector's boxes, scores and classes. A sum does whose
        name begins alike, as ``detection_classes`` are counted from 1 beside ``detection_boxes``."""
        ranked = self.outputs
        if not ranked:
            return []
        best, scores = ranked[0], {entry.name: entry.score for entry in ranked}
        if not GOOD_NAME.search(best.name):
            return [best.name]
        named = {name for name in scores if OWN_NAME.match(name)}
        own = {name for name in named if self._graph[name].op == "Identity"}
        if best.name in own:
            summed = {name for name in named if self._graph[name].op in SUMS}
            own |= {name for name in summed if name.rpartition("_")[0] == best.name.rpartition("_")[0] != ""}
        alike = (name for name in self.rivals() if scores[name] == best.score or {name, best.name} <= own)
        return [best.name, *(name for name in alike if GOOD_NAME.search(name))]

    def is_apart(self, name: str, others: Sequence[str]) -> bool:
        """Whether a node is none of these, comes from none, leads to none and picks from none's scores."""
        nodes = {node_name(other) for other in others}
        return name not in nodes and not any(self._belong_together(other, name) for other in nodes)

    def _belong_together(self, end: str, other: str) -> bool:
        """Whether one of two nodes feeds the other, or the second one picks from what the first one makes scores of."""
        return self._reach.are_related(end, other) or self._picks_of(other, end)

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
            if before is None or before.op in PLACEHOLDERS:
                return False
            node = before
            if has_picked and (source == best or self._reach.are_related(best, source)):
                return True
        return False

    def _rank(self, node: Node) -> _Ranked | None:
        """How likely a node is an output; None when it only hands an input on."""
        reach = self._reach
        end, port = self._behind_trivial(node)
        is_loader = end.op in _LOADERS and self._graph.functions and not reach.sources
        if end.op in PLACEHOLDERS or (end.op in VARIABLES and reach.sources) or is_loader:
            return None
        if end.op in SWITCH and len(set(map(canonical, end.data_inputs))) == 1:
            return None  # the pivots of a condition, switch_t and switch_f: its predicate switched by itself
        is_last = end.name in reach.behind_weights and end.name not in reach.before_weights
        is_result = is_last or not reach.main_sources or node.name in self._of_boxes
        score, why = likelihood(node.name, end.op, is_handed_on=is_result and node.op == "Identity")
        if reach.main_sources and node.name in reach.behind_weights:
            score += 2
        if _TRAINING_TOWER.search(node.name):
            score -= 1
        takers = reach.takers(node)
        score -= any(user.op in SIZES for user in takers)
        if takers and all(user.op.startswith("Assign") or user.op in ("ZerosLike", "OnesLike") for user in takers):
            score -= 4  # the next value of a variable, as quantized training keeps ranges, or what a state begins like
        if end.op in POOR_OPS or (port and SIDE_RESULTS.match(end.op)) or self._merges_side_results(end):
            score -= 2
        return _Ranked(score, node.name, why)

    def _behind_trivial(self, node: Node) -> tuple[Node, int]:
        """The node that makes the value which a node hands on, and which of its results that is."""
        end, port = node, 0
        for _ in range(8):
            if end.op not in _TRIVIAL or not end.data_inputs:
                break
            source, port, _ = parse_ref(end.data_inputs[0])
            if source not in self._graph:
                break
            end = self._graph[source]
        return end, port

    def _merges_side_results(self, node: Node) -> bool:
        """Whether branches meet here that give training's results, such as a batch norm's mean and variance."""
        ports = dict(parse_ref(ref)[:2] for ref in node.data_inputs) if node.op == "Merge" else {}
        sources = [self._graph[name] for name in ports if name in self._graph]
        return any(is_of_training(one) or (ports[one.name] and SIDE_RESULTS.match(one.op)) for one in sources)


def _place(result: str) -> int:
    """Which result of a function it is, by its name."""
    return int(result.rpartition("_")[2]) if "_" in result else 0
