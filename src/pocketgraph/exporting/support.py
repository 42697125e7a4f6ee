"""Whether a model can be exported, node by node: the export itself is tried, so that the answer is never another."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import MissingExtraError, PocketgraphError
from pocketgraph.exporting.arguments import arguments_of
from pocketgraph.exporting.model import ExportModel, Source
from pocketgraph.exporting.opening import Sizes, opened
from pocketgraph.exporting.programs import LackingError, help_with
from pocketgraph.exporting.samples import with_samples
from pocketgraph.exporting.targets import target_of
from pocketgraph.exporting.tool import export_model
from pocketgraph.graph import node_name


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
    """

    target: str
    nodes: Mapping[str, str]
    reasons: Mapping[str, str]
    obstacles: tuple[Obstacle, ...] = ()
    refusal: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether ``export`` writes the model."""
        return not self.reasons and not self.refusal


def support(
    source: Source,
    target: str,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    shapes: Sizes | None = None,
    values: Mapping[str, Any] | None = None,
    **options: Any,
) -> Support:
    """Tries to export a model, on made-up inputs, and says what stands in the way; nothing is left on the disk.

    Args:
        source, inputs, outputs, shapes, values: see ``export``.
        target: the name of a target.
        options: of the target.

    Raises:
        UsageError: there is no such target or option, or no such node.
        MissingExtraError: a package that the target needs is not there.
        FormatError, FreezeError: the file is damaged, or variables have no values.
    """
    chosen = target_of("", target)
    arguments = arguments_of(chosen, options)
    model = opened(source, inputs=inputs, outputs=outputs, shapes=shapes, values=values)
    model = with_samples(model, None, SampleReading(), 1)
    ops = _needed(model)
    suffix = chosen.suffixes[0] if chosen.suffixes else ""
    with tempfile.TemporaryDirectory(prefix="pocketgraph-check-") as folder:
        try:
            export_model(model, os.path.join(folder, f"model{suffix}"), chosen, arguments)
        except LackingError as lacking:
            return Support(chosen.name, ops, lacking.reasons, _grouped(model, lacking.reasons))
        except MissingExtraError:
            raise
        except PocketgraphError as error:
            return Support(chosen.name, ops, {}, refusal=str(error))
    return Support(chosen.name, ops, {})


def _needed(model: ExportModel) -> dict[str, str]:
    """The ops of the nodes that the entry points compute, in graph order."""
    fed = {node_name(port.tensor) for entry in model.entries for port in entry.inputs}
    waiting = [node_name(port.tensor) for entry in model.entries for port in entry.outputs]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen and name in model.graph:
            seen.add(name)
            waiting.extend([] if name in fed else map(node_name, model.graph[name].inputs))
    return {node.name: node.op for node in model.graph if node.name in seen}


def _grouped(model: ExportModel, reasons: Mapping[str, str]) -> tuple[Obstacle, ...]:
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name, reason in reasons.items():
        op = model.graph[name].op if name in model.graph else ""
        groups[op, reason, help_with(model.graph, name)].append(name)
    made = (Obstacle(*key, tuple(names)) for key, names in groups.items())
    return tuple(sorted(made, key=lambda obstacle: -len(obstacle.nodes)))
