"""What ships, in which form, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pocketgraph.pages.quantities import bytes_text

FROZEN, MODEL, STATE = "frozen.pb", "model.tflite", "ship.json"
"""Files of the folder."""


@dataclass(frozen=True)
class Tried:
    """A form that was made and judged.

    Attributes:
        form: its name.
        is_kept: whether it keeps the budget.
        words: what it loses, or why it could not be made.
        bytes: of its file; 0 where there is none.
    """

    form: str
    is_kept: bool
    words: str
    bytes: int = 0


@dataclass(repr=False)
class Shipment:
    """What ships, and why.

    Attributes:
        model: the name of what it was made from.
        folder: where all files are.
        form: the name of the form that ships.
        is_proved: whether it was judged on data that it was not made with.
        doubt: why the model's own answers cannot be right, in a sentence; empty where nothing says so.
        budget: what might be lost, in words.
        tried: the forms in the order in which they were tried; the last one ships.
        steps: what was done before, a sentence each.
        app: what the app does in front of the model, a sentence each.
        unknown: what cannot be known, a sentence each.
        sizes: bytes of the model and of what ships.
        size_cause: why it is larger than its weights, in a sentence; empty where it is not by much.
        milliseconds: of a run of the model and of what ships, on this machine; None where nothing was run.
        devices: how it will do on devices of the target, a line each.
        files: what is in the folder.
        commands: what to type next.
        is_resumed: whether an earlier call had done all this.
    """

    model: str
    folder: str
    form: str = ""
    is_proved: bool = False
    doubt: str = ""
    budget: str = ""
    tried: list[Tried] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    app: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    sizes: tuple[int, int] = (0, 0)
    size_cause: str = ""
    milliseconds: tuple[float, float] | None = None
    devices: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    is_resumed: bool = False

    def __repr__(self) -> str:
        before, after = map(bytes_text, self.sizes)
        return f"<Shipment {self.folder}: {before} -> {after}; {self.verdict}>"

    @property
    def verdict(self) -> str:
        """Ship it or not, and why, in plain words."""
        last = self.tried[-1]
        if self.doubt:
            return f"Do not ship {MODEL} ({FORMS[self.form]}) yet: {self.doubt}"
        if self.is_proved:
            return f"Ship {MODEL} ({FORMS[self.form]}): {last.words}, within the budget of {self.budget}."
        return f"Try {MODEL} ({FORMS[self.form]}) on data of your own before you ship it: {last.words}."


FORMS: Mapping[str, str] = {
    "static": "weights and tensors in eight bits",
    "dynamic": "weights in eight bits, tensors as they come",
    "weights": "weights in eight bits, arithmetic in floats",
    "float16": "weights in sixteen bits",
    "float": "floats",
}
"""What ships, the smallest and fastest first."""

TARGETS: Mapping[str, str] = {
    "android": "phone",
    "ios": "phone",
    "pi": "board",
    "microcontroller": "microcontroller",
    "web": "browser",
}
"""Where it can go, and which of the known devices these are."""
