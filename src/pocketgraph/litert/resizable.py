"""A loaded LiteRT model whose inputs take other sizes from call to call, its weights packed once."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pocketgraph.litert.cache import CacheEntry
from pocketgraph.litert.executable import Executable
from pocketgraph.litert.runner import PlainRunner, Runner, refusals

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array

Shapes = tuple[tuple[int, ...], ...]


class Resizable:
    """A part for several sizes, which its model takes one after the other; safe for several threads.

    Args:
        about: what is known of the part, with the sizes that it was lowered for; ``opened`` has those that may change.
        model: its file, or the file's content.
        threads: how many to compute with, where the part may have several.
        kept_as: the folder and name under which the cache keeps it; None where it does not.

    Raises:
        RunError: LiteRT does not take it.
    """

    def __init__(
        self, about: dict[str, Any], model: str | bytes, threads: int, kept_as: tuple[str, str] | None
    ) -> None:
        self.about = about
        self._threads = 1 if about["one_thread"] else threads
        self._kept_as = kept_as
        self._runner = PlainRunner(model, self._threads, is_bare=False)
        self._shapes: Shapes = ()
        self._lock = threading.Lock()

    @staticmethod
    def of_entry(entry: CacheEntry, threads: int, kept_as: tuple[str, str] | None) -> Resizable:
        """What the cache keeps.

        Raises:
            RunError: LiteRT does not take it.
        """
        return Resizable(entry.about, entry.model, threads, kept_as)

    def sized(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """The part for inputs of these shapes.

        Raises:
            RunError: LiteRT does not take them.
        """
        about = self.about
        runner = _SizedRunner(self, tuple([tuple(shapes[index]) for index in about["fed"]]))
        with self._lock:
            self._resize(runner.shapes)
        inputs = [(name, dtype, shape) for (name, dtype, _), shape in zip(about["inputs"], shapes, strict=True)]
        return Executable({**about, "inputs": inputs}, runner, None, self._threads, self._kept_as)

    def run(self, shapes: Shapes, inputs: Sequence[Array]) -> tuple[list[Array], float]:
        """The model's outputs, and the seconds that it took to change the sizes.

        Raises:
            RuntimeError, ValueError: as LiteRT's; RunError where it does not take the sizes.
        """
        with self._lock:
            began = time.perf_counter() if shapes != self._shapes else 0.0
            if began:
                self._resize(shapes)
            return self._runner.run(inputs), time.perf_counter() - began if began else 0.0

    def _resize(self, shapes: Shapes) -> None:
        interpreter: Any = self._runner.interpreter
        self._shapes = ()  # of none, should LiteRT refuse
        with refusals():
            for index, shape in zip(self._runner.inputs, shapes, strict=True):
                interpreter.resize_tensor_input(index, shape)
            interpreter.allocate_tensors()
        self._shapes = shapes


class _SizedRunner(Runner):
    """Runs a part for one set of sizes.

    Attributes:
        shapes: those of the model's inputs.
        spent: seconds that it took so far to give the model these sizes, after others had used it.
    """

    def __init__(self, part: Resizable, shapes: Shapes) -> None:
        self.shapes = shapes
        self.spent = 0.0
        self._part: Resizable | None = part

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs, one array each."""
        assert self._part is not None
        results, took = self._part.run(self.shapes, inputs)
        self.spent += took
        return results

    def close(self) -> None:
        """Lets the part go, which is freed when nobody has it any more."""
        self._part = None
