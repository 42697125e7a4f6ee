"""Single operations in a model of Keras layers: ``x + 1``, ``x[:, 0]``, ``tf.concat`` and the like.

Keras 2 has them as layers TFOpLambda and SlicingOpLambda, Keras 3 as operations of its modules ``ops``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from pocketgraph.formats.keras import array_operations, axis_operations
from pocketgraph.formats.keras.activation_functions import OPS, activated
from pocketgraph.formats.keras.composed_operations import RULES as COMPOSED
from pocketgraph.formats.keras.composed_operations import composed
from pocketgraph.formats.keras.layer_writer import (
    KerasTensor,
    LayerWriter,
    broadcast,
    expanded,
    joined,
    of_one_type,
    pair,
    transposed,
    with_rest,
)
from pocketgraph.formats.keras.operation_call import OperationCall
from pocketgraph.graph import DType
from pocketgraph.graph.dtype import BOOL, DOUBLE, FLOAT, INT32

SHARED_NAMES = {
    "": (
        "argsort broadcast_to cast einsum expand_dims identity one_hot ones_like pad repeat reshape roll sort "
        "split squeeze stack tile transpose unstack where zeros_like"
    ),
    "__operators__": "add",
    "compat.v1": "norm pad squeeze transpose",
    "image": "resize",
    "linalg": "matmul",
    "math": (
        "add add_n argmax argmin ceil cos cosh cumprod cumsum equal erf exp expm1 floor greater greater_equal "
        "l2_normalize less less_equal log log_sigmoid logical_and logical_not logical_or logical_xor "
        "maximum minimum multiply negative not_equal reciprocal reduce_all reduce_any reduce_logsumexp reduce_max "
        "reduce_mean reduce_min reduce_prod reduce_std reduce_sum round rsqrt sigmoid sign sin sinh softplus sqrt "
        "square squared_difference subtract tan tanh top_k"
    ),
    "nn": (
        "depth_to_space elu gelu l2_normalize leaky_relu log_softmax relu relu6 selu sigmoid silu softmax "
        "softplus softsign space_to_depth tanh top_k"
    ),
}
"""Functions of TensorFlow, by module, whose names Keras 3 has in its spelling: ``reduce_max`` is its Max."""
NAMES = {
    **{
        f"{module}.{name}".lstrip("."): name.removeprefix("reduce_").title().replace("_", "")
        for module, names in SHARED_NAMES.items()
        for name in names.split()
    },
    "math.truediv": "TrueDivide", "math.divide": "TrueDivide", "math.pow": "Power", "math.abs": "Absolute",
    "nn.swish": "Silu", "concat": "Concatenate", "clip_by_value": "Clip", "__operators__.getitem": "GetItem",
    "math.floordiv": "FloorDivide", "math.floormod": "Mod", "math.reduce_variance": "Var", "reverse": "Flip",
    "gather": "Take", "compat.v1.gather": "Take", "stop_gradient": "Identity", "nn.bias_add": "Add",
    "__operators__.ne": "NotEqual", "__operators__.eq": "Equal", "compat.v1.floor_div": "FloorDivide",
    "math.floor_div": "FloorDivide", "math.acos": "Arccos", "math.asin": "Arcsin", "math.atan": "Arctan",
    "compat.v1.shape": "Shape", "shape": "Shape",
    "math.acosh": "Arccosh", "math.asinh": "Arcsinh", "math.atanh": "Arctanh",
    "math.is_nan": "Isnan", "math.is_finite": "Isfinite", "math.is_inf": "Isinf", "math.log1p": "Log1p",
}  # fmt: skip
"""What Keras 3 calls the functions of TensorFlow that Keras 2 names."""


def arithmetic(op: str, usual: DType = FLOAT) -> Callable[[OperationCall], KerasTensor]:
    """Two tensors, or a tensor and numbers; whole numbers become floats where they are divided."""

    def written(call: OperationCall) -> KerasTensor:
        writer = call.writer
        one, other = call.operands((0, ("x", "x1", "a")), (1, ("y", "x2", "b", "bias")), usual)
        is_new, wide = writer.model.is_keras_3, None
        if op in ("RealDiv", "DivNoNan", "Atan2") and not one.dtype.is_floating and (is_new or op == "RealDiv"):
            wide = FLOAT if is_new or one.dtype.numpy.itemsize < 4 else DOUBLE
        elif is_new and usual is BOOL and one.dtype is not BOOL:
            wide = BOOL
        elif is_new and op == "FloorMod" and one.dtype.is_integer | (one.dtype is BOOL):
            wide = _of_remainder(call, one.dtype)
        if wide is not None and wide is not one.dtype:
            one, other = (writer.add("Cast", each, DstT=wide) for each in (one, other))
        return writer.add(op, one, other, dims=broadcast(one.dims, other.dims))

    return written


def _of_remainder(call: OperationCall, found: DType) -> DType:
    """Keras 3 takes remainders of bools, and of narrow numbers by a number, in 32 bits."""
    is_by_number = found.numpy.itemsize < 4 and any(type(one) is int for one in call.given)
    return INT32 if found is BOOL or is_by_number else found


KEEP_WHOLE = ("Neg", "Abs", "Sign", "Identity", "LogicalNot")
"""Not a trait: ops of which Keras 3 has whole numbers where it is given some; of others it has floats."""


def elementwise(op: str) -> Callable[[OperationCall], KerasTensor]:
    return lambda call: call.writer.add(op, call.tensor(0, "x", "features") if op in KEEP_WHOLE else call.fraction())


def square(call: OperationCall) -> KerasTensor:
    return call.writer.add("Square", call.number())


def rounding(call: OperationCall) -> KerasTensor:
    value, places = call.tensor(0, "x"), call.setting("decimals", default=0)
    if not places:
        return call.writer.add("Round", value)
    if not value.dtype.is_floating:
        raise call.writer.refuse(f"has decimals={places} for whole numbers, which is not read")
    power = call.writer.const(10.0**places, "power", FLOAT)
    return call.writer.add("RealDiv", call.writer.add("Round", call.writer.add("Mul", value, power)), power)


def function(name: str, *settings: str) -> Callable[[OperationCall], KerasTensor]:
    def written(call: OperationCall) -> KerasTensor:
        value = call.tensor(0, "x", "features") if name.startswith("relu") else call.fraction()
        told = {setting: call.setting(setting) for setting in settings}
        told = {setting: number for setting, number in told.items() if number is not None}
        return activated(call.writer, value, name, **told)

    return written


def gelu(call: OperationCall) -> KerasTensor:
    is_approximate = bool(call.argument(1, "approximate", default=not call.is_of_keras_2))
    return activated(call.writer, call.tensor(0, "x"), "gelu_new" if is_approximate else "gelu")


def concatenation(call: OperationCall) -> KerasTensor:
    return joined(call.writer, call.tensors("values", "xs"), int(call.argument(1, "axis", default=-1)))


def reshaping(call: OperationCall) -> KerasTensor:
    value = call.tensor(0, "x", "tensor")
    sizes, dims = call.shape(1, "newshape", "shape", is_open=True)
    if any(isinstance(size, KerasTensor) for size in sizes):
        return call.writer.add("Reshape", value, call.writer.sizes(sizes), dims=dims)
    dims = with_rest(dims, value.dims)
    if dims.count(None) > 1:
        raise call.writer.refuse("leaves several sizes open, which is not read")
    return call.writer.reshaped(value, dims)


def shape(call: OperationCall) -> KerasTensor:
    value, told = call.tensor(0, "input"), DType.named(str(call.setting("out_type", default="int32")))
    made = call.writer.add("Shape", value, dims=(len(value.dims),), out_type=told)
    return made._replace(sizes=call.writer.all_sizes(value))


def expanding(call: OperationCall) -> KerasTensor:
    value = call.tensor(0, "x", "input")
    axes = pair(call.argument(1, "axis", default=-1), 1)
    for axis in sorted(axis % (len(value.dims) + len(axes)) for axis in axes):
        value = expanded(call.writer, value, axis)
    return value


def squeezing(call: OperationCall) -> KerasTensor:
    value = call.tensor(0, "x", "input")
    told = call.argument(1, "axis")
    axes = call.axes() if told is not None else [axis for axis, size in enumerate(value.dims) if size == 1]
    dims = tuple(size for axis, size in enumerate(value.dims) if axis not in axes)
    return call.writer.add("Squeeze", value, dims=dims, squeeze_dims=tuple(axes))


def transposition(call: OperationCall) -> KerasTensor:
    value = call.tensor(0, "x", "a")
    return transposed(call.writer, value, call.argument(1, "axes", "perm") or range(len(value.dims))[::-1])


def product(call: OperationCall) -> KerasTensor:
    one, other = call.tensor(0, "x1", "a"), call.tensor(1, "x2", "b")
    turned = [bool(call.setting(name)) for name in ("transpose_a", "transpose_b")]
    if min(len(one.dims), len(other.dims)) < 2:
        raise call.writer.refuse("multiplies a vector, which is not read")
    rows, columns = one.dims[-1 if turned[0] else -2], other.dims[-2 if turned[1] else -1]
    dims = (*broadcast(one.dims[:-2], other.dims[:-2]), rows, columns)
    return call.writer.add("BatchMatMulV2", one, other, dims=dims, adj_x=turned[0], adj_y=turned[1])


def casting(call: OperationCall) -> KerasTensor:
    value, told = call.tensor(0, "x"), call.argument(1, "dtype")
    return call.writer.add("Cast", value, DstT=DType.named(str(told)))


def full_like(call: OperationCall) -> KerasTensor:
    value, number = call.tensor(0, "x"), call.argument(1, "fill_value")
    if not isinstance(number, (int, float)):
        raise call.writer.refuse("fills with what is no number, which is not read")
    told = call.setting("dtype")
    filling = call.writer.const(number, "filling", DType.named(str(told)) if told else value.dtype)
    return call.writer.add("Fill", call.writer.sizes(call.writer.all_sizes(value)), filling, dims=value.dims)


def alike(op: str) -> Callable[[OperationCall], KerasTensor]:
    def written(call: OperationCall) -> KerasTensor:
        value, told = call.tensor(0, "x", "input"), call.argument(1, "dtype")
        value = casting(replace(call, given=[value, told])) if told else value
        return call.writer.add(op, value)

    return written


def clipping(call: OperationCall) -> KerasTensor:
    value = call.tensor(0, "x", "t")
    low, high = (call.tensor(place, *names, like=value.dtype)
                 for place, names in ((1, ("x_min", "clip_value_min")), (2, ("x_max", "clip_value_max"))))  # fmt: skip
    return call.writer.add("Minimum", call.writer.add("Maximum", value, low), high)


def stacking(call: OperationCall) -> KerasTensor:
    values = call.tensors("values", "x")
    values = of_one_type(call.writer, values) if call.writer.model.is_keras_3 else values
    axis = int(call.argument(1, "axis", default=0)) % (len(values[0].dims) + 1)
    dims = (*values[0].dims[:axis], len(values), *values[0].dims[axis:])
    return call.writer.add("Pack", list(values), dims=dims, axis=axis)


def slicing(call: OperationCall) -> KerasTensor:
    """``x[…]``, with the masks of StridedSlice."""
    value, spec = call.tensor(0), call.argument(1, "slice_spec", "key", default=())
    parts = [_slice(part) for part in (spec if isinstance(spec, (list, tuple)) else [spec])]
    if sum(part is Ellipsis for part in parts) > 1 or any(isinstance(part, KerasTensor) for part in parts):
        raise call.writer.refuse("is cut at places that are computed, which is not read")
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        new = sum(part is None for part in parts)
        parts[at : at + 1] = [slice(None)] * (len(value.dims) - (len(parts) - 1 - new))
    begins: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    masks: Counter[str] = Counter()
    dims: list[int | None] = []
    left = list(value.dims)
    for place, part in enumerate(parts):
        if part is None:
            masks["new_axis_mask"] |= 1 << place
            begins, ends, steps, dims = [*begins, 0], [*ends, 0], [*steps, 1], [*dims, 1]
            continue
        size = left.pop(0)
        if isinstance(part, slice):
            for end, name in ((part.start, "begin_mask"), (part.stop, "end_mask")):
                if end is None:
                    masks[name] |= 1 << place
            begins, ends = [*begins, part.start or 0], [*ends, part.stop or 0]
            steps.append(part.step or 1)
            dims.append(None if size is None else len(range(size)[part]))
        else:
            masks["shrink_axis_mask"] |= 1 << place
            begins, ends, steps = [*begins, part], [*ends, part + 1], [*steps, 1]
    bounds = [call.writer.const(one, name) for one, name in ((begins, "begin"), (ends, "end"), (steps, "step"))]
    made = call.writer.add("StridedSlice", value, *bounds, dims=(*dims, *left), **cast("dict[str, Any]", masks))
    found = value.sizes[parts[0]] if isinstance(value.sizes, list) and parts[0] is not None else None
    return made._replace(sizes=None if isinstance(found, KerasTensor) else found)


def _slice(part: Any) -> Any:
    if isinstance(part, Mapping):
        return slice(*(part.get(name) for name in ("start", "stop", "step")))
    if part == "...":
        return Ellipsis
    return part if part in (None, Ellipsis) or isinstance(part, (slice, KerasTensor)) else int(part)


OPERATIONS: dict[str, Callable[[OperationCall], KerasTensor | list[KerasTensor]]] = {
    **{name: arithmetic(op) for name, op in (
        ("Add", "AddV2"), ("Subtract", "Sub"), ("Multiply", "Mul"), ("TrueDivide", "RealDiv"), ("Divide", "RealDiv"),
        ("DivideNoNan", "DivNoNan"),
        ("Power", "Pow"),
        ("Maximum", "Maximum"), ("Minimum", "Minimum"), ("FloorDivide", "FloorDiv"), ("Mod", "FloorMod"),
        ("Greater", "Greater"), ("GreaterEqual", "GreaterEqual"), ("Less", "Less"), ("LessEqual", "LessEqual"),
        ("Equal", "Equal"), ("NotEqual", "NotEqual"), ("SquaredDifference", "SquaredDifference"),
        ("Arctan2", "Atan2"))},
    **{name: elementwise(op) for name, op in (
        ("Negative", "Neg"), ("Absolute", "Abs"), ("Sqrt", "Sqrt"), ("Rsqrt", "Rsqrt"),
        ("Exp", "Exp"), ("Log", "Log"), ("Identity", "Identity"), ("ConvertToTensor", "Identity"),
        ("LogicalNot", "LogicalNot"), ("StopGradient", "Identity"),
        ("Sin", "Sin"), ("Cos", "Cos"), ("Tan", "Tan"), ("Arctan", "Atan"), ("Sinh", "Sinh"), ("Cosh", "Cosh"),
        ("Arcsinh", "Asinh"), ("Arccosh", "Acosh"), ("Arctanh", "Atanh"), ("Arcsin", "Asin"), ("Arccos", "Acos"),
        ("Floor", "Floor"), ("Ceil", "Ceil"), ("Sign", "Sign"),
        ("Reciprocal", "Reciprocal"), ("Log1p", "Log1p"), ("Expm1", "Expm1"), ("Erf", "Erf"), ("Isfinite", "IsFinite"),
        ("Isnan", "IsNan"), ("Isinf", "IsInf"))},
    **{name: arithmetic(op, BOOL) for name, op in (
        ("LogicalAnd", "LogicalAnd"), ("LogicalOr", "LogicalOr"), ("LogicalXor", "NotEqual"))},
    **{name.title(): function(name) for name in OPS if name.isalnum() and name.islower() and name != "softmax"},
    **{name: function(known) for name, known in (
        ("Silu", "silu"), ("HardSigmoid", "hard_sigmoid"), ("HardSilu", "hard_silu"),
        ("LogSigmoid", "log_sigmoid"), ("HardTanh", "hard_tanh"), ("TanhShrink", "tanh_shrink"),
        ("SparsePlus", "sparse_plus"), ("SparseSigmoid", "sparse_sigmoid"))},
    "Elu": function("elu", "alpha"), "Celu": function("celu", "alpha"), "Glu": function("glu", "axis"),
    "Sparsemax": function("sparsemax", "axis"),
    "HardShrink": function("hard_shrink", "threshold"), "SoftShrink": function("soft_shrink", "threshold"),
    "Squareplus": function("squareplus", "b"), "Threshold": function("threshold", "threshold", "default_value"),
    **axis_operations.OPERATIONS, **array_operations.OPERATIONS,
    "Square": square, "Round": rounding,
    "Gelu": gelu, "Concatenate": concatenation, "Reshape": reshaping, "ExpandDims": expanding,
    "Squeeze": squeezing, "Transpose": transposition, "Matmul": product, "Cast": casting, "Clip": clipping,
    "OnesLike": alike("OnesLike"), "ZerosLike": alike("ZerosLike"), "Stack": stacking, "FullLike": full_like,
    "GetItem": slicing, "Shape": shape,
}  # fmt: skip
"""How each operation is written."""
OPERATIONS.update({name: composed(rule, OPERATIONS) for name, rule in COMPOSED.items()})


def operated(writer: LayerWriter, name: str) -> KerasTensor | list[KerasTensor]:
    """What an operation makes of what the writer was given; TFOpLambda has the settings of a layer, not of its call.

    Raises:
        FormatError: it is of no kind that is read, or an argument would be overlooked.
    """
    if name not in OPERATIONS:
        raise writer.refuse(f"is '{name}', an operation that is not read")
    call = OperationCall(writer, writer.given, writer.named)
    call = call if call.is_of_keras_2 else replace(call, named={**writer.config, **writer.named})
    made = OPERATIONS[name](call)
    call.check()
    return made


def operation(kind: str, config: Mapping[str, Any], module: str, *, is_of_keras_3: bool) -> str | None:
    """The operation that a layer stands for; None for a true layer, which in Keras 3 says whether it is trained.

    An HDF5 file of Keras 3 does not say the module, and its ``x + 3`` is an Add as the layer of that name is.
    """
    if kind in ("TFOpLambda", "SlicingOpLambda"):
        told = str(config.get("function", "__operators__.getitem"))
        return NAMES.get(told, told)
    if ".ops" in module or (is_of_keras_3 and "trainable" not in config and kind in OPERATIONS):
        return kind
    return None
