"""Feed values: turned into arrays of the declared dtype where nothing is lost, checked against the declared shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.graph.dtype import BOOL, RESOURCE, STRING, VARIANT
from pocketgraph.graph.endpoint import Endpoint
from pocketgraph.graph.op_traits import PLACEHOLDERS
from pocketgraph.graph.shape import LAST_PRODUCER_WITHOUT_SCALARS
from pocketgraph.runtime.tensor_names import output_types

ONLY_BYTES = frozenset({bytes})
DEQUEUES = "QueueDequeue"  # how the names of ops begin that take elements out of queues
MOST_STRINGS = 1024  # elements of a string feed that are worth looking at before the graph is read
MOST_SIZES = 8  # numbers of one tensor that may say sizes


class FeedSpec:
    """What one feed must look like.

    Attributes:
        endpoint: the tensor it replaces.
        label: the caller's own spelling, for messages.
        dtype: the element type, None where the graph does not tell.
        shape: the shape that the graph declares.
    """

    __slots__ = ("dtype", "endpoint", "label", "numpy", "shape")

    def __init__(self, endpoint: Endpoint, label: str, dtype: DType | None, shape: Shape) -> None:
        self.endpoint = endpoint
        self.label = label
        self.dtype = dtype.base if dtype is not None else None
        self.shape = shape
        self.numpy: np.dtype[Any] | None = None
        if self.dtype is not None and self.dtype not in (RESOURCE, VARIANT):
            self.numpy = self.dtype.numpy

    @staticmethod
    def of(graph: Graph, endpoint: Endpoint, label: str) -> FeedSpec:
        """The spec of a feed into this tensor of ``graph``."""
        node = graph[endpoint.node]
        types = output_types(node)
        dtype = types[endpoint.port] if types is not None and endpoint.port < len(types) else None
        if dtype is None and endpoint.port == 0 and isinstance(node.attr("dtype"), DType):
            dtype = node.dtype("dtype")
        shape = node.shape() if node.op in PLACEHOLDERS else _of_element(graph, node, endpoint.port)
        if shape is not None and shape.rank == 0 and graph.versions.producer <= LAST_PRODUCER_WITHOUT_SCALARS:
            shape = None
        return FeedSpec(endpoint, label, dtype, shape if shape is not None else Shape(None))

    def array(self, value: Any) -> np.ndarray[Any, Any]:
        """The value as an array of the declared dtype; the caller's array itself when it is one already.

        Python numbers and lists, and arrays of another dtype of the same kind (integers for a float tensor too) are
        converted; a conversion that changes a value is refused.

        Raises:
            RunError: wrong dtype, wrong shape, or no array at all.
        """
        if type(value) is np.ndarray and value.dtype == self.numpy and (self.dtype is not STRING or is_bytes(value)):
            array = value
        else:
            array = self._converted(value)
        if not self.shape.fits(array.shape):
            raise RunError(
                f"Cannot feed value of shape {_tuple(array.shape)} for Tensor '{self.endpoint}', "
                f"which has shape {_tuple(self.shape.dims)}"
            )
        return array

    def _converted(self, value: Any) -> np.ndarray[Any, Any]:
        if value is None:
            raise RunError(f"the feed for '{self.label}' is None")
        try:
            array = np.asarray(value)
            if array.dtype.kind == "S" and not isinstance(value, (np.ndarray, np.generic)):
                array = np.asarray(value, object)  # NumPy's own type for bytes loses zeros at their end
        except (ValueError, TypeError) as error:
            raise RunError(f"the feed for '{self.label}' is no array: {error}") from None
        if self.dtype is None:
            own = array.dtype.newbyteorder("=")
            return _as_strings(array, self.label) if array.dtype.kind in "OSUT" else array.astype(own, copy=False)
        python_value = not isinstance(value, (np.ndarray, np.generic))
        if self.dtype is STRING:
            return _as_strings(array if array.size or not python_value else array.astype(object), self.label)
        if self.numpy is None:
            raise RunError(f"tensors of type {self.dtype.name} such as '{self.label}' cannot be fed")
        if array.dtype == self.numpy:
            return array
        wanted = self.numpy
        if array.size == 0 and python_value:
            return array.astype(wanted)
        if wanted.kind == "b" and array.dtype.kind in "iu" and array.size and 0 <= array.min() <= array.max() <= 1:
            return array.astype(wanted)  # TensorFlow takes 0 and 1 for False and True as well
        if array.dtype.kind == "O" and array.size and not _holds_text(array):
            raise _no_numbers(array, self.label, self.dtype)
        if not self._convertible(array.dtype, wanted):
            hint = f"convert it yourself if that is meant: value.astype('{wanted.name}')"
            if array.dtype.kind in "OSU":
                hint = "feed the numbers of a text or of a file; label_image, label_wav, plan and verify read files"
            raise RunError(
                f"the feed for '{self.label}' is {_kind(array)}, the graph wants {self.dtype.name}", hint=hint
            )
        with np.errstate(all="ignore"):
            converted: np.ndarray[Any, Any] = array.astype(wanted)
        if array.dtype.kind in "iu" and not _holds(converted, array):
            raise RunError(f"the feed for '{self.label}' holds integers that do not fit into {self.dtype.name}")
        return converted

    def _convertible(self, given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
        kinds = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
        have, want = kinds.get(given.kind), kinds.get(wanted.kind)
        if given.type is np.void:
            return False  # bytes or fields without a type of their own, which NumPy calls V as well as bfloat16
        if have is None or want is None:
            return False
        if have == 0 or self.dtype is BOOL:
            return have == want
        return have <= want


def is_bytes(value: np.ndarray[Any, Any]) -> bool:
    """Whether all elements of an array of objects are bytes, as strings are kept."""
    return set(map(type, value.ravel().tolist())) <= ONLY_BYTES


def may_be_sizes(value: Any) -> bool:
    """Whether a fed value may say sizes: a few numbers, also of types that are cast."""
    return type(value) is np.ndarray and value.dtype.kind in "iuf" and value.ndim < 2 and value.size <= MOST_SIZES


def is_switch(value: np.ndarray[Any, Any]) -> bool:
    """Whether a feed's value decides what runs: a single boolean, or a single float of just 0 (not -0) or 1.

    Plans are made for each such value; the floats are mostly a dropout's share, which does nothing at 0 or at 1.
    """
    if value.size != 1:
        return False
    if value.dtype == np.bool_:
        return True
    if value.dtype.kind != "f" or value.ndim:
        return False
    number = float(value)
    return number == 1 or (number == 0 and math.copysign(1, number) > 0)


def _holds(converted: np.ndarray[Any, Any], integers: np.ndarray[Any, Any]) -> bool:
    """Whether these are the same numbers: the same when converted back, and none has another sign by its type."""
    real = converted.real
    is_same = np.array_equal(real.astype(integers.dtype), integers)
    return is_same and (real.dtype.kind == integers.dtype.kind or np.array_equal(real < 0, integers < 0))


def _no_numbers(array: np.ndarray[Any, Any], label: str, dtype: DType) -> RunError:
    """What to say of Python objects in the place of numbers."""
    held = next((item for item in array.flat if not isinstance(item, int | float | complex)), array.flat[0])
    if isinstance(held, int) and not -(1 << 63) <= held < 1 << 64:
        return RunError(f"the feed for '{label}' holds integers that do not fit into {dtype.name}")
    what = f"is a {type(held).__name__}" if array.ndim == 0 else f"holds objects ({type(held).__name__})"
    return RunError(
        f"the feed for '{label}' {what}, the graph wants {dtype.name}",
        hint=f"pass an array, a list or a number, such as numpy.asarray(value, '{dtype.numpy.name}')",
    )


def _kind(array: np.ndarray[Any, Any]) -> str:
    """A type in words: text has one NumPy type a length, and objects are mostly bytes."""
    return "string" if array.dtype.kind in "SUT" or _holds_text(array) else str(array.dtype)


def _holds_text(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind == "O" and array.size > 0 and isinstance(array.flat[0], bytes | str)


def _as_strings(array: np.ndarray[Any, Any], label: str) -> np.ndarray[Any, Any]:
    if array.dtype.kind not in "OSUT":
        raise RunError(f"the feed for '{label}' is {array.dtype}, the graph wants strings", hint="pass bytes or str")
    flat: list[bytes] = []
    for item in array.ravel().tolist():
        if isinstance(item, str):
            flat.append(item.encode())
        elif isinstance(item, (bytes, bytearray)):
            flat.append(bytes(item))
        else:
            raise RunError(f"the feed for '{label}' holds {type(item).__name__}", hint="pass bytes or str")
    strings: np.ndarray[Any, Any] = np.empty(len(flat), dtype=object)
    strings[:] = flat
    shaped: np.ndarray[Any, Any] = strings.reshape(array.shape)
    return shaped


def _tuple(dims: tuple[int | None, ...] | None) -> str:
    """A shape in the words of TensorFlow's Session: ``(1, ?, 3)``, ``(2,)``, ``<unknown>``."""
    if dims is None:
        return "<unknown>"
    inside = ", ".join("?" if size is None else str(size) for size in dims)
    return f"({inside},)" if len(dims) == 1 else f"({inside})"


def _of_element(graph: Graph, node: Node, port: int) -> Shape | None:
    """The shape that an iterator or a queue declares of what comes out of it; None for other nodes."""
    if node.op.startswith(DEQUEUES):
        from pocketgraph.freezing.repair.inputs import components

        return next((shape for place, (_, shape) in enumerate(components(graph, node)) if place == port), None)
    shapes = node.attr("output_shapes", ()) if node.op.startswith("IteratorGetNext") else ()
    shape = shapes[port] if isinstance(shapes, tuple) and port < len(shapes) else None
    return shape if isinstance(shape, Shape) else None


def is_certain(value: Any) -> bool:
    """Whether a value is an array whose tensor type is clear without the graph."""
    if type(value) is not np.ndarray:
        return False
    if value.dtype.kind != "O":
        return value.dtype.kind not in "SUT" and value.dtype.isnative  # else its bytes are in the other order
    return value.size <= MOST_STRINGS and is_bytes(value)
