"""Tab completion in a shell: names of a model or of a table where an option takes those, elsewhere names of files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from pocketgraph.cli import MODELS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pocketgraph.graph import Graph

VARIABLE = "_POCKETGRAPH_COMPLETE"
"""Set by the shell's completion script, and by nobody else."""
MOST = 500  # names that are offered
OF_MODEL = frozenset((
    "outputs", "inputs", "output_layer", "input_layer", "target_layer", "output_node_names", "input_node_names",
    "input_names", "output_names", "input_name", "output_name", "input_data_name", "input_rate_name",
    "bottleneck", "final", "tensor", "keep", "bind", "feed", "initializer_nodes",
    "variable_names_whitelist", "variable_names_blacklist",
))  # fmt: skip
"""Parameters that take names of a model's nodes, most of them several with commas."""


def completes_words() -> None:
    """Has ``--option=value`` completed as each shell takes it; for when it is a shell that asks."""
    if VARIABLE in os.environ:
        from pocketgraph.cli.shared.completing_shells import use_shells

        use_shells()


def completes_names(command: click.Command) -> None:
    """Lets a command's free texts be completed, when it is a shell that asks; most of them are files."""
    if VARIABLE not in os.environ:
        return
    for parameter in command.params:
        if isinstance(parameter.type, click.types.StringParamType):
            setattr(parameter, "shell_complete", _offers(parameter))  # noqa: B010  mypy refuses to replace a method


def _offers(parameter: click.Parameter) -> Callable[[click.Context, str], list[CompletionItem]]:
    from click.shell_completion import CompletionItem

    def offered(context: click.Context, incomplete: str) -> list[CompletionItem]:
        begun, found = _begun_and_names(context, parameter.name or "", incomplete)
        names = [name for name in found if name.startswith(begun)][:MOST]
        before = incomplete.removesuffix(begun)
        return [CompletionItem(before + name) for name in names] or [CompletionItem(incomplete, type="file")]

    return offered


def _begun_and_names(context: click.Context, parameter: str, incomplete: str) -> tuple[str, Iterable[str]]:
    """What of a word is begun, behind the last comma or blank, and the names that may stand there."""
    begun = re.split(r"[,\s]", incomplete)[-1]
    with contextlib.suppress(Exception):  # a model that cannot be read offers nothing, and says nothing at the prompt
        if parameter == "transforms":
            return _begun_transform(context, begun)
        if parameter in OF_MODEL:
            return begun, _nodes(context)
        if parameter in TABLES:
            return begun, TABLES[parameter](context)
    return begun, ()


def _begun_transform(context: click.Context, begun: str) -> tuple[str, Iterable[str]]:
    """The rules; behind ``op=`` the model's ops."""
    from pocketgraph.transforms import tool

    _, is_parameter, value = begun.rpartition("op=")
    if not is_parameter:
        return begun, tool.names()
    model = _model(context)
    return value, sorted({node.op for node in model}) if model is not None else ()


def _nodes(context: click.Context) -> Iterable[str]:
    """The likely outputs and inputs first, then the other nodes but constants."""
    from pocketgraph.graph.entry_points import likely_inputs, likely_outputs

    graph = _model(context)
    if graph is None:
        return ()
    likely = [name for name, _ in (*likely_outputs(graph), *likely_inputs(graph))]
    return dict.fromkeys([*likely, *(node.name for node in graph if node.op != "Const")])


def _model(context: click.Context) -> Graph | None:
    """The model that was named so far."""
    from pocketgraph import formats

    given = [context.params.get(name) for name in MODELS]
    given += [context.params.get(one.name or "") for one in context.command.params if isinstance(one, click.Argument)]
    words = [word for word in context.args if not word.startswith("-")]  # what click has not given a parameter yet
    named = [value[0] if isinstance(value, tuple) else value for value in given if value] or words
    if not named:
        return None
    path = os.path.expanduser(str(named[0]))
    if os.path.isdir(path):
        from pocketgraph.freezing.training_dir import find

        path = find(path).graph
    return formats.load(path)


def _presets(context: click.Context) -> Iterable[str]:
    from pocketgraph.datasets.presets import PRESETS

    return PRESETS


def _targets(context: click.Context) -> Iterable[str]:
    if context.info_name not in ("export", "check"):
        return ()
    from pocketgraph.exporting.targets import TARGETS

    return TARGETS


def _rules(context: click.Context) -> Iterable[str]:
    from pocketgraph.transforms import tool

    return tool.names() if context.info_name == "transforms" else ()


def _steps(context: click.Context) -> Iterable[str]:
    from pocketgraph.quantization.quantization_steps import optional_names

    return optional_names()


def _repairs(context: click.Context) -> Iterable[str]:
    from pocketgraph.freezing.repair import REPAIRS

    return REPAIRS


def _signatures(context: click.Context) -> Iterable[str]:
    graph = _model(context)
    return graph.signatures if graph is not None else ()


def _kinds(context: click.Context) -> Iterable[str]:
    from pocketgraph.apps.projects.kinds import KINDS

    return KINDS


def _devices(context: click.Context) -> Iterable[str]:
    from pocketgraph.exporting.devices.device_table import devices

    return [device.name for device in devices()]


def _topics(context: click.Context) -> Iterable[str]:
    from pocketgraph.cli.shared.guides import guides

    group = context.find_root().command
    return [*guides(), *(group.list_commands(context) if isinstance(group, click.Group) else ())]


TABLES: dict[str, Callable[[click.Context], Iterable[str]]] = {
    "preset": _presets,
    "target": _targets,
    "targets": _targets,
    "name": _rules,
    "without": _steps,
    "repair": _repairs,
    "signature": _signatures,
    "signatures": _signatures,
    "topic": _topics,
    "kind": _kinds,
    "devices": _devices,
}
"""What parameters of these names are completed with; with files where nothing fits."""
