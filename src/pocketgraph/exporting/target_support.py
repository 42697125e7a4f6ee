"""Whether a model can be exported, node by node: the export itself is tried, so that the answer is never another."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import MissingExtraError, PocketgraphError, UsageError, did_you_mean
from pocketgraph.exporting import tfmobile
from pocketgraph.exporting.model import Source
from pocketgraph.exporting.opening import opened
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.refusal_help import help_with_refusal
from pocketgraph.exporting.samples import with_samples
from pocketgraph.exporting.target_options import arguments_of
from pocketgraph.exporting.targets import TARGETS, target_of
from pocketgraph.exporting.tool import export_model
from pocketgraph.freezing.ready_models import read_model
from pocketgraph.graph import Graph, node_name
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.model_file_graph import refuse_finished
from pocketgraph.graph.order import reachable
from pocketgraph.quantization.stated_sizes import Sizes
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.feeding.synthetic_feeds import check_mapping
from pocketgraph.runtime.tensor_names import before_rounds
from pocketgraph.runtime.unsupported_help import help_with

OR_FIT = ", or ask fit about this file, which tells how it does on devices"
DEVICES = {"android": ("tflite",), "ios": ("coreml", "tflite"), "pi": ("tflite",), "web": ("onnx",)}
"""Names that stand for targets: those whose files the devices take."""


class Obstacle(NamedTuple):
    """Nodes of one op that a target has nothing for, for the same reason; ``hint`` says what would help, or is ""."""

    op: str
    reason: str
    hint: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Support:
    """Whether a target takes a model.

    Attributes:
        target: its name.
        nodes: the op of each node that the entry points need, by name; constants too.
        reasons: why not, for each node that stands in the way, by name.
        obstacles: the same in groups, the largest first.
        refusal: why the model as a whole is refused, when it is not because of its nodes; else "".
        hint: ways round the nodes for which no obstacle's hint has one; "" where there are none.
    """

    target: str
    nodes: Mapping[str, str]
    reasons: Mapping[str, str]
    obstacles: tuple[Obstacle, ...] = ()
    refusal: str = ""
    hint: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether ``export`` writes the model."""
        return not self.reasons and not self.refusal


def targets_of(name: str) -> tuple[str, ...]:
    """The targets that a name means: itself, or those for a device that can be written here.

    Raises:
        UsageError: there is no such target or device.
    """
    if name == tfmobile.NAME or name in TARGETS:
        return (name,)
    if name in DEVICES:
        known = [target for target in DEVICES[name] if target in TARGETS]
        here = [target for target in known if not TARGETS[target].missing]
        return tuple(here or known)
    names = (*TARGETS, tfmobile.NAME, *DEVICES)
    raise UsageError(f"there is no target '{name}'", hint=did_you_mean(name, names) or f"there are {', '.join(names)}")


def support(
    source: Source,
    target: str,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    shapes: Sizes | None = None,
) -> Support:
    """Tries to export a model, on made-up inputs, and says what stands in the way; nothing is left on the disk.

    Args:
        source, inputs, outputs, shapes: see ``export``.
        target: the name of a target, or ``tfmobile``.

    Raises:
        UsageError: there is no such target or node, or the file is one that ``export`` writes.
        MissingExtraError: a package that the target needs is not there.
        FormatError, FreezeError: the file is damaged, or variables have no values.
    """
    if target == tfmobile.NAME:
        return _mobile_support(source, inputs, outputs, shapes)
    chosen = target_of("", target)
    model = opened(source, inputs=inputs, outputs=outputs, shapes=shapes)
    refuse_finished(model.graph, "check", OR_FIT)
    model = with_samples(model, None, SampleReading(), 1)
    ops = _needed(
        model.graph,
        (node_name(port.tensor) for entry in model.entries for port in entry.inputs),
        (node_name(port.tensor) for entry in model.entries for port in entry.outputs),
    )
    suffix = chosen.suffixes[0] if chosen.suffixes else ""
    with tempfile.TemporaryDirectory(prefix="pocketgraph-check-") as folder:
        try:
            path = os.path.join(folder, f"model{suffix}")
            export_model(model, path, chosen, arguments_of(chosen, {}), is_timed=False)
        except LackingError as lacking:
            return Support(
                chosen.name, ops, lacking.reasons, _grouped(model.graph, lacking.reasons, help_with),
                hint=help_with_refusal(model, chosen.name, lacking.reasons),
            )  # fmt: skip
        except MissingExtraError:
            raise
        except PocketgraphError as error:
            return Support(chosen.name, ops, {}, refusal=str(error))
    return Support(chosen.name, ops, {})


def _mobile_support(
    source: Source, inputs: Sequence[str] | None, outputs: Sequence[str] | None, shapes: Sizes | None
) -> Support:
    """Whether TensorFlow Mobile's default library runs a model; nothing is exported for it."""
    graph = source if isinstance(source, Graph) else read_model(source, outputs)
    refuse_finished(graph, "check", OR_FIT)
    wanted = [node_name(name) for name in (outputs or default_fetches(graph))]
    check_names(graph, inputs or (), is_fed=True)
    check_names(graph, wanted, is_fed=False)
    check_mapping(shapes)
    if shapes:
        opened(source, inputs=inputs, outputs=outputs, shapes=shapes)  # as for export, it refuses those of no input
    needed = _needed(graph, (), wanted)
    reasons = tfmobile.lacking(graph)
    ops = {node.name: node.op for node in graph}

    def help_of(graph: Graph, name: str) -> str:
        return tfmobile.help_on_mobile(graph, name, needed)

    return Support(tfmobile.NAME, ops, reasons, _grouped(graph, reasons, help_of))


def _needed(graph: Graph, fed: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """The ops of the nodes that compute the wanted ones, in graph order; those that are fed need nothing."""
    seen = reachable(graph, wanted, stop=set(fed), missing_ok=True)
    return {node.name: node.op for node in graph if node.name in seen}


def _grouped(graph: Graph, reasons: Mapping[str, str], help_of: Callable[[Graph, str], str]) -> tuple[Obstacle, ...]:
    groups: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for name, reason in reasons.items():
        base = before_rounds(name)[0]  # once for all rounds of an unrolled loop
        told = base if name not in graph and base in graph else name
        op = graph[told].op if told in graph else ""
        groups[op, reason, help_of(graph, name)][told] = None
    made = (Obstacle(*key, tuple(names)) for key, names in groups.items())
    return tuple(sorted(made, key=lambda obstacle: -len(obstacle.nodes)))
