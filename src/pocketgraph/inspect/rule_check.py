"""Runs a graph before and after each rule, and names the first rule that changes a result, and where that starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pocketgraph.errors import PocketgraphError, TransformError, UsageError, command_on_model, option
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.groups import closure
from pocketgraph.graph.order import descendants, topological
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.compare import TOLERANCE, Difference, compared
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds
from pocketgraph.runtime.session import Session
from pocketgraph.transforms.tool import Applied

LOSSY = frozenset({
    "quantize_weights", "quantize_nodes", "round_weights", "fake_quantize_training", "freeze_requantization_ranges",
    "mobile_8bit", "smallest",
})  # fmt: skip
"""The rules that trade precision for size; what they may change is measured by another tolerance."""
LOSSY_TOLERANCE = 0.1  # of the largest magnitude: eight-bit weights stay well within, broken graphs do not
AT_ONCE = 64  # tensors fetched in one run while looking for the place, so that not all of them are held in memory


class RuleCheck:
    """Hand it to ``tool.run`` as ``observe``: it raises when a rule changes a result too much.

    Args:
        feeds: arrays by tensor name; by default made up from the placeholders, the same for every rule.
        tolerance: the largest difference that passes, as a share of the output's largest magnitude, for every rule; by
            default 1e-4, and 0.1 for the rules in LOSSY.
        seed: for made-up feeds.

    Attributes:
        passed: the rules that were checked, with the largest relative difference of their outputs.
        unproven: the outputs that the feeds give hardly a number for, and in words why.
    """

    def __init__(
        self, feeds: Mapping[str, Any] | None = None, tolerance: float | None = None, *, seed: int = 0
    ) -> None:
        self.feeds = None if feeds is None else {canonical(name): value for name, value in feeds.items()}
        self.tolerance = tolerance
        self.seed = seed
        self.passed: list[tuple[str, float]] = []
        self.unproven: dict[str, str] = {}
        self._last: tuple[Graph, list[str], list[Array]] | None = None

    def __call__(self, applied: Applied) -> None:
        """Compares a rule's result with what it was given.

        Raises:
            UsageError: the graph has no likely outputs, cannot be fed, or did not run before the rule.
            TransformError: the graph does not run after the rule, or gives other results.
        """
        name, before, after = applied.rule.name, applied.before, applied.after
        if after is before:
            self.passed.append((name, 0.0))
            return
        outputs = [ref for ref in default_fetches(before) if node_name(ref) in before]
        feeds = self._feeds(before, after, outputs)
        expected = self._expected(before, outputs, feeds, name)
        names = self._names_after(before, after, outputs)
        feeds = self._feeds_after(before, after, feeds)
        lost = next((ref for ref in names if node_name(ref) not in after), None)
        if lost is not None:
            raise TransformError(
                f"the likely output '{lost}' is gone", where=name, hint=f"name the outputs: {option('outputs')}=…"
            )
        try:
            with Session(after) as session:
                found = session.run(names, _fitting(feeds, after))
        except PocketgraphError as error:
            raise TransformError(f"the graph does not run after it: {error}", where=name) from error
        limit = self.tolerance
        if limit is None:
            limit = LOSSY_TOLERANCE if name in LOSSY else TOLERANCE
        worst = 0.0
        for ref, x, y in zip(outputs, expected, found, strict=True):
            difference = compared(ref, [(x, y)], limit)
            if not difference.passed:
                self._check_that_it_repeats(before, ref, x, feeds, limit)
                start = first_difference(before, after, feeds, ref, limit)
                raise TransformError(_said(difference, limit, start), where=name)
            worst = max(worst, difference.largest_relative)
            if difference.unproven:
                self.unproven[ref] = difference.unproven
        self.passed.append((name, worst))
        self._last = (after, names, found)

    def _check_that_it_repeats(
        self, graph: Graph, ref: str, before: Array, feeds: Mapping[str, Array], limit: float
    ) -> None:
        """Raises UsageError when the graph itself gives an output of another value in another run."""
        with Session(graph) as session:
            again = session.run([ref], _fitting(feeds, graph))[0]
        if compared(ref, [(before, again)], limit).passed:
            return
        start = first_difference(graph, graph, feeds, ref, limit)
        raise UsageError(
            f"the graph gives another '{ref}' each time it runs"
            + (f", which starts at node '{start}'" if start else ""),
            where=option("check"),
            hint="take out what is random, such as dropout; "
            + command_on_model("pocketgraph freeze_graph {} -o frozen.pb --repair")
            + " does that",
        )

    def _expected(self, graph: Graph, outputs: list[str], feeds: Mapping[str, Array], rule: str) -> list[Array]:
        if self._last is not None and self._last[0] is graph and self._last[1] == outputs:
            return self._last[2]
        try:
            with Session(graph) as session:
                return session.run(outputs, _fitting(feeds, graph))
        except PocketgraphError as error:
            raise UsageError(
                f"the graph cannot be run before {rule}: {error}",
                where=option("check"),
                hint=f"give feeds with {option('check_inputs')}=FILE.npz, or run without {option('check')}",
            ) from error

    def _feeds(self, before: Graph, after: Graph, outputs: Sequence[str]) -> Mapping[str, Array]:
        """The given feeds, and made-up ones for the other placeholders; they stay the same for all rules."""
        feeds = dict(self.feeds or {})
        problem: PocketgraphError | None = None
        for graph in (before, after):  # a rule may make a placeholder with a shape out of what had none
            try:
                made = synthetic_feeds(_fed(graph, before.inputs, after), outputs, self.seed)
            except PocketgraphError as error:
                problem = problem or error
                continue
            for name, value in made.items():
                feeds.setdefault(canonical(name), value)
            self.feeds = feeds
            return feeds
        assert problem is not None
        if self.feeds:  # perhaps they are enough
            return feeds
        raise UsageError(str(problem), where=option("check"), hint=f"give feeds with {option('check_inputs')}=FILE.npz")

    def _feeds_after(self, before: Graph, after: Graph, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        """The feeds under the names that the inputs have now."""
        if before.inputs == after.inputs or len(before.inputs) != len(after.inputs):
            return feeds
        new = dict(zip(map(node_name, before.inputs), map(node_name, after.inputs), strict=True))
        self.feeds = {
            canonical(ref).replace(node_name(ref), new.get(node_name(ref), node_name(ref)), 1): value
            for ref, value in feeds.items()
        }
        return self.feeds

    @staticmethod
    def _names_after(before: Graph, after: Graph, outputs: list[str]) -> list[str]:
        if len(before.outputs) == len(after.outputs) and before.outputs != after.outputs:
            return list(after.outputs)
        return outputs


def _fed(graph: Graph, inputs: Sequence[str], after: Graph) -> Graph:
    """The graph with its input nodes as placeholders, as the rule made them where it did."""
    wanted = {node_name(ref) for ref in inputs}

    def change(node: Node) -> Node:
        if node.name not in wanted or node.op.startswith("Placeholder"):
            return node
        made = after.nodes.get(node.name)
        return made if made is not None and made.op.startswith("Placeholder") else node

    return graph.map_nodes(change)


def _fitting(feeds: Mapping[str, Array], graph: Graph) -> dict[str, Array]:
    return {name: value for name, value in feeds.items() if node_name(name) in graph}


def _said(difference: Difference, limit: float, start: str) -> str:
    how = difference.problem or f"by {difference.largest_relative:.3g} of its largest magnitude (allowed: {limit:g})"
    place = f"; the difference starts at node '{start}'" if start else ""
    return f"it changes the output '{difference.name}': {how}{place}"


def first_difference(before: Graph, after: Graph, feeds: Mapping[str, Array], output: str, tolerance: float) -> str:
    """The node at which two graphs begin to differ on the way to an output; "" when that cannot be told.

    Nodes of one name in both graphs are compared. A node may differ on purpose (a convolution whose factor was moved
    into its weights) as long as the ones behind it agree; so the search goes backwards from the output, through nodes
    that differ, until everything before agrees.
    """
    alive = descendants(after, map(node_name, feeds))  # the others are weights, which rules change on purpose
    common = [node for node in topological(after, partial=True) if node.name in alive and _comparable(node, before)]
    differs = dict(_differences(before, after, [node.name for node in common], feeds, tolerance))

    def sources(name: str) -> Iterable[str]:
        return () if differs.get(name) is False else map(node_name, after[name].data_inputs)

    found = set(closure([node_name(output)], sources, after.__contains__))
    return next((node.name for node in common if node.name in found and differs.get(node.name)), "")


def _comparable(node: Node, before: Graph) -> bool:
    other = before.nodes.get(node.name)
    return (
        other is not None
        and node.op not in ("Const", "NoOp", "Enter", "Exit", "NextIteration", "LoopCond", "Switch", "Merge")
        and not node.op.startswith("Placeholder")
        and not node.op.startswith("Quantized")
    )


def _differences(
    before: Graph, after: Graph, names: list[str], feeds: Mapping[str, Array], tolerance: float
) -> Iterator[tuple[str, bool]]:
    """For each node whether its first output differs; nodes that cannot be fetched are left out."""
    with Session(before) as first, Session(after) as second:
        for at in range(0, len(names), AT_ONCE):
            part = names[at : at + AT_ONCE]
            for group in (part, *([name] for name in part)):
                try:
                    x = first.run(group, _fitting(feeds, before))
                    y = second.run(group, _fitting(feeds, after))
                except PocketgraphError:
                    continue  # one of them is on a branch not taken or in a loop: each alone
                for name, a, b in zip(group, x, y, strict=True):
                    yield name, not (a.dtype == b.dtype and compared(name, [(a, b)], tolerance).passed)
                if group is part:
                    break


__all__ = ["LOSSY", "LOSSY_TOLERANCE", "RuleCheck", "first_difference"]
