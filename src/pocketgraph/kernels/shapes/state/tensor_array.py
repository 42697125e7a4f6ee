"""Shape rules of TensorArrays."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import dims_of
from pocketgraph.kernels.shapes.common_rules import behind_handle, fixed, scalar
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule(
    "TensorArrayWriteV2", "TensorArrayWriteV3", "TensorArrayScatterV2", "TensorArrayScatterV3", "TensorArraySplitV2",
    "TensorArraySplitV3", "TensorArraySizeV2", "TensorArraySizeV3",
)(scalar)  # fmt: skip
HANDLE, FLOW = Shape((2,)), SCALAR
shape_rule(
    "TensorArrayV2", "TensorArrayV3", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape",
)(fixed(HANDLE, FLOW))  # fmt: skip
shape_rule("TensorArrayReadV2", "TensorArrayReadV3")(behind_handle)


@shape_rule("TensorArrayGatherV2", "TensorArrayGatherV3")
def tensor_array_gather(call: ShapeCall) -> Shape:
    count = call.shape(1)
    return Shape((count[0] if count.rank == 1 else None, *dims_of(call.declared("element_shape"))))


@shape_rule("TensorArrayConcatV2", "TensorArrayConcatV3")
def tensor_array_concat(call: ShapeCall) -> Sequence[Shape]:
    element = call.declared("element_shape_except0")
    return [UNKNOWN if element.dims is None else Shape((None, *element.dims)), Shape((None,))]
