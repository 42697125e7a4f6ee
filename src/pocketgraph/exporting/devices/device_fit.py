"""The front door: a model goes in, and what it takes on each device comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.errors import MissingKernelError, PocketgraphError, UsageError, command_on_model, option, shapes_option
from pocketgraph.exporting.devices.advice import Advice, advice
from pocketgraph.exporting.devices.device_table import Device, chosen_devices, published_models
from pocketgraph.exporting.devices.family_times import (
    FAMILIES,
    YARDSTICK,
    LocalTimes,
    Milliseconds,
    cost_family,
    measured_times,
    yardstick_operations,
)
from pocketgraph.exporting.devices.latency_model import Latency, estimate, machine_ratios
from pocketgraph.exporting.devices.memory_plan import MemoryPlan, in_eight_bits, memory_plan, program_of_nodes
from pocketgraph.exporting.model import ExportModel, Source, check_sizes
from pocketgraph.exporting.opening import opened
from pocketgraph.exporting.programs import LackingError, float_program
from pocketgraph.exporting.samples import made_feeds
from pocketgraph.graph.model_file_graph import TYPES, is_model_file
from pocketgraph.inspect.flops import Flops
from pocketgraph.inspect.step_flops import count_step
from pocketgraph.litert.program import Program
from pocketgraph.pages.quantities import counted, listed
from pocketgraph.quantization.stated_sizes import Sizes
from pocketgraph.runtime.comparison.compare import plain_values

MOSTLY = 0.5  # share of the time


class DeviceEstimate(NamedTuple):
    """What a model takes on one device.

    Attributes:
        latency: by precision, ``float`` or ``int8``, where something is known of the device in it.
        memory: bytes that have to be in its memory, by precision; weights that lie in flash are left out.
        fits: ``yes``, ``no`` or ``perhaps`` (what was asked for is within the error bar); ``""`` where there is nothing
            to compare with.
        reasons: why not, or why perhaps.
    """

    device: Device
    latency: Mapping[str, Latency]
    memory: Mapping[str, int]
    fits: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class DeviceFit:
    """What a model takes, and whether it fits devices.

    Attributes:
        flops: operations of one run, and what of them is not known.
        memory: by precision.
        precision: of the model as it is, ``float`` or ``int8``.
        times: milliseconds of one run on this machine by family, on one thread; None where it does not run here.
        devices: an entry a device.
        advice: what would help where it does not fit.
        notes: what a person should know.
        budget_ms: milliseconds that a run may take; None where nobody said.
    """

    flops: Flops
    memory: Mapping[str, MemoryPlan]
    precision: str
    times: LocalTimes | None
    devices: tuple[DeviceEstimate, ...]
    advice: tuple[Advice, ...]
    notes: tuple[str, ...]
    budget_ms: float | None = None


def fit(
    source: Source,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    shapes: Sizes | None = None,
    values: Mapping[str, Any] | None = None,
    devices: Sequence[str] = (),
    device_file: str | None = None,
    budget_ms: float | None = None,
    memory: int | None = None,
) -> DeviceFit:
    """Says what a model takes on devices: latency, and memory by an exact plan.

    Args:
        source: a graph, a model file, or the directory of a SavedModel or training.
        inputs, outputs, shapes, values: see ``export``.
        devices: names of devices; by default those of ``device_file``, else all of the table.
        device_file: one's own, see ``read_device_file``.
        budget_ms: milliseconds that a run may take.
        memory: bytes that it may take; by default those of each device.

    Raises:
        UsageError: there is no such device, input or output; sizes are open.
        FormatError, FreezeError, GraphError: a file is damaged, or variables have no values.
    """
    for name, number in (("budget-ms", budget_ms), ("memory", memory)):
        if number is not None and not 0 < number < float("inf"):
            raise UsageError(f"{option(name)} is a number above 0")
    chosen = chosen_devices(devices, device_file)
    model = opened(source, inputs=inputs, outputs=outputs, shapes=shapes, values=values)
    notes = [*model.notes, *check_sizes(model, "an estimate")]
    fetches = model.main.fetches
    feeds = model.main.by_tensor(made_feeds(model.main))
    flops = count_step(model.graph, feeds, fetches)
    if flops.uncounted or flops.unknown:
        notes.append(_uncounted(flops))
    local = _local_times(model, fetches, feeds, notes)
    if local is None:
        _check_scalars(model)
    precision = "int8" if _is_coded(model) else "float"
    plans = _plans(model, fetches, precision, notes)
    times = None
    if local is not None or not (flops.uncounted or flops.unknown):
        times = _reference_times(local, flops, precision)
    else:
        notes.append("no times are estimated, as it neither runs here nor are all of its operations known")
    if times is not None and times["other"] > MOSTLY * sum(times.values()):
        notes.append(
            "more than half of its time is in operations that the published models hardly use, so that times are less "
            "sure than their ranges say"
        )
    asked = budget_ms is not None or memory is not None or bool(devices)
    found = tuple(_estimated(device, precision, plans, times, flops, budget_ms, memory) for device in chosen)
    helpful: tuple[Advice, ...] = ()
    if times is not None and asked and any(one.fits == "no" for one in found):
        helpful = advice(model, precision, plans, times, flops, [one.device for one in found if one.fits == "no"])
    return DeviceFit(flops, plans, precision, local, found, helpful, tuple(notes), budget_ms)


def _plans(model: ExportModel, fetches: Sequence[str], precision: str, notes: list[str]) -> dict[str, MemoryPlan]:
    program, unknown = _program(model, fetches, notes)
    if unknown:
        notes.append(f"memory of {counted(unknown, 'tensor')} is left out: only the run tells their sizes")
    plans = {precision: memory_plan(program, unknown)}
    if precision == "float":
        plans["int8"] = memory_plan(in_eight_bits(program), unknown)
    return plans


def _program(model: ExportModel, fetches: Sequence[str], notes: list[str]) -> tuple[Program, int]:
    """The program that LiteRT would run; where it does not take the whole graph, one operation a node."""
    if not is_model_file(model.graph):
        try:
            return float_program(model.main, model), 0
        except LackingError as lacking:
            ops = sorted({model.graph[name].op for name in lacking.reasons if name in model.graph})
            notes.append(
                f"memory is planned by the graph's nodes, as LiteRT lacks {len(lacking.reasons)} of them: "
                f"{listed(ops)} ({command_on_model('pocketgraph check {}')} has all of them)"
            )
        except UsageError as error:
            notes.append(f"memory is planned by the graph's nodes: {error.what}")
    feeds = {port.tensor: (port.dtype, port.sizes or ()) for port in model.main.inputs}
    return program_of_nodes(model.graph, fetches, feeds)


def _local_times(
    model: ExportModel, fetches: Sequence[str], feeds: Mapping[str, np.ndarray[Any, Any]], notes: list[str]
) -> LocalTimes | None:
    problem: PocketgraphError | None = None
    for plain in (False, True):  # some models do not take random numbers, such as places in a table
        try:
            given = {name: plain_values(value) for name, value in feeds.items()} if plain else feeds
            return measured_times(model.graph, fetches, given)
        except MissingKernelError as error:
            notes.append(f"it does not run here, times are worked out from its operations: {error.what}")
            return None
        except PocketgraphError as error:
            problem = problem or error
    assert problem is not None
    notes.append(f"it does not run here on made-up inputs, times are worked out from its operations: {problem.what}")
    return None


def _check_scalars(model: ExportModel) -> None:
    """Refuses inputs that are stated as scalars by a graph that does not run on such: old files mean any shape by it.

    Raises:
        UsageError: there are some.
    """
    scalars = [port for port in model.main.inputs if port.sizes == () and port.dtype.name in ("float", "uint8")]
    if scalars:
        raise UsageError(
            f"the graph states the input '{scalars[0].name}' as [], and does not run on that",
            hint=f"say its sizes, as in {shapes_option({scalars[0].name: (1, 224, 224, 3)})}",
        )


def _reference_times(local: LocalTimes | None, flops: Flops, precision: str) -> Milliseconds:
    """Milliseconds in float on the machine of published_models.toml.

    Eight-bit convolutions are worked out from their operations, as they take another time here than float ones; so is
    everything where nothing was measured.
    """
    ratios = machine_ratios()
    times = dict.fromkeys(FAMILIES, 0.0) if local is None else {f: local.families[f] * ratios[f] for f in FAMILIES}
    if local is not None and precision == "float":
        return times
    operations = dict.fromkeys(FAMILIES, 0)
    for op, count in flops.by_op.items():
        operations[cost_family(op)] += count
    speeds = _reference_speeds()
    for family in FAMILIES if local is None else speeds:
        times[family] = operations[family] / speeds.get(family, speeds["depthwise"])
    return times


def _reference_speeds() -> dict[str, float]:
    """Operations a millisecond by family, on the machine of published_models.toml."""
    yard = published_models()[YARDSTICK]
    return {family: count / yard[family] for family, count in yardstick_operations().items()}


def _is_coded(model: ExportModel) -> bool:
    """Whether the layers of a model file have eight-bit results."""
    layers = [node for node in model.graph if cost_family(node.op) != "other" and TYPES in node.attrs]
    coded = [node for node in layers if "int8" in str(node.attrs[TYPES])]
    return bool(layers) and 2 * len(coded) > len(layers)


def _estimated(
    device: Device, precision: str, plans: Mapping[str, MemoryPlan], times: Milliseconds | None, flops: Flops,
    budget_ms: float | None, memory: int | None,
) -> DeviceEstimate:  # fmt: skip
    latency, needed = {}, {}
    for name, plan in plans.items():
        needed[name] = plan.arena if device.flash is not None else plan.total
        found = estimate(device, name, times, flops.by_op) if times is not None else None
        if found is not None:
            latency[name] = found
    judged = precision if precision in latency or times is None else next(iter(latency), "")
    if not judged:
        return DeviceEstimate(device, latency, needed, "", (f"nothing is published of it for {precision} models",))
    reasons: list[str] = []
    verdict = "yes"
    limit = memory if memory is not None else device.memory
    if limit is not None and needed[judged] > limit:
        verdict = "no"
        reasons.append(f"{needed[judged]:,} bytes of memory, {limit:,} are there")
    if device.flash is not None and plans[judged].weights > device.flash:
        verdict = "no"
        reasons.append(f"{plans[judged].weights:,} bytes of weights, {device.flash:,} of flash are there")
    if budget_ms is not None and judged not in latency:
        verdict = "perhaps" if verdict == "yes" else verdict
        reasons.append("its time is not known")
    elif budget_ms is not None and latency[judged].low > budget_ms:
        verdict = "no"
        reasons.append(f"{latency[judged].milliseconds:,.0f} ms, {budget_ms:g} are asked for")
    elif budget_ms is not None and latency[judged].high > budget_ms and verdict == "yes":
        verdict = "perhaps"
        reasons.append(f"{budget_ms:g} ms is within the error bar")
    if verdict == "yes" and limit is not None and plans[judged].unknown:
        verdict = "perhaps"
        reasons.append(f"memory of {plans[judged].unknown:,} tensors is not known")
    if limit is None and budget_ms is None:
        verdict = ""
    return DeviceEstimate(device, latency, needed, verdict, tuple(reasons))


def _uncounted(flops: Flops) -> str:
    parts = []
    if flops.uncounted:
        ops = sorted(flops.uncounted)
        parts.append(f"operations of {counted(sum(flops.uncounted.values()), 'node')} are not counted ({listed(ops)})")
    if flops.unknown:
        parts.append(f"{counted(len(flops.unknown), 'node has a shape', 'nodes have shapes')} that only the run tells")
    return "; ".join(parts)
