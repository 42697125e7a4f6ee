"""``InferenceInterface``: the feed, run and fetch calls that Android apps know, over a Session.

Behaviour and error texts are those of org.tensorflow.contrib.android.TensorFlowInferenceInterface: data is copied when
it is fed, feeds are gone after a run, and an output is fetched under just the name that was given to ``run``.
"""

from __future__ import annotations

import logging
import math
import operator
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, SupportsIndex

import numpy as np

from pocketgraph import formats
from pocketgraph.errors import PocketgraphError, RunError, UsageError
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.dtype import RESOURCE, VARIANT
from pocketgraph.graph.entry_points import unknown_node_hint
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.graph_operation import GraphOperation
from pocketgraph.runtime.profiling.profile import StepTrace
from pocketgraph.runtime.profiling.stat_summarizer import StatSummarizer
from pocketgraph.runtime.session import Session
from pocketgraph.runtime.tensor_names import listed, output_types

FED_TYPES = ("float32", "int32", "int64", "float64", "uint8", "bool")
TOP = 10  # rows of the time table in the stat string
UNFED = (RESOURCE, VARIANT)  # the session says that these cannot be fed
log = logging.getLogger(__name__)


class InferenceInterface:
    """Runs a model in the manner of Android's interface.

    Args:
        model: a model's path (``file:///android_asset/NAME`` means NAME), an open binary file, or a Graph.
        options: what ``Session`` takes besides; nodes run one at a time unless ``inter_op_threads`` says otherwise.

    Tensors are named ``node`` or ``node:index``. Every method has its Java name as well. One thread at a time may use
    an interface.

    >>> from pocketgraph import InferenceInterface
    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float, shape=[?, 2])
    ...     y = Relu(x, T=float)
    ... ''')
    >>> with InferenceInterface(graph) as model:
    ...     model.feed("x", [-1.0, 2.0], 1, 2)
    ...     model.run(["y"])
    ...     model.fetch("y")
    array([[0., 2.]], dtype=float32)

    Raises:
        RunError: the model cannot be loaded.
    """

    def __init__(self, model: Graph | str | os.PathLike[str] | BinaryIO, **options: Any) -> None:
        options.setdefault("inter_op_threads", 1)
        self.model_name = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
        self._session = Session(self._loaded(model), **options)
        self._feeds: dict[str, Array] = {}
        self._twice = ""
        self._fetched: dict[str, Array] = {}
        self._stats: StatSummarizer | None = None
        self._is_open = True

    def _loaded(self, model: Graph | str | os.PathLike[str] | BinaryIO) -> Graph:
        if isinstance(model, Graph):
            return model
        try:
            if isinstance(model, str | os.PathLike):
                return formats.load(self.model_name.removeprefix("file:///android_asset/"))
            return formats.from_bytes(_contents(model), "the input stream")
        except PocketgraphError as error:
            source = f"'{self.model_name}'" if self.model_name else "the input stream"
            raise RunError(f"Failed to load model from {source}: {error.what}", hint=error.hint) from error

    # The graph

    def graph(self) -> Graph:
        """The model's graph.

        Returns:
            The graph.
        """
        return self._session.graph

    def graph_operation(self, name: str) -> GraphOperation:
        """A node by name, with the types and shapes of its outputs.

        Args:
            name: of the node.

        Returns:
            The node's name, op and outputs.

        Raises:
            RunError: there is none, or the interface is closed.
        """
        self._check_open()
        node = self.graph().nodes.get(name)
        if node is None:
            raise RunError(f"Node '{name}' does not exist in model '{self.model_name}'")
        return GraphOperation(self.graph(), node)

    def _check_open(self) -> None:
        if not self._is_open:
            raise RunError("close() has been called on the Graph", hint="make a new interface")

    def _check_operation(self, name: str, *, is_fed: bool) -> None:
        operation = name.rpartition(":")[0] if name == _exact(name) else name
        if operation not in self.graph().nodes:
            raise RunError(
                f"No Operation named [{operation}] in the Graph",
                hint=unknown_node_hint(self.graph(), operation, is_fed=is_fed),
            )

    def _check_types(self, feeds: Mapping[str, Array]) -> None:
        """Refuses values of another type than the graph's, as TensorFlow does when a run begins; nothing is cast."""
        if not self._is_open:
            return
        for number, (name, value) in enumerate(sorted(feeds.items())):
            node, _, index = name.rpartition(":")
            types = output_types(self.graph()[node]) or ()
            wanted = types[int(index)].base if int(index) < len(types) else None
            given = DType.of_numpy(value.dtype)
            if wanted is not None and wanted not in UNFED and wanted.numpy != given.numpy:
                raise RunError(f"Expects arg[{number}] to be {wanted.name} but {given.name} is provided ('{name}')")

    def _keep(self, name: str, value: Array) -> None:
        """Takes a feed for the next run."""
        self._check_open()
        self._check_operation(name, is_fed=True)
        endpoint = _exact(name)
        if endpoint in self._feeds:
            self._twice = endpoint
        self._feeds[endpoint] = value

    # Feed, run, fetch

    def feed(self, name: str, source: Any, *dims: int | Sequence[int]) -> None:
        """Gives a tensor for the next run.

        Args:
            name: the tensor.
            source: numbers: an array of float32, float64, int32, int64, uint8 or bool, a list of these, a buffer
                (``array.array``, a memoryview) with its own type, or bytes, which are uint8.
            dims: the tensor's shape, its sizes or one list of them; by default the source's own, and one dimension
                for bytes.

        Raises:
            RunError: no such node, another type, a count that does not fit the shape, or a closed interface.
        """
        if isinstance(source, bytes | bytearray):
            array: Array = np.frombuffer(source, np.uint8).copy()
        else:
            try:
                array = np.array(source)
            except (ValueError, TypeError) as error:
                raise RunError(f"this is no array: {error}", where=f"feed '{name}'") from None
            if isinstance(source, list | tuple | int | float) and array.dtype.kind in "fi":
                array = self._as_declared(name, array)
        shape: Sequence[Any] | None = dims or None
        if len(dims) == 1 and isinstance(dims[0], Sequence):
            shape = dims[0]
        if array.dtype.name not in FED_TYPES:
            hint = "feed_string() gives text" if array.dtype.kind in "SU" else ""
            raise RunError(f"cannot use {array.dtype.name} with a Tensor", where=f"feed '{name}'", hint=hint)
        if shape is not None:
            if not all(isinstance(size, SupportsIndex) for size in shape):
                raise RunError(f"a shape is a list of integers, not {list(shape)}", where=f"feed '{name}'")
            sizes = [operator.index(size) for size in shape]
            if any(size < 0 for size in sizes) or math.prod(sizes) != array.size:
                raise RunError(
                    f"buffer with {array.size} elements is not compatible with a Tensor with shape {sizes}",
                    where=f"feed '{name}'",
                )
            array = array.reshape(sizes)
        self._keep(name, array)

    def _as_declared(self, name: str, array: Array) -> Array:
        """Python numbers in the type that the graph's placeholder declares."""
        node = self.graph().nodes.get(_exact(name).rpartition(":")[0])
        dtype = node.attr("dtype") if node is not None else None
        kinds = "f" if array.dtype.kind == "f" else "iuf"  # 1.5 is not cut to 1
        if isinstance(dtype, DType) and dtype.base.numpy.name in FED_TYPES and dtype.base.numpy.kind in kinds:
            array = array.astype(dtype.base.numpy)
        elif array.dtype.kind == "f":
            array = array.astype(np.float32)
        return array

    def feed_string(self, name: str, source: bytes | str | Sequence[bytes | str]) -> None:
        """Gives a string tensor for the next run.

        Args:
            name: the tensor.
            source: one string, which makes a scalar, or a list, which makes a vector; text is encoded in UTF-8.

        Raises:
            RunError: no such node, or a closed interface.
        """
        values: Array
        if isinstance(source, bytes | str):
            values = np.empty((), object)
            values[()] = _bytes(source)
        else:
            values = np.empty(len(source), object)
            values[:] = [_bytes(item) for item in source]
        self._keep(name, values)

    def run(
        self, output_names: Sequence[str] | str, enable_stats: bool = False, target_node_names: Sequence[str] | str = ()
    ) -> None:
        """Runs the model on what was fed; the feeds are gone afterwards, even if it fails.

        Args:
            output_names: the tensors to fetch; a string is one name, here and below.
            enable_stats: collect node times for ``get_stat_string``.
            target_node_names: nodes to run without fetching.

        Raises:
            RunError: no such node, a tensor that was fed twice, and all that ``Session.run`` raises.
        """
        output_names, target_node_names = list(listed(output_names)), list(listed(target_node_names))
        feeds, twice = self._feeds, self._twice
        self._feeds, self._twice, self._fetched = {}, "", {}
        trace = StepTrace() if enable_stats else None
        try:
            if self._is_open:  # else the session says that it is closed
                for name in (*output_names, *target_node_names):
                    self._check_operation(name, is_fed=False)
            if twice:
                raise RunError(f'Endpoint "{twice}" fed more than once')
            self._check_types(feeds)
            results = self._session.run(
                [_exact(name) if ":" in name else name for name in output_names],
                feeds,
                targets=list(target_node_names),
                trace=trace,
            )
        except PocketgraphError:
            log.error(
                "Failed to run TensorFlow inference with inputs:[%s], outputs:[%s]",
                ", ".join(feeds),
                ", ".join(output_names),
            )
            raise
        self._fetched = dict(zip(output_names, results, strict=True))
        if trace is not None:
            if self._stats is None:
                self._stats = StatSummarizer()
            self._stats.add_run(trace.nodes)

    def fetch(self, name: str, destination: Any = None) -> Any:
        """An output of the last run; may be called again until the next one.

        Args:
            name: spelled as it was given to ``run``.
            destination: is filled from its start, when given; it may be larger than the output. An array, or a
                buffer that can be written to (``array.array``, a bytearray, a memoryview).

        Returns:
            The destination, or a new array.

        Raises:
            RunError: not given to ``run``, or a destination of another type, too small, or not to be written to.
        """
        if name not in self._fetched:
            raise RunError(f"Node '{name}' was not provided to run(), so it cannot be read")
        value: Array = self._fetched[name]
        if destination is None:
            copied: Array = value.copy()
            return copied
        room = _room(destination)
        if room.dtype != value.dtype:
            raise RunError(f"cannot use {room.dtype.name} with Tensor of type {value.dtype.name}")
        if not room.flags.writeable:
            raise RunError(f"the buffer for '{name}' is read-only")
        if room.size < value.size:
            raise RunError(f"a buffer of {room.size} elements cannot take the {value.size} of '{name}'")
        if room.flags.c_contiguous:
            room.reshape(-1)[: value.size] = value.reshape(-1)
        else:
            room.flat[: value.size] = value.reshape(-1)
        return destination

    # Statistics and the end

    def get_stat_string(self) -> str:
        """The times of nodes.

        Returns:
            Tables over all runs with ``enable_stats``; "" when there was none.
        """
        if self._stats is None:
            return ""
        stats = self._stats
        table = stats.metric_table(f"Top {TOP} CPU", lambda record: record.time.average, TOP)
        return "\n".join([*table, *stats.type_table(), *stats.short_summary(), ""])

    def close(self) -> None:
        """Frees the model; closing twice does no harm."""
        self._session.close()
        self._is_open = False
        self._feeds, self._fetched, self._stats = {}, {}, None

    def __enter__(self) -> InferenceInterface:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return self._session.__reduce__()

    feedString = feed_string  # noqa: N815
    graphOperation = graph_operation  # noqa: N815
    getStatString = get_stat_string  # noqa: N815


def _exact(name: str) -> str:
    """``node:index`` of a name; what ends in something else than a number is all node name."""
    node, colon, index = name.rpartition(":")
    return name if colon and node and index.isdecimal() else f"{name}:0"


def _contents(stream: BinaryIO) -> bytes:
    """All that a binary file holds."""
    data = stream.read() if hasattr(stream, "read") else None
    if not isinstance(data, bytes):
        raise UsageError(
            f"a model is a path, a Graph or a file opened for reading bytes, not {type(stream).__name__}",
            hint="such as open(path, 'rb')",
        )
    return data


def _room(destination: Any) -> Array:
    """A destination as the array that lies under it."""
    if isinstance(destination, np.ndarray):
        return destination
    try:
        return np.asarray(memoryview(destination))
    except TypeError:
        kind = type(destination).__name__
        raise RunError(f"cannot fetch into a {kind}", hint="give an array or a buffer that can be written to") from None


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)
