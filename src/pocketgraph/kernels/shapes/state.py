"""Shape rules of variables, arrays of tensors and other resources."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import dims_of, merge
from pocketgraph.kernels.shapes.array.indexing import gather
from pocketgraph.kernels.shapes.common_rules import behind_handle, fixed, no_outputs, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule(
    "RefIdentity", "AssignAdd", "AssignSub", "ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv",
    "ScatterMin", "ScatterMax", "ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub", "ScatterNdMin", "ScatterNdMax",
    "StridedSliceAssign", "CountUpTo", "DestroyTemporaryVariable",
)(unchanged)  # fmt: skip
shape_rule("ResourceGather")(gather)
shape_rule("VarHandleOp", "IsVariableInitialized", "VarIsInitializedOp")(scalar)
shape_rule("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")(no_outputs)
shape_rule("ReadVariableOp")(behind_handle)


@shape_rule("Variable", "VariableV2", "TemporaryVariable")
def variable(call: ShapeCall) -> Shape:
    shape = call.declared()
    return UNKNOWN if call.node.op == "Variable" and shape.rank == 0 else shape


@shape_rule("VariableShape")
def variable_shape(call: ShapeCall) -> Shape:
    behind = call.handle(0)
    return Shape((behind.rank,))


@shape_rule("Assign")
def assign(call: ShapeCall) -> Shape:
    return merge(call.shape(0), call.shape(1)) if call.attr("validate_shape", True) else call.shape(1)


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


shape_rule("QueueDequeueV2", "QueueDequeue")(lambda call: [UNKNOWN] * len(call.attr("component_types", ())))


shape_rule("MutableDenseHashTableV2", "HashTableV2")(scalar)


@shape_rule("LookupTableFindV2", "LookupTableFind")
def table_lookup(call: ShapeCall) -> Shape:
    if call.shape(2).rank not in (0, None):
        raise GraphError("the default value should be a scalar")
    return call.shape(1)


@shape_rule("IteratorGetNext", "IteratorGetNextSync", "OneShotIterator", "IteratorFromStringHandle", "IteratorV2")
def iterator(call: ShapeCall) -> Sequence[Shape]:
    if not call.node.op.startswith("IteratorGetNext"):
        return [SCALAR]
    return [shape if isinstance(shape, Shape) else UNKNOWN for shape in call.attr("output_shapes", ())]


shape_rule("ReadFile")(scalar)
shape_rule("SaveV2", "Save", "SaveSlices", "MergeV2Checkpoints")(no_outputs)
