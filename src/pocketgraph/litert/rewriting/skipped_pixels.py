"""Computes only the pixels that are read: a stride of a later 1x1 convolution is taken by the operations before it.

    x ─CONV_2D 3x3 [1,56,56,64]─ CONV_2D 1x1, stride 2 [1,28,28,128]
becomes
    x ─CONV_2D 3x3, stride 2 [1,28,28,64]─ CONV_2D 1x1 [1,28,28,128]

which is a quarter of the first one's work. It goes on through convolutions, activations and sums, so that in a residual
network the last convolutions of a stage and the sum behind them are done on the pixels that the next stage takes.
"""

from __future__ import annotations

import numpy as np

from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.cost_model import MOVED_NUMBER
from pocketgraph.litert.operator_traits import CONVOLUTIONS, POOLS, UNARY
from pocketgraph.litert.program import Operation, Program, Value, reshaped, sliding
from pocketgraph.litert.rewriting.padding_and_dilation import same_borders, zeros_around

BINARY = frozenset(("ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB"))

DEEPEST = 100  # operations between a stride and where it goes to
IMPOSSIBLE = 1 << 60  # multiplications; what cannot be done at all costs more than any model

Steps = tuple[int, int]


def take_fewer_pixels(program: Program) -> None:
    """Moves the strides of 1x1 convolutions towards the inputs as far as that saves work.

    Values in between become smaller than the tensors of the graph whose names they have.
    """
    _Strides(program).run()


class _Strides:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.producers = program.producers()
        self.readers = program.consumers()
        self.outputs = set(program.outputs)

    def run(self) -> None:
        for operation in reversed(list(self.program.operations)):
            value = operation.inputs[0] if operation.inputs else None
            if value is None or not _takes_some(operation):
                continue
            steps = _steps(operation)
            if not self.only_taken(value, steps) or self.saved(value, steps) <= 0:
                if operation.code != "CONV_2D" and _can_move(value, steps):
                    operation.inputs[0] = self.sliced(value, steps, operation)
                    operation.options.update(stride_h=1, stride_w=1)
                elif operation.code != "CONV_2D":
                    _by_weights_of_one(operation)
                continue
            for reader in self.readers[value]:
                reader.options.update(stride_h=1, stride_w=1)
            self.shrink(value, steps)
        pools = filter(_is_one_pixel_pool, self.program.operations)
        idle = {op.outputs[0]: op.inputs[0] for op in pools if _steps(op) == (1, 1)}
        self.program.substitute({result: source for result, source in idle.items() if source is not None})
        self.program.drop_unused()

    def only_taken(self, value: Value, steps: Steps) -> bool:
        """Whether all that reads a value takes the same of its pixels."""
        if value in self.outputs:
            return False
        return all(_takes_some(reader) and _steps(reader) == steps for reader in self.readers[value])

    def saved(self, value: Value, steps: Steps, levels: int = DEEPEST) -> int:
        """Multiplications that are not done when only some pixels of the value are made; negative for moved numbers."""
        producer = self.producers.get(value)
        if producer is None or levels == 0 or value.dtype is not FLOAT or len(value.shape) != 4:
            return -_moved(value, steps)
        kept = 1 / (steps[0] * steps[1])
        if producer.code in CONVOLUTIONS:
            weights = producer.inputs[1]
            if weights is None or (
                producer.code == "DEPTHWISE_CONV_2D" and len({*_strides_after(producer, steps)}) > 1
            ):
                return -_moved(value, steps)
            each = weights.size if producer.code == "DEPTHWISE_CONV_2D" else weights.size // value.shape[3]
            each = each // value.shape[3] if producer.code == "DEPTHWISE_CONV_2D" else each
            source = producer.operands[0]
            padded = source.size if _padding(producer, steps) is not None else 0
            return int(value.size * each * (1 - kept)) - padded * MOVED_NUMBER
        operands = [operand for operand in producer.inputs if operand is not None and not _is_spread(operand)]
        is_simple = producer.code in UNARY or producer.code in BINARY
        if is_simple and all(operand.shape == value.shape for operand in operands):
            return sum(max(self.saved_before(o, steps, levels), -_moved(o, steps)) for o in operands)
        return -_moved(value, steps)

    def saved_before(self, operand: Value, steps: Steps, levels: int) -> int:
        """As ``saved`` one level further up, for what only one operation reads; else far below zero."""
        return self.saved(operand, steps, levels - 1) if self.is_free(operand) else -IMPOSSIBLE

    def is_free(self, value: Value) -> bool:
        """Whether a value is made for one reader only."""
        return value not in self.outputs and len(self.readers[value]) == 1

    def shrink(self, value: Value, steps: Steps, levels: int = DEEPEST) -> None:
        """Makes only the pixels of a value that are taken; its producer does that, for all its readers."""
        producer = self.producers[value]
        value.shape = _taken(value.shape, steps)
        if producer.code in CONVOLUTIONS:
            self.stretch(producer, steps)
            return
        for index, operand in enumerate(producer.inputs):
            if operand is None or _is_spread(operand):
                continue
            if self.saved_before(operand, steps, levels) > -_moved(operand, steps):
                self.shrink(operand, steps, levels - 1)
            else:
                producer.inputs[index] = self.sliced(operand, steps, producer)

    def stretch(self, convolution: Operation, steps: Steps) -> None:
        """Multiplies a convolution's strides, with borders that keep its windows where they were."""
        pairs = _padding(convolution, steps)
        strides = _strides_after(convolution, steps)
        if pairs is not None:
            source = convolution.operands[0]
            padding = zeros_around(source, pairs, source.name, convolution.nodes)
            (padded,) = padding.outputs
            self.insert(padding, convolution)
            self.readers[source] = [reader for reader in self.readers[source] if reader is not convolution]
            self.readers[source].append(self.producers[padded])
            self.readers[padded] = [convolution]
            convolution.inputs[0] = padded
            convolution.options["padding"] = "VALID"
        convolution.options.update(stride_h=strides[0], stride_w=strides[1])

    def sliced(self, value: Value, steps: Steps, reader: Operation) -> Value:
        """The pixels of a value that are taken: by parting rows and columns into those taken and those between."""
        batch, height, width, depth = value.shape
        down, right = steps
        parts = (batch * (height // down), down, width // right, right * depth)
        first = (batch * (height // down), 1, width // right, depth)
        parted = Value(f"{value.name}/parted", value.dtype, parts)
        taken = Value(f"{value.name}/taken", value.dtype, first)
        result = Value(f"{value.name}/fewer", value.dtype, _taken(value.shape, steps))
        self.insert(reshaped(value, parted, reader.nodes, sizes="sizes"), reader)
        bounds = [np.zeros(4, np.int32), np.array(first, np.int32)]
        operands = [
            Value(f"{taken.name}/{index}", INT32, (4,), Constant.of(bound)) for index, bound in enumerate(bounds)
        ]
        self.insert(Operation("SLICE", [parted, *operands], [taken], {}, reader.nodes), reader)
        self.insert(reshaped(taken, result, reader.nodes, sizes="sizes"), reader)
        self.readers[value] = [other for other in self.readers[value] if other is not reader]
        self.readers[value].append(self.producers[parted])
        return result

    def insert(self, operation: Operation, before: Operation) -> None:
        """Puts a new operation in."""
        place = next(index for index, other in enumerate(self.program.operations) if other is before)
        self.program.operations.insert(place, operation)
        for value in operation.outputs:
            self.producers[value] = operation
            self.readers[value] = [before]


def _takes_some(operation: Operation) -> bool:
    """Whether an operation reads only each so many-th pixel of its first operand, and that by itself."""
    if _is_one_pixel_pool(operation):
        return _steps(operation) != (1, 1)
    if operation.code != "CONV_2D":
        return False
    weights = operation.inputs[1]
    return weights is not None and weights.shape[1:3] == (1, 1) and _steps(operation) != (1, 1)


def _is_one_pixel_pool(operation: Operation) -> bool:
    """Whether it is a pooling that pools nothing, which is how some networks take fewer pixels (XNNPACK cannot)."""
    options = operation.options
    if operation.code not in POOLS or operation.outputs[0].dtype is not FLOAT:
        return False
    return (options["filter_h"], options["filter_w"]) == (1, 1) and not options.get("activation")


def _by_weights_of_one(pool: Operation) -> None:
    """Makes a pool of one pixel a depthwise convolution by 1, which XNNPACK can: a seventh of the time."""
    depth = pool.outputs[0].shape[3]
    for name, content in (("ones", np.ones((1, 1, 1, depth), np.float32)), ("zeros", np.zeros(depth, np.float32))):
        constant = Constant.of(content)
        pool.inputs.append(Value(f"{pool.outputs[0].name}/{name}", FLOAT, constant.shape, constant))
    pool.code, pool.options = "DEPTHWISE_CONV_2D", sliding(strides=_steps(pool), multiplier=1)


def _steps(operation: Operation) -> Steps:
    return operation.options["stride_h"], operation.options["stride_w"]


def _strides_after(convolution: Operation, steps: Steps) -> Steps:
    old = _steps(convolution)
    return old[0] * steps[0], old[1] * steps[1]


def _taken(shape: tuple[int, ...], steps: Steps) -> tuple[int, ...]:
    return (shape[0], -(-shape[1] // steps[0]), -(-shape[2] // steps[1]), shape[3])


def _is_spread(value: Value) -> bool:
    """Whether an operand is the same for all pixels."""
    return value.size == 1 or value.size == value.shape[-1]


def _moved(value: Value, steps: Steps) -> int:
    """What taking pixels by an operation of its own costs, in multiplications; too much where that cannot be done."""
    if not _can_move(value, steps):
        return IMPOSSIBLE
    return value.size * MOVED_NUMBER // (steps[0] * steps[1])


def _can_move(value: Value, steps: Steps) -> bool:
    is_even = len(value.shape) == 4 and value.shape[1] % steps[0] == 0 and value.shape[2] % steps[1] == 0
    return is_even and value.dtype is FLOAT and value.constant is None


def _padding(convolution: Operation, steps: Steps) -> list[tuple[int, int]] | None:
    """The borders (before, after) that must be added by an operation of its own once the strides are longer."""
    if convolution.options["padding"] == "VALID":
        return None
    source, weights = convolution.operands[:2]
    old = same_borders(source, weights, convolution)
    strides = _strides_after(convolution, steps)
    longer = Operation(
        convolution.code, [], [], {**convolution.options, "stride_h": strides[0], "stride_w": strides[1]}
    )
    new = same_borders(source, weights, longer)
    if all(before == other for (before, _), (other, _) in zip(old, new, strict=True)):
        return None
    pairs = []
    for axis, side in ((1, "h"), (2, "w")):
        before = old[axis - 1][0]
        reach = (weights.shape[axis] - 1) * convolution.options[f"dilation_{side}"] + 1
        count = -(-source.shape[axis] // strides[axis - 1])
        pairs.append((before, max(0, (count - 1) * strides[axis - 1] + reach - source.shape[axis] - before)))
    return pairs
