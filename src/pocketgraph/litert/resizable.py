"""A loaded LiteRT model whose inputs take other sizes from call to call, its weights packed once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert.cache import CacheEntry
from pocketgraph.litert.executable import Executable
from pocketgraph.litert.runner import PlainRunner, Runner, refusals

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.litert.open_program import OpenProgram
    from pocketgraph.litert.operator_sizes import Sizes

Shapes = tuple[tuple[int, ...], ...]


class ResizableModel:
    """A model for several sizes, which it takes one after the other; safe for several threads.

    Args:
        model: a file, or a file's content.
        threads: how many to compute with.
    """

    def __init__(self, model: str | bytes, threads: int) -> None:
        self._runner = PlainRunner(model, threads, is_bare=False)
        self._shapes: Shapes = ()
        self._lock = threading.Lock()

    def sized(self, shapes: Sequence[Sequence[int]], told: Shapes = ()) -> SizedRunner:
        """What runs it for inputs of these shapes.

        Args:
            shapes: those of its inputs.
            told: those of further inputs, which hold nothing, and tell numbers by their shapes.

        Raises:
            RunError: LiteRT does not take them.
        """
        runner = SizedRunner(self, (*map(tuple, shapes), *told), len(told))
        with self._lock:
            self._resize(runner.shapes)
        return runner

    def run(self, shapes: Shapes, inputs: Sequence[Array]) -> tuple[list[Array], float]:
        """The outputs, and the seconds that it took to change the sizes.

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


class SizedRunner(Runner):
    """Runs a model for one set of sizes.

    Attributes:
        shapes: those of its inputs.
        spent: seconds that it took so far to give the model these sizes, after others had used it.
    """

    def __init__(self, model: ResizableModel, shapes: Shapes, told: int) -> None:
        self.shapes = shapes
        self.spent = 0.0
        self._model: ResizableModel | None = model
        self._empty = [np.empty(shape, np.int32) for shape in shapes[len(shapes) - told :]]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs, one array each."""
        assert self._model is not None
        results, took = self._model.run(self.shapes, [*inputs, *self._empty])
        self.spent += took
        return results

    def close(self) -> None:
        """Lets the model go, which is freed when nobody has it any more."""
        self._model = None


class Resizable(NamedTuple):
    """What runs a part for several sizes.

    Attributes:
        about: what is known of it, with the sizes that it was lowered for; ``opened`` has those that may change.
        model: it, loaded.
        threads: how many it computes with.
        kept_as: the folder and name under which the cache keeps it; None where it does not.
        fits: says whether it takes inputs of these shapes and these numbers; None where ``about`` says it.
        tell: says the numbers that it is told for inputs of these shapes; None where it is told none.
    """

    about: dict[str, Any]
    model: ResizableModel
    threads: int
    kept_as: tuple[str, str] | None
    fits: Callable[[Sequence[tuple[int, ...]], Shapes], bool] | None = None
    tell: Callable[[Sequence[tuple[int, ...]]], Shapes] | None = None

    @staticmethod
    def of_entry(entry: CacheEntry, threads: int, kept_as: tuple[str, str] | None) -> Resizable:
        """What the cache keeps.

        Raises:
            RunError: LiteRT does not take it.
        """
        threads = 1 if entry.about["one_thread"] else threads
        return Resizable(entry.about, ResizableModel(entry.model, threads), threads, kept_as)

    def sized(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """The part for inputs of these shapes.

        Raises:
            RunError: it does not take them.
        """
        told = self.tell(shapes) if self.tell is not None else ()
        if not self.takes(shapes, told):
            raise RunError("the program does not take these sizes")
        fed = [index for index in self.about["fed"] if index < len(shapes)]
        empty = tuple([(0, *(max(0, number) for number in numbers)) for numbers in told])
        runner = self.model.sized([shapes[index] for index in fed], empty)
        inputs = [
            (name, dtype, shape) for (name, dtype, _), shape in zip(self.about["inputs"], shapes, strict=not told)
        ]
        return Executable({**self.about, "inputs": inputs, "fed": fed}, runner, None, self.threads, self.kept_as)

    def takes(self, shapes: Sequence[tuple[int, ...]], told: Shapes = ()) -> bool:
        """Whether all its operators take inputs of these shapes, and these numbers."""
        if "least" in self.about:
            pairs = zip(shapes, self.about["least"], strict=True)
            return all(size >= low for shape, lows in pairs for size, low in zip(shape, lows, strict=True))
        return self.fits is None or self.fits(shapes, told)


def least_sizes(program: OpenProgram, inputs: Sequence[Sizes]) -> list[list[int]]:
    """The least size along each axis of each input that a program takes, which is told no numbers.

    Args:
        program: it.
        inputs: the sizes of its inputs, None where they are open.
    """
    large = [tuple(LARGE if size is None else size for size in sizes) for sizes in inputs]
    found: list[list[int]] = []
    for place, sizes in enumerate(inputs):
        row: list[int] = []
        for axis, size in enumerate(sizes):
            tried = range(1, LARGE + 1) if size is None else (size,)
            shapes = (
                (
                    number,
                    [*large[:place], (*large[place][:axis], number, *large[place][axis + 1 :]), *large[place + 1 :]],
                )
                for number in tried
            )
            row.append(next((number for number, each in shapes if program.fits(each, ())), LARGE))
        found.append(row)
    return found


LARGE = 1 << 10  # a size that all programs take; larger ones are not tried
