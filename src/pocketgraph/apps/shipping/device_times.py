"""How long what ships takes on the devices that its target names."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.apps.shipping.shipment import TARGETS
from pocketgraph.apps.shipping.texts import behind_texts
from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.devices.device_fit import fit
from pocketgraph.formats import load
from pocketgraph.graph import canonical
from pocketgraph.pages.quantities import duration
from pocketgraph.quantization.audio_preprocessing import audio_preprocessing_of
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes


def device_times(frozen: str, model: str, outputs: Sequence[str], target: str, form: str) -> tuple[list[str], str]:
    """What is estimated, a line a device, and what is not known; "" where something is.

    Args:
        frozen: the file of the frozen model.
        model: the file that ships.
        outputs: the outputs that ship.
        target: one of TARGETS.
        form: what the numbers of the file are, as in Shipment.
    """
    try:
        graph = behind_texts(load(frozen), outputs, model)
        front = audio_preprocessing_of(graph, outputs)  # which fit cuts off, so that its source has no shape
        shapes = synthetic_shapes(graph, outputs)
        if front is not None:
            shapes = {name: shape for name, shape in shapes.items() if canonical(name) != front.source}
        found = fit(graph, outputs=outputs, shapes=shapes)
    except PocketgraphError as error:
        return [], f"how long it takes on devices: {error}"
    precision = "int8" if form in ("static", "dynamic") else "float"
    lines = []
    for one in found.devices:
        latency = one.latency.get(precision)
        if one.device.kind == TARGETS[target] and latency is not None:
            times = [duration(each / 1e3) for each in latency]
            too_large = "; does not fit its memory" if one.fits == "no" else ""
            lines.append(f"{one.device.title}: about {times[0]} a run ({times[1]} to {times[2]}){too_large}")
    return lines, "" if lines else f"how long it takes on a {TARGETS[target]}: nothing is published of such"
