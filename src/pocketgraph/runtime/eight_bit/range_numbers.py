"""Single numbers of eight-bit arithmetic, such as the ends of a range: known now, or computed while the graph runs.

Both ways it is float32, in the order of operations of the original kernels (kernels/quantized/eight_bit_arithmetic.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from pocketgraph.graph import Node, const
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.edit import claim_name
from pocketgraph.kernels.quantized.eight_bit_arithmetic import F32

SMALLEST_WIDTH = 1e-30  # stands for no width at all where something is divided by it
HALF_RANGE = 2.0**31  # codes of 32 bits on either side of zero
ALMOST_HALF = 0.5 - 2.0**-25
"""Added to a positive float32, it gives the next whole number from halves on; a half does so for this number too."""
TENS = (2.0**16, 2.0**20)
"""The steps of the parts of a factor: its product with a whole number of 21 bits, if below 256 or 16, is exact."""


class RangeNumber(NamedTuple):
    """A float32: its value where that is known, else the name of the tensor that has it while running."""

    value: float | None
    ref: str = ""


Operand = RangeNumber | str | float
COMPUTED: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide, "Maximum": np.maximum,
    "Minimum": np.minimum, "Floor": np.floor, "Abs": np.abs,
}  # fmt: skip


class RangeNodeWriter:
    """Writes the nodes that stand for one node after the other.

    Attributes:
        nodes: what was written since ``begin``.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        """``taken``: the names that there are already."""
        self.taken = set(taken)
        self.nodes: list[Node] = []
        self.node = ""
        self.constants: dict[float, str] = {}
        self.split: dict[RangeNumber, tuple[RangeNumber, RangeNumber]] = {}

    def begin(self, node: Node) -> None:
        """Names what follows for ``node``."""
        self.node, self.nodes = node.name, []

    def fresh(self, part: str) -> str:
        """A name that no node has."""
        return claim_name(f"{self.node}/{part}", self.taken)

    def constant(self, value: Any) -> str:
        """A float constant, a single number or an array."""
        is_number = isinstance(value, float)
        if is_number and value in self.constants:
            return self.constants[value]
        made = const(self.fresh("constant"), np.asarray(value, F32), FLOAT)
        self.nodes.append(made)
        if is_number:
            self.constants[value] = made.name
        return made.name

    def ref(self, operand: Operand) -> str:
        """The tensor that holds an operand."""
        if isinstance(operand, str):
            return operand
        value = operand.value if isinstance(operand, RangeNumber) else operand
        return operand.ref if value is None and isinstance(operand, RangeNumber) else self.constant(value)

    def op(self, op: str, *operands: Operand, name: str = "", **attrs: Any) -> str:
        """A node of float inputs, called ``name`` or something new; its output."""
        inputs = [self.ref(operand) for operand in operands]
        name = name or self.fresh(op.lower())
        self.nodes.append(Node(name, op, inputs, {"T": FLOAT, **attrs}))
        return name

    def number(self, op: str, *operands: RangeNumber | float) -> RangeNumber:
        """A single number made of others."""
        numbers = [operand if isinstance(operand, RangeNumber) else RangeNumber(operand) for operand in operands]
        values = [number.value for number in numbers]
        if None in values:
            return RangeNumber(None, self.op(op, *numbers))
        with np.errstate(all="ignore"):
            return RangeNumber(float(COMPUTED[op](*(F32(value) for value in values))))

    def together(self, *numbers: RangeNumber) -> RangeNumber:
        """Several numbers, or vectors of numbers, as one, with which the same is to be done."""
        refs = [self.ref(number) for number in numbers]
        name = self.fresh("pack")
        self.nodes.append(Node(name, "Pack", refs, {"T": FLOAT, "N": len(refs), "axis": 0}))
        return RangeNumber(None, name)

    def apart(self, numbers: RangeNumber, count: int) -> list[RangeNumber]:
        """The numbers that are together in one."""
        name = self.fresh("unpack")
        self.nodes.append(Node(name, "Unpack", [numbers.ref], {"T": FLOAT, "num": count, "axis": 0}))
        return [RangeNumber(None, f"{name}:{index}") for index in range(count)]

    def gathered(self, source: str, places: Any, axis: int) -> str:
        """What is at some places along an axis."""
        made = const(self.fresh("places"), places, INT32)
        self.nodes.append(made)
        name = self.fresh("taken")
        attrs = {"Tparams": FLOAT, "Tindices": INT32, "Taxis": INT32}
        self.nodes.append(Node(name, "GatherV2", [source, made.name, self.whole(axis)], attrs))
        return name

    def scaled(self, source: str, factor: RangeNumber, offset: RangeNumber | None = None) -> str:
        """``source * factor + offset``, without what changes nothing."""
        if factor.value != 1:
            source = self.op("Mul", source, factor)
        return source if offset is None or offset.value == 0 else self.op("Add", source, offset)

    def nearest(self, high: RangeNumber, low: RangeNumber) -> RangeNumber:
        """The sum of a number and a small one, rounded."""
        do = self.number
        below = do("Floor", high)
        return do("Add", below, do("Floor", do("Add", do("Add", do("Sub", high, below), low), 0.5)))

    def away(self, values: str) -> str:
        """Values rounded, halves away from zero."""
        sizes = self.op("Floor", self.op("Add", self.op("Abs", values), ALMOST_HALF))
        return self.op("Mul", sizes, self.op("Sign", values))

    def whole(self, values: int | list[int]) -> str:
        """A constant of int32."""
        made = const(self.fresh("sizes"), np.array(values, np.int32), INT32)
        self.nodes.append(made)
        return made.name

    def on_grid(self, number: RangeNumber, tens: float) -> RangeNumber:
        """A number rounded to a multiple of ``1 / tens``, a power of two."""
        do = self.number
        return do("Mul", do("Floor", do("Add", do("Mul", number, tens), 0.5)), 1 / tens)

    def ratio(self, number: RangeNumber, width: RangeNumber) -> tuple[RangeNumber, RangeNumber]:
        """``255 * number / width`` as the sum of two float32, to about 48 binary digits."""
        do = self.number
        top, top_error = self.times_255(number)
        ratio = do("RealDiv", top, width)
        back, back_error = self.product(ratio, width)
        left = do("Add", do("Sub", do("Sub", top, back), back_error), top_error)
        return ratio, do("RealDiv", left, width)

    def product(self, a: RangeNumber, b: RangeNumber) -> tuple[RangeNumber, RangeNumber]:
        """``a * b`` exactly, as what float32 gives of it and what that leaves (T. J. Dekker, 1971)."""
        do = self.number
        whole = do("Mul", a, b)
        (a1, a2), (b1, b2) = self.halves(a), self.halves(b)
        left = do("Sub", do("Mul", a1, b1), whole)
        left = do("Add", do("Add", left, do("Mul", a1, b2)), do("Mul", a2, b1))
        return whole, do("Add", left, do("Mul", a2, b2))

    def times_255(self, number: RangeNumber) -> tuple[RangeNumber, RangeNumber]:
        """``255 * number`` exactly, as ``product`` gives it."""
        do = self.number
        whole = do("Mul", number, 255.0)
        return whole, do("Sub", do("Sub", do("Mul", number, 256.0), whole), number)

    def halves(self, number: RangeNumber) -> tuple[RangeNumber, RangeNumber]:
        """A number as the sum of two with half as many binary digits."""
        do = self.number
        if number not in self.split:
            large = do("Mul", number, 4097.0)
            upper = do("Sub", large, do("Sub", large, number))
            self.split[number] = upper, do("Sub", number, upper)
        return self.split[number]
