"""Shape rules of slices and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgraph.errors import GraphError
from pocketgraph.graph.shape import UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, of_rank
from pocketgraph.kernels.shapes.common_rules import held_by, unchanged
from pocketgraph.kernels.shapes.partial_values import Known, Partial
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("StridedSliceGrad")(held_by(0))
shape_rule("XlaDynamicUpdateSlice")(unchanged)
shape_rule("XlaDynamicSlice")(held_by(2))


def _with_rest(sizes: Known, size: Shape, whole: Shape) -> Shape:
    """The size of a slice from the beginning, with all of ``whole`` where sizes, of which some are known, say -1."""
    if not isinstance(sizes, Partial) or size.dims is None or whole.dims is None:
        return size
    is_rest = sizes.known & (sizes.numbers == -1)
    return Shape([n if rest else own for rest, own, n in zip(is_rest, size.dims, whole.dims, strict=True)])


@shape_rule("Slice")
def cut(call: ShapeCall) -> Shape:
    shape, begin, size = call.shape(0), call.integers(1), call.as_shape(2)
    sizes = call.integers(2)
    if sizes is None:
        ranks = [s for s in (shape.rank, size.rank) if s is not None]
        if not ranks:
            return UNKNOWN
        if begin is not None and not any(begin) and size.rank == shape.rank:
            return _with_rest(call.known[2], size, shape)
        return size if size.dims is not None else Shape((None,) * ranks[0])
    dims = of_rank(shape, len(sizes))
    out: list[Dim] = []
    for i, (whole, part) in enumerate(zip(dims, sizes, strict=True)):
        start = begin[i] if begin is not None else None
        if part == -1:
            out.append(None if whole is None or start is None else whole - start)
        else:
            if whole is not None and part + (start or 0) > whole:
                raise GraphError(f"a slice of {part} from {start or 0} does not fit into dimension {i} of {shape}")
            out.append(part)
    return Shape(out)


@shape_rule("StridedSlice")
def strided_slice(call: ShapeCall) -> Shape:
    begin, end, strides = (call.integers(i) for i in (1, 2, 3))
    length = next((s[0] for s in (call.shape(i) for i in (1, 2, 3)) if s.rank == 1 and s[0] is not None), None)
    if length is None or length > 254:
        return UNKNOWN
    return sliced(call.shape(0), length, begin, end, strides, call.attr)


def sliced(
    shape: Shape,
    length: int,
    begin: Sequence[int] | None,
    end: Sequence[int] | None,
    strides: Sequence[int] | None,
    attr: Any,
) -> Shape:
    """The shape of ``x[begin:end:strides]`` with the five masks that ``StridedSlice`` takes (one bit an entry).

    Args:
        shape: of x.
        length: entries in the slice.
        begin, end, strides: where known.
        attr: gives the mask of a name.
    """
    masks = {name: int(attr(f"{name}_mask", 0)) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}

    def has(name: str, entry: int) -> bool:
        return bool(masks[name] >> entry & 1)

    if shape.dims is None:
        return UNKNOWN
    used = sum(not has("new_axis", i) and not has("ellipsis", i) for i in range(length))
    skipped = len(shape.dims) - used
    if skipped < 0:
        raise GraphError(f"a slice of {used} dimensions was taken of shape {shape}")
    out: list[Dim] = []
    axis = 0
    for entry in range(length):
        if has("ellipsis", entry):
            out.extend(shape.dims[axis : axis + skipped])
            axis += skipped
            skipped = 0
        elif has("new_axis", entry):
            out.append(1)
        elif has("shrink_axis", entry):
            axis += 1
        else:
            size = shape.dims[axis]
            axis += 1
            step = None if strides is None else strides[entry]
            first = None if begin is None or has("begin", entry) else begin[entry]
            last = None if end is None or has("end", entry) else end[entry]
            if step == 0:
                raise GraphError("a slice has a stride of 0")
            sure = (begin is not None or has("begin", entry)) and (end is not None or has("end", entry))
            if step is None or not sure:
                out.append(None)
            elif size is not None:
                out.append(len(range(*slice(first, last, step).indices(size))))
            else:
                out.append(_without_size(first, last, step))
    return Shape((*out, *shape.dims[axis:]))


def _without_size(first: int | None, last: int | None, step: int) -> Dim:
    """How many elements a slice of a dimension of unknown size has: known only when it is surely none."""
    if first is not None and last is not None and (first >= 0) == (last >= 0):
        count = len(range(first, last, step))
        return 0 if count == 0 else None
    return None
