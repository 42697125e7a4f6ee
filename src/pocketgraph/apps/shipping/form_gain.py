"""Whether a form of fewer bits brings anything: of a small model its file can be larger than that of floats."""

from __future__ import annotations

import os
from collections.abc import Callable

from pocketgraph.apps.shipping.shipment import FROZEN, Shipment
from pocketgraph.pages.quantities import bytes_text

MUCH_FASTER = 0.8  # of the float graph's time, for which a larger file ships
SLOWER = 1.2  # of it, from which a file ships only where it is much smaller; times of small models vary by less
MUCH_SMALLER = 0.5  # of the float file


def worse_than_floats(shipment: Shipment, size: int, make: Callable[[str], object], target: str) -> str:
    """What is worse about a form than floats, in words; "" where it brings something.

    Args:
        shipment: with that form's name and its times, and with the frozen graph in its folder.
        size: of the form's file, in bytes.
        make: writes the float form to a path; called only where the frozen graph is no larger.
        target: where it goes; microcontrollers have little memory for floats, and times of theirs.
    """
    before, after = shipment.milliseconds or (1.0, 1.0)
    gains = target == "microcontroller" or after < MUCH_FASTER * before
    if shipment.form == "float" or gains or size < os.path.getsize(os.path.join(shipment.folder, FROZEN)):
        return ""
    floats = os.path.join(shipment.folder, "float.tflite")
    make(floats)
    smaller = os.path.getsize(floats)
    os.remove(floats)
    slower = f"a run takes {after / before:.1f} times as long" if after > SLOWER * before else ""
    if size > smaller:
        larger = f"its file is larger than that of floats, {bytes_text(size)} for {bytes_text(smaller)}"
        return f"{larger}, and {slower}" if slower else larger
    if slower and size > MUCH_SMALLER * smaller:
        return f"{slower} as of floats, for {bytes_text(size)} instead of {bytes_text(smaller)}"
    return ""
