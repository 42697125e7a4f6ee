"""A compiled part that runs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pocketgraph.errors import RunError, option
from pocketgraph.graph.record import Record
from pocketgraph.litert import cache
from pocketgraph.litert.cost_model import CHECKED_NODE, CHECKED_PRODUCT, PREPARED_AFTER
from pocketgraph.litert.running.runner import Runner, switch_off, words
from pocketgraph.litert.sixteen_bits import as_type, computed_in, numpy_type

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array
    from pocketgraph.litert.program import Program


Check: TypeAlias = "Callable[[Executable, Sequence[Array], list[Array]], list[Array]]"
"""Is given an executable, what went in and what came out of it, and says what to answer."""


class Opener(Record):
    """What makes a runner of a part's LiteRT file: LiteRT by default, or another engine.

    Attributes:
        engine: its name and version, under which certificates are kept; "" for LiteRT.
        open: takes the file's entry (one that is not kept has no packed weights) and a number of threads; raises
            RunError where it does not take the file.
    """

    engine: str
    open: Callable[[cache.CacheEntry, int], Runner]


DIRECT_CALLS = "direct_calls"
"""The pass by which arrays go straight into LiteRT's memory, without being looked at, where they are known to fit."""


DIVISIONS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")
"""Operators that fail while running for one reason only: an integer 0 as divisor."""
BEYOND = "index out of bounds"  # in what GATHER says


class Executable:
    """A compiled part.

    Attributes:
        program: its operations, None when it came from the cache.
        about: what the cache keeps of it: inputs (a shape of None: any that the runner takes), outputs, how many
            operations, bytes of constants.
        kept_as: the folder and name under which the cache keeps it; None where it does not.
        engine: the name and version of the engine that runs it; "" for LiteRT.
        next_tier: the folder and name under which the cache keeps the same part, or is to keep it, compiled to run
            faster; None where this is that.
        check: sees what comes out of it before anybody else, as long as it is set.
    """

    def __init__(
        self,
        about: dict[str, Any],
        runner: Runner | None,
        program: Program | None,
        threads: int,
        kept_as: tuple[str, str] | None = None,
        engine: str = "",
    ) -> None:
        self.about = about
        self.engine = engine
        self.program = program
        self.threads = threads
        self.kept_as = kept_as
        self.next_tier: tuple[str, str] | None = None
        self.check: Check | None = None
        self._instead: Callable[[Sequence[Array]], list[Array]] | None = None
        self._runner = runner
        self._lock = threading.Lock()
        self._inputs = [
            (None if shape is None else tuple(shape), numpy_type(dtype), name) for name, dtype, shape in about["inputs"]
        ]
        self._computed_in = [computed_in(dtype) for _, dtype, _ in about["inputs"]]
        self._rounded: dict[int, str] = {int(place): dtype for place, dtype in about["rounded"].items()}
        self._sources: list[tuple[str, int]] = [(kind, index) for kind, index in about["sources"]]
        self._constants = [decoded(text, dtype).reshape(shape) for text, dtype, shape in about["constants"]]
        self._fed: list[int] = about["fed"]
        first: dict[tuple[str, int], int] = {}
        self._copied = [first.setdefault(source, place) < place for place, source in enumerate(self._sources)]
        is_narrow = bool(self._rounded) or self._computed_in != [dtype for _, dtype, _ in about["inputs"]]
        is_straight = self._sources == [("computed", index) for index in range(len(about["computed"]))]
        self._is_plain = is_straight and not is_narrow
        self._is_direct = True

    @property
    def is_open(self) -> bool:
        """Whether an engine computes it: it is not closed, and was not found wrong."""
        return self._runner is not None

    @property
    def is_certified(self) -> bool:
        """Whether its results were compared with the reference engine's, and right; or there is nothing to compare."""
        return not self.about["operations"] or cache.certificate(self.about, self.engine) == "right"

    @property
    def is_put_off(self) -> bool:
        """Whether an earlier process left the comparison to a later time, because it takes long."""
        return cache.certificate(self.about, self.engine) == "later"

    @property
    def check_time(self) -> float:
        """About how long the reference engine takes to compute the same, in microseconds."""
        return float(self.about["operations"] * CHECKED_NODE + self.about["work"] * CHECKED_PRODUCT)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Computes the outputs.

        Args:
            inputs: one array for each input, of its type and shape.

        Returns:
            One new array for each output.

        Raises:
            RunError: an input is of another type or shape, or LiteRT failed.
        """
        instead = self._instead
        if instead is not None:
            return instead(inputs)
        check = self.check  # of what computes now; another thread may exchange both
        results = self.computed(inputs)
        return results if check is None else check(self, inputs, results)

    def computed(self, inputs: Sequence[Array]) -> list[Array]:
        """As ``run``, without asking ``check``."""
        if len(inputs) != len(self._inputs):
            raise RunError(f"the part takes {len(self._inputs)} inputs, not {len(inputs)}")
        arrays = []
        for array, (shape, dtype, name), inside in zip(inputs, self._inputs, self._computed_in, strict=True):
            wanted = array.shape if shape is None else shape
            if array.shape != wanted or array.dtype != dtype:
                raise RunError(f"{name} must be {dtype.name}{list(wanted)}, not {array.dtype.name}{list(array.shape)}")
            array = as_type(array, inside)
            arrays.append(array if array.flags.c_contiguous else np.ascontiguousarray(array))
        computed: list[Array] = []
        with self._lock:
            runner, instead = self._runner, self._instead
            if runner is not None:
                try:
                    computed = runner.run([arrays[index] for index in self._fed])
                except (RuntimeError, ValueError) as error:
                    raise failure(error) from error
        if runner is None and instead is not None:  # another thread found it wrong meanwhile
            return instead(inputs)
        if runner is None and any(kind == "computed" for kind, _ in self._sources):
            raise RunError("the part is closed")
        sources = {"computed": computed, "input": arrays, "constant": self._constants}
        results = [
            sources[kind][index].copy() if is_copied or kind != "computed" else sources[kind][index]
            for (kind, index), is_copied in zip(self._sources, self._copied, strict=True)
        ]
        for place, name in self._rounded.items():
            results[place] = as_type(results[place], name)
        return results

    def direct(self, order: Sequence[int]) -> Callable[[Sequence[Array]], list[Array]]:
        """The quickest ``run``, for arrays that are known to be of the right types and shapes.

        Args:
            order: the place of each input among the arrays that the function will be given.
        """
        if not self._is_plain or not self._is_direct or self._runner is None:
            return lambda values: self.run([values[index] for index in order])
        places, lock = [order[index] for index in self._fed], self._lock
        runner: Runner | None = None
        runs = 0
        step: Callable[[Sequence[Array]], list[Array]] | None = None

        def run(values: Sequence[Array]) -> list[Array]:
            nonlocal runner, runs, step
            try:
                with lock:
                    if runner is not self._runner:  # another engine has taken over
                        runner, runs, step = self._runner, 0, None
                    if runner is not None and self.check is None:
                        if step is None:
                            runs += 1
                            if runs < PREPARED_AFTER:
                                return runner.run([values[place] for place in places])
                            step = runner.direct(places)
                        return step(values)
            except (RuntimeError, ValueError) as error:
                raise failure(error) from error
            return self.run([values[index] for index in order])

        return run

    def replace(self, other: Callable[[Sequence[Array]], list[Array]]) -> None:
        """Lets ``other`` answer from now on, as ``run`` does: what this one gives has turned out to be wrong."""
        self._instead, self._runner = other, None
        self.check = lambda executable, inputs, results: other(inputs)  # for a run that is under way in another thread

    def run_by(self, runner: Runner, engine: str) -> bool:
        """Lets another engine's runner of the same file compute from now on.

        Returns:
            Whether it does; a part that is closed or answered by the reference engine stays as it is.
        """
        with self._lock:
            before = self._runner
            if before is None or self._instead is not None:
                return False
            self._runner, self.engine = runner, engine
        before.close()
        return True

    def become(self, other: Executable) -> bool:
        """Lets the model of another executable of the same part compute from now on.

        Args:
            other: it; it must not be used besides.

        Returns:
            Whether it does; a part that is closed or answered by another one stays as it is.
        """
        with self._lock:
            before = self._runner
            is_same = (self._inputs, self._fed, self._sources) == (other._inputs, other._fed, other._sources)
            if before is None or self._instead is not None or self.engine or not is_same:
                return False
            self.about, self.program, self.kept_as = other.about, other.program, other.kept_as
            self._runner, self.check, self.next_tier = other._runner, other.check, None
        before.close()
        return True

    def after(self, runs: int, then: Callable[[], object]) -> None:
        """Calls ``then`` once, as the part begins the run of this number; it must not take long."""
        from pocketgraph.litert.upgrading import UpgradingRunner

        runner = self._runner
        if runner is None:
            return
        me = weakref.ref(self)  # who lets go of a session need not wait for Python's search for cycles

        def counted() -> None:
            executable = me()
            if executable is not None and executable._runner is counting():
                executable._runner = runner  # which has quicker ways than one that counts
            then()

        self._runner = UpgradingRunner(runner, runs - 1, counted)
        counting = weakref.ref(self._runner)

    def switch_off(self, passes: Collection[str]) -> None:
        """Leaves out what it does besides its program.

        Args:
            passes: the names of passes that are switched off; those of others do no harm.
        """
        self._is_direct = DIRECT_CALLS not in passes
        switch_off(self._runner, passes)

    def close(self) -> None:
        """Lets the model go; it cannot run afterwards."""
        self.check = self._instead = None
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def beside(self, runner: Runner, engine: str) -> Executable:
        """The same part, run by another engine's runner."""
        return Executable(self.about, runner, self.program, self.threads, engine=engine)

    def op_times(self, inputs: Sequence[Array]) -> tuple[list[tuple[tuple[str, ...], str, float]], str] | None:
        """How long each operation takes: (graph nodes, operator, microseconds) of each; and how it is known.

        See operation_times.py for how it is measured. None when the part came from the cache, which does not say
        what the operations are.
        """
        if self.program is None:
            return None
        from pocketgraph.litert.operation_times import operation_times

        taken = [as_type(array, inside) for array, inside in zip(inputs, self._computed_in, strict=True)]
        return operation_times(self.program, self.threads, taken, lambda: self.run(inputs))


def failure(error: Exception) -> RunError:
    """What LiteRT said while running, as an error of ours; of a division by zero what the reference engine says too."""
    said = words(error)
    hint = (
        "an index that was fed is none of its table; feed values that the model takes" if BEYOND in said
        else f"{option('engine')}=reference says which node does not take what was fed, and why"
    )  # fmt: skip
    divides = any(f"({code}) failed to invoke" in said for code in DIVISIONS)
    return RunError(f"LiteRT failed: {f'Integer division by zero ({said})' if divides else said}", hint=hint)


def encoded(array: Array) -> str:
    """An array's elements as text."""
    return np.ascontiguousarray(array).tobytes().hex()


def decoded(text: str, dtype: str) -> Array:
    """The elements that ``encoded`` made text of, in one dimension."""
    return np.frombuffer(bytes.fromhex(text), dtype)
