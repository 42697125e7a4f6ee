"""What a converter is given: the operands of its node, and a place to put ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pocketgraph.exporting.onnx.channel_order import shape_last, to_last
from pocketgraph.exporting.onnx.element_types import computed_type, onnx_type, plain_type
from pocketgraph.exporting.onnx.node_operands import OnnxOperands
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxOperation, OnnxValue
from pocketgraph.graph import DType, Graph, Shape
from pocketgraph.graph.dtype import BOOL, FLOAT, INT64, STRING
from pocketgraph.graph.shape import UNKNOWN
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.litert.static_values import Statics


class OnnxEmit(OnnxOperands):
    """Collects the operators of a model, node by node.

    Attributes:
        opset: the version of ONNX's operators.
        body: where operators go at the moment.
        notes: what was left out on the way, for people.
        coded: how weights that are stored as codes are permuted and reshaped.
        scanned: what the writes of the loop at hand put into arrays that the loop itself collects, by the write's name.
        arrays: values that are whole arrays of tensors.
        sizes: how many elements such arrays have.
    """

    def __init__(self, graph: Graph, inferred: Inferred, statics: Statics, needed: Container[str], opset: int) -> None:
        super().__init__(graph, inferred, statics, needed)
        self.opset = opset
        self.body = Body()
        self.notes: list[str] = []
        self.coded: dict[OnnxValue, tuple[Callable[..., OnnxValue], Callable[..., OnnxValue | None]]] = {}
        self.scanned: dict[str, OnnxValue | None] = {}
        self.arrays: set[OnnxValue] = set()
        self.sizes: dict[OnnxValue, OnnxValue] = {}
        self._constants: dict[tuple[Any, ...], OnnxValue] = {}

    def is_array(self, value: OnnxValue) -> bool:
        """Whether a value is an array of tensors, all elements in one."""
        return value in self.arrays

    def since(self, opset: int, what: str) -> None:
        """Makes sure that operators are as new as this opset, which has ``what`` first.

        Raises:
            Unsupported: they are older.
        """
        if self.opset < opset:
            raise Unsupported(f"{what} from opset {opset} on; export with opset {opset}", self._node.name, opset)

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
        place = 1 if code == "Where" else 0
        attrs = {name.removesuffix("_"): value for name, value in attrs.items()}
        first = inputs[place] if len(inputs) > place else None
        main = FLOAT if first is None else first.dtype
        wide = computed_type(code, main)
        if wide is None:
            raise self.unsupported(f"ONNX's {code} does not take {main.name}")
        operands = [
            value if value is None
            else self.made(self.cast(value, wide) if value.dtype is main and i >= place else value)
            for i, value in enumerate(inputs)
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
        """The value whose channels-first form this is; it is made when somebody needs it."""
        if shape is None or (first.shape.dims is not None and not shape.is_known):
            shape = UNKNOWN if first.shape.dims is None else shape_last(first.shape)
        value = OnnxValue(self.name(f"{first.name}_last"), first.dtype, shape, self.body)
        value.first = first
        value.is_made = False
        return value

    def results(self, made: OnnxValue | tuple[OnnxValue, ...] | None) -> None:
        """Says what the node at hand yields: what its converter gave back; of None it has said so itself."""
        for port, value in enumerate(() if made is None else made if isinstance(made, tuple) else (made,)):
            self.result(value, port)

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
        if 0 in target:
            self.since(14, "ONNX reshapes to empty tensors")
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

    def count_up(self, count: OnnxValue, shape: Shape | Sequence[int | None]) -> OnnxValue:
        """The numbers from 0 to below ``count``, a scalar or vector of one int64."""
        return self.op("Range", [self.const(np.int64(0)), self.reshape(count, []), self.const(np.int64(1))], shape)

    def matches(self, rows: OnnxValue, columns: OnnxValue) -> OnnxValue:
        """Which elements of two vectors are equal: [rows, columns]."""
        return self.op("Equal", [self.unsqueeze(rows, [1]), self.unsqueeze(columns, [0])], [None, None], BOOL)

    def slice(self, value: OnnxValue, axis: int, start: int, stop: int) -> OnnxValue:
        """A range of one axis."""
        shape: list[int | None] | None = None
        if value.shape.dims is not None:
            shape = list(value.shape.dims)
            size = shape[axis]
            shape[axis] = None if size is None else len(range(*slice(start, stop).indices(size)))
        return self.op("Slice", [value, self.ints([start]), self.ints([stop]), self.ints([axis])], shape)


def _shape(shape: Shape | Sequence[int | None] | None) -> Shape:
    if shape is None:
        return UNKNOWN
    return shape if isinstance(shape, Shape) else Shape(shape)
