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
from pocketgraph.litert.running.runner import PlainRunner, Runner

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.litert.sizes.open_program import OpenProgram
    from pocketgraph.litert.sizes.operator_sizes import Sizes

Shapes = tuple[tuple[int, ...], ...]
MOST_KEPT = 64  # sizes of one part; more are forgotten
ROOM = 0.25  # share: of a size, that a model is given room for besides
ROOM_STEP = 32  # elements: that room is a multiple of, so that it is divided by what the size is divided by
MOST_ROOM = 1 << 22  # elements: of all inputs together, up to which there is room


class Resizable(Runner):
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
        self._kept_as = kept_as
        self._fed = [index for index in about["fed"] if index < len(about["opened"])]
        self._runner = PlainRunner(model, self._threads, is_bare=False)
        self._ready: dict[Shapes, _Taken] = {}
        self._shapes: Shapes = ()  # that the model has now
        self._room = 0  # elements of the largest inputs so far
        self._lock = threading.Lock()

    @staticmethod
    def of_entry(entry: CacheEntry, threads: int, kept_as: tuple[str, str] | None) -> Resizable:
        """What the cache keeps.

        Raises:
            RunError: LiteRT does not take it.
        """
        return Resizable(entry.about, entry.model, threads, kept_as)

    def executable(self) -> Executable:
        """Runs it with inputs of any shapes that it was made ready for."""
        inputs = [(name, dtype, None) for name, dtype, _ in self.about["inputs"][: len(self.about["opened"])]]
        about = {**self.about, "inputs": inputs, "fed": [*range(len(inputs))]}
        return Executable(about, self, None, self._threads, self._kept_as)

    def get_ready(self, shapes: Shapes) -> None:
        """Gives the model the sizes of inputs of these shapes, so that it runs with them from now on.

        Raises:
            RunError: it does not take them.
        """
        taken = self._taken(shapes)
        with self._lock:
            self._make_room(shapes)
            self._resize(taken.shapes)
            if len(self._ready) >= MOST_KEPT:
                self._ready.clear()
            self._ready[shapes] = taken

    def is_ready(self, shapes: Shapes) -> bool:
        """Whether it was made ready for inputs of these shapes."""
        return shapes in self._ready

    def waited(self, shapes: Shapes) -> float:
        """Seconds that runs with inputs of these shapes have waited for the model to take their sizes again."""
        taken = self._ready.get(shapes)
        return taken.waited if taken is not None else 0.0

    def _taken(self, shapes: Sequence[tuple[int, ...]]) -> _Taken:
        """
        Raises:
            RunError: it does not take them.
        """
        told = self._tell(shapes) if self._tell is not None else ()
        if not self.takes(shapes, told):
            raise RunError("the program does not take these sizes")
        return _Taken([shapes[index] for index in self._fed], told)

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
            self._resize(self._taken(larger).shapes)
            self._room = _elements(larger)
            # What is freed once tells the C library to keep arrays of up to that size for later ones.
            np.empty(max(self._runner.result_bytes()), np.uint8)

    def takes(self, shapes: Sequence[tuple[int, ...]], told: Shapes = ()) -> bool:
        """Whether all its operators take inputs of these shapes, and these numbers."""
        if "least" in self.about:  # which the cache keeps; it cannot keep a function
            pairs = zip(shapes, self.about["least"], strict=True)
            return all(size >= low for shape, lows in pairs for size, low in zip(shape, lows, strict=True))
        return self._fits is None or self._fits(shapes, told)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The model's outputs for inputs of shapes that it was made ready for.

        Raises:
            RuntimeError, ValueError: as LiteRT's; RunError where it does not take the sizes.
        """
        shapes = tuple([array.shape for array in inputs])
        taken = self._ready.get(shapes) or self._taken(shapes)
        with self._lock:
            if taken.shapes != self._shapes:
                began = time.thread_time()
                self._resize(taken.shapes)
                taken.waited += time.thread_time() - began
            return self._runner.run([*[inputs[index] for index in self._fed], *taken.empty])

    def _resize(self, shapes: Shapes) -> None:
        earlier = self._shapes or (None,) * len(shapes)
        self._shapes = ()  # of none, should LiteRT refuse
        pairs = enumerate(zip(shapes, earlier, strict=True))
        self._runner.resize({place: shape for place, (shape, own) in pairs if shape != own})
        self._shapes = shapes

    def close(self) -> None:
        """Forgets the sizes so far; the model goes with the last plan that it is in."""
        self._ready = {}


class _Taken:
    """What a model is given with inputs of some shapes.

    Args:
        fed: the shapes of those inputs that it takes.
        told: the numbers that it is told.

    Attributes:
        shapes: those of all that it takes.
        empty: the arrays that tell it numbers, by their shapes alone.
        waited: seconds that it took so far to give the model these shapes, after others had used it.
    """

    def __init__(self, fed: Sequence[tuple[int, ...]], told: Shapes) -> None:
        empty = [(0, *(max(0, number) for number in numbers)) for numbers in told]
        self.shapes: Shapes = (*fed, *empty)
        self.empty = [np.empty(shape, np.int32) for shape in empty]
        self.waited = 0.0


def _elements(shapes: Sequence[tuple[int, ...]]) -> int:
    return sum(map(math.prod, shapes))


def _with_room(size: int) -> int:
    return size + ROOM_STEP * math.ceil(size * ROOM / ROOM_STEP)


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
