"""Windows over pictures, and pictures of other sizes."""

from __future__ import annotations

from pocketgraph.exporting.c.operators.convolution import FilterWindow, only_floats, range_of
from pocketgraph.exporting.c.operators.emitter_table import emits, moves
from pocketgraph.exporting.c.unit import Unit
from pocketgraph.litert.program import Operation, Value


@emits("MAX_POOL_2D", "AVERAGE_POOL_2D")
def pool(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    only_floats(operation, source, result)
    window = FilterWindow(operation, source, (operation.options["filter_h"], operation.options["filter_w"]))
    unit.call(
        "pool_f32.h", "pg_pool_f32", unit.table("pg_conv", window.fields()), range_of(unit, operation),
        int(operation.code == "AVERAGE_POOL_2D"), source, result,
    )  # fmt: skip


def resized(unit: Unit, operation: Operation, source: Value, result: Value) -> str:
    """The sizes of a picture before and after."""
    batch, height, width, channels = source.shape
    flags = [int(operation.options.get(name, False)) for name in ("align_corners", "half_pixel_centers")]
    return unit.table("pg_resized", [batch, height, width, *result.shape[1:3], channels, *flags])


@emits("RESIZE_BILINEAR")
def resize_bilinear(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    only_floats(operation, source, result)
    table = resized(unit, operation, source, result)
    unit.call("resize_f32.h", "pg_resize_bilinear_f32", table, source, result)


@moves("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(unit: Unit, operation: Operation, source: Value, result: Value) -> None:
    table = resized(unit, operation, source, result)
    unit.call("resize_nearest.h", "pg_resize_nearest", table, source.dtype.size, source, result)
