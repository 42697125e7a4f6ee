"""How LiteRT does each op: the table of lowerings, whose rows are in lowerings/ by family, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from pocketgraph.errors import RunError
from pocketgraph.kernels.op_table import OpTable

Lowering: TypeAlias = Callable[[Any, Any], Any]
"""What is called with an Emit (see emitter.py) and a node: it reads the node's operands from ``emit``, adds operations,
and gives back the output, or a list of all; or tells them to ``emit.result`` and gives None. It raises Unsupported for
what it cannot express exactly."""
Function = TypeVar("Function", bound=Callable[..., Any])

LOWERINGS: OpTable[Lowering] = OpTable("lowering", "pocketgraph.litert.lowerings", "LOWERINGS")


def lowers(*ops: str, takes: Sequence[str] = ()) -> Callable[[Function], Function]:
    """Enters the decorated function for these ops; its parameters behind the node are the node's first operands.

    Args:
        ops: the ops.
        takes: the element types that these operands may have.
    """
    return LOWERINGS.taking(lambda emit, node, count: [emit.require(emit.input(i), *takes) for i in range(count)], *ops)


MOVED = ("float", "int32", "int64", "uint8", "int8", "int16", "bool")
"""Element types that LiteRT's data-moving operators take."""

# Private attributes by which a rewriting of the graph tells the lowering what it knows of a node.

MAY_QUANTIZE = "_eight_bit"
"""True on nodes that may be computed with eight-bit weights and values."""

WHOLE_NUMBERS = "_whole_numbers"
"""The lowest and highest of the whole numbers in a node's operand, which eight-bit kernels multiply exactly; (0, 0)
where no bounds are known."""


class Unsupported(RunError):  # noqa: N818 - it is an answer to a question more often than an error
    """A node that LiteRT, or the format of an export, cannot compute, or not as TensorFlow does.

    Attributes:
        reason: why.
        node: the node's name.
        opset: the version of ONNX's operators that has it first; 0 where none is known to have it.
    """

    def __init__(self, reason: str, node: str = "", opset: int = 0) -> None:
        super().__init__(reason, where=f"node '{node}'" if node else "")
        self.reason = reason
        self.node = node
        self.opset = opset
