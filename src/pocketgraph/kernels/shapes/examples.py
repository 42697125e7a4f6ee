"""Shape rules of the ops that parse encoded Examples, and of beam search."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.rules import Call, shape_rule

VECTOR = Shape((None,))


def features(call: Call, count: int, batch: Shape) -> list[Shape]:
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
def parse_example(call: Call) -> Sequence[Shape]:
    serialized = call.shape(0)
    return features(call, call.count("Nsparse"), serialized if serialized.rank == 1 else VECTOR)


@shape_rule("ParseExampleV2")
def parse_example_v2(call: Call) -> Sequence[Shape]:
    ragged = len(call.attr("ragged_value_types", ()))
    serialized = call.shape(0)
    records = serialized.dims[0] if serialized.dims else None
    ends = Shape((0,)) if serialized.rank == 0 else Shape((None if records is None else records + 1,))
    ends = VECTOR if serialized.rank is None else ends
    return [*features(call, call.count("num_sparse"), serialized), *[VECTOR] * ragged, *[ends] * ragged]


@shape_rule("ParseSingleExample")
def parse_single_example(call: Call) -> Sequence[Shape]:
    return features(call, call.count("num_sparse"), SCALAR)


@shape_rule("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(call: Call) -> Sequence[Shape]:
    count = call.count("top_paths")
    inputs = call.shape(0)
    batch = inputs[1] if inputs.rank == 3 else None
    return [Shape((None, 2))] * count + [VECTOR] * count + [Shape((2,))] * count + [Shape((batch, count))]
