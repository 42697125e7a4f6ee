"""The table of what a model can be exported to; to add one is to add a row and its module."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from pocketgraph.errors import MissingExtraError, UsageError, did_you_mean, option

if TYPE_CHECKING:
    from pocketgraph.exporting.model import Written


class Target(NamedTuple):
    """A form that models are exported to.

    Attributes:
        name: what ``--target`` calls it.
        suffixes: of the files that mean this target; of a folder none.
        module: what has ``write(model, path, *, options…) -> Written``.
        summary: what it is, in a line.
        needs: the packages beside the core ones that must be there.
        extra: the extra of pocketgraph that installs them.
        is_folder: whether it writes a folder and not a file.
        has_variables: whether entry points may change variables.
        takes_texts: whether it has operators for texts, so that what reads them is written too.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str
    summary: str
    needs: tuple[str, ...] = ()
    extra: str = ""
    is_folder: bool = False
    has_variables: bool = False
    takes_texts: bool = False

    @property
    def missing(self) -> list[str]:
        """The packages that it needs and that are not there."""
        return [package for package in self.needs if find_spec(package) is None]

    @property
    def write(self) -> Callable[..., Written]:
        """The exporter; its keyword arguments are the target's options.

        Raises:
            MissingExtraError: a package that it needs is not there.
        """
        if self.missing:
            raise MissingExtraError(
                f"to write {self.name} needs the package '{self.missing[0]}'",
                hint=f"pip install 'pocketgraph[{self.extra}]'",
            )
        return self.function

    @property
    def function(self) -> Callable[..., Written]:
        """The exporter, whether or not what it needs is there: to look at its options."""
        function: Callable[..., Written] = import_module(self.module).write
        return function


TARGETS = {
    target.name: target
    for target in (
        Target(
            "tflite", (".tflite",), "pocketgraph.exporting.tflite",
            "a LiteRT (TensorFlow Lite) file for Android, iOS, Raspberry Pi, Linux and MediaPipe",
            has_variables=True,
        ),
        Target(
            "c", (), "pocketgraph.exporting.c",
            "a folder with a library in C99 of only what the graph needs, for microcontrollers and everything else",
            is_folder=True,
        ),
        Target(
            "onnx", (".onnx",), "pocketgraph.exporting.onnx",
            "an ONNX file for ONNX Runtime, on servers, Windows, Linux, Android, iOS and in browsers",
            needs=("onnx",), extra="onnx", takes_texts=True,
        ),
        Target(
            "coreml", (".mlpackage",), "pocketgraph.exporting.coreml",
            "a Core ML package for iOS 15 and macOS 12 or later, with a script beside it that checks it on a Mac",
            needs=("coremltools",), extra="coreml", is_folder=True,
        ),
    )
}  # fmt: skip


def target_of(path: str | os.PathLike[str], name: str | None = None) -> Target:
    """The target of this name; without a name the one that the path's suffix means.

    Raises:
        UsageError: there is none.
    """
    if name is not None:
        if name not in TARGETS:
            hint = did_you_mean(name, TARGETS) or (
                f"there are {', '.join(TARGETS)}; pocketgraph app makes projects for phones, boards and web pages"
            )
            raise UsageError(f"there is no target '{name}'", hint=hint)
        return TARGETS[name]
    text = os.fspath(path)
    for target in TARGETS.values():
        if text.lower().endswith(target.suffixes or "\0"):
            return target
    known = ", ".join(suffix for target in TARGETS.values() for suffix in target.suffixes)
    raise UsageError(
        f"'{text}' does not say what to write: the suffixes are {known}",
        hint=f"name it: {option('target')}={'|'.join(TARGETS)}",
    )
