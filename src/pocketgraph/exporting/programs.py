"""An entry point as a program of LiteRT operators, which the .tflite and C exporters start from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.model import EntryPoint, ExportModel
from pocketgraph.graph import Graph, Node, node_name
from pocketgraph.graph.dtype import BOOL, FLOAT, STRING
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.litert.program import Program
from pocketgraph.litert.unsupported import Unsupported
from pocketgraph.passes.dropout_removal import is_noise_of_dropout
from pocketgraph.passes.training_switches import dropout_share
from pocketgraph.quantization.canonical.canonicalize import canonicalize
from pocketgraph.quantization.conversion.int8_conversion import take_pixels
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.float_program import Simplified, simplified
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.runtime.description import LATE

MOST_NAMED = 3
"""Nodes of one op that a message names."""
MOST_OPS = 4
"""Ops that a message names; beyond, one node of each."""


ROUND = "/round_"
"""What the name of a loop's node is followed by where the loop is unrolled."""
SPECTRA = frozenset({"RFFT", "FFT", "IFFT", "IRFFT", "RFFT2D", "FFT2D", "ComplexAbs", "Real", "Imag", "Angle"})
FROM_COMPLEX = frozenset({"ComplexAbs", "Real", "Imag", "Angle", "IRFFT"})
"""Not traits: ops with complex numbers, and those of them that give floats; only this hint asks."""
MOST_HEADS = 16  # that a hint names


class LackingError(UsageError):
    """Ops that a target has nothing for; the message names the first few, and says how to list all.

    Attributes:
        reasons: why, by node name.
    """

    exit_code = 1

    def __init__(self, target: str, graph: Graph, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        by_reason: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, reason in reasons.items():
            by_reason[graph[name].op if name in graph.nodes else "", reason].append(name)
        most = MOST_NAMED if len(by_reason) <= MOST_OPS else 1
        shown = list(by_reason.items())[:MOST_OPS]
        listed = [f"{op or 'the graph'} ({_names(nodes, most)}): {reason}" for (op, reason), nodes in shown]
        rest = list(by_reason)[MOST_OPS:]
        if rest:
            others = len({op for op, _ in rest})
            listed.append(f"and {others} more ops (`pocketgraph check MODEL` lists all)")
        hints = dict.fromkeys(hint for name in reasons for hint in (help_with(graph, name),) if hint)
        count = f"{len(reasons)} node{'s' * (len(reasons) != 1)}"
        super().__init__(f"{target} has nothing for {count}: {'; '.join(listed)}", hint="; ".join(hints))


def _names(nodes: list[str], most: int) -> str:
    more = f" and {len(nodes) - most} more" if len(nodes) > most else ""
    return ", ".join(f"'{name}'" for name in nodes[:most]) + more


def last_layers(graph: Graph, node: Node) -> list[str]:
    """The results of the last layers in front of a node, a detector's heads."""
    found: dict[str, None] = {}
    waiting, seen = list(node.data_inputs), {node.name}
    while waiting:
        before = graph.nodes.get(node_name(waiting.pop(0)))
        if before is None or before.name in seen:
            continue
        seen.add(before.name)
        if before.op in ops_with("bias", "layer"):
            found[before.name] = None
        else:
            waiting += before.data_inputs
    return sorted(found)[:MOST_HEADS]


def _first_real(graph: Graph, node: Node) -> str:
    """The first floats behind complex numbers, such as the magnitudes of a spectrum; "" without."""
    waiting, seen = [node], {node.name}
    while waiting:
        one = waiting.pop(0)
        if one.op in FROM_COMPLEX:
            return one.name
        behind = [other for other in graph.consumers.get(one.name, ()) if other.name not in seen]
        seen.update(other.name for other in behind)
        waiting += behind
    return ""


def help_with(graph: Graph, name: str) -> str:
    """What would help with a node that a target has nothing for; "" where nothing is known."""
    node = graph.nodes.get(name) or graph.nodes.get(name.partition(ROUND)[0])
    if node is None:
        return ""
    if node.op in ops_with("box_selection"):
        heads = last_layers(graph, node)
        if heads:
            given = f"{option('outputs')}={','.join(heads)}"
            return f"cut in front of the selection of boxes, which is then the app's: {given}"
    if node.op in SPECTRA:
        spectrum = _first_real(graph, node)
        if spectrum:
            return f"the spectrum is the app's: {option('inputs')}={spectrum} names what to feed"
    switches = [other.name for other in graph if other.op == "Placeholder" and other.attr("dtype", FLOAT) is BOOL]
    if node.op in ("Switch", "Merge", "If", "StatelessIf") and switches:
        given = " ".join(f"{option('feed', 'values')}={switch}=false" for switch in switches)
        return f"set what it depends on for good: {given}"
    if node.op in ("Enter", "Exit", "NextIteration", "LoopCond", "While", "StatelessWhile"):
        return (
            "a loop whose length depends on the input cannot be written out: cut before or "
            f"after it with {option('outputs')}"
        )
    if node.op in ops_with("random") or node.op.startswith("StatelessRandom"):
        if not is_noise_of_dropout(graph, name):
            return f"feed the numbers: {option('inputs')} names all tensors to feed"
        shares = [other.name for other in graph if dropout_share(graph, other.name) == 1]
        given = " ".join(f"{option('feed', 'values')}={share}=1" for share in shares)
        return f"set dropout's share for good: {given}" if shares else without_dropout_help()
    if node.op.startswith("Placeholder"):
        return f"set it for good, as in {option('feed', 'values')}={name}=1, or name all {option('inputs')}"
    if node.op.startswith(("Var", "RestoreV2", "ReadVariable")):
        return "its weights are variables: `pocketgraph freeze_graph` makes constants of them"
    if node.op in ("Assert", "CheckNumerics", "Print"):
        return "transform_graph's remove_nodes takes it out: `--transforms='remove_nodes(op=" + node.op + ")'`"
    if node.op.startswith(("String", "Decode", "Encode")) or STRING in node.attrs.values():
        return f"give the numbers behind the texts: {option('inputs')} names the tensors to feed"
    return ""


def without_dropout_help() -> str:
    """What takes dropout out that training left on."""
    return f"`pocketgraph freeze_graph` with {option('repair')}=dropout takes dropout out"


def float_program(entry: EntryPoint, model: ExportModel, target: str = "LiteRT", *, custom: bool = False) -> Program:
    """An entry point as a program of LiteRT builtin operators, in few of them.

    Its inputs and outputs are in the entry point's order and have the shapes ``sizes``.

    Args:
        entry: the entry point.
        model: the model that it is of.
        target: who has to have the operators, for the message.
        custom: make custom operators of nodes that have no builtin one.

    Raises:
        LackingError: nodes have no LiteRT form; all are listed.
    """
    simple = simplified(
        model.graph,
        [port.tensor for port in entry.outputs],
        {p.tensor: p.sizes or () for p in entry.inputs},
        may_hold_codes=True,
    )
    return canonicalize(_lowered(simple, target, custom))


def quantized_program(
    entry: EntryPoint, model: ExportModel, *, io: str = "float", activations: str = "int8", target: str = "LiteRT"
) -> tuple[Program, list[str]]:
    """An entry point with eight-bit weights and tensors, as quantize makes it with the model's samples; and its notes.

    Args:
        entry: the entry point, the model's main one.
        model: the model; it has samples.
        io: what goes in and out: ``float``, the type of the tensors in between (``activations``), or ``uint8``.
        activations: ``int8`` or ``int16``.
        target: as for ``float_program``.

    Raises:
        LackingError: as ``float_program``.
        UsageError: there are no samples, or nothing to quantize.
        RunError: a sample leads to values that are not finite.
    """
    if model.samples is None or not model.sample_count:
        raise UsageError(
            "eight bits need samples to calibrate with", hint=f"pass {option('data', 'samples')}=DIR|NPZ|LIST"
        )
    if entry is not model.main:
        raise UsageError(
            f"the samples are those of '{model.main.name}', so '{entry.name}' cannot be calibrated",
            hint=f"{option('signatures')}={model.main.name} exports the one alone",
        )
    samples = model.samples
    names = [port.name for port in entry.inputs]
    outcome = quantize_program(
        float_program(entry, model, target),
        lambda: ([np.asarray(feeds[name]) for name in names] for feeds in samples()),
        model.sample_count,
        QuantizationOptions(io=io, activations=activations, threads=model.threads),
        model.progress,
    )
    program = outcome.converted.program
    how = model.normalization
    if io == "uint8" and how is not None and len({*how.mean}) == len({*how.std}) == 1:
        take_pixels(program, how.mean[0], how.std[0])
    return program, [*outcome.notes, *_left_in_float(program, entry, io)]


def _left_in_float(program: Program, entry: EntryPoint, io: str) -> list[str]:
    """What is to be said of inputs and outputs that stay float although codes were asked for."""
    if io == "float":
        return []
    sides = zip((*entry.inputs, *entry.outputs), (*program.inputs, *program.outputs), strict=True)
    names = [f"'{port.name}'" for port, value in sides if value.dtype is FLOAT]
    return [f"{', '.join(names)} stay float32: what is next to them computes in float"] if names else []


def _lowered(simple: Simplified, target: str, custom: bool) -> Program:
    try:
        return simple.lowered(custom=custom)
    except Unsupported as refusal:
        from pocketgraph.litert.trial import Trial

        graph = simple.known.graph
        trial = Trial(graph, simple.nodes, simple.outputs, simple.known.inferred, list(simple.inputs))
        reasons = _causes(trial.reasons) or {refusal.node: refusal.reason}
        raise LackingError(target, graph, reasons) from refusal


def _causes(reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons without those that only follow from others: shapes behind a loop or branch are not known."""
    causes = {name: reason for name, reason in reasons.items() if not reason.endswith(LATE)}
    return causes or dict(reasons)
