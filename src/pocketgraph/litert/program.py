"""A part in LiteRT's terms before it is written: values and the operations between them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import DType
from pocketgraph.graph.dtype import INT32
from pocketgraph.graph.groups import by_key
from pocketgraph.graph.record import Record
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import ARITHMETIC, IN_PLACE, WEIGHTED

SCALAR = 4  # bytes: what is no larger never gets the memory of another value


class Quantization(Record):
    """How a tensor's integer codes stand for numbers: ``scale * (code - zero_point)``.

    Attributes:
        scales: one for the whole tensor, or one for each index of ``axis``.
        zero_points: as many.
        axis: the axis that the scales go along, when there are several.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0


class Value:
    """A tensor of the program; compared by identity.

    Attributes:
        name: a TensorFlow tensor name where it has one.
        dtype: the element type.
        shape: the sizes, all known.
        constant: its elements when they are known when compiling.
        quantization: what its codes stand for, None for plain numbers.
    """

    __slots__ = ("constant", "dtype", "name", "quantization", "shape")

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        constant: Constant | None = None,
        quantization: Quantization | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.constant = constant
        self.quantization = quantization

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def content(self) -> Constant:
        """The elements of what is known to be a constant."""
        assert self.constant is not None
        return self.constant

    @property
    def coding(self) -> Quantization:
        """What the codes of what is known to have some stand for."""
        assert self.quantization is not None
        return self.quantization

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype.name}{list(self.shape)}{' const' if self.constant else ''}"


def sliding(
    padding: str = "VALID", strides: Sequence[int] = (1, 1), dilations: Sequence[int] = (1, 1), *,
    activation: str = "", **others: Any,
) -> dict[str, Any]:  # fmt: skip
    """The options of a convolution whose windows slide like this, in the order in which files have them."""
    (down, right), (below, beside) = strides, dilations
    steps = {"stride_h": down, "stride_w": right, **others, "dilation_h": below, "dilation_w": beside}
    return {"padding": padding, **steps, "activation": activation}


class ComputedConvolution(Record):
    """What an operation ends that lays windows out and multiplies: a convolution without strides or gaps, NHWC.

    Attributes:
        source: the images that the windows slide over.
        other: the weights (HWIO); of a gradient by the weights the gradient by the results (NHWC).
        window: rows and columns.
        before: zeros in front of the images' rows and columns.
        kind: ``plain``; ``turned``, where the weights are turned round and their channels swapped, as in the gradient
            by the images; ``by weights``.
    """

    source: Value
    other: Value
    window: tuple[int, int]
    before: tuple[int, int]
    kind: str


class Operation:
    """One builtin operator at work.

    Attributes:
        code: its name in the schema.
        inputs: its operands; None where an optional one is left out.
        outputs: its results.
        options: the fields of its option table by name.
        nodes: the graph nodes that it computes, the one whose value it yields last.
        may_code: whether its weights may be rounded to eight bits.
        whole: the smallest and the largest that the whole numbers may be which it multiplies by weights that are such
            too; less what is subtracted right before it, where that is only known while running.
        bodies: the programs that it runs: of a WHILE the condition and the round, which take and give what it does.
        convolution: what it ends, where weights are computed. It is true of operations as they were lowered: passes
            that change them do not keep it so.
    """

    def __init__(
        self,
        code: str,
        inputs: list[Value | None],
        outputs: list[Value],
        options: dict[str, Any] | None = None,
        nodes: tuple[str, ...] = (),
        may_code: bool = False,
        whole: tuple[int, int] | None = None,
        convolution: ComputedConvolution | None = None,
        bodies: tuple[Program, ...] = (),
    ) -> None:
        self.code = code
        self.inputs = inputs
        self.outputs = outputs
        self.options: dict[str, Any] = {} if options is None else options
        self.nodes = nodes
        self.may_code = may_code
        self.whole = whole
        self.convolution = convolution
        self.bodies = bodies

    @property
    def operands(self) -> list[Value]:
        """The inputs, for readers of those that are not optional."""
        return self.inputs  # type: ignore[return-value]

    @property
    def where(self) -> str:
        """Its node, in brackets, for what is said of it; "" where none of the graph stands for it."""
        return f" ({self.nodes[-1]})" if self.nodes else ""

    def replace(self, **changes: Any) -> Operation:
        """A copy with other ``changes``, by the attributes' names; what it shares with this one are its lists."""
        return Operation(**{**self.__dict__, **changes})

    def __repr__(self) -> str:
        return f"{self.code}({self.inputs}) -> {self.outputs}, {self.options}"


class Program:
    """Operations in an order in which they can run, and the values that go in and out.

    Attributes:
        rounded: the 16-bit types that outputs are rounded to by whoever runs the program, by their places.
        by_several: whether it is for several threads or for one, where those have programs of their own; else None.
    """

    by_several: bool | None = None

    def __init__(
        self,
        inputs: list[Value],
        outputs: list[Value],
        operations: list[Operation] | None = None,
        rounded: dict[int, DType] | None = None,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.operations: list[Operation] = [] if operations is None else operations
        self.rounded: dict[int, DType] = {} if rounded is None else rounded

    def programs(self) -> list[Program]:
        """It, and behind it the programs that its operations run, and those that theirs run."""
        found = [self]
        for program in found:
            found += [body for operation in program.operations for body in operation.bodies]
        return found

    @property
    def work(self) -> int:
        """About how many multiplications, or other steps for an element, a run takes."""
        work = 0
        for operation in self.operations:
            made = sum(value.size for value in operation.outputs)
            weights = operation.inputs[1] if operation.code in WEIGHTED and len(operation.inputs) > 1 else None
            if weights is not None and weights.shape:
                across = weights.shape[-1] if operation.code == "DEPTHWISE_CONV_2D" else weights.shape[0]
                made *= max(1, weights.size // max(1, across))
            work += made
        return work

    def producers(self) -> dict[Value, Operation]:
        """The operation that makes each value; inputs and constants have none."""
        return {value: operation for operation in self.operations for value in operation.outputs}

    def consumers(self) -> dict[Value, list[Operation]]:
        """The operations that read each value, each as often as it does; values that none reads have no entry."""
        return by_key((value, one) for one in self.operations for value in one.inputs if value is not None)

    def uses(self) -> Counter[Value]:
        """How often each value is read, being an output of the program counted once."""
        counts: Counter[Value] = Counter(self.outputs)
        counts.update([value for operation in self.operations for value in operation.inputs if value is not None])
        return counts

    def substitute(self, replaced: dict[Value, Value]) -> None:
        """Reads another value instead of each of these, following chains."""
        if not replaced:
            return

        def final(value: Value) -> Value:
            while value in replaced:
                value = replaced[value]
            return value

        affected = replaced.keys()
        for operation in self.operations:
            if not affected.isdisjoint(operation.inputs):
                operation.inputs = [None if value is None else final(value) for value in operation.inputs]
        self.outputs = [final(value) for value in self.outputs]

    def drop(self, removed: Iterable[Operation]) -> None:
        """Takes operations out."""
        gone = {id(operation) for operation in removed}
        self.operations = [operation for operation in self.operations if id(operation) not in gone]

    def drop_unused(self) -> None:
        """Takes out every operation whose results nobody reads."""
        needed: set[Value | None] = set(self.outputs)
        kept = []
        for operation in reversed(self.operations):
            if not needed.isdisjoint(operation.outputs):
                kept.append(operation)
                needed.update(operation.inputs)
        self.operations = kept[::-1]


def reshaped(value: Value, result: Value, nodes: tuple[str, ...], *, sizes: str = "shape") -> Operation:
    """An operation that gives a value the shape of ``result``; its operand is called ``sizes``, behind that's name."""
    constant = Constant.of(np.array(result.shape, np.int32))
    operand = Value(f"{result.name}/{sizes}", INT32, constant.shape, constant)
    return Operation("RESHAPE", [value, operand], [result], {"new_shape": result.shape}, nodes)


def passed_through(value: Value, name: str, sizes: tuple[int, ...] | None = None) -> Operation:
    """An operation that gives a value once more under another name, as LiteRT passes no input straight through.

    Args:
        value: an input, or a result that another output gives already.
        name: of what comes out.
        sizes: its own shape, perhaps with one open size, -1.
    """
    sizes = value.shape if sizes is None else sizes
    constant = Constant.of(np.array(sizes, np.int32))
    shape = Value(f"{name}/shape", INT32, constant.shape, constant)
    copy = Value(name, value.dtype, value.shape, quantization=value.quantization)
    return Operation("RESHAPE", [value, shape], [copy], {"new_shape": sizes})


def with_own_outputs(body: Program) -> Program:
    """A program whose outputs are copies where its operations do not make them, or where it gives them already.

    LiteRT copies what a round gives into what the next one takes, in order: an input that is given in another place
    would be overwritten before it is read. One that is given in its own place is not copied at all.
    """
    made = {value for operation in body.operations for value in operation.outputs}
    outputs: list[Value] = []
    copies: list[Operation] = []
    own: list[Value | None] = [*body.inputs, *[None] * len(body.outputs)]
    for value, place in zip(body.outputs, own, strict=False):
        if value is not place and (value not in made or value in outputs):
            copies.append(passed_through(value, f"{value.name}/copy"))
            [value] = copies[-1].outputs
        outputs.append(value)
    return Program(body.inputs, outputs, [*body.operations, *copies]) if copies else body


def with_own_memory(program: Program) -> Program:
    """The program, in which what works in place works on a copy where others read the operand's memory later.

    LiteRT 2.3 counts the readers of an operand and of the value whose memory that has, but not those between them: in
    ``a = t + 2; b = reshape(a); c = b * 2; y = a - c``, where nothing else reads t, all of a, b and c get t's memory.
    """
    uses = program.uses()
    uses.update(program.inputs)
    last = {value: at for at, each in enumerate(program.operations) for value in each.inputs if value is not None}
    home: dict[Value, Value] = {}
    latest: dict[Value, int] = {}  # where what has a value's memory is read last
    operations: list[Operation] = []
    for at, operation in enumerate(program.operations):
        source = _reused(operation, program.inputs, uses)
        if source is not None and (result := operation.outputs[0]) not in program.outputs:
            root = home.get(source, source)
            if operation.code == "RESHAPE" or uses[root] == 1:
                if operation.code != "RESHAPE" and latest.get(root, at) > at:
                    root = Value("", source.dtype, source.shape, None, source.quantization)
                    operations.append(Operation("MAXIMUM", [source, source], [root], nodes=operation.nodes))
                    operands = [root if each is source else each for each in operation.inputs]
                    operation = operation.replace(inputs=operands)
                home[result] = root
                latest[root] = max(latest.get(root, last.get(root, at)), last.get(result, at))
        operations.append(operation)
    grown = len(operations) > len(program.operations)
    return Program(program.inputs, program.outputs, operations) if grown else program


def _reused(operation: Operation, given: Sequence[Value], uses: Mapping[Value, int]) -> Value | None:
    """The operand whose memory LiteRT would give to the first result, as far as the operand alone tells."""
    if operation.code != "RESHAPE" and operation.code not in IN_PLACE:
        return None
    result = operation.outputs[0]
    for value in operation.operands[: 2 if operation.code in ARITHMETIC else 1]:
        if value.constant is not None or value in given:
            continue
        size = value.size * value.dtype.size
        alone = uses[value] == 1 and size == result.size * result.dtype.size and size > SCALAR
        if alone or operation.code == "RESHAPE":
            return value
    return None
