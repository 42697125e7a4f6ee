"""What an application is given, and what it answers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pocketgraph.apps.detections import Detection

if TYPE_CHECKING:
    from typing_extensions import Self

    from pocketgraph.graph.tensor import Array

T = TypeVar("T")

SPECTROGRAM = "spectrogram"
"""The value that a page draws behind what is heard."""


@dataclass(frozen=True)
class Frame:
    """One picture of a stream.

    Attributes:
        pixels: uint8 [height, width, 3], red green blue.
        time: seconds since the stream began.
        name: of the file, or of the frame in it; "" for a camera's.
        alone: whether it has nothing to do with the frames before, as a photo of a folder; nothing is averaged then.
    """

    pixels: Array
    time: float
    name: str = ""
    alone: bool = False


@dataclass(frozen=True)
class Sound:
    """A piece of a recording or of what a microphone hears.

    Attributes:
        samples: float32 [n] from -1 to 1, of one channel.
        rate: samples a second.
        time: seconds since the stream began, of the first sample.
        name: of the file.
    """

    samples: Array
    rate: int
    time: float
    name: str = ""


@dataclass(frozen=True)
class Answer:
    """What an application says of one frame or piece of sound; fields that it has nothing for are empty.

    Attributes:
        classes: labels and scores, best first.
        shares: whether the scores are from 0 to 1; logits are not.
        detections: what was found where.
        picture: uint8 [height, width, 3] that the model made.
        lines: a skeleton's bones, ends as (x, y, x, y) shares of the frame.
        word: a word that was just heard, with its score and its time in seconds.
        counts: of things that were seen: ``now``, ``in``, ``out``, ``all``.
        values: what else there is to say, by name.
        milliseconds: what the model took, without reading and drawing.
    """

    classes: tuple[tuple[str, float], ...] = ()
    shares: bool = True
    detections: tuple[Detection, ...] = ()
    picture: Array | None = None
    lines: tuple[tuple[float, float, float, float], ...] = ()
    word: tuple[str, float, float] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    milliseconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """All but the picture, in types that JSON has; numbers rounded to what a reader uses, None for what is none."""
        found: dict[str, Any] = {"ms": round(self.milliseconds, 3)}
        if self.classes:
            found["classes"] = [{"label": label, "score": number(score, 6)} for label, score in self.classes]
            if not self.shares:
                found["shares"] = False
        if self.detections or self.counts:
            found["detections"] = [
                {
                    "box": [number(side) for side in entry.box],
                    "score": number(entry.score),
                    **({"label": entry.label} if entry.label else {}),
                    **({"id": entry.identity} if entry.identity is not None else {}),
                    **({"points": [[number(v) for v in p] for p in entry.points]} if entry.points else {}),
                }
                for entry in self.detections
            ]
        if self.counts:
            found["counts"] = dict(self.counts)
        if self.lines:
            found["lines"] = [[number(v) for v in line] for line in self.lines]
        if self.picture is not None:
            found["picture"] = {"height": self.picture.shape[0], "width": self.picture.shape[1]}
        if self.word is not None:
            found["word"] = {"label": self.word[0], "score": number(self.word[1]), "time": round(self.word[2], 3)}
        if self.values:
            found["values"] = dict(self.values)
        return found


def number(value: float, digits: int = 5) -> float | None:
    """A number as JSON has it, rounded; None for infinity and for what is no number, which JSON does not have."""
    return round(float(value), digits) if math.isfinite(value) else None


@dataclass(frozen=True)
class Setting:
    """Something about an application that can be changed while it runs.

    Attributes:
        name, text: for programs and for people.
        value: now.
        least, most, step: of a number.
        choices: of a text.
    """

    name: str
    text: str
    value: Any
    least: float = 0.0
    most: float = 1.0
    step: float = 0.01
    choices: tuple[Any, ...] = ()


def timed(run: Callable[..., T], *given: Any) -> tuple[T, float]:
    """What a call gives, and the milliseconds that it took."""
    started = perf_counter()
    found = run(*given)
    return found, 1000 * (perf_counter() - started)


class Application(Protocol):
    """What a model is used for. One instance serves one viewer: averages and identities are its own.

    Attributes:
        kind: its name, as ``--app`` takes it.
        hears: whether it takes Sound, not Frame.
        rate: samples a second that it hears best; 0 where it takes pictures.
    """

    kind: str
    hears: bool
    rate: int

    def __call__(self, given: Any) -> Answer:
        """The answer for a Frame (or Sound).

        Raises:
            RunError: the model does not run on it.
        """

    def settings(self) -> list[Setting]:
        """What can be changed."""

    def change(self, name: str, value: Any) -> None:
        """Changes a setting.

        Raises:
            UsageError: there is none of this name, or it does not take this value.
        """

    def another(self) -> Application:
        """The same application for another viewer, on the same session."""


class Settings:
    """Settings as attributes of an application: ``table`` has the rows, attributes of these names the values."""

    table: tuple[Setting, ...] = ()
    hears = False
    rate = 0

    def begin(self) -> None:
        """Forgets what was seen or heard, which each viewer has of its own."""

    def another(self) -> Self:
        """The same application for another viewer, on the same session."""
        twin = copy.copy(self)
        twin.begin()
        return twin

    def settings(self) -> list[Setting]:
        """What can be changed, with the values of now."""
        return [replace(row, value=getattr(self, row.name)) for row in self.table]

    def change(self, name: str, value: Any) -> None:
        """Changes one.

        Raises:
            UsageError: there is none of this name, or it does not take this value.
        """
        from pocketgraph.errors import UsageError, did_you_mean

        row = next((row for row in self.table if row.name == name), None)
        if row is None:
            known = [row.name for row in self.table]
            raise UsageError(f"there is no setting '{name}'", hint=did_you_mean(name, known) or ", ".join(known))
        if row.choices:
            if value not in row.choices:
                raise UsageError(f"'{name}' is one of {', '.join(map(str, row.choices))}, not {value!r}")
        elif not isinstance(value, (int, float)) or isinstance(value, bool) or not row.least <= value <= row.most:
            raise UsageError(f"'{name}' is a number from {row.least:g} to {row.most:g}, not {value!r}")
        setattr(self, name, value)
