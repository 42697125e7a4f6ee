"""What a converter is given: operands as values, what is known of them, and a place to put ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.channel_order import shape_last, to_last
from pocketgraph.exporting.onnx.element_types import computed_type
from pocketgraph.exporting.onnx.program import Body, OnnxOperation, OnnxValue
from pocketgraph.exporting.onnx.unsupported import UnsupportedInOnnx
from pocketgraph.graph import DType, Graph, Node, Shape, canonical
from pocketgraph.graph.dtype import FLOAT, INT64, STRING
from pocketgraph.graph.shape import UNKNOWN
from pocketgraph.litert.constant import Array, Constant
from pocketgraph.litert.statics import Inference, Statics


class OnnxEmit:
    """Collects the operators of a model, node by node.

    Attributes:
        graph: the graph being exported.
        inferred: what is known of its tensors.
        opset: the version of ONNX's operators.
        body: where operators go at the moment.
        bound: the value of each tensor name (``n:0``) that is known so far.
        notes: what was left out on the way, for people.
        coded: how weights that are stored as codes are permuted and reshaped.
        scanned: what the writes of the loop at hand put into arrays that the loop itself collects, by the write's name.
        arrays: values that are whole arrays of tensors.
        sizes: how many elements such arrays have.
    """

    def __init__(self, graph: Graph, inferred: Inference, statics: Statics, opset: int) -> None:
        self.graph = graph
        self.inferred = inferred
        self.statics = statics
        self.opset = opset
        self.body = Body()
        self.bound: dict[str, OnnxValue] = {}
        self.notes: list[str] = []
        self.taken: set[str] = set()
        self.coded: dict[OnnxValue, tuple[Callable[..., OnnxValue], Callable[..., OnnxValue | None]]] = {}
        self.scanned: dict[str, OnnxValue | None] = {}
        self.arrays: set[OnnxValue] = set()
        self.sizes: dict[OnnxValue, OnnxValue] = {}
        self._node = Node("", "NoOp")
        self._constants: dict[tuple[Any, ...], OnnxValue] = {}

    def is_array(self, value: OnnxValue) -> bool:
        """Whether a value is an array of tensors, all elements in one."""
        return value in self.arrays

    # Where operators go

    @contextmanager
    def inside(self, body: Body) -> Iterator[None]:
        """Operators go into ``body``, and what is bound is forgotten afterwards."""
        outer, bound = self.body, self.bound
        self.body, self.bound = body, dict(bound)
        try:
            yield
        finally:
            self.body, self.bound = outer, bound

    @contextmanager
    def rebound(self, values: Mapping[str, OnnxValue]) -> Iterator[None]:
        """Some tensors have other values, and what is bound is forgotten afterwards."""
        bound = self.bound
        self.bound = {**bound, **values}
        try:
            yield
        finally:
            self.bound = bound

    @contextmanager
    def at(self, node: Node) -> Iterator[None]:
        """Operators belong to ``node``."""
        before, self._node = self._node, node
        try:
            yield
        finally:
            self._node = before

    # Operands

    def unsupported(self, reason: str) -> UnsupportedInOnnx:
        """The error for the node at hand, to be raised."""
        return UnsupportedInOnnx(reason, self._node.name)

    @property
    def count(self) -> int:
        """How many data inputs the node at hand has."""
        return len(self._node.data_inputs)

    def ref(self, index: int) -> str:
        """The tensor name of one data input."""
        try:
            return canonical(self._node.data_inputs[index])
        except IndexError:
            raise self.unsupported(f"the {self._node.op} has no input {index}") from None

    def input(self, index: int) -> OnnxValue:
        """One data input."""
        return self.value(self.ref(index))

    def inputs(self, start: int = 0, stop: int | None = None) -> list[OnnxValue]:
        """Several data inputs."""
        return [self.value(canonical(ref)) for ref in self._node.data_inputs[start:stop]]

    def value(self, ref: str) -> OnnxValue:
        """The value of a tensor name."""
        known = self.bound.get(ref)
        if known is not None:
            return known
        constant = self.known(ref)
        if constant is None:
            raise self.unsupported(f"its input {ref} is not available here")
        dtype = self.dtype(ref)
        value = OnnxValue(self.name(ref.removesuffix(":0")), dtype, Shape(constant.shape), None, constant)
        self.bound[ref] = value
        return value

    def known(self, ref: str) -> Constant | None:
        """The constant that a tensor name stands for, if it does."""
        bound = self.bound.get(ref)
        if bound is not None:
            return bound.constant
        found = self.statics.constant(ref)
        return found if found is not None else self._text(ref)

    def _text(self, ref: str) -> Constant | None:
        node = self.graph.nodes.get(ref.removesuffix(":0"))
        while node is not None and node.op in ("Identity", "StopGradient") and node.data_inputs:
            node = self.graph.nodes.get(node.data_inputs[0])
        if node is None or node.op != "Const" or node.tensor.dtype is not STRING:
            return None
        return Constant.of(node.tensor.numpy())

    def static(self, index: int, what: str) -> Array:
        """A data input that must be known when exporting; ``what`` names it in the reason."""
        array = self.static_or_none(index)
        if array is None:
            raise self.unsupported(f"{what} must be known beforehand, but is computed")
        return array

    def static_or_none(self, index: int) -> Array | None:
        """A data input as an array where it is known when exporting."""
        constant = self.known(self.ref(index))
        return None if constant is None else constant.numpy()

    def numbers(self, index: int) -> list[int | None] | None:
        """The elements of an integer vector of which some may be known; None where not even their count is."""
        array = self.static_or_none(index)
        if array is not None:
            return [int(number) for number in np.asarray(array).reshape(-1)]
        find = getattr(self.inferred, "numbers", None)
        found: list[int | None] | None = None if find is None else find(self.ref(index))
        return found

    def axes(self, index: int, rank: int, what: str = "the axis") -> list[int]:
        """A static input that names axes, each from 0 to ``rank`` - 1."""
        axes = [int(axis) for axis in np.asarray(self.static(index, what)).reshape(-1)]
        if any(not -rank <= axis < rank for axis in axes):
            raise self.unsupported(f"{what} {axes} is out of range for rank {rank}")
        return [axis % rank for axis in axes]

    def rank(self, value: OnnxValue) -> int:
        """A value's rank, which must be known."""
        if value.shape.rank is None:
            raise self.unsupported("the rank of its input is not known; state the shapes of the model's inputs")
        return value.shape.rank

    # Facts

    def dtype(self, ref: str) -> DType:
        """The element type of a tensor name, which must be known."""
        dtype = self.inferred.dtype(ref)
        if dtype is None:
            raise self.unsupported(f"the element type of {ref} is not known")
        return plain_type(dtype)

    def output(self, port: int = 0) -> tuple[DType, Shape]:
        """The element type and what is known of the shape of one output of the node at hand."""
        ref = f"{self._node.name}:{port}"
        return self.dtype(ref), self.inferred.shape(ref)

    # Operators

    def const(self, values: Any, dtype: Any = None) -> OnnxValue:
        """A constant operand; equal small ones are one."""
        array = np.asarray(values, dtype)
        if array.size > 64 or array.dtype == object:
            return self.constant(Constant.of(array))
        key = (array.dtype.str, array.shape, array.tobytes())
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.constant(Constant.of(array))
        return found

    def ints(self, values: Sequence[int]) -> OnnxValue:
        """A vector of int64, as ONNX wants shapes, axes and the like."""
        return self.const(np.asarray(values, np.int64).reshape(-1))

    def like(self, number: float | int, value: OnnxValue) -> OnnxValue:
        """A scalar of a value's element type."""
        return self.const(np.asarray(number).astype(value.dtype.numpy))

    def constant(self, constant: Constant, name: str = "") -> OnnxValue:
        """A constant operand that is computed when it is written."""
        dtype = plain_type(DType.of_numpy(constant.dtype))
        return OnnxValue(self.name(name or self._made("const")), dtype, Shape(constant.shape), None, constant)

    def op(
        self,
        code: str,
        inputs: Sequence[OnnxValue | None],
        shape: Shape | Sequence[int | None] | None = None,
        dtype: DType | None = None,
        **attrs: Any,
    ) -> OnnxValue:
        """Adds an operator with one output, by default of its first input's element type.

        Where ONNX Runtime does not compute the operator in that type, it is computed in a wider one: the operands that
        have the type of the first are converted, and the result back. Attributes called as an argument of this method
        are written with an underscore behind: ``shape_``.
        """
        return self.ops(code, inputs, 1, [shape], [dtype], **attrs)[0]

    def ops(
        self,
        code: str,
        inputs: Sequence[OnnxValue | None],
        outputs: int,
        shapes: Sequence[Shape | Sequence[int | None] | None] | None = None,
        dtypes: Sequence[DType | None] | None = None,
        bodies: Mapping[str, Body] | None = None,
        **attrs: Any,
    ) -> list[OnnxValue]:
        """Adds an operator with several outputs; types and widening as for ``op``."""
        operands = [None if value is None else self.made(value) for value in inputs]
        place = 1 if code == "Where" else 0
        attrs = {name.removesuffix("_"): value for name, value in attrs.items()}
        main = operands[place].dtype if len(operands) > place and operands[place] is not None else FLOAT  # type: ignore[union-attr]
        wide = computed_type(code, main)
        if wide is None:
            raise self.unsupported(f"ONNX's {code} does not take {main.name}")
        if wide is not main:
            operands = [
                self.cast(value, wide) if value is not None and value.dtype is main and not (code == "Where" and i == 0)
                else value
                for i, value in enumerate(operands)
            ]  # fmt: skip
        made: list[OnnxValue] = []
        for index in range(outputs):
            shape = None if shapes is None else shapes[index]
            dtype = None if dtypes is None else dtypes[index]
            kind = wide if dtype is None or dtype is main else dtype
            value = OnnxValue(self.name(self._made(code)), kind, _shape(shape), self.body)
            made.append(value)
        self.body.operations.append(OnnxOperation(code, operands, list(made), attrs, bodies or {}, self._node.name))
        if wide is main:
            return made
        kept = dtypes or [None] * outputs
        return [self.cast(value, main) if kept[i] in (None, main) else value for i, value in enumerate(made)]

    def made(self, value: OnnxValue) -> OnnxValue:
        """The value itself, made where so far only its channels-first form is."""
        if not value.is_made:
            first, home = value.first, value.home
            assert first is not None
            assert home is not None
            order = to_last(self.rank(first))
            home.operations.append(OnnxOperation("Transpose", [first], [value], {"perm": order}, {}, "layout"))
            value.is_made = True
        return value

    def from_first(self, first: OnnxValue, shape: Shape | None = None) -> OnnxValue:
        """The value whose channels-first form this is; it is made when somebody needs it.

        Args:
            first: what is made.
            shape: the value's shape, channels last.
        """
        if shape is None or (first.shape.dims is not None and not shape.is_known):
            shape = UNKNOWN if first.shape.dims is None else shape_last(first.shape)
        value = OnnxValue(self.name(f"{first.name}_last"), first.dtype, shape, self.body)
        value.first = first
        value.is_made = False
        return value

    def result(self, value: OnnxValue, port: int = 0) -> None:
        """Says what the node at hand yields."""
        ref = f"{self._node.name}:{port}"
        shape = self.inferred.shape(ref)
        is_plain = value not in self.arrays  # of an array the graph knows only that its flow is a scalar
        if is_plain and (value.shape.dims is None or (shape.is_known and not value.shape.is_known)):
            value.shape = shape
        self.bound[ref] = value

    def cast(self, value: OnnxValue, dtype: DType) -> OnnxValue:
        """The value in another element type; itself where it has that type."""
        if value.dtype is dtype:
            return value
        if value.constant is not None and value.dtype is not STRING and dtype is not STRING:
            constant, wanted = value.constant, dtype.numpy
            with np.errstate(all="ignore"):
                return self.constant(
                    Constant(lambda: constant.numpy().astype(wanted), constant.shape, wanted), self._made("cast")
                )
        if value.first is not None:
            return self.from_first(self.cast(value.first, dtype), value.shape)
        made = OnnxValue(self.name(self._made("Cast")), dtype, value.shape, self.body)
        attrs = {"to": onnx_type(dtype)}
        self.body.operations.append(OnnxOperation("Cast", [self.made(value)], [made], attrs, {}, self._node.name))
        return made

    # Shapes

    def dims(self, value: OnnxValue) -> OnnxValue:
        """A tensor's shape as a vector of int64: a constant where it is known."""
        if value.shape.is_known:
            return self.ints(value.shape.known)
        if not value.is_made and value.first is not None:
            order = self.ints(to_last(self.rank(value)))
            return self.op("Gather", [self.dims(value.first), order], [self.rank(value)], axis=0)
        count = None if value.rank is None else value.rank
        return self.op("Shape", [value], [count], INT64)

    def dim(self, value: OnnxValue, axis: int) -> OnnxValue:
        """One size of a tensor as a vector of one int64."""
        size = None if value.shape.dims is None else value.shape.dims[axis]
        if size is not None:
            return self.ints([size])
        return self.op("Gather", [self.dims(value), self.ints([axis])], [1], axis=0)

    def reshape(self, value: OnnxValue, shape: Sequence[int | None]) -> OnnxValue:
        """``value`` in another shape; at most one size may be None."""
        target = [-1 if size is None else size for size in shape]
        if value.shape.is_known and -1 not in target and value.shape.known == tuple(target):
            return value
        if value.constant is not None and -1 not in target:
            return self.constant(value.constant.reshaped(tuple(target)), f"{value.name}_reshaped")
        if value in self.coded and -1 not in target:
            found = self.coded[value][1](tuple(target))
            if found is not None:
                return found
        if target.count(-1) > 1:
            raise self.unsupported(f"more than one size of {Shape(shape)} is not known")
        extra: dict[str, Any] = {"allowzero": 1} if 0 in target else {}
        return self.op("Reshape", [value, self.ints(target)], list(shape), **extra)

    def transpose(self, value: OnnxValue, order: Sequence[int]) -> OnnxValue:
        """``value`` with its axes permuted; itself when the order stays."""
        axes = [int(axis) for axis in order]
        if axes == list(range(len(axes))):
            return value
        if value.constant is not None:
            return self.constant(value.constant.permuted(tuple(axes)), f"{value.name}_transposed")
        if value in self.coded:
            return self.coded[value][0](tuple(axes))
        shape = None if value.shape.dims is None else [value.shape.dims[axis] for axis in axes]
        return self.op("Transpose", [value], shape, perm=axes)

    def unsqueeze(self, value: OnnxValue, axes: Sequence[int]) -> OnnxValue:
        """``value`` with axes of size 1 put in at these places of the result, in ascending order."""
        if not axes:
            return value
        shape: list[int | None] | None = None
        if value.shape.dims is not None:
            shape = list(value.shape.dims)
            for axis in axes:
                shape.insert(axis, 1)
            if value.constant is not None:
                return self.reshape(value, shape)
        return self.op("Unsqueeze", [value, self.ints(axes)], shape)

    def squeeze(self, value: OnnxValue, axes: Sequence[int]) -> OnnxValue:
        """``value`` without these axes, which have size 1."""
        if not axes:
            return value
        shape = None
        if value.shape.dims is not None:
            shape = [size for axis, size in enumerate(value.shape.dims) if axis not in axes]
        return self.op("Squeeze", [value, self.ints(axes)], shape)

    def concat(self, values: Sequence[OnnxValue], axis: int = 0) -> OnnxValue:
        """Several values joined along an axis; one of them is itself."""
        if len(values) == 1:
            return values[0]
        if all(v.constant is not None for v in values):
            return self.const(np.concatenate([v.constant.numpy() for v in values if v.constant is not None], axis))
        shape: list[int | None] | None = None
        if all(v.shape.dims is not None for v in values):
            shape = list(values[0].shape)
            sizes = [v.shape[axis] for v in values]
            shape[axis] = None if None in sizes else sum(s for s in sizes if s is not None)
        return self.op("Concat", values, shape, axis=axis)

    def as_int64(self, value: OnnxValue) -> OnnxValue:
        """A value of whole numbers as int64."""
        return self.cast(value, INT64)

    def vector(self, value: OnnxValue) -> OnnxValue:
        """A scalar or vector of whole numbers as a vector of int64, as ONNX wants sizes."""
        value = self.as_int64(value)
        return self.reshape(value, [1]) if value.rank == 0 else value

    def slice(self, value: OnnxValue, axis: int, start: int, stop: int) -> OnnxValue:
        """A range of one axis."""
        shape: list[int | None] | None = None
        if value.shape.dims is not None:
            shape = list(value.shape.dims)
            size = shape[axis]
            shape[axis] = None if size is None else len(range(*slice(start, stop).indices(size)))
        return self.op("Slice", [value, self.ints([start]), self.ints([stop]), self.ints([axis])], shape)

    # Names

    def name(self, wanted: str) -> str:
        """A name that nothing else has: the one wanted, or with a number after it."""
        name, number = wanted, 0
        while name in self.taken or not name:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def _made(self, what: str) -> str:
        return f"{self._node.name}/{what}" if self._node.name else what


def plain_type(dtype: DType) -> DType:
    """The type that ONNX has for one of TensorFlow's: references as what they refer to, quantized types as integers."""
    base = dtype.base
    if base.is_quantized:
        return DType.of_numpy(base.numpy)
    return base


def onnx_type(dtype: DType) -> int:
    """The number of ONNX's element type.

    Raises:
        UnsupportedInOnnx: it has none.
    """
    try:
        return _ONNX_TYPES[dtype.name]
    except KeyError:
        raise UnsupportedInOnnx(f"ONNX has no tensors of type {dtype.name}") from None


_ONNX_TYPES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "half": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8_e4m3fn": 17, "float8_e5m2": 19, "uint4": 21, "int4": 22,
}  # fmt: skip
"""TensorProto.DataType of the ONNX standard, by TensorFlow's names."""


def _shape(shape: Shape | Sequence[int | None] | None) -> Shape:
    if shape is None:
        return UNKNOWN
    return shape if isinstance(shape, Shape) else Shape(shape)


def attr_text(node: Node, name: str, default: str = "") -> str:
    """A string attribute as text."""
    value = node.attr(name)
    return value.decode("ascii", "replace") if isinstance(value, bytes) else default


def attr_list(node: Node, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
    """A list attribute."""
    value = node.attr(name)
    return tuple(value) if isinstance(value, tuple) and value else tuple(default)
