"""What is known of the time that other engines take for a compiled part, beside LiteRT, on this kind of machine."""

from __future__ import annotations

import math
from typing import NamedTuple

from pocketgraph.litert import cache
from pocketgraph.litert.cost_model import LEAST_SPEEDUP
from pocketgraph.litert.executable import Executable
from pocketgraph.litert.host import cpu

MEMBER = "engines"
"""What measurements are kept under, beside a part's model."""
RUNS = 3  # of a part, before which nothing is measured


class EngineTimes(NamedTuple):
    """What was found of one engine and one part.

    Attributes:
        ratio: its time as a share of LiteRT's; 0 where it is refused.
        seconds: of a run on LiteRT.
        opening: seconds that opening it takes.
        why: why it is not used; "" where it may be.
        is_steady: whether the machine had time for them; else they are measured again at the next occasion.
    """

    ratio: float
    seconds: float
    opening: float
    why: str = ""
    is_steady: bool = True

    @property
    def after(self) -> int:
        """Runs after which opening it pays if as many are still to come."""
        return max(RUNS, math.ceil(self.opening / max(1e-9, self.seconds * (1 - self.ratio))))

    def __str__(self) -> str:
        if self.why:
            return f"not used, {self.why}"
        busy = "" if self.is_steady else " while it was busy"
        return f"{self.ratio:.2f} of LiteRT's time, measured on this machine{busy}"


def measurements(executable: Executable) -> dict[str, EngineTimes]:
    """What is known of each engine (by name and version) on this kind of processor with as many threads."""
    before = f"{cpu()} {executable.threads} "
    noted = executable.about.get(MEMBER, {})
    return {key.removeprefix(before): EngineTimes(*said) for key, said in noted.items() if key.startswith(before)}


def usable(executable: Executable) -> dict[str, EngineTimes]:
    """Those of ``measurements`` of engines that take the part and are not known to be wrong."""
    about, known = executable.about, measurements(executable).items()
    return {label: found for label, found in known if not found.why and cache.certificate(about, label) != "wrong"}


def fastest(executable: Executable) -> str:
    """The engine, by name and version, that is known to be faster than LiteRT and not known to be wrong; or ""."""
    known = usable(executable)
    faster = [label for label, found in known.items() if found.ratio <= LEAST_SPEEDUP]
    return min(faster, key=lambda label: known[label].ratio, default="")
