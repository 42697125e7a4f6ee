"""Convolutions by XNNPACK whose weights are others in each run, as those of a training are.

XNNPACK packs constant weights once, into a file that it maps into memory. A program of one convolution is opened with
weights that all differ, which tell where each of them went; from then on new ones are written there before it runs.
Where the first results with other weights are not those of NumPy, nothing is computed here.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.nn.convolution_kind import ConvolutionKind
from pocketgraph.kernels.nn.rectified_convolution import CONVOLUTIONS, rectify
from pocketgraph.kernels.recycled_arrays import aligned
from pocketgraph.kernels.windows import inside
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.native import native_model
from pocketgraph.litert.native.fork_safety import keep
from pocketgraph.litert.native.in_place_model import InPlaceModel
from pocketgraph.litert.native.native_messages import quiet
from pocketgraph.litert.packing import weight_cache_file
from pocketgraph.litert.packing.packing_order import PackingOrder
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.running.runner import close_at_exit
from pocketgraph.litert.writing import writer

CODES = {"Conv2D": "CONV_2D", "DepthwiseConv2dNative": "DEPTHWISE_CONV_2D"}
MOST_WEIGHTS = 1 << 24  # up to here float32 tells whole numbers apart
MOST_ELEMENTS = 25  # of a depthwise window; for larger ones XNNPACK has no kernels of their own
MOST_PROGRAMS = 32  # of a session; each has memory for its images and results, a megabyte of either
LONG_AGO = 2048  # convolutions: more than a step has; a program that none of so many was for makes room for another
CLOSE_TO = 1e-4  # the most by which results differ from NumPy's, relative to the largest

Run = Callable[[Array, Array], None]
"""Puts the convolution of images into an array, both float32 in one piece."""


class ChangingConvolutions:
    """The programs of a session, each opened when its like is asked for the second time.

    Args:
        threads: how many to compute with.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._programs: dict[ConvolutionKind, _RepackedConvolution | None] = {}
        self._asked: OrderedDict[ConvolutionKind, int] = OrderedDict()  # when each was last asked for, latest last
        self._lock = threading.Lock()
        self._now = 0

    @contextlib.contextmanager
    def given(self, kind: ConvolutionKind, weights: Array, bias: Array | None) -> Iterator[Run | None]:
        """What computes convolutions with these weights while the context lasts; None where NumPy is to do it.

        Args:
            kind: the convolution.
            weights: float32 [rows, columns, channels, outputs or 1].
            bias: float32, one for each output channel; None for zeros.
        """
        with contextlib.ExitStack() as stack:
            known = kind if kind.padding() is not None else kind.with_border()
            border = None if known is kind else _Border(kind)
            ready: dict[int, _RepackedConvolution | None] = {}

            def program(count: int) -> _RepackedConvolution | None:
                if count not in ready:
                    found = self._program(known._replace(images=(count, *known.images[1:])))
                    if found is not None:
                        stack.enter_context(found.lock)
                        found.pack(weights, bias, kind.columns)
                    ready[count] = found
                return ready[count]

            def run(x: Array, result: Array) -> None:
                found = program(len(x))
                if found is not None:
                    with contextlib.suppress(RuntimeError):  # no memory, say, or closed as the process ends
                        found.model.run_into([x if border is None else border.around(x)], [result])
                        return
                result[...] = _in_numpy(kind, x, weights, bias)

            yield run if program(kind.images[0]) is not None else None

    def _program(self, kind: ConvolutionKind) -> _RepackedConvolution | None:
        if self._process != os.getpid():  # a forked process has neither LiteRT's threads nor those who hold locks
            keep(tuple(self._programs.values()))
            self._begin()
        with self._lock:
            is_new = kind not in self._asked
            self._now += 1
            self._asked[kind] = self._now
            self._asked.move_to_end(kind)
            while self._now - next(iter(self._asked.values())) >= LONG_AGO:
                self._programs.pop(self._asked.popitem(last=False)[0], None)
            if kind not in self._programs and (is_new or self._is_full()):
                return None  # to open a program takes as long as many runs: sizes that come once are not worth one
            if kind not in self._programs:
                self._programs[kind] = _opened(kind, self._threads)
            return self._programs[kind]

    def _is_full(self) -> bool:
        return sum(program is not None for program in self._programs.values()) >= MOST_PROGRAMS


class _Border:
    """Puts zeros around images, where XNNPACK has no name for a convolution's border.

    Args:
        kind: the convolution.
    """

    def __init__(self, kind: ConvolutionKind) -> None:
        self._inside = inside(kind.images[1:3], kind.spans)
        self._room = aligned(kind.with_border().images, np.float32)
        self._room[...] = 0

    def around(self, x: Array) -> Array:
        """The images with it, until the next ones are asked for."""
        room = self._room[: len(x)]
        room[self._inside] = x
        return room


class _RepackedConvolution:
    """A program, and where XNNPACK reads its weights.

    Args:
        model: it.
        room: what XNNPACK packed and reads, float32.
        sources: for each number there, its place among weights, biases and a zero.

    Attributes:
        lock: whoever packs weights holds it until they have served.
    """

    def __init__(self, model: InPlaceModel, room: Array, sources: Array) -> None:
        self.model = model
        self.lock = threading.Lock()
        self._room, self._sources = room, sources

    def pack(self, weights: Array, bias: Array | None, columns: int) -> None:
        """Puts other weights, and biases of so many output channels, there."""
        added = np.zeros(columns, np.float32) if bias is None else bias
        given = np.concatenate((weights.reshape(-1), added, np.zeros(1, np.float32)))
        np.take(given, self._sources, out=self._room, mode="clip")


def _in_numpy(kind: ConvolutionKind, x: Array, weights: Array, bias: Array | None) -> Array:
    made = CONVOLUTIONS[kind.op](x, weights, kind.spans)
    if bias is not None:
        made += bias
    if kind.rectifier:
        rectify(made, kind.rectifier, made)
    return made


def _opened(kind: ConvolutionKind, threads: int) -> _RepackedConvolution | None:
    """The program of a kind; None where its weights cannot be changed."""
    size = int(np.prod(kind.weights))
    if not 0 < size < MOST_WEIGHTS or kind.columns > size or kind.padding() is None:
        return None
    if kind.is_depthwise and (kind.weights[3] != 1 or math.prod(kind.weights[:2]) > MOST_ELEMENTS):
        return None
    matrix = np.arange(1, size + 1, dtype=np.float32).reshape(-1, kind.columns)
    bias = -np.arange(1, kind.columns + 1, dtype=np.float32)
    program = _program_of(kind, matrix, bias)
    try:
        model, content = _loaded(program, threads)
        listed = weight_cache_file.read(bytes(content))
    except (RuntimeError, ValueError, *native_model.UNKNOWN):
        return None
    if len(listed.buffers) != 1 or not model.is_delegated:
        return None
    where = listed.base + listed.buffers[0].offset
    room = np.frombuffer(content, np.float32, listed.buffers[0].size // 4, where)
    sources = _sources(room, size, kind.columns)
    if kind.is_depthwise and not _has_kernels_of_its_own(sources, kind):
        return None
    found = _RepackedConvolution(model, room, sources)
    return found if _is_right(found, kind) else None


def _has_kernels_of_its_own(sources: Array, kind: ConvolutionKind) -> bool:
    """Whether weights were packed for a kernel of as many elements as a depthwise window has; one of more reads pixels
    elsewhere and multiplies them by zeros, which makes NaN of what is not finite there."""
    elements = math.prod(kind.weights[:2])
    first = [int(np.argmax(sources == place)) for place in (0, elements * kind.columns)]  # the weight, the bias
    width = first[0] - first[1]
    return width > 0 and PackingOrder(width).size(elements, kind.columns) == sources.size * 4


def _sources(packed: Array, weights: int, columns: int) -> Array:
    """Where each number that was packed is from: its place among the weights, which were 1, 2, …, the biases, which
    were -1, -2, …, and a zero, which stands for what only fills room up. ``packing_order.order_of`` names
    the orders that are known; this takes any."""
    numbers = np.where(np.abs(packed) <= weights, packed, 0).astype(np.int64)
    is_bias = (numbers < 0) & (numbers >= -columns)
    return np.where(numbers > 0, numbers - 1, np.where(is_bias, weights - 1 - numbers, weights + columns))


def _loaded(program: Program, threads: int) -> tuple[InPlaceModel, mmap.mmap]:
    """A loaded program and its file of packed weights. Both files are in memory alone: a process that is killed leaves
    nothing, no disk can be full, and none is written to at each step."""
    outputs = [(value.shape, value.dtype.numpy) for value in program.outputs]
    with open(os.memfd_create("convolution"), "wb") as file, open(os.memfd_create("packed weights"), "r+b") as packed:
        file.writelines(writer.pieces(program))
        file.flush()
        paths = [f"/proc/self/fd/{each.fileno()}" for each in (file, packed)]
        with quiet():
            model = InPlaceModel(paths[0], threads, paths[1], outputs)
            close_at_exit(model)
        return model, mmap.mmap(packed.fileno(), 0)


def _program_of(kind: ConvolutionKind, matrix: Array, bias: Array) -> Program:
    """A program of one convolution with these weights, (elements of a window, outputs)."""
    height, width, channels, _ = kind.weights
    shape = (1 if kind.is_depthwise else kind.columns, height, width, channels)
    weights = np.ascontiguousarray(matrix if kind.is_depthwise else matrix.T).reshape(shape)
    options: dict[str, Any] = {"padding": kind.padding()}
    options |= {"multiplier": 1} if kind.is_depthwise else {}
    options |= {"activation": kind.rectifier.upper()} if kind.rectifier else {}
    for side, span in zip("hw", kind.spans, strict=True):
        options |= {f"stride_{side}": span.stride, f"dilation_{side}": span.dilation}
    source, result = Value("x", FLOAT, kind.images), Value("y", FLOAT, kind.result)
    operands: list[Value | None] = [
        source,
        *(Value(f"c{n}", FLOAT, each.shape, Constant.of(each)) for n, each in enumerate((weights, bias))),
    ]
    return Program([source], [result], [Operation(CODES[kind.op], operands, [result], options)])


def _is_right(program: _RepackedConvolution, kind: ConvolutionKind) -> bool:
    """Whether other weights give what NumPy computes with them of an image, where a number is not finite, too."""
    one, weights, bias = (
        np.sin(np.arange(math.prod(shape), dtype=np.float32) * 0.7).reshape(shape)
        for shape in ((1, *kind.images[1:]), kind.weights, (kind.columns,))
    )
    x = np.zeros(kind.images, np.float32)
    program.pack(weights, bias, kind.columns)
    result = np.empty(kind.result, np.float32)
    corner, middle = (0, 0, 0), (0, *(size // 2 for size in kind.images[1:3]))
    for outer, inner in ((0, 0), (np.nan, -np.inf)):
        one[corner], one[middle] = outer, inner
        x[:1] = one
        try:
            program.model.run_into([x], [result])
        except RuntimeError:
            return False
        with np.errstate(all="ignore"):
            expected = _in_numpy(kind, one, weights, bias)
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        if not np.allclose(result[:1], expected, rtol=0, atol=CLOSE_TO * largest, equal_nan=True):
            return False
    return True
