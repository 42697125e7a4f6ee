"""``InferenceInterface``: the feed, run and fetch calls that Android apps know, over a Session.

Behaviour and error texts are those of org.tensorflow.contrib.android.TensorFlowInferenceInterface: data is copied when
it is fed, feeds are gone after a run, and an output is fetched under just the name that was given to ``run``.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from pocketgraph.errors import PocketgraphError, RunError
from pocketgraph.graph import Graph, Node
from pocketgraph.runtime.profile import StepTrace
from pocketgraph.runtime.session import Session
from pocketgraph.runtime.stat_summarizer import StatSummarizer

Array = np.ndarray[Any, Any]
FED_TYPES = ("float32", "int32", "int64", "float64", "uint8", "bool")
TOP = 10  # rows of the time table in the stat string
log = logging.getLogger(__name__)


class InferenceInterface:
    """Runs a model in the manner of Android's interface.

    Args:
        model: a model's path (``file:///android_asset/NAME`` means NAME), an open binary file, or a Graph.
        options: what ``Session`` takes besides; nodes run one at a time unless ``inter_op_threads`` says otherwise.

    Tensors are named ``node`` or ``node:index``. Every method has its Java name as well. One thread at a time may use
    an interface.

    Raises:
        RunError: the model cannot be loaded.
    """

    def __init__(self, model: Graph | str | os.PathLike[str] | BinaryIO, **options: Any) -> None:
        options.setdefault("inter_op_threads", 1)
        self.model_name = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
        self._session = Session(self._loaded(model), **options)
        self._feeds: dict[str, Array] = {}
        self._fetched: dict[str, Array] = {}
        self._stats: StatSummarizer | None = None

    def _loaded(self, model: Graph | str | os.PathLike[str] | BinaryIO) -> Graph:
        from pocketgraph import formats

        if isinstance(model, Graph):
            return model
        try:
            if isinstance(model, str | os.PathLike):
                return formats.load(self.model_name.removeprefix("file:///android_asset/"))
            return formats.from_bytes(model.read(), "the input stream")
        except PocketgraphError as error:
            source = f"'{self.model_name}'" if self.model_name else "the input stream"
            raise RunError(f"Failed to load model from {source}: {error.what}", hint=error.hint) from error

    # The graph

    def graph(self) -> Graph:
        """The model's graph."""
        return self._session.graph

    def graph_operation(self, name: str) -> Node:
        """A node by name.

        Raises:
            RunError: there is none.
        """
        node = self.graph().nodes.get(name)
        if node is None:
            raise RunError(f"Node '{name}' does not exist in model '{self.model_name}'")
        return node

    # Feed, run, fetch

    def feed(self, name: str, source: Any, *dims: int) -> None:
        """Gives a tensor for the next run.

        Args:
            name: the tensor.
            source: numbers: an array of float32, float64, int32, int64, uint8 or bool, a list of these, or bytes,
                which are uint8.
            dims: the tensor's shape; by default the source's own, and one dimension for bytes.

        Raises:
            RunError: another type, or a count that does not fit the shape.
        """
        if isinstance(source, bytes | bytearray | memoryview):
            array: Array = np.frombuffer(source, np.uint8).copy()
        else:
            array = np.array(source)
            if not isinstance(source, np.ndarray | np.generic) and array.dtype.kind in "fi":
                array = self._as_declared(name, array)
        if array.dtype.name not in FED_TYPES:
            raise RunError(f"cannot use {array.dtype.name} with a Tensor", where=f"feed '{name}'")
        if dims:
            if any(size < 0 for size in dims) or math.prod(dims) != array.size:
                raise RunError(
                    f"buffer with {array.size} elements is not compatible with a Tensor with shape {list(dims)}",
                    where=f"feed '{name}'",
                )
            array = array.reshape(dims)
        self._feeds[_exact(name)] = array

    def _as_declared(self, name: str, array: Array) -> Array:
        """Python numbers in the type that the graph's placeholder declares."""
        from pocketgraph.graph import DType

        node = self.graph().nodes.get(_exact(name).rpartition(":")[0])
        dtype = node.attr("dtype") if node is not None else None
        if isinstance(dtype, DType) and dtype.base.numpy.name in FED_TYPES:
            array = array.astype(dtype.base.numpy)
        elif array.dtype.kind == "f":
            array = array.astype(np.float32)
        return array

    def feed_string(self, name: str, source: bytes | str | Sequence[bytes | str]) -> None:
        """Gives a string tensor for the next run: a scalar for one string, a vector for a list."""
        values: Array
        if isinstance(source, bytes | str):
            values = np.empty((), object)
            values[()] = _bytes(source)
        else:
            values = np.empty(len(source), object)
            values[:] = [_bytes(item) for item in source]
        self._feeds[_exact(name)] = values

    def run(
        self, output_names: Sequence[str], enable_stats: bool = False, target_node_names: Sequence[str] = ()
    ) -> None:
        """Runs the model on what was fed; the feeds are gone afterwards, even if it fails.

        Args:
            output_names: the tensors to fetch.
            enable_stats: collect node times for ``get_stat_string``.
            target_node_names: nodes to run without fetching.

        Raises:
            RunError: as ``Session.run``.
        """
        feeds, self._feeds, self._fetched = self._feeds, {}, {}
        trace = StepTrace() if enable_stats else None
        try:
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

    def fetch(self, name: str, destination: Array | None = None) -> Array:
        """An output of the last run; may be called again until the next one.

        Args:
            name: spelled as it was given to ``run``.
            destination: is filled from its start, when given; it may be larger than the output.

        Returns:
            The destination, or a new array.

        Raises:
            RunError: not given to ``run``, or a destination of another type or too small.
        """
        if name not in self._fetched:
            raise RunError(f"Node '{name}' was not provided to run(), so it cannot be read")
        value: Array = self._fetched[name]
        if destination is None:
            copied: Array = value.copy()
            return copied
        if destination.dtype != value.dtype:
            raise RunError(f"cannot use {destination.dtype.name} with Tensor of type {value.dtype.name}")
        if destination.size < value.size:
            raise RunError(f"a buffer of {destination.size} elements cannot take the {value.size} of '{name}'")
        if destination.flags.c_contiguous:
            destination.reshape(-1)[: value.size] = value.reshape(-1)
        else:
            destination.flat[: value.size] = value.reshape(-1)
        return destination

    # Statistics and the end

    def get_stat_string(self) -> str:
        """Tables of the node times of all runs with ``enable_stats``; "" when there was none."""
        if self._stats is None:
            return ""
        stats = self._stats
        table = stats.metric_table(f"Top {TOP} CPU", lambda record: record.time.average, TOP)
        return "\n".join([*table, *stats.type_table(), *stats.short_summary(), ""])

    def close(self) -> None:
        """Frees the model; closing twice does no harm."""
        self._session.close()
        self._feeds, self._fetched, self._stats = {}, {}, None

    def __enter__(self) -> InferenceInterface:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    feedString = feed_string  # noqa: N815
    graphOperation = graph_operation  # noqa: N815
    getStatString = get_stat_string  # noqa: N815


def _exact(name: str) -> str:
    """``node:index`` of a name; what ends in something else than a number is all node name."""
    node, colon, index = name.rpartition(":")
    return name if colon and node and index.isdecimal() else f"{name}:0"


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)
