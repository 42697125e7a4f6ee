"""Images as operands: LiteRT has channels last, TensorFlow either way."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.program import Value

TO_NHWC = (0, 2, 3, 1)
TO_NCHW = (0, 3, 1, 2)


def data_format(emit: Emit, node: Node) -> str:
    """``NHWC`` or ``NCHW``; anything else is refused."""
    found = attr_text(node, "data_format", "NHWC") or "NHWC"
    if found not in ("NHWC", "NCHW"):
        raise emit.unsupported(f"the data format {found} has no LiteRT operator")
    return found


def image(emit: Emit, index: int, layout: str, dtypes: Sequence[str] = ("float",)) -> Value:
    """An image operand of one of these element types as NHWC."""
    value = emit.require(emit.input(index), *dtypes)
    if len(value.shape) != 4:
        raise emit.unsupported(f"an image of rank {len(value.shape)}")
    return value if layout == "NHWC" else emit.transpose(value, TO_NHWC)


def yield_image(emit: Emit, value: Value, layout: str) -> None:
    """Ends a lowering whose result is ``value`` in NHWC."""
    emit.result(value if layout == "NHWC" else emit.transpose(value, TO_NCHW))


def spatial(emit: Emit, values: tuple[int, ...], layout: str, what: str) -> tuple[int, int]:
    """The height and width entries of a four-element attribute whose other entries must be 1."""
    if len(values) != 4:
        raise emit.unsupported(f"{what} {list(values)} must have 4 entries")
    batch, height, width, channels = values if layout == "NHWC" else tuple(values[axis] for axis in TO_NHWC)
    if batch != 1 or channels != 1:
        raise emit.unsupported(f"{what} {list(values)} over batch or channels")
    return height, width
