"""Lowerings of borders."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import Node
from pocketgraph.litert.emitter import Emit
from pocketgraph.litert.lowering import MOVED, lowers
from pocketgraph.litert.lowerings.pieces import MOST_PADDED, mirror_pad, pad
from pocketgraph.litert.operands import attr_text


@lowers("Pad", "PadV2", "MirrorPad")
def padding(emit: Emit, node: Node) -> None:
    source = emit.require(emit.input(0), *MOVED)
    pairs = np.asarray(emit.static(1, "the paddings"), np.int32).reshape(-1, 2)
    if pairs.min(initial=0) < 0 or len(pairs) != len(source.shape) or len(pairs) > MOST_PADDED:
        raise emit.unsupported(f"the paddings {pairs.tolist()}")
    if node.op == "MirrorPad":
        emit.result(mirror_pad(emit, source, pairs, attr_text(node, "mode")))
    elif node.op == "Pad":
        emit.result(pad(emit, source, pairs, always=emit.is_kept))
    else:
        fill_value = emit.static(2, "the value padded with")
        emit.result(pad(emit, source, pairs, fill_value.item(), always=emit.is_kept))
