"""What a lowering is given: operands as values, static operands as arrays, and a place to put operations."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pocketgraph.budgets import allowance
from pocketgraph.graph import DType, Graph, Node, canonical, opdefs
from pocketgraph.kernels.ranks import RANKS, wrong_input
from pocketgraph.kernels.shapes import Inferred
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.lowering import LOWERINGS, MAY_QUANTIZE, WHOLE_NUMBERS, Lowering, Unsupported
from pocketgraph.litert.narrow_floats import JUMPING, NARROW, rounded_constant, widened, widened_constant
from pocketgraph.litert.operands import Operands
from pocketgraph.litert.program import Operation, Value
from pocketgraph.litert.static_values import Statics
from pocketgraph.litert.writing import schema

COMPUTABLE = schema.TENSOR_TYPES.keys() - {
    "string", "double", "half", "bfloat16", "complex64", "complex128", "resource",
}  # fmt: skip
"""The element types that LiteRT's operators take, by name."""
EMPTY = "LiteRT does not compute with empty tensors"
LARGEST = 2**31 - 1  # bytes of one tensor: some kernels count them in 32 bits


class Emit(Operands[Value]):
    """Collects the operations of a part, node by node.

    Attributes:
        operations: what was emitted so far.
        values: the value of each tensor name (``n:0``) that is known so far.
        cells: the weights of recurrent cells in LiteRT's order, which are shared by all steps.
        computed: what operations have made so far.
        kept: names of nodes that cut or pad, whose operations stay where for these sizes there is nothing to do.
        unrounded: what the graph converts to a 16-bit type, and has kept its digits.
    """

    def __init__(
        self, graph: Graph, inferred: Inferred, statics: Statics, *, trial: bool = False, strict: bool = False
    ) -> None:
        """In a ``trial`` every operand that is not yet known is made up from what was inferred of it; ``strict`` is to
        refuse what differs from TensorFlow at the edges."""
        super().__init__()
        self.graph = graph
        self.inferred = inferred
        self.statics = statics
        self.trial = trial
        self.strict = strict
        self.operations: list[Operation] = []
        self.values: dict[str, Value] = {}
        self.cells: dict[tuple[Any, ...], tuple[Constant, Value]] = {}
        self.computed: set[Value] = set()
        self.kept: Collection[str] = ()
        self.unrounded: set[Value] = set()
        self._rounds = False
        self._narrow: dict[str, DType] = {}
        self._rounded: dict[tuple[Value, DType], Value] = {}
        self._derived: dict[tuple[int, tuple[int, ...], bool], tuple[Constant, Value]] = {}
        self._count = 0
        self._most = allowance()  # bytes of one result

    @property
    def is_kept(self) -> bool:
        """Whether the node that is being lowered is one of those kept."""
        return self._node.name in self.kept

    def lower(self, node: Node, lowering: Lowering | None = None) -> None:
        """Emits one node, by a lowering of its own or by that of its op.

        Raises:
            Unsupported: LiteRT cannot compute it.
        """
        self._node = node
        self._count = 0
        lowering = lowering or LOWERINGS.row(node.op)
        if lowering is None:
            raise Unsupported(f"{node.op} has no LiteRT lowering", node.name)
        if said := opdefs.wrong_count(node, len(node.data_inputs)):
            raise Unsupported(said, node.name)
        if self.strict:
            self._check_op_edges()
        if node.op in RANKS:
            shapes = [self.inferred.shape(canonical(ref)) for ref in node.data_inputs]
            if all(shape.is_known for shape in shapes):
                said = wrong_input(node.op, [shape.known for shape in shapes])
                if said:
                    raise Unsupported(said, node.name)
        self._rounds = node.op != "Cast" and (node.op in JUMPING or not self._is_narrow(f"{node.name}:0"))
        start = len(self.operations)
        self.results(lowering(self, node))
        for operation in self.operations[start:]:
            if any(value.size * value.dtype.size > self._most for value in operation.outputs):
                raise Unsupported("its result would take more memory than one may", node.name)

    @contextmanager
    def inside(self, values: Mapping[str, Value]) -> Iterator[list[Operation]]:
        """Collects operations in a list of their own, which see only these values by tensor name, and constants."""
        outside = self.operations, self.values, self._rounded
        self.operations, self.values, self._rounded = [], dict(values), {}
        try:
            yield self.operations
        finally:
            self.operations, self.values, self._rounded = outside

    def _check_op_edges(self) -> None:
        from pocketgraph.litert.nan_and_overflow import OPS  # only strict sessions ask

        edge = OPS.get(self._node.op)
        if edge:
            raise self.unsupported(f"a strict session has TensorFlow's values at the edges: {edge}")

    def _check_edges(self, code: str, inputs: Sequence[Value | None], output: DType) -> None:
        from pocketgraph.litert.nan_and_overflow import edge_of

        edge = edge_of(code, inputs, output)
        if edge:
            raise self.unsupported(f"a strict session has TensorFlow's values at the edges: {edge}")

    # Operands

    def unsupported(self, reason: str) -> Unsupported:
        """The error for the node at hand, to be raised."""
        return Unsupported(reason, self._node.name)

    def value(self, ref: str) -> Value:
        """The value of a tensor name."""
        known = self.values.get(ref)
        if known is not None:
            self.check(known.dtype, known.shape)
            return self.rounded(known, self._narrow[ref]) if self._rounds and ref in self._narrow else known
        constant = self.statics.constant(ref)
        if constant is None and not self.trial:
            raise self.unsupported(f"its input {ref} is not available here")
        if constant is not None:
            constant = widened_constant(constant)
        dtype = self.dtype(ref) if constant is None else DType.of_numpy(constant.dtype)
        shape = self.shape(ref) if constant is None else constant.shape
        self.check(dtype, shape)
        made = self.values[ref] = Value(ref, dtype, shape, constant)
        return made

    def rounded(self, value: Value, dtype: DType) -> Value:
        """A float32 value rounded to a 16-bit type, as float32."""
        known = self._rounded.get((value, dtype))
        if known is not None:
            return known
        if value.constant is not None:
            made = self.constant(rounded_constant(value.constant, dtype))
        else:
            short = Value(self._name("short"), dtype, value.shape)
            self.operations.append(Operation("CAST", [value], [short], {}, (self._node.name,)))
            made = self.add("CAST", [short], value.shape, value.dtype)
        self._rounded[value, dtype] = self._rounded[made, dtype] = made
        return made

    def narrow_type(self) -> DType | None:
        """The 16-bit type of the first data input if it was computed here, and so has more digits; else None."""
        return self._narrow.get(self.ref(0))

    def _is_narrow(self, ref: str) -> bool:
        dtype = self.inferred.dtype(ref)
        return dtype is not None and dtype.base.name in NARROW

    def outcome(self, ref: str) -> Value:
        """The value of a tensor name that the part yields; an empty constant is one too. It is never rounded."""
        self._rounds = False
        if ref not in self.values:
            constant = self.statics.constant(ref)
            if constant is not None:
                constant = widened_constant(constant)
                dtype = DType.of_numpy(constant.dtype)
                if constant.dtype.kind not in "biufc":
                    raise self.unsupported(f"a constant of type {dtype.name} does not pass through LiteRT")
                return Value(ref, dtype, constant.shape, constant)
        return self.value(ref)

    def rounded_outcomes(self, refs: Sequence[str]) -> dict[int, DType]:
        """The 16-bit types that some of a program's outcomes are rounded to where they leave it, by their places."""
        return {
            place: dtype.base
            for place, ref in enumerate(refs)
            if self._is_narrow(ref) and (dtype := self.inferred.dtype(ref)) is not None
        }

    def known(self, ref: str) -> Constant | None:
        """The constant that a tensor name stands for, if it does."""
        known = self.values.get(ref)
        return self.statics.constant(ref) if known is None else known.constant

    # Facts

    def shape(self, ref: str) -> tuple[int, ...]:
        """A tensor's shape, which must be known."""
        shape = self.inferred.shape(ref)
        if not shape.is_known:
            raise self.unsupported(f"the shape of {ref} is {shape}, which is only known when running")
        return shape.known

    def dtype(self, ref: str) -> DType:
        """The element type that a tensor is computed in, which must be known."""
        dtype = self.inferred.dtype(ref)
        if dtype is None:
            raise self.unsupported(f"the element type of {ref} is not known")
        return widened(dtype.base)

    def output(self, port: int = 0) -> tuple[DType, tuple[int, ...]]:
        """The element type and shape of one output of the node at hand."""
        ref = f"{self._node.name}:{port}"
        return self.dtype(ref), self.shape(ref)

    def check(self, dtype: DType, shape: Sequence[int]) -> None:
        """Refuses what no LiteRT operator takes."""
        if dtype.name not in COMPUTABLE:
            raise self.unsupported(f"LiteRT does not compute with {dtype.name}")
        if shape and min(shape) < 1:
            what = EMPTY if 0 in shape else "LiteRT does not compute with tensors of negative size"
            raise self.unsupported(f"{what}, here {list(shape)}")
        if math.prod(shape) * dtype.size > LARGEST:
            raise self.unsupported(f"a tensor of {list(shape)} is larger than LiteRT can address")

    def require(self, value: Value, *names: str) -> Value:
        """Refuses a value of any other element type than these."""
        if value.dtype.name not in names:
            raise self.unsupported(f"LiteRT's operator does not take {value.dtype.name}")
        return value

    # Operations

    def const(self, values: Any, dtype: Any = None) -> Value:
        """A constant operand."""
        array = np.asarray(values, dtype)
        return self.constant(Constant.of(array))

    def constant(self, constant: Constant) -> Value:
        """A constant operand that is computed when written."""
        return Value(self._name("const"), DType.of_numpy(constant.dtype), constant.shape, constant)

    def constant_like(self, value: Value, number: float) -> Value:
        """A constant operand of the shape and type of ``value``, filled with one number."""
        shape, dtype = value.shape, value.dtype.numpy
        return self.constant(Constant(lambda: np.full(shape, number, dtype), shape, dtype))

    def add(
        self,
        code: str,
        inputs: Sequence[Value | None],
        shape: Sequence[int],
        dtype: DType | None = None,
        **options: Any,
    ) -> Value:
        """Emits an operation with one result of this shape, by default of its first input's element type."""
        if dtype is None:
            dtype = next((value.dtype for value in inputs if value is not None), None)
            if dtype is None:
                raise self.unsupported(f"{code} has no operand that tells the type of its result")
        return self.add_many(code, inputs, [(dtype, tuple(shape))], **options)[0]

    def add_many(
        self,
        code: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[tuple[DType, tuple[int, ...]]],
        **options: Any,
    ) -> list[Value]:
        """Emits an operation with several results."""
        if self.strict:
            self._check_edges(code, inputs, outputs[0][0])
        for dtype, shape in outputs:
            self.check(dtype, shape)
        made = [Value(self._name(code), dtype, tuple(int(d) for d in shape)) for dtype, shape in outputs]
        may_code = bool(self._node.attr(MAY_QUANTIZE, False))
        whole = self._node.attr(WHOLE_NUMBERS, None)
        self.operations.append(Operation(code, list(inputs), made, options, (self._node.name,), may_code, whole))
        self.computed.update(made)
        return made

    def results(self, given: Value | list[Value] | None) -> None:
        """Says what the node at hand yields by what its lowering gave back."""
        for port, value in enumerate([] if given is None else given if isinstance(given, list) else [given]):
            self.result(value, port)

    def result(self, value: Value, port: int = 0) -> None:
        """Says what the node at hand yields."""
        ref = f"{self._node.name}:{port}"
        self.bind(ref, value)
        if self.operations and value in self.operations[-1].outputs:
            value.name = ref

    def bind(self, ref: str, value: Value) -> None:
        """Says what value a tensor name has."""
        self.values[ref] = value
        dtype = self.inferred.dtype(ref)
        if dtype is not None and dtype.name in NARROW:
            self._narrow[ref] = dtype

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """``value`` in another shape of as many elements; itself when it has that shape."""
        target = tuple(int(d) for d in shape)
        if target == value.shape:
            return value
        if math.prod(target) != value.size:
            raise self.unsupported(f"{list(value.shape)} does not reshape to {list(target)}")
        if value.constant is not None:
            return self._derive(value.constant, target, is_permutation=False)
        return self.add("RESHAPE", [value, self.const(target, np.int32)], target, new_shape=target)

    def concatenated(self, parts: Sequence[Value], axis: int) -> Value:
        """Values side by side; itself where it is only one."""
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.add("CONCATENATION", list(parts), shape, axis=axis, activation="")

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        """``value`` with its axes permuted; itself when the order stays."""
        order = tuple(int(axis) for axis in permutation)
        if order == tuple(range(len(order))):
            return value
        if value.constant is not None:
            return self._derive(value.constant, order, is_permutation=True)
        shape = [value.shape[axis] for axis in order]
        return self.add("TRANSPOSE", [value, self.const(order, np.int32)], shape)

    def _derive(self, constant: Constant, how: tuple[int, ...], *, is_permutation: bool) -> Value:
        """A constant reshaped or permuted, the same value each time: weights may be used by hundreds of nodes."""
        key = id(constant), how, is_permutation
        if key not in self._derived:
            derived = constant.permuted(how) if is_permutation else constant.reshaped(how)
            self._derived[key] = constant, self.constant(derived)
        return self._derived[key][1]

    def _name(self, what: str) -> str:
        self._count += 1
        return f"{self._node.name}/{what.lower()}_{self._count}"
