"""Whether a form of fewer bits brings anything: of a small model its file can be larger than that of floats."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from pocketgraph.apps.shipping.shipment import FROZEN, MODEL, Shipment
from pocketgraph.errors import PocketgraphError, RunError, UsageError
from pocketgraph.pages.quantities import bytes_text
from pocketgraph.quantization.evaluation.runnable_models import LiteRTModel
from pocketgraph.quantization.report.size_and_latency import MUCH_SMALLER, FileComparison

SMALL = 1_000_000  # bytes of a graph, of a run of which the rest of the process takes a good part of the time
RUNS = 30  # of each file


def worse_than_floats(shipment: Shipment, make: Callable[[str], object], target: str) -> tuple[bool, str]:
    """Whether the form in a folder is worse than floats, and what is, in words; (False, "") where nothing is.

    Args:
        shipment: with the form's name and times, and in its folder the form and the frozen graph. It gets the times of
            the two files where these are measured: called where the graph is small, no smaller than twice the form, or
            quicker.
        make: writes the float form to a path.
        target: where it goes; microcontrollers always get eight bits.
    """
    model, frozen = (os.path.join(shipment.folder, name) for name in (MODEL, FROZEN))
    size, graph_size = os.path.getsize(model), os.path.getsize(frozen)
    graph_time, time = shipment.milliseconds or (0.0, 0.0)
    is_gain = graph_size > SMALL and size < MUCH_SMALLER * graph_size and time <= graph_time
    if shipment.form == "float" or target == "microcontroller" or is_gain:
        return False, ""
    floats = os.path.join(shipment.folder, "float.tflite")
    try:
        make(floats)
        times = _times(model, floats)
        if times is not None and shipment.milliseconds is not None:
            shipment.milliseconds, shipment.times_of = (times[1], times[0]), "that of floats takes"
        return comparison(size, os.path.getsize(floats), *(times or (1.0, 1.0)))
    except (RunError, UsageError):
        return False, ""  # floats cannot ship instead
    finally:
        with suppress(FileNotFoundError):
            os.remove(floats)


def comparison(size: int, float_size: int, time: float, float_time: float) -> tuple[bool, str]:
    """Whether a file is worse than that of floats, and what is, in words; (False, "") where nothing is.

    Args:
        size, float_size: bytes of the two.
        time, float_time: milliseconds of a run.
    """
    found = FileComparison(float_size, size, float_time / 1e3, time / 1e3)
    slower = f"a run takes {time / float_time:.1f} times as long" if found.is_slower else ""
    sizes = bytes_text(size), bytes_text(float_size)
    if found.is_larger:
        larger = f"its file is larger than that of floats, {sizes[0]} for {sizes[1]}"
        return True, f"{larger}, and {slower}" if slower else larger
    return found.is_worse, f"{slower} as of floats, for {sizes[0]} instead of {sizes[1]}" if slower else ""


def _times(model: str, floats: str) -> tuple[float, float] | None:
    """How long the shortest runs of two files on zeros are, in milliseconds; None where they cannot be run so."""
    try:
        opened = [LiteRTModel(path) for path in (model, floats)]
        samples = [[np.zeros(item.shape, item.dtype) for item in one.inputs] for one in opened]
        shortest = [np.inf, np.inf]
        for _ in range(RUNS):  # in turn, as others compute here, too
            for at, (one, sample) in enumerate(zip(opened, samples, strict=True)):
                one.run(sample)
                shortest[at] = min(shortest[at], 1e3 * one.seconds)
    except PocketgraphError:
        return None
    return (shortest[0], shortest[1]) if shortest[1] > 0 else None
