"""Shape rules of records, rows of CSV and raw bytes."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.common_rules import VECTOR, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("DecodeJSONExample")(unchanged)


def features(call: ShapeCall, count: int, batch: Shape) -> list[Shape]:
    """Sparse indices, values and shapes, then dense values; ``batch`` is (), (records,) or of unknown rank."""
    rank = batch.rank
    axes = None if rank is None else rank + 1
    dense = [
        UNKNOWN
        if batch.dims is None or not isinstance(shape, Shape) or shape.dims is None
        else Shape((*batch.dims, *shape.dims))
        for shape in call.attr("dense_shapes", ())
    ]
    return [Shape((None, axes))] * count + [VECTOR] * count + [Shape((axes,))] * count + dense


@shape_rule("ParseExample")
def parse_example(call: ShapeCall) -> Sequence[Shape]:
    serialized = call.shape(0)
    return features(call, call.count("Nsparse"), serialized if serialized.rank == 1 else VECTOR)


@shape_rule("ParseExampleV2")
def parse_example_v2(call: ShapeCall) -> Sequence[Shape]:
    ragged = len(call.attr("ragged_value_types", ()))
    serialized = call.shape(0)
    records = serialized.dims[0] if serialized.dims else None
    ends = Shape((0,)) if serialized.rank == 0 else Shape((None if records is None else records + 1,))
    ends = VECTOR if serialized.rank is None else ends
    return [*features(call, call.count("num_sparse"), serialized), *[VECTOR] * ragged, *[ends] * ragged]


shape_rule("ParseSingleExample")(lambda call: features(call, call.count("num_sparse"), SCALAR))


def dense_in(call: ShapeCall, attr: str, *outer: int | None) -> list[Shape]:
    """What stands for each shape in an attribute, behind ``outer`` dimensions."""
    return [
        Shape((*outer, *shape.dims)) if isinstance(shape, Shape) and shape.dims is not None else UNKNOWN
        for shape in call.attr(attr, ())
    ]


def sparse_of(count: int, axes: int | None) -> list[Shape]:
    return [Shape((None, axes))] * count + [VECTOR] * count + [Shape((axes,))] * count


def sequences(call: ShapeCall, batch: Shape, ragged: bool) -> Sequence[Shape]:
    """All outputs of ParseSequenceExample(V2); ``batch`` is (), (records,) or of unknown rank."""
    dims = batch.dims
    rank = None if dims is None else len(dims)
    outer = dims if dims is not None else (None,)
    dense = dense_in(call, "context_dense_shapes", *outer)
    steps = dense_in(call, "feature_list_dense_shapes", *outer, None)
    if dims is None:
        dense, steps = [UNKNOWN] * len(dense), [UNKNOWN] * len(steps)
    records = None if not dims or dims[0] is None else dims[0] + 1
    ends = UNKNOWN if rank is None else SCALAR if rank == 0 else Shape((records,))
    of_context = len(call.attr("context_ragged_value_types", ())) if ragged else 0
    of_steps = len(call.attr("feature_list_ragged_value_types", ())) if ragged else 0
    return [
        *sparse_of(call.count("Ncontext_sparse"), None if rank is None else rank + 1),
        *dense,
        *[VECTOR] * of_context,
        *[ends] * of_context,
        *sparse_of(call.count("Nfeature_list_sparse"), None if rank is None else rank + 2),
        *steps,
        *[batch] * len(steps),
        *[VECTOR] * of_steps,
        *[ends] * of_steps,
        *[VECTOR] * of_steps,
    ]


shape_rule("ParseSequenceExample")(lambda call: sequences(call, call.shape(0), ragged=False))
shape_rule("ParseSequenceExampleV2")(lambda call: sequences(call, call.shape(0), ragged=True))


@shape_rule("ParseSingleSequenceExample")
def parse_single_sequence_example(call: ShapeCall) -> Sequence[Shape]:
    return [
        *sparse_of(call.count("Ncontext_sparse"), 1),
        *dense_in(call, "context_dense_shapes"),
        *sparse_of(call.count("Nfeature_list_sparse"), 2),
        *dense_in(call, "feature_list_dense_shapes", None),
    ]


shape_rule("DecodeRaw")(lambda call: Shape((*call.dims(0), None)))


@shape_rule("DecodeProtoV2")
def decode_proto(call: ShapeCall) -> Sequence[Shape]:
    """How often each field stands in each message, and as many of each as the longest has."""
    batch, names = call.dims(0), call.attr("field_names", ())
    return [Shape((*batch, len(names))), *[Shape((*batch, None))] * len(names)]
