"""Guesses where a graph begins and ends: what a caller would feed, and what a caller would want back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pocketgraph.errors import GraphError, UsageError, nearest
from pocketgraph.graph.entry_survey import SIDE_RESULTS, EntrySurvey, LikelyEntry
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Graph
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.graph.node import canonical, node_name
from pocketgraph.graph.opdefs import output_dtypes

OTHER_BRANCH = re.compile(r"(Ref)?Switch|.*Quantize|SoftmaxCross")
"""Ops whose second and later results stand beside the first only for the ops behind them."""


def likely_outputs(graph: Graph) -> list[LikelyEntry]:
    """The results that a user of the model would want, most likely first; of a node with several, all of them.

    Stated outputs (the graph's own, or its signatures') come first. Then the ends of the part that depends on the
    model's inputs and not on labels, gradients, savers or summaries, ranked by what they end in and how they are
    called. In a training graph, for an end that only picks the best class, what it picks from is listed as well.
    """
    return _ends(graph, EntrySurvey(graph))


def _ends(graph: Graph, survey: EntrySurvey) -> list[LikelyEntry]:
    stated = _stated(
        graph, list(graph.outputs), [s.outputs.values() for s in graph.public_signatures.values()], "output"
    )
    if stated and is_model_file(graph):
        return stated  # such a file runs as a whole
    known = {node_name(name) for name, _ in stated}
    ranked = [r for r in survey.outputs if r.name not in known]
    return stated + [LikelyEntry(name, r.why) for r in ranked for name in _results(graph, r.name)]


def likely_inputs(graph: Graph) -> list[LikelyEntry]:
    """The nodes that a user of the model would feed, most likely first: stated inputs, then placeholders that meet the
    model's weights, then those that do not (labels, rates), then iterators and queues."""
    stated = _stated(graph, list(graph.inputs), [s.inputs.values() for s in graph.public_signatures.values()], "input")
    found = EntrySurvey(graph).inputs()
    return stated + [end for end in found if end.name not in {name for name, _ in stated}]


def sole_outputs(graph: Graph) -> list[str] | None:
    """The outputs when there is no doubt about them: the graph's own, its signatures', or the results of the one node
    that stands out, or of several that do so alike; else None."""
    own = [name for name in graph.outputs if node_name(name) in graph]
    if own:
        return own
    stated = _stated(
        graph, list(graph.outputs), [s.outputs.values() for s in graph.public_signatures.values()], "output"
    )
    if stated:
        return [name for name, _ in stated]
    sole = EntrySurvey(graph).sole_outputs()
    return None if sole is None else [result for name in sole for result in _results(graph, name)]


def contenders(graph: Graph) -> list[LikelyEntry]:
    """The likely outputs without those that are so much less likely than the first that nobody means them, such as the
    states that a recurrent network leaves over beside its classes."""
    survey = EntrySurvey(graph)
    ends = _ends(graph, survey)
    close = {*survey.rivals(), *(node_name(end.name) for end in ends[:1])}
    return [end for end in ends if node_name(end.name) in close]


DETECTIONS = ("detection_boxes", "detection_scores", "detection_classes", "num_detections", "detection_masks")
"""What exports of the Object Detection API call their results, of which none says anything without the others."""


def main_outputs(graph: Graph) -> list[str]:
    """The outputs that make a model whole: those stated (a SavedModel's of the default signature); else the likeliest,
    and others that are about as likely and are no part of the way to it, such as a second head. Of a training graph,
    which has many ends, the likeliest and those that are exactly as likely. Empty without any."""
    stated = [s for key, s in graph.signatures.items() if key == DEFAULT_SIGNATURE]
    listed = list(graph.outputs) or [tensor for signature in stated for tensor in signature.outputs.values()]
    own = list(dict.fromkeys(_brief(name) for name in listed if node_name(canonical(name)) in graph))
    if own:
        return own
    survey = EntrySurvey(graph)
    ends = _ends(graph, survey)
    if not ends:
        return []
    first = node_name(ends[0].name)
    is_stated = ends[0].why.endswith(" output")
    if not is_stated and (results := survey.results()):
        return results
    rivals = [] if is_stated else survey.equals() if survey.is_trained else survey.rivals()
    rivals += [] if is_stated else survey.states()
    if first in DETECTIONS and not is_stated:
        rivals += [node_name(end.name) for end in ends if node_name(end.name) in DETECTIONS]
    layers = survey.cached_layers(first)
    nodes = {first, *(rival for rival in rivals if survey.cached_layers(rival) == layers)}
    return [name for name, _ in ends if node_name(name) in nodes]


def other_ends(graph: Graph, chosen: Sequence[str], *, least: float = 0) -> list[str]:
    """Ends of a graph, less likely outputs, that are neither among those chosen nor on the way to or from them; of a
    retrained model, without those of the network that it was made from. ``least`` is how likely they are at least, as
    EntrySurvey ranks them."""
    survey = EntrySurvey(graph)
    layers = {layer for name in chosen for layer in survey.cached_layers(name)}
    return [
        end.name
        for end in survey.outputs
        if end.score >= least and survey.is_apart(end.name, chosen) and layers <= survey.cached_layers(end.name)
    ]


def _results(graph: Graph, name: str) -> list[str]:
    """What a node at the end of a graph gives that is wanted: all that it gives, or the first where the rest serves
    something else."""
    node = graph[name]
    if SIDE_RESULTS.match(node.op) or OTHER_BRANCH.match(node.op):
        return [name]
    try:
        number = len(output_dtypes(node))
    except GraphError:
        number = 1
    return [name, *(f"{name}:{port}" for port in range(1, number))]


def _stated(graph: Graph, own: list[str], signatures: list[object], kind: str) -> list[LikelyEntry]:
    found: dict[str, LikelyEntry] = {}
    for name in own:
        found.setdefault(_brief(name), LikelyEntry(_brief(name), f"stated {kind}"))
    for values in signatures:
        assert hasattr(values, "__iter__")
        for tensor in values:
            found.setdefault(_brief(tensor), LikelyEntry(_brief(tensor), f"signature {kind}"))
    return [end for name, end in found.items() if node_name(name) in graph]


def _brief(name: str) -> str:
    return canonical(name).removesuffix(":0")


def check_names(graph: Graph, names: Iterable[str], *, is_fed: bool) -> None:
    """Makes sure that the graph has the nodes of tensors that a caller names.

    Raises:
        UsageError: it lacks one; the message suggests others.
    """
    for name in names:
        if node_name(name) not in graph:
            raise UsageError(f"the graph has no node '{name}'", hint=unknown_node_hint(graph, name, is_fed=is_fed))


MOST_NAMED = 5
"""Likely inputs or outputs that a message names."""


def unknown_node_hint(graph: Graph, name: str, *, is_fed: bool) -> str:
    """A hint for a node name that the graph does not have: the near names, and where none of these is an input (an
    output, of what is not fed) the likely ones too, as names of other models are near by chance alone. Empty for a
    graph that has neither."""
    for signature in graph.signatures.values():
        ref = (signature.inputs if is_fed else signature.outputs).get(name, name)
        if ref != name:
            return f"the model's own '{name}' is '{ref}' here"
    base = node_name(name.partition(":")[0])  # of "x:0x" or "x:0:0"
    if base in graph:
        return f"did you mean '{base}'?"
    likely = [end.name for end in (likely_inputs if is_fed else likely_outputs)(graph)]
    near = nearest(base, graph.nodes)
    said = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    if not likely or not {node_name(end) for end in likely}.isdisjoint(near):
        return said
    kind = ("input" if is_fed else "output") + ("s are" if len(likely) > 1 else " is")
    ends = ", ".join(map(repr, likely[:MOST_NAMED])) + (", …" if len(likely) > MOST_NAMED else "")
    return f"{said + ' ' if said else ''}the likely {kind} {ends}"
