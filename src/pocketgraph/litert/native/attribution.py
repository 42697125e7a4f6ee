"""Says which operation of a program each entry of LiteRT's profile belongs to.

XNNPACK runs operations of its own, under names of its own, mostly one for each of the program's and in their order;
some of the program's become several, some are fused away. Both lists are laid beside each other by what the names mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from pocketgraph.litert.native.profiler import Timed
from pocketgraph.litert.program import Operation

MEANINGS = (
    ("dwconv", "depthwise"), ("deconvolution", "transposed"), ("batch matrix", "batch product"),
    ("convolution", "dense"), ("fully connected", "dense"), ("gemm", "dense"), ("max pooling", "largest"),
    ("argmax", "largest"), ("average pooling", "average"), ("mean", "average"), ("sum", "sum"),
    ("softmax", "softmax"), ("reshape", "reshape"), ("transpose", "transpose"), ("pad", "pad"), ("concat", "concat"),
    ("copy", "concat"), ("leaky relu", "leaky"), ("prelu", "prelu"), ("elu", "elu"), ("clamp", "clamp"),
    ("resize", "resize"), ("depth to space", "depth"), ("space to depth", "depth"), ("slice", "slice"),
    ("split", "split"), ("sigmoid", "sigmoid"), ("tanh", "tanh"), ("reciprocal square root", "rsqrt"),
    ("square root", "sqrt"), ("squared difference", "squared"), ("square", "squared"), ("hardswish", "hardswish"),
    ("add", "add"), ("subtract", "subtract"), ("multiply", "multiply"), ("divide", "divide"), ("maximum", "maximum"),
    ("minimum", "minimum"), ("convert", "convert"), ("exp", "exp"), ("log", "log"), ("floor", "floor"),
    ("abs", "abs"), ("negate", "negate"),
)  # fmt: skip
"""What a word in XNNPACK's name of an operation means; the first that is found counts."""

CODES = {
    "CONV_2D": "dense", "FULLY_CONNECTED": "dense", "DEPTHWISE_CONV_2D": "depthwise", "TRANSPOSE_CONV": "transposed",
    "BATCH_MATMUL": "batch product", "MAX_POOL_2D": "largest", "AVERAGE_POOL_2D": "average", "MEAN": "average",
    "SUM": "sum", "SOFTMAX": "softmax", "RESHAPE": "reshape", "TRANSPOSE": "transpose", "PAD": "pad", "PADV2": "pad",
    "CONCATENATION": "concat", "LEAKY_RELU": "leaky", "PRELU": "prelu", "ELU": "elu", "RELU": "clamp",
    "RELU6": "clamp", "RELU_N1_TO_1": "clamp", "RESIZE_BILINEAR": "resize", "RESIZE_NEAREST_NEIGHBOR": "resize",
    "DEPTH_TO_SPACE": "depth", "SPACE_TO_DEPTH": "depth", "SLICE": "slice", "STRIDED_SLICE": "slice",
    "SPLIT": "split", "LOGISTIC": "sigmoid", "TANH": "tanh", "RSQRT": "rsqrt", "SQRT": "sqrt",
    "SQUARED_DIFFERENCE": "squared", "SQUARE": "squared", "HARD_SWISH": "hardswish", "ADD": "add", "SUB": "subtract",
    "MUL": "multiply", "DIV": "divide", "MAXIMUM": "maximum", "MINIMUM": "minimum", "QUANTIZE": "convert",
    "DEQUANTIZE": "convert", "EXP": "exp", "LOG": "log", "FLOOR": "floor", "ABS": "abs", "NEG": "negate",
}  # fmt: skip
"""The same for the operations of a program."""

LEAST_MATCHED = 0.5  # of the time that is noted; with less, the two lists are not of the same program
MOST_CELLS = 4_000_000  # entries times operations, beyond which comparing them takes seconds


def shared_out(events: Sequence[Timed], operations: Sequence[Operation]) -> list[float] | None:
    """Microseconds of each operation; None when the profile cannot be told apart.

    An entry without a counterpart counts for the operation before it, of which it is a part.
    """
    total = sum(event.microseconds for event in events)
    if total <= 0 or len(events) * len(operations) > MOST_CELLS:
        return None
    owners = _owners(events, operations)
    took = [0.0] * len(operations)
    matched = 0.0
    last = 0
    for event, owner in zip(events, owners, strict=True):
        if owner is not None:
            matched += event.microseconds
            last = owner
        took[last] += event.microseconds
    return took if matched >= LEAST_MATCHED * total else None


def _owners(events: Sequence[Timed], operations: Sequence[Operation]) -> list[int | None]:
    """The operation of each entry, as far as it is certain."""
    owners: list[int | None] = [event.node for event in events]
    taken = set(owners)
    if any(owner is not None and not 0 <= owner < len(operations) for owner in owners):
        return [None] * len(events)
    inside = [place for place, event in enumerate(events) if event.node is None]
    left = [place for place in range(len(operations)) if place not in taken]
    theirs = [_meaning(events[place].name) for place in inside]
    ours = [CODES.get(operations[place].code, operations[place].code.lower()) for place in left]
    for block in SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            owners[inside[block.a + step]] = left[block.b + step]
    return owners


def _meaning(name: str) -> str:
    text = name.lower()
    return next((meaning for word, meaning in MEANINGS if word in text), text)
