"""What an engine is to a session: it says which parts it takes, makes runners of them, and times their operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import Graph
from pocketgraph.litert.cache import CacheEntry
from pocketgraph.litert.running.microbatch_runner import MICROBATCHES, of_one
from pocketgraph.litert.running.runner import Runner
from pocketgraph.litert.sixteen_bits import computed_in

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.runtime.certificates.part_reference import PartReference


class PartTensor(NamedTuple):
    """What a part's file takes or gives in one place: a NumPy dtype and the sizes."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


class OperationTime(NamedTuple):
    """How long one operation of a part took.

    Attributes:
        name: a node of the graph, or what the engine calls the operation.
        op: what it does, in the engine's words.
        microseconds: the mean, or the only time.
        size: bytes of its results; 0 where the engine does not tell.
    """

    name: str
    op: str
    microseconds: float
    size: int = 0


class CutBatchError(RunError):
    """The file of a part is for some of a batch at a time."""


class OfferedPart:
    """A part of a graph, with fixed shapes, as engines are given it.

    Args:
        entry: its LiteRT file and what is known of it.
        nodes: makes what computes the same nodes on the reference engine; None where an earlier process compiled the
            part and the graph was not read.
    """

    def __init__(self, entry: CacheEntry, nodes: Callable[[], PartReference] | None = None) -> None:
        self.entry = entry
        self._nodes = nodes

    @cached_property
    def reference(self) -> PartReference | None:
        """Computes the part's nodes on the reference engine; None where the graph was not read."""
        return None if self._nodes is None else self._nodes()

    @property
    def without(self) -> frozenset[str]:
        """Passes that are switched off; none are known to be where the graph was not read."""
        return frozenset() if self.reference is None else self.reference.without

    @property
    def microbatches(self) -> int:
        """How many parts of a batch LiteRT computes one after the other."""
        count: int = self.entry.about.get(MICROBATCHES, 1)
        return count

    def of_one_microbatch(self) -> OfferedPart:
        """What LiteRT computes so many times, by its file alone."""
        entry = self.entry
        return OfferedPart(CacheEntry(entry.model, entry.packed, entry.has_packed, of_one(entry.about)))

    @property
    def file(self) -> str:
        """The path of a .tflite file of it, as LiteRT runs it; it may be gone once ``load`` has returned.

        Raises:
            RunError: the file does not hold all weights.
            CutBatchError: it computes a part of a batch.
        """
        if self.microbatches > 1:
            raise CutBatchError("its file computes a part of a batch, for LiteRT alone")
        if self.entry.is_weightless:
            raise RunError("the part was written anew meanwhile, for LiteRT alone")
        return self.entry.model

    @property
    def inputs(self) -> list[PartTensor]:
        """What the file takes, in its order."""
        about = self.entry.about
        return [_spec(*about["inputs"][index][1:]) for index in about["fed"]]

    @property
    def outputs(self) -> list[PartTensor]:
        """What is wanted of it, in the file's order. The file may give the same elements in another shape."""
        return [_spec(dtype, shape) for shape, dtype in self.entry.about["computed"]]

    @property
    def work(self) -> int:
        """About how many multiplications, or steps for an element, a run takes."""
        return int(self.entry.about["work"])

    @property
    def is_eight_bit(self) -> bool:
        """Whether tensors of it are codes."""
        return bool(self.entry.about["eight_bit"])

    @property
    def is_narrow(self) -> bool:
        """Whether it takes or gives 16-bit floats, which the file holds as 32-bit ones."""
        about = self.entry.about
        return bool(about["rounded"]) or any(computed_in(dtype) != dtype for _, dtype, _ in about["inputs"])

    def graph(self) -> Graph | None:
        """The part in TensorFlow's ops, a graph with a placeholder for each input; None where the graph was not read.

        Its inputs are those of the part, of which the file may not take all.
        """
        if self.reference is None:
            return None
        given = [np.zeros(shape, dtype) for _, dtype, shape in self.entry.about["inputs"]]
        return self.reference.as_graph(given)[0]

    def all_inputs(self, inputs: Sequence[Array]) -> list[Array]:
        """What the part's graph takes, of what the file does: inputs that no result depends on are made up."""
        about = self.entry.about
        given = dict(zip(about["fed"], inputs, strict=True))
        return [
            given[place] if place in given else np.zeros(shape, dtype)
            for place, (_, dtype, shape) in enumerate(about["inputs"])
        ]

    @cached_property
    def places(self) -> list[int]:
        """The place of each of the file's outputs among those of the part's graph."""
        sources = [tuple(source) for source in self.entry.about["sources"]]
        return [sources.index(("computed", index)) for index in range(len(self.entry.about["computed"]))]


def _spec(dtype: str, shape: Sequence[int]) -> PartTensor:
    return PartTensor(np.dtype(computed_in(dtype)), tuple(shape))


class PartRunner(Runner):
    """A base for runners (litert.running's Runner) that compute in ``run``: the rest of what a session asks of one."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs, one new array each, of the shapes that are wanted. One call at a time.

        Raises:
            RuntimeError: the engine failed.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Gives the memory back."""


class PartEngine(Protocol):
    """An engine, as it is registered: built in, or by an entry point of the group ``pocketgraph.engines``.

    Attributes:
        name: what ``Session(engine=…)`` calls it.
    """

    name: str

    def version(self) -> str:
        """Its version; measurements and certificates are kept under it.

        Raises:
            MissingExtraError: it is not installed.
        """

    def refuses(self, part: OfferedPart) -> str:
        """Why it cannot run the part, as far as that can be told quickly; "" where it may."""

    def load(self, part: OfferedPart, threads: int) -> Runner:
        """Compiles the part for its shapes.

        Raises:
            RunError: it cannot; any other exception is taken for the same.
        """

    def profile(self, part: OfferedPart, threads: int, inputs: Sequence[Array]) -> list[OperationTime] | None:
        """How long the operations of one run take, in running order; None where the engine does not tell."""
