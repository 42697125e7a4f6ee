"""An entry point as a program of LiteRT operators, which the .tflite and C exporters start from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from pocketgraph.errors import UsageError, command_on_model, option
from pocketgraph.exporting.model import EntryPoint, ExportModel
from pocketgraph.graph import Graph
from pocketgraph.graph.dtype import BOOL, FLOAT
from pocketgraph.graph.groups import by_key, closure
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.narrow_floats import NARROW
from pocketgraph.litert.part_lowering import Trial
from pocketgraph.litert.program import Program, Value
from pocketgraph.pages.quantities import listed
from pocketgraph.quantization.canonical.canonicalize import canonicalize, needless_passes
from pocketgraph.quantization.conversion.int8_conversion import left_in_float, take_pixels
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.float_program import Simplified, simplified
from pocketgraph.quantization.loop_lowering import is_of_loop
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.runtime.description import LATE
from pocketgraph.runtime.unrolling.constant_trip_counts import constant_trip_counts
from pocketgraph.runtime.unsupported_help import help_with, help_with_switches, help_with_texts, ragged_feeds

MOST_NAMED = 3
"""Nodes of one op that a message names."""
OF_XNNPACK = ("large_windows",)
"""Passes of the canonical form that spare time on XNNPACK alone."""
OF_EIGHT_BITS = ("layers_of_many_axes",)
"""Passes for LiteRT files in eight bits, of fixed sizes."""
OF_CODES = ("finite_masks",)
"""Passes for tensors of codes, which have no infinity."""
MOST_OPS = 4
"""Ops that a message names; beyond, one node of each."""


class LackingError(UsageError):
    """Ops that a target has nothing for; the message names the first few, and says how to list all.

    Attributes:
        reasons: why, by node name.
        opset: the version of ONNX's operators that has them; 0 where none has them all.
    """

    exit_code = 1

    def __init__(self, target: str, graph: Graph, reasons: Mapping[str, str], opset: int = 0) -> None:
        self.reasons, self.opset = dict(reasons), opset
        loops = list(dict.fromkeys(name.rpartition("/")[0] for name in _conditions(graph, reasons)))
        frames = {
            node.attr("frame_name", None)
            for node in graph
            if node.op == "Enter" and any(node.name.startswith(f"{loop}/") for loop in loops)
        }
        helps = {name: help_with(graph, name) for name in reasons}
        ragged = [name for name in reasons if ragged_feeds(graph, name)]
        by_reason = by_key(
            ((graph[name].op if name in graph.nodes else "", reason), name)
            for name, reason in reasons.items()
            if name not in ragged and not _is_of_loops(graph, name, loops, frames)
        )
        most = MOST_NAMED if len(by_reason) <= MOST_OPS else 1
        shown = list(by_reason.items())[:MOST_OPS]
        branching = [loop for loop in loops if _has_branch(graph, reasons, loop)]
        what: list[str] = []
        if branching:
            what.append(f"a loop with a branch inside that the input decides ({listed(branching, most, quoted=True)})")
        counted = {name.rpartition("/")[0]: (name, rounds) for name, rounds in constant_trip_counts(graph).items()}
        of_constant = [loop for loop in loops if loop in counted and loop not in branching]
        rounds = {loop: counted[loop][1] for loop in of_constant}
        what += [f"a loop of {count:,} round{'s' * (count != 1)} ('{loop}')" for loop, count in rounds.items()]
        if others := [loop for loop in loops if loop not in branching and loop not in counted]:
            named = listed(others, most, quoted=True)
            what.append(f"a loop that goes on for as long as its condition says ({named})")
        if ragged:
            what.append(f"what is computed of ragged rows ({listed(ragged, 1, quoted=True)})")
        for (op, reason), nodes in shown:
            what.append(f"{op or 'the graph'} ({listed(nodes, most, quoted=True)}): {reason}")
        rest = list(by_reason)[MOST_OPS:]
        if rest:
            unnamed = len({op for op, _ in rest})
            what.append(f"and {unnamed} more ops ({command_on_model('pocketgraph check {}')} lists all)")
        hints = dict.fromkeys(
            hint for name, hint in helps.items() if hint and not _is_of_loops(graph, name, loops, frames)
        )
        if branching and (said := help_with_switches(graph)):
            hints[f"{said} (or true)"] = None
        hints |= dict.fromkeys(filter(None, (helps[counted[loop][0]] for loop in of_constant)))
        if loops and help_with_texts() not in hints:
            asked = command_on_model("pocketgraph check {} --target=onnx")
            hints[f"{asked} tells whether an .onnx file can hold it"] = None
        count = f"{len(reasons)} node{'s' * (len(reasons) != 1)}"
        super().__init__(f"{target} has nothing for {count}: {'; '.join(what)}", hint="; ".join(hints))

    def add_hint(self, hint: str) -> None:
        """Says one more thing that helps, unless that is said already."""
        if hint not in self.hint:
            super().__init__(self.what, where=self.where, hint="; ".join(filter(None, (self.hint, hint))))


def _conditions(graph: Graph, reasons: Mapping[str, str]) -> list[str]:
    return [name for name in reasons if "/" in name and name in graph.nodes and graph[name].op == "LoopCond"]


def _has_branch(graph: Graph, reasons: Mapping[str, str], loop: str) -> bool:
    """Whether a loop goes one of two ways in a round, by what is not its own condition."""
    inside = (graph[name] for name in reasons if name.startswith(f"{loop}/") and name in graph.nodes)
    conditions = (graph.find_producer(node.data_inputs[1]) for node in inside if node.op == "Switch")
    return any(condition is not None and condition.op != "LoopCond" for condition in conditions)


def _is_of_loops(graph: Graph, name: str, loops: Sequence[str], frames: Collection[object]) -> bool:
    """Whether a node is one of a loop's, or of the arrays that loops fill, or counts what these hold."""
    if any(name.startswith(f"{loop}/") for loop in loops):
        return True
    if not loops or name not in graph.nodes:
        return False
    node = graph[name]
    counts = node.op == "Range" and any(
        (source := graph.find_producer(ref)) is not None and source.op.startswith("TensorArraySize")
        for ref in node.data_inputs
    )
    return (
        counts
        or node.op.startswith(("TensorArray", "TensorList"))
        or (node.op == "Enter" and node.attr("frame_name") in frames)
    )


def float_program(
    entry: EntryPoint,
    model: ExportModel,
    target: str = "LiteRT",
    *,
    custom: bool = False,
    without: Collection[str] = (*OF_CODES, *OF_EIGHT_BITS, *OF_XNNPACK),
) -> Program:
    """An entry point as a program of LiteRT builtin operators, in few of them.

    Its inputs and outputs are in the entry point's order and have the shapes ``sizes``.

    Args:
        entry: the entry point.
        model: the model that it is of.
        target: who has to have the operators, for the message.
        custom: make custom operators of nodes that have no builtin one.
        without: the passes of the canonical form to leave out.

    Raises:
        LackingError: nodes have no LiteRT form; all are listed.
    """
    simple = simplified(
        model.graph,
        [port.tensor for port in entry.outputs],
        {p.tensor: p.sizes or () for p in entry.inputs},
        may_hold_codes=True,
    )
    return canonicalize(_lowered(simple, target, custom), without)


def quantized_program(
    entry: EntryPoint,
    model: ExportModel,
    *,
    io: str = "float",
    activations: str = "int8",
    target: str = "LiteRT",
    check: Callable[[Program], None] = lambda exact: None,
) -> tuple[Program, list[str]]:
    """An entry point with eight-bit weights and tensors, as quantize makes it with the model's samples; and its notes.

    Args:
        entry: the entry point, the model's main one.
        model: the model; it has samples.
        io: what goes in and out: ``float``, the type of the tensors in between (``activations``), or ``uint8``.
        activations: ``int8`` or ``int16``.
        target: as for ``float_program``.
        check: refuses the program in float where the target has nothing for it, before time goes into quantizing.

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
    without = needless_passes(io, activations) if target == "LiteRT" else (*OF_EIGHT_BITS, *OF_XNNPACK)
    exact = float_program(entry, model, target, without=without)
    check(exact)
    outcome = quantize_program(
        exact,
        lambda: ([np.asarray(feeds[name]) for name in names] for feeds in samples()),
        model.sample_count,
        QuantizationOptions(io=io, activations=activations, threads=model.threads),
        model.progress,
    )
    program = outcome.converted.program
    how = model.normalization
    if io == "uint8" and how is not None and len({*how.mean}) == len({*how.std}) == 1:
        take_pixels(program, how.mean[0], how.std[0])
    ports = [port.name for port in (*entry.inputs, *entry.outputs)]
    notes = list(outcome.notes)
    for name in ("float_share", "widen"):  # an export has no such options
        notes = [note.replace(f"{option(name)}=0 ", f"`quantize` with {option(name)}=0 ") for note in notes]
    return program, [*notes, *left_in_float(program, ports, io)]


def port_notes(entry: EntryPoint, program: Program) -> list[str]:
    """What is to be known of a program's inputs and outputs, a sentence each: which are float32 where the graph has
    floats of 16 bits, and which inputs are what branches go by."""
    ports = [
        *zip(["input"] * len(entry.inputs), entry.inputs, program.inputs, strict=True),
        *zip(["output"] * len(entry.outputs), entry.outputs, program.outputs, strict=True),
    ]
    notes = [
        f"the {side} '{port.name}' is float32, the graph's is {port.dtype.name}"
        for side, port, value in ports
        if port.dtype.name in NARROW and value.dtype is FLOAT
    ]
    decisive = _upstream_of_branches(program)
    notes += [
        f"'{port.name}' decides while running which way a branch goes; "
        f"{option('feed', 'values')}={port.name}=false (or true) sets it for good"
        for side, port, value in ports
        if side == "input" and value.dtype is BOOL and value.size == 1 and value in decisive
    ]
    return notes


def _upstream_of_branches(program: Program) -> set[Value | None]:
    """What the conditions of IFs are computed from, also of those in loops and branches."""
    sources: dict[Value | None, list[Value | None]] = defaultdict(list)
    waiting: list[Value | None] = []
    for operation in (operation for each in program.programs() for operation in each.operations):
        given = decides = operation.inputs
        turns = [*operation.bodies]
        pairs: list[tuple[Sequence[Value], Sequence[Value | None]]] = []
        if operation.code == "IF":
            waiting.append(given[0])
            decides, given = given[:1], given[1:]
        elif operation.bodies:  # a WHILE: what a round gives is what the next one takes
            test, *turns = operation.bodies
            decides = [*test.outputs]
            pairs += [(test.inputs, given), (test.inputs, turns[0].outputs), (turns[0].inputs, turns[0].outputs)]
            pairs.append((operation.outputs, given))
        for body in turns:
            pairs += [(body.inputs, given), (operation.outputs, body.outputs)]
        for value in operation.outputs:
            sources[value] += decides
        for values, by in pairs:
            for value, source in zip(values, by, strict=True):
                sources[value].append(source)
    return set(closure(waiting, lambda reached: sources.get(reached, ())))


def _lowered(simple: Simplified, target: str, custom: bool) -> Program:
    try:
        return simple.lowered(custom=custom)
    except Unsupported as refusal:
        graph = simple.known.graph
        trial = Trial(graph, simple.nodes, simple.outputs, simple.inferred, list(simple.inputs))
        reasons = _causes(trial.reasons) or {refusal.node: refusal.reason}
        if simple.has_control_flow:
            others = {name: reason for name, reason in reasons.items() if not is_of_loop(graph[name], simple.inferred)}
            reasons = {**others, refusal.node: refusal.reason}
        raise LackingError(target, graph, reasons) from refusal


def _causes(reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons without those that only follow from others: shapes behind a loop or branch are not known."""
    causes = {name: reason for name, reason in reasons.items() if not reason.endswith(LATE)}
    return causes or dict(reasons)
