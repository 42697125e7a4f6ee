"""What ships, in which form, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from pocketgraph.datasets.class_labels import listed_labels
from pocketgraph.datasets.file_lists import check_is_there
from pocketgraph.errors import PocketgraphError, UsageError, option, quoted
from pocketgraph.formats import load
from pocketgraph.graph.dtype import FLOAT, HALF, INT8, INT32, UINT8
from pocketgraph.graph.op_traits import ENTER, LOOPS
from pocketgraph.pages.quantities import bytes_text
from pocketgraph.quantization.audio_preprocessing import audio_preprocessing_of
from pocketgraph.runtime.feeding.default_tensors import default_fetches

FROZEN, MODEL, PAGE, STATE = "frozen.pb", "model.tflite", "ship.html", "ship.json"
"""Files of the folder."""
SHIPPED_FORMS: Mapping[str, str] = {
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
PAGE_TYPES = (FLOAT, INT32, UINT8)
"""What LiteRT.js, which runs it in a browser, feeds and reads."""
MANY_OPERATIONS = 100
LARGE_SHARE = 0.3  # of the file, from which what describes operations is told of


@dataclass(frozen=True)
class Tried:
    """A form that was made and judged.

    Attributes:
        form: its name.
        is_kept: whether it is the one in the folder: it keeps the budget, and brings something over floats.
        words: what it loses, what is worse about it than floats, or why it could not be made.
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
        why_floats: the form that keeps the budget and what is worse about it than floats; empty where there is none.
        steps: what was done before, a sentence each.
        app: what the app does in front of the model, a sentence each.
        unknown: what cannot be known, a sentence each.
        sizes: bytes of the model and of what ships.
        size_cause: why it is larger than its weights, in a sentence; empty where it is not by much.
        milliseconds: of a run of the model, or of the file of floats, and of what ships, on this machine; None where
            nothing was run.
        times_of: which of both the first is, with its verb.
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
    why_floats: str = ""
    steps: list[str] = field(default_factory=list)
    app: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    sizes: tuple[int, int] = (0, 0)
    size_cause: str = ""
    milliseconds: tuple[float, float] | None = None
    times_of: str = "the graph's took"
    devices: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    is_resumed: bool = False

    def __repr__(self) -> str:
        before, after = map(bytes_text, self.sizes)
        return f"<Shipment {self.folder}: {before} -> {after}; {self.verdict}>"

    def outcome(self, tried: Tried) -> str:
        """What becomes of a form in a word or two, as the verdict has it."""
        if not tried.is_kept:
            return "left"
        return "ships" if self.is_proved and not self.doubt else "not yet"

    @property
    def verdict(self) -> str:
        """Ship it or not, and why, in plain words."""
        last = self.tried[-1]
        model = f"{MODEL} ({SHIPPED_FORMS[self.form]})"
        why = f" Not {self.why_floats}." if self.why_floats and self.form == "float" else ""
        if self.doubt:
            return f"Do not ship {model} yet: {self.doubt}"
        if self.is_proved:
            return f"Ship {model}: {last.words}, within the budget of {self.budget}.{why}"
        return f"Try {model} on data of your own before you ship it: {last.words}.{why}"


def check_call(folder: str, target: str, most: float | None, *paths: object) -> None:
    """Refuses what a call of ``ship`` has wrong, before its model is read.

    Args:
        folder: where everything is to go.
        target: where the model goes.
        most: what may be lost, in percentage points.
        paths: of the data and of the labels, where they are paths.

    Raises:
        UsageError: a value cannot be.
        FormatError: there are no such data or labels.
    """
    if most is not None and not most >= 0:
        raise UsageError(f"{option('max_accuracy_drop')} must be 0 or more, not {most:g}")
    if target not in TARGETS:
        raise UsageError(f"{option('target')} is one of {', '.join(TARGETS)}, not '{target}'")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"'{folder}' is a file, not a folder for what ships")
    for path, what in zip(paths, ("the data", "the labels"), strict=True):
        if path is not None and not isinstance(path, str | os.PathLike):
            hint = (
                "numpy.savez('data.npz', …) writes arrays to one" if what == "the data" else "'a,b,c' lists them, too"
            )
            raise UsageError(f"{what} that ship takes are named by a path, not by {type(path).__name__}", hint=hint)
        if not (what == "the labels" and isinstance(path, str) and listed_labels(path)):
            check_is_there(path, what)


def frozen_beside(path: str | None) -> str:
    """That the graph which a file was shipped from lies beside it, to go on in a hint; "" where none does.

    Args:
        path: of the file; None where it is no file.
    """
    frozen = frozen_of(path)
    return f", such as {quoted(frozen)} beside it" if frozen else ""


def frozen_of(path: str | None) -> str:
    """The graph beside a file that ``ship`` wrote; "" where none lies there, or where it is no file."""
    frozen = os.path.join(os.path.dirname(path or ""), FROZEN)
    return frozen if path is not None and os.path.isfile(frozen) else ""


def takes_recordings(frozen: str) -> bool:
    """Whether a frozen graph reads recordings itself, which the file that was made of it leaves to the app."""
    try:
        graph = load(frozen)
        return audio_preprocessing_of(graph, default_fetches(graph)) is not None
    except PocketgraphError:
        return False


def holds_fewer_bits(path: str) -> bool:
    """Whether anything in a LiteRT file has fewer bits than floats: constants, or tensors that are quantized."""
    kinds = (INT8, UINT8, HALF)
    return any(node.op == "tfl.quantize" or (node.op == "Const" and node.tensor.dtype in kinds) for node in load(path))


def size_cause(model: str, source: str | None = None) -> str:
    """What takes most of a LiteRT file beside its weights, in a sentence; "" where nothing does.

    Args:
        model: the file.
        source: the graph that it was made of, whose loops are written out in it.
    """
    try:
        graph = load(model)
    except PocketgraphError:
        return ""
    operations = sum(node.op.startswith("tfl.") for node in graph)
    weights = sum(node.tensor.nbytes for node in graph if node.op == "Const")
    rest = os.path.getsize(model) - weights
    if operations < MANY_OPERATIONS or rest < LARGE_SHARE * os.path.getsize(model):
        return ""
    described = f"{bytes_text(rest)} of it describe its {operations} operations"
    loops = ENTER | LOOPS
    if source is None or not any(node.op in loops for node in load(source)):
        return f"{described}, {bytes_text(weights)} are weights"
    return (
        f"{described}, as loops are written out step by step; weights are in it once, {bytes_text(weights)}. "
        "Fewer steps make it smaller"
    )
