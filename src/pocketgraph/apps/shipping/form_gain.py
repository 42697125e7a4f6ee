"""Whether a form of fewer bits brings anything: of a small model its file can be larger than that of floats."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from pocketgraph.apps.shipping.shipment import FROZEN, MODEL, Shipment
from pocketgraph.errors import PocketgraphError, RunError, UsageError
from pocketgraph.pages.quantities import bytes_text
from pocketgraph.quantization.evaluation.runnable_models import LiteRTModel

MUCH_FASTER = 0.8  # of the time of floats, for which a larger file ships; less is noise of small models
SLOWER = 1.2  # of it, from which a file ships only where it is much smaller
MUCH_SMALLER = 0.5  # of the file of floats
RUNS = 30  # of each file


def worse_than_floats(shipment: Shipment, make: Callable[[str], object], target: str) -> str:
    """What is worse about the form in a folder than floats, in words; "" where it brings something.

    Args:
        shipment: with the form's name, and in its folder the form and the frozen graph.
        make: writes the float form to a path; called only where the frozen graph is no larger than the form.
        target: where it goes; microcontrollers always get eight bits.
    """
    model, frozen = (os.path.join(shipment.folder, name) for name in (MODEL, FROZEN))
    size = os.path.getsize(model)
    if shipment.form == "float" or target == "microcontroller" or size < os.path.getsize(frozen):
        return ""
    floats = os.path.join(shipment.folder, "float.tflite")
    try:
        make(floats)
    except (RunError, UsageError):
        return ""  # floats cannot ship instead
    try:
        return comparison(size, os.path.getsize(floats), _relative_time(model, floats))
    finally:
        os.remove(floats)


def comparison(size: int, float_size: int, share: float) -> str:
    """What is worse about a file than about that of floats, in words; "" where it brings something.

    Args:
        size, float_size: bytes of the two.
        share: how long it runs, as a share of the time of floats.
    """
    slower = f"a run takes {share:.1f} times as long" if share > SLOWER else ""
    if size > float_size and share >= MUCH_FASTER:
        larger = f"its file is larger than that of floats, {bytes_text(size)} for {bytes_text(float_size)}"
        return f"{larger}, and {slower}" if slower else larger
    if slower and size > MUCH_SMALLER * float_size:
        return f"{slower} as of floats, for {bytes_text(size)} instead of {bytes_text(float_size)}"
    return ""


def _relative_time(model: str, floats: str) -> float:
    """How long a file's shortest run on zeros is, as a share of another's; 1 where they cannot be run so."""
    try:
        opened = [LiteRTModel(path) for path in (model, floats)]
        samples = [[np.zeros(item.shape, item.dtype) for item in one.inputs] for one in opened]
        shortest = [np.inf, np.inf]
        for _ in range(RUNS):  # in turn, as others compute here, too
            for at, (one, sample) in enumerate(zip(opened, samples, strict=True)):
                one.run(sample)
                shortest[at] = min(shortest[at], one.seconds)
    except PocketgraphError:
        return 1.0
    return shortest[0] / shortest[1] if shortest[1] > 0 else 1.0
