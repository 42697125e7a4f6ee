"""Images as operands: LiteRT has channels last, TensorFlow either way."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.program import Value

TO_NHWC = (0, 2, 3, 1)


def data_format(emit: Emit, node: Node) -> str:
    """``NHWC`` or ``NCHW``; anything else is refused."""
    found = attr_text(node, "data_format", "NHWC") or "NHWC"
    if found not in ("NHWC", "NCHW"):
        raise emit.unsupported(f"the data format {found} has no LiteRT operator")
    return found


def image(emit: Emit, index: int, layout: str, dtypes: Sequence[str] = ("float",)) -> Value:
    """An image operand of one of these element types as NHWC, or pictures in a row as NDHWC."""
    value = emit.require(emit.input(index), *dtypes)
    if len(value.shape) != len(layout):
        raise emit.unsupported(f"{'an image' if len(layout) == 4 else 'a volume'} of rank {len(value.shape)}")
    return value if layout[-1] == "C" else emit.transpose(value, (0, *range(2, len(layout)), 1))


def yield_image(emit: Emit, value: Value, layout: str) -> None:
    """Ends a lowering whose result is ``value`` with channels last."""
    emit.result(value if layout[-1] == "C" else emit.transpose(value, (0, len(layout) - 1, *range(1, len(layout) - 1))))


def spatial(emit: Emit, values: tuple[int, ...], layout: str, what: str) -> tuple[int, ...]:
    """The entries for (frames,) height and width of an attribute with an entry an axis; the others must be 1."""
    if len(values) != len(layout):
        raise emit.unsupported(f"{what} {list(values)} must have {len(layout)} entries")
    batch, channels = values[0], values[layout.index("C")]
    if batch != 1 or channels != 1:
        raise emit.unsupported(f"{what} {list(values)} over batch or channels")
    return values[1:-1] if layout[-1] == "C" else values[2:]
