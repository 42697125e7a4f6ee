"""What to do when a model does not fit, and what it would bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.devices.device_table import Device
from pocketgraph.exporting.devices.family_times import Milliseconds, cost_family
from pocketgraph.exporting.devices.latency_model import estimate
from pocketgraph.exporting.devices.memory_plan import MemoryPlan
from pocketgraph.exporting.model import ExportModel, Port
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.inspect.flops import Flops, count_graph

NARROWER = 0.75
SMALLER_SIDE = 160  # pixels
COLOURS = (1, 3, 4)
PICTURE = 4  # dimensions: batch, height, width, channels


class Advice(NamedTuple):
    """A way to make it smaller or faster.

    Attributes:
        name: ``eight bits``, ``smaller pictures`` or ``narrower layers``.
        text: what to do.
        milliseconds: what a run would take then, by device, as the model is judged there.
        memory: bytes of weights and tensors then.
    """

    name: str
    text: str
    milliseconds: Mapping[str, float]
    memory: int


def advice(
    model: ExportModel, precision: str, plans: Mapping[str, MemoryPlan], times: Milliseconds, flops: Flops,
    devices: Sequence[Device],
) -> tuple[Advice, ...]:  # fmt: skip
    """The ways that there are for a model on devices that it does not fit.

    Args:
        model, precision, plans, times, flops: the model, and what it takes; see ``DeviceFit``.
        devices: those that it does not fit.
    """
    found = []
    plan = plans[precision]

    def on_devices(name: str, taken: Milliseconds, share: float = 1.0) -> dict[str, float]:
        scaled = {op: round(count * share) for op, count in flops.by_op.items()}
        by_device = {device.name: estimate(device, name, taken, scaled) for device in devices}
        return {device: latency.milliseconds for device, latency in by_device.items() if latency is not None}

    judged = {
        device.name: precision if device.published.get(precision) or device.gflops else "int8" for device in devices
    }
    if "float" in judged.values():
        text = "export in the mode static with samples; then evaluate what it writes"
        coded = {name: ms for name, ms in on_devices("int8", times).items() if judged[name] == "float"}
        found.append(Advice("eight bits", text, coded, plans["int8"].total))

    def in_its_precision(taken: Milliseconds, share: float) -> dict[str, float]:
        return {
            device: milliseconds
            for name in ("float", "int8")
            for device, milliseconds in on_devices(name, taken, share).items()
            if judged[device] == name
        }

    picture = next((port for port in model.main.inputs if _is_picture(port)), None)
    if picture is not None and picture.sizes is not None:
        height, width = picture.sizes[1:3]
        scale = min(NARROWER, SMALLER_SIDE / max(height, width))
        smaller = max(1, round(height * scale)), max(1, round(width * scale))
        area = smaller[0] * smaller[1] / (height * width)
        shares = _shares(model, picture, smaller, flops, area)
        taken = {family: times[family] * shares.get(family, area) for family in times}
        whole = sum(taken.values()) / sum(times.values())
        found.append(Advice(
            "smaller pictures", f"train it for {smaller[0]} x {smaller[1]} pixels instead of {height} x {width}",
            in_its_precision(taken, whole), plan.weights + round(plan.arena * area),
        ))  # fmt: skip
    square = NARROWER**2
    taken = {family: times[family] * (square if family == "convolution" else NARROWER) for family in times}
    whole = sum(taken.values()) / sum(times.values())
    found.append(Advice(
        "narrower layers", f"train it with {NARROWER} times as many channels a layer", in_its_precision(taken, whole),
        round(plan.weights * square + plan.arena * NARROWER),
    ))  # fmt: skip
    return tuple(found)


def _is_picture(port: Port) -> bool:
    sizes = port.sizes
    return sizes is not None and len(sizes) == PICTURE and sizes[3] in COLOURS and min(sizes[1:3]) > 1


def _shares(model: ExportModel, picture: Port, sides: tuple[int, int], flops: Flops, area: float) -> dict[str, float]:
    """What of the operations of each family would be left with a picture of these sides; none where that is not known:
    files of finished models state their shapes, and some graphs have them in constants."""
    if is_model_file(model.graph) or picture.sizes is None:
        return {}
    sizes = {port.tensor: port.sizes or () for port in model.main.inputs}
    sizes[picture.tensor] = (picture.sizes[0], *sides, picture.sizes[3])
    try:
        smaller = count_graph(model.graph, sizes)
    except PocketgraphError:
        return {}
    before, after = _by_family(flops), _by_family(smaller)
    if len(smaller.unknown) > len(flops.unknown) or before.keys() != after.keys():
        return {}
    return {f: min(1.0, after.get(f, 0) / count) for f, count in before.items() if count and f != "other"} | {
        "other": area
    }


def _by_family(flops: Flops) -> dict[str, int]:
    found: dict[str, int] = {}
    for op, count in flops.by_op.items():
        found[cost_family(op)] = found.get(cost_family(op), 0) + count
    return found
