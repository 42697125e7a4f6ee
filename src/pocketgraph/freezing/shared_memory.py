"""What has a reference variable's memory for its result in TensorFlow 1.15, so that later assignments change it."""

from __future__ import annotations

from pocketgraph.graph import Graph, Node, Shape
from pocketgraph.graph.op_traits import slice_masks, sliced_axes

WHOLE = frozenset((
    "CheckNumerics", "DebugGradientIdentity", "EnsureShape", "GuaranteeConst", "PlaceholderWithDefault", "Print",
))  # fmt: skip
"""Not a trait: further ops whose results lie in the memory of their first input in a session of TensorFlow 1.15."""
OF_ONE = {"AddN": "N", "Pack": "N", "Split": "num_split", "SplitV": "num_split"}
"""Those that do so where they take or give a single tensor, and the attribute that counts these."""
REDUCED = ("Max", "Mean", "Min", "Prod", "ReverseV2", "Sum")
"""Not a trait: those that do so where all the axes that they are for have one element."""
NEUTRAL = {"Pad": (0,), "PadV2": (0,), "MirrorPad": (0,), "Tile": (1,), "MatrixBandPart": (-1, -1),
           "SpaceToBatchND": (1, 0), "BatchToSpaceND": (1, 0)}  # fmt: skip
"""Those that do so where each of their next inputs has this number alone."""
RESHAPED = frozenset(("Transpose", "Pack", *REDUCED))
"""What of these gives another shape, so that a value in the variable's place goes through it."""


def takes_everything(graph: Graph, node: Node, shape: Shape) -> bool:
    """Whether a node gives its input, of this shape, as it is or with other axes of 1, as far as constants say so:
    TensorFlow 1.15's kernels, or the pass that makes graphs simpler there, hand on its memory then."""
    if node.op in WHOLE or node.attr(OF_ONE.get(node.op, ""), 0) == 1:
        return True
    if node.op == "Cast":
        return node.dtype("SrcT").base is node.dtype("DstT").base
    if node.op not in ("Slice", "StridedSlice", "Transpose", "BroadcastTo", *REDUCED, *NEUTRAL):
        return False
    refs = list(node.data_inputs[1:])
    if node.op == "StridedSlice" and graph.producer(refs[2]).op == "Fill":  # what tf.strided_slice makes of no strides
        refs[2] = graph.producer(refs[2]).data_inputs[1]
    if node.op in NEUTRAL:
        refs = refs[: len(NEUTRAL[node.op])]
    told = [graph.constant(ref) for ref in refs]
    values = [one.numpy().ravel().tolist() for one in told if one is not None]
    if len(values) < len(told) or not values:
        return False
    if node.op in NEUTRAL:
        return all(set(held) <= {number} for held, number in zip(values, NEUTRAL[node.op], strict=True))
    count = len(values[0])
    if node.op == "Slice":
        sizes = [-1 if shape.rank == count and size == shape[at] else size for at, size in enumerate(values[1])]
        return [values[0], sizes] == [[0] * count, [-1] * count]
    if node.op == "StridedSlice":
        masks = slice_masks(node.attr)
        axes = sliced_axes(masks, count)
        for at, axis in axes.items():
            size = shape[axis] if shape.rank is not None and len(axes) <= shape.rank else None
            begins = masks["begin"] >> at & 1 or values[0][at] == 0
            ends = masks["end"] >> at & 1 or (size is not None and values[1][at] >= size)
            if masks["shrink_axis"] >> at & 1:
                begins, ends = size == 1, True
            if not (begins and ends):
                return False
        return all(stride == 1 for stride in values[2])
    sizes = list(shape) if shape.rank is not None else [None] * count
    if node.op == "BroadcastTo":
        return bool(values[0] == sizes)
    if not all(-len(sizes) <= axis < len(sizes) for axis in values[0]):
        return False
    if node.op == "Transpose":
        moved = [axis for axis in values[0] if sizes[axis] != 1]
        return moved == sorted(moved)
    return all(sizes[axis] == 1 for axis in values[0])
