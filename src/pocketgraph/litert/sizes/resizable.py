"""A loaded LiteRT model whose inputs take other sizes from call to call, its weights packed once.

For larger sizes than before LiteRT takes memory anew, copies what lay in it, and touches each page for the first time,
which takes as long as computing in it. Where sizes grow a second time the model is therefore given larger ones than are
asked for, and then these: its memory stays, and of what is more than is needed no page is touched.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert.cache import CacheEntry
from pocketgraph.litert.executable import Executable
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.running.runner import PlainRunner, Runner, refusals

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.litert.sizes.open_program import OpenProgram
    from pocketgraph.litert.sizes.operator_sizes import Sizes

Shapes = tuple[tuple[int, ...], ...]
ROOM = 0.25  # share: of a size, that a model is given room for besides
ROOM_STEP = 32  # elements: that room is a multiple of, so that it is divided by what the size is divided by
MOST_ROOM = 1 << 22  # elements: of all inputs together, up to which there is room


class Resizable:
    """A part for several sizes, which its model takes one after the other; safe for several threads.

    Args:
        about: what is known of the part, with the sizes that it was lowered for; ``opened`` has those that may change.
        model: its file, or the file's content.
        threads: how many to compute with, where the part may have several.
        kept_as: the folder and name under which the cache keeps it; None where it does not.
        fits: says whether it takes inputs of these shapes and these numbers; None where ``about`` says it.
        tell: says the numbers that it is told for inputs of these shapes; None where it is told none.

    Raises:
        RunError: LiteRT does not take it.
    """

    def __init__(
        self,
        about: dict[str, Any],
        model: str | bytes,
        threads: int,
        kept_as: tuple[str, str] | None,
        fits: Callable[[Sequence[tuple[int, ...]], Shapes], bool] | None = None,
        tell: Callable[[Sequence[tuple[int, ...]]], Shapes] | None = None,
    ) -> None:
        self.about = about
        self._fits = fits
        self._tell = tell
        self._threads = 1 if about["one_thread"] else threads
        self._part = Executable(about, None, None, self._threads, kept_as)
        self._runner = PlainRunner(model, self._threads, is_bare=False)
        self._shapes: Shapes = ()
        self._room = 0  # elements of the largest inputs so far
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
            RunError: it does not take them.
        """
        fed, taken, told = self._taken(shapes)
        runner = _SizedRunner(self, taken, told)
        with self._lock:
            self._make_room(shapes)
            self._resize(taken)
        return self._part.with_shapes(shapes, fed, runner)

    def _taken(self, shapes: Sequence[tuple[int, ...]]) -> tuple[list[int], Shapes, int]:
        """Which inputs the model takes, the shapes of these and of what tells it numbers, and how many tell it such.

        Raises:
            RunError: it does not take them.
        """
        told = self._tell(shapes) if self._tell is not None else ()
        if not self.takes(shapes, told):
            raise RunError("the program does not take these sizes")
        fed = [index for index in self.about["fed"] if index < len(shapes)]
        empty = [(0, *(max(0, number) for number in numbers)) for numbers in told]
        return fed, (*[tuple(shapes[index]) for index in fed], *empty), len(told)

    def _make_room(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Gives the model larger sizes than these, where they are larger than all before, but for the first ones."""
        elements = _elements(shapes)
        is_first = self._room == 0
        if elements <= self._room or elements > MOST_ROOM:
            return
        self._room = elements
        if is_first:
            return
        places = zip(shapes, self.about["opened"], strict=True)
        larger = [
            tuple([_with_room(size) if own is None else size for size, own in zip(shape, sizes, strict=True)])
            for shape, (_, sizes) in places
        ]
        with contextlib.suppress(RunError), quiet():  # sizes that do not go together: there is no room then
            self._resize(self._taken(larger)[1])
            self._room = _elements(larger)
            # What is freed once tells the C library to keep arrays of up to that size for later ones.
            np.empty(max(self._runner.result_bytes()), np.uint8)

    def takes(self, shapes: Sequence[tuple[int, ...]], told: Shapes = ()) -> bool:
        """Whether all its operators take inputs of these shapes, and these numbers."""
        if "least" in self.about:  # which the cache keeps; it cannot keep a function
            pairs = zip(shapes, self.about["least"], strict=True)
            return all(size >= low for shape, lows in pairs for size, low in zip(shape, lows, strict=True))
        return self._fits is None or self._fits(shapes, told)

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
        earlier = self._shapes or (None,) * len(shapes)
        self._shapes = ()  # of none, should LiteRT refuse
        with refusals():
            for index, shape, own in zip(self._runner.inputs, shapes, earlier, strict=True):
                if shape != own:
                    interpreter.resize_tensor_input(index, shape)
            interpreter.allocate_tensors()
        self._shapes = shapes


def _elements(shapes: Sequence[tuple[int, ...]]) -> int:
    return sum(map(math.prod, shapes))


def _with_room(size: int) -> int:
    return size + ROOM_STEP * math.ceil(size * ROOM / ROOM_STEP)


class _SizedRunner(Runner):
    """Runs a part for one set of sizes.

    Attributes:
        shapes: those of the model's inputs.
        spent: seconds that it took so far to give the model these sizes, after others had used it.
    """

    def __init__(self, part: Resizable, shapes: Shapes, told: int) -> None:
        self.shapes = shapes
        self.spent = 0.0
        self._part: Resizable | None = part
        self._empty = [np.empty(shape, np.int32) for shape in shapes[len(shapes) - told :]]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs, one array each.

        Raises:
            RunError: it is closed, maybe by another thread.
        """
        part = self._part
        if part is None:
            raise RunError("the part is closed")
        results, took = part.run(self.shapes, [*inputs, *self._empty])
        self.spent += took
        return results

    def close(self) -> None:
        """Lets the part go, which is freed when nobody has it any more."""
        self._part = None


def least_sizes(program: OpenProgram, inputs: Sequence[Sizes]) -> list[list[int]]:
    """The least size along each axis of each input that a program takes, which is told no numbers.

    Sizes that others have to equal are tried with these.

    Args:
        program: it.
        inputs: the sizes of its inputs, None where they are open.
    """
    places = [(at, axis) for at, sizes in enumerate(inputs) for axis, size in enumerate(sizes) if size is None]

    def takes(sizes: Mapping[tuple[int, int], int]) -> bool:
        shapes = [
            tuple([sizes.get((at, axis), LARGE) if size is None else size for axis, size in enumerate(row)])
            for at, row in enumerate(inputs)
        ]
        return program.fits(shapes, ())

    def least(group: list[tuple[int, int]]) -> int:
        if not takes(dict.fromkeys(group, LARGE // 2)):  # they have to equal others
            return LARGE
        return next((size for size in range(1, LARGE) if takes(dict.fromkeys(group, size))), LARGE)

    alone = {place: [place] for place in places}
    alike = {place: [each for each in places if each[1] == place[1]] for place in places}
    for groups in (alone, alike, dict.fromkeys(places, places)):
        found = {place: least(group) for place, group in groups.items()}
        # What is enough for one where the others are large, may be too small together with these.
        if LARGE not in found.values() and takes(found):
            break
    return [
        [found[at, axis] if size is None else size for axis, size in enumerate(row)] for at, row in enumerate(inputs)
    ]


LARGE = 1 << 10  # a size that all programs take, as its half; larger ones are not tried
