"""Runs a LiteRT model file in its interpreter, and closes at exit what runners have started."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert import host
from pocketgraph.litert.missing_operators import REGISTERED, missing_operator
from pocketgraph.litert.native import native_model
from pocketgraph.litert.native.fork_safety import kept_over_fork
from pocketgraph.litert.native.native_messages import quiet

if TYPE_CHECKING:
    from pocketgraph.litert.constant import Array


CORE = ("SetTensor", "Invoke", "GetTensor", "ResizeInputTensor", "AllocateTensors")
"""What is called of LiteRT's compiled object, where it has them all."""
RECYCLING = "recycled_arrays"
"""The pass of kernels/recycled_arrays.py, which few runners need."""


class Runner(Protocol):
    """A loaded model: arrays in, arrays out, in the model's order."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs, one array each; they stay as they are when it runs again."""

    def direct(self, places: Sequence[int]) -> Callable[[Sequence[Array]], list[Array]]:
        """``run`` with its inputs picked from a longer list; large models take so long that no detour counts."""
        return lambda arrays: self.run([arrays[place] for place in places])

    def close(self) -> None:
        """Gives the memory back; it cannot run any more."""


def switch_off(runner: object, passes: Collection[str]) -> None:
    """Has a runner leave out passes of these names, where it has any."""
    leave_out = getattr(runner, "switch_off", None)
    if leave_out is not None:
        leave_out(passes)


def _bytes(detail: Mapping[str, Any]) -> int:
    """Of an output of which LiteRT tells this."""
    size: int = math.prod(int(length) for length in detail["shape"]) * np.dtype(detail["dtype"]).itemsize
    return size


class PlainRunner:
    """LiteRT's interpreter with XNNPACK, which packs the weights into memory of its own each time."""

    def __init__(
        self, model: str | bytes, threads: int, shapes: Sequence[Sequence[int]] | None = None, *, is_bare: bool = True
    ) -> None:
        """``model`` is a file, mapped as long as this lives, or a file's content; ``shapes`` are those that the outputs
        shall have, by default those that they have in the model. Without ``is_bare`` inputs may be resized.
        """
        from ai_edge_litert.interpreter import Interpreter

        from pocketgraph.kernels.recycled_arrays import LEAST, RecycledArrays  # a runner of packed weights has none
        from pocketgraph.litert.running.file_interpreter import source_of

        with quiet(), refusals():
            self._interpreter: Any = kept_over_fork(Interpreter(num_threads=threads, **source_of(model)))
            self._interpreter.allocate_tensors()
        self._inputs = [detail["index"] for detail in self._interpreter.get_input_details()]
        details = self._interpreter.get_output_details()
        self._outputs = [detail["index"] for detail in details]
        self._recycled, self._recycled_from = RecycledArrays(), LEAST
        self._large = {detail["index"] for detail in details if _bytes(detail) >= LEAST}
        self._shapes: list[tuple[int, ...] | None] = [None] * len(details)
        if shapes is not None:
            pairs = zip(map(tuple, shapes), details, strict=True)
            self._shapes = [None if shape == tuple(detail["shape"]) else shape for shape, detail in pairs]
        # The class is a thin cover of one compiled object; without it a run is a microsecond shorter.
        core: Any = getattr(self._interpreter, "_interpreter", None)
        has_core = all(hasattr(core, name) for name in CORE)
        self._is_bare = is_bare and has_core
        self._set: Any = core.SetTensor if has_core else self._interpreter.set_tensor
        self._invoke: Any = core.Invoke if has_core else self._interpreter.invoke
        self._get: Any = core.GetTensor if has_core else self._interpreter.get_tensor
        self._resize: Any = core.ResizeInputTensor if has_core else self._interpreter.resize_tensor_input
        self._allocate: Any = core.AllocateTensors if has_core else self._interpreter.allocate_tensors

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        for index, array in zip(self._inputs, inputs, strict=True):
            self._set(index, array)
        self._invoke()
        get = self._get
        if self._large and self._is_bare:
            recycled, tensor = self._recycled, self._interpreter.tensor
            results = [
                recycled.copied(index, tensor(index)()) if index in self._large else np.asarray(get(index, 0))
                for index in self._outputs
            ]
        else:
            results = [np.asarray(get(index, 0)) for index in self._outputs]  # one element comes as a NumPy scalar
        return [r if shape is None else r.reshape(shape) for r, shape in zip(results, self._shapes, strict=True)]

    def direct(self, places: Sequence[int]) -> Callable[[Sequence[Array]], list[Array]]:
        """The quickest ``run``, for arrays of the right types and shapes.

        Args:
            places: where each input is among the arrays that the function will be given.
        """
        windows = self._windows() if self._is_bare else None
        if windows is None:
            return lambda arrays: self.run([arrays[place] for place in places])
        inputs, outputs = windows
        invoke, copy, give = self._invoke, np.ndarray.copy, self._set
        pairs = [(window, place) for window, place in zip(inputs, places, strict=True) if window is not None]
        numbers = [(i, p) for i, window, p in zip(self._inputs, inputs, places, strict=True) if window is None]
        if len(pairs) == len(outputs) == 1 and not numbers and outputs[0].nbytes < self._recycled_from:
            ((window, place),), only = pairs, outputs[0].copy

            def run_one(arrays: Sequence[Array]) -> list[Array]:
                window[...] = arrays[place]
                invoke()
                return [only()]

            return run_one
        if any(window.nbytes >= self._recycled_from for window in outputs):
            recycled, numbered = self._recycled, list(enumerate(outputs))

            def run_recycling(arrays: Sequence[Array]) -> list[Array]:
                for window, place in pairs:
                    window[...] = arrays[place]
                for index, place in numbers:
                    give(index, arrays[place])
                invoke()
                return [recycled.copied(number, window) for number, window in numbered]

            return run_recycling

        def run(arrays: Sequence[Array]) -> list[Array]:
            for window, place in pairs:
                window[...] = arrays[place]
            for index, place in numbers:
                give(index, arrays[place])
            invoke()
            return list(map(copy, outputs))

        return run

    def resize(self, shapes: Mapping[int, tuple[int, ...]]) -> None:
        """Gives inputs other shapes, by their places; the others keep theirs.

        Raises:
            RunError: LiteRT refuses them.
        """
        with refusals():
            for place, shape in shapes.items():
                self._resize(self._inputs[place], np.array(shape, np.int32), False)
            self._allocate()

    def result_bytes(self) -> list[int]:
        """The size of each output, for the sizes that the inputs have now."""
        return [_bytes(detail) for detail in self._interpreter.get_output_details()]

    def switch_off(self, passes: Collection[str]) -> None:
        """Leaves passes out; without ``recycled_arrays`` its results never lie where earlier ones did."""
        self._recycled.is_on = self._recycled.is_on and RECYCLING not in passes

    def _windows(self) -> tuple[list[Array | None], list[Array]] | None:
        """LiteRT's own memory of the inputs and of the outputs, where that stays in its place; None of an input that is
        a single number.

        It stays where no tensor's size depends on values, so that nothing is allocated anew between runs. The arrays
        keep the memory from being freed.
        """
        try:
            if not has_fixed_sizes(self._interpreter._interpreter, self._inputs):
                return None
            details = {detail["index"]: len(detail["shape"]) for detail in self._interpreter.get_input_details()}
            inputs = [self._interpreter.tensor(index)() if details[index] else None for index in self._inputs]
            outputs = [self._interpreter.tensor(index)() for index in self._outputs]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError):
            return None  # another LiteRT, or a tensor without memory
        if not all(isinstance(window, np.ndarray) for window in (*inputs, *outputs) if window is not None):
            return None  # of a tensor without dimensions LiteRT gives a copy
        return inputs, [
            o if shape is None else o.reshape(shape) for o, shape in zip(outputs, self._shapes, strict=True)
        ]

    def views(self, inputs: Sequence[Array]) -> list[Array]:
        """Computes, and gives the outputs where they lie in LiteRT's memory: until it computes again."""
        for index, array in zip(self._inputs, inputs, strict=True):
            self._set(index, array)
        self._invoke()
        return [self._interpreter.tensor(index)() for index in self._outputs]

    def seconds(self, inputs: Sequence[Array] | None, enough: float, most: int) -> float:
        """The median time of computing alone, without moving data in and out.

        Args:
            inputs: what to compute with, once before time is taken; None for what it was given last.
            enough: seconds after which no more samples are taken.
            most: how many samples at most.
        """
        if inputs is not None:
            self.run(inputs)
        samples: list[float] = []
        while sum(samples) < enough and len(samples) < most:
            start = time.perf_counter()
            self._invoke()
            samples.append(time.perf_counter() - start)
        return float(np.median(samples))

    def close(self) -> None:
        self._interpreter = self._set = self._invoke = self._get = self._resize = self._allocate = None


def has_fixed_sizes(core: Any, given: Sequence[int]) -> bool:
    """Whether no tensor's size depends on values, where that can be told.

    So it is when one delegate (XNNPACK) computes everything, or where each operator's sizes follow from shapes and
    constants.

    Args:
        core: LiteRT's interpreter without its cover.
        given: the places of its inputs among its tensors.
    """
    codes = [core.NodeName(index) for index in range(core.NumNodes())]
    if codes[-1:] == ["DELEGATE"] and codes.count("DELEGATE") == 1:
        made = {int(index) for place in range(len(codes) - 1) for index in core.NodeOutputs(place)}
        taken = set(map(int, core.NodeInputs(len(codes) - 1)))
        if not taken & made and taken >= set(given):
            return True
    from pocketgraph.litert.operator_traits import SIZED_BY_OPERANDS, SIZED_BY_SHAPES

    computed = {*given, *(int(index) for place in range(len(codes)) for index in core.NodeOutputs(place))}
    for place, code in enumerate(codes):
        if code in SIZED_BY_SHAPES or code == "DELEGATE":
            continue
        operands = [int(index) for index in core.NodeInputs(place)]
        if code not in SIZED_BY_OPERANDS or len(computed.intersection(operands)) > 1:
            return False
        # A computed operand that stands for sizes beside a constant one: SPLIT's comes second, the others' first.
        if computed.intersection(operands) and operands[code == "SPLIT"] not in computed:
            return False
    return True


PACKED_TYPES = ("float32", "int32", "uint8", "int8", "bool")
"""NumPy types that the buffers of LiteRT's compiled models carry."""


def prepare() -> None:
    """Starts what compiled models need besides their files."""
    with quiet():
        try:
            native_model.surroundings()
            end_with_process()
        except native_model.UNKNOWN:
            if host.runs_gpu_library():
                package_environment()


class Closable(Protocol):
    """What holds objects of LiteRT's."""

    def close(self) -> None:
        """Gives them back."""


_live: WeakSet[Closable] = WeakSet()


def close_at_exit(holder: Closable) -> None:
    """Has something that LiteRT has started for closed before LiteRT ends with the process."""
    end_with_process()
    _live.add(holder)
    _mute_exit()


@lru_cache(maxsize=1)
def package_environment() -> Any:
    """The surroundings of all compiled models of LiteRT's Python package."""
    from ai_edge_litert.environment import Environment

    end_with_process()
    return Environment.create()


@lru_cache(maxsize=1)
def end_with_process() -> None:
    """Has LiteRT end with the process, once all that it started for is closed."""
    process = os.getpid()

    def close_all() -> None:
        if os.getpid() != process:
            return  # LiteRT's threads are not in a forked process
        for runner in list(_live):
            runner.close()
        with quiet():
            native_model.end()
            if package_environment.cache_info().currsize:
                package_environment().close()

    atexit.register(close_all)


@lru_cache(maxsize=1)
def _mute_exit() -> None:
    """Closes stderr when the process has ended but for C++ destructors: LiteRT's would write notes to it.

    The C library runs what is registered last first, so LiteRT must have started before.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.__cxa_atexit(ctypes.cast(library.close, ctypes.c_void_p), ctypes.c_void_p(2), None)


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """LiteRT's own exceptions as ours."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if missing := missing_operator(str(error)):
            raise RunError(missing, hint=REGISTERED) from error
        raise RunError(f"LiteRT does not take the compiled part: {words(error)}") from error


def words(error: Exception) -> str:
    """What LiteRT said, in one line; it puts no space between a message and the next, and says those of earlier calls
    once more.

    >>> words(RuntimeError(2 * "index out of boundsNode number 7 (GATHER) failed to invoke."))
    'index out of bounds; node number 7 (GATHER) failed to invoke.'
    """
    said = re.sub(r"^(.+?)\1+$", r"\1", " ".join(str(error).split())).replace("was not true.", "was not true; ")
    return re.sub(r"(?<=\w)Node number", "; node number", said).replace("; Node number", "; node number")
