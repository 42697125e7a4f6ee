"""The ways round nodes that a target has nothing for: cutting the model before or behind them, or another target."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from pocketgraph.errors import command_on_model, option
from pocketgraph.exporting.model import EntryPoint, ExportModel
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import BINARY_SWITCHES, MOVES, PLACEHOLDERS, SAME_ELEMENTS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.litert.emitter import EMPTY
from pocketgraph.litert.operands import KNOWN
from pocketgraph.quantization.float_program import size_hint
from pocketgraph.runtime.tensor_names import before_rounds
from pocketgraph.runtime.unsupported_help import help_with

NO_ARITHMETIC = MOVES | SAME_ELEMENTS | PLACEHOLDERS | ops_with("shape") | {"Const"}
TABLES = ops_with("table")
OTHERS = {"c": ("tflite", "onnx"), "coreml": ("tflite", "onnx"), "onnx": ("tflite",)}
"""Targets that may have what another one lacks."""
FILES = {"tflite": "a .tflite", "onnx": "an .onnx"}
MOST_TENSORS = 4
"""Tensors of a cut that a hint names; one through more is not worth typing."""


def help_with_refusal(model: ExportModel, target: str, reasons: Mapping[str, str]) -> str:
    """What to type next where a target has nothing for some nodes, in what is true of this model.

    "" where ``help_with`` has something for each of them but tables, or there is no way.

    Args:
        model: what was to be exported.
        target: its name.
        reasons: why, by the nodes' names.
    """
    graph, entry = model.graph, model.main
    if all(EMPTY in reason for reason in reasons.values()):  # as of pairs of neighbours, of one step
        sizes = {port.tensor: port.shape for port in entry.inputs if port.shape is not None}
        if hint := size_hint(sizes):
            return hint
    names = {before_rounds(name)[0] for name in reasons}
    if not names <= graph.nodes.keys():
        return ""
    tables = {name for name in names if graph[name].op in TABLES}  # of them what looks up in them tells
    if all(help_with(graph, name) for name in reasons if name not in tables):
        return ""
    setting = f"{option('feed', 'values')}="
    sized = [name for name in names if KNOWN in (reason := reasons.get(name, "")) and setting not in reason]
    ways = [
        f"{setting}{name}=1, or the number that you feed, fixes '{name}' in the file, so that this is known"
        for name in _deciding_numbers(graph, entry, sized)
    ]
    if len(model.entries) == 1 and all(node.op not in BINARY_SWITCHES for node in graph):  # no cut inside a loop
        if before := _last_before(graph, entry, names):
            ways.append(f"{option('outputs')}={','.join(before)} exports what is before that")
        if behind := _fed_behind(graph, entry, names):
            ways.append(f"{option('inputs')}={','.join(behind)} exports what is behind that, fed by the app")
    ops = {graph[name].op for name in names}
    forms = [form for form in OTHERS.get(target, ("onnx",)) if all(_has_form(form, op) for op in ops)]
    if forms:
        asked = f"target={','.join(forms)}"
        asked = command_on_model(f"pocketgraph check {{}} --{asked}", f"check with {asked}")
        ways.append(f"{asked} tells whether {' or '.join(FILES[form] for form in forms)} file can hold it")
    return "; or ".join(ways)


def _deciding_numbers(graph: Graph, entry: EntryPoint, refused: Collection[str]) -> list[str]:
    """Inputs of one number of which it is made how refused nodes compute, as a factor by which pictures are resized."""
    settings = [ref for name in refused for ref in graph[name].data_inputs[1:]]
    before = reachable(graph, settings, data_only=True, missing_ok=True) if settings else set()
    ports = (port for port in entry.inputs if port.is_fixed and math.prod(port.sizes or ()) == 1)
    return [node_name(port.tensor) for port in ports if node_name(port.tensor) in before][:1]


def _has_form(target: str, op: str) -> bool:
    from pocketgraph.exporting.onnx.converter_table import CONVERTERS
    from pocketgraph.litert.lowering import LOWERINGS

    return (CONVERTERS if target == "onnx" else LOWERINGS).row(op) is not None


def _last_before(graph: Graph, entry: EntryPoint, refused: Collection[str]) -> list[str]:
    """The tensors with which a model ends in front of all refused nodes, computed from what it is fed; none where
    that is not worth it."""
    fed = {node_name(port.tensor) for port in entry.inputs}
    needed = reachable(graph, entry.fetches, stop=fed, data_only=True)
    behind = set(closure(refused, lambda name: (user.name for user in graph.consumers.get(name, ()))))
    shapes = ops_with("shape")
    computed = set(
        closure(fed, lambda name: (one.name for one in graph.consumers.get(name, ()) if one.op not in shapes))
    )
    front = (computed & needed) - behind - fed
    given = [ref for name in needed & behind for ref in graph[name].data_inputs] + entry.fetches
    found = {canonical(ref).removesuffix(":0") for ref in given if node_name(ref) in front}
    return _worth_it(graph, found, needed, reachable(graph, found, data_only=True))


def _fed_behind(graph: Graph, entry: EntryPoint, refused: Collection[str]) -> list[str]:
    """All tensors to feed where a model begins behind its refused nodes; none where one of these is its output, or that
    is not worth it."""
    fed = {node_name(port.tensor) for port in entry.inputs}
    rest = reachable(graph, entry.fetches, stop=fed | set(refused), data_only=True)
    if any(node_name(ref) in refused for ref in entry.fetches):
        return []
    given = [ref for name in rest - fed - set(refused) for ref in graph[name].data_inputs]
    starts = fed | set(refused)
    found = {canonical(ref).removesuffix(":0") for ref in given if node_name(ref) in starts}
    return _worth_it(graph, found, reachable(graph, entry.fetches, stop=fed, data_only=True), rest - starts)


def _worth_it(graph: Graph, tensors: Collection[str], needed: Collection[str], part: Collection[str]) -> list[str]:
    """These tensors, in the graph's order, where they are few and the part computes, with layers if any."""
    layers = {name for name in needed if graph[name].op in ops_with("layer")}
    computing = {name for name in part if graph[name].op not in NO_ARITHMETIC}
    if len(tensors) > MOST_TENSORS or computing.isdisjoint(layers or computing):
        return []
    places = {node.name: place for place, node in enumerate(graph)}
    return sorted(tensors, key=lambda ref: (places[node_name(ref)], ref))
