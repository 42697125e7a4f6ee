"""Programs that work for more than one size: the batch, and other sizes that the graph leaves open.

The graph is lowered for some sets of sizes. Where the programs are the same but for the shapes that reshapes are given,
and these differ in one place, -1 in that place makes one program of all. Each of several sizes is taken off a shape
before, when the file runs:

    x [?, ?, 8] ─ RESHAPE [-1, 8] ─ FULLY_CONNECTED ─ RESHAPE (·, [?, ?, 4])
    └─ SHAPE ─ STRIDED_SLICE [?, ?] ─ CONCATENATION [?, ?, 4] ─┘

and so does a picture that is resized to a whole multiple of its own size. What differs otherwise cannot be left open.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pocketgraph.errors import PocketgraphError, shapes_option
from pocketgraph.exporting.model import EntryPoint, ExportModel, Port
from pocketgraph.exporting.programs import OF_CODES, OF_EIGHT_BITS, OF_XNNPACK, float_program
from pocketgraph.exporting.tflite.computed_sizes import (
    LOOK_AT_SIZES,
    Told,
    is_by_own_size,
    is_exact,
    sizes_of,
    with_computed_sizes,
)
from pocketgraph.exporting.tflite.program_comparison import OWN_SIZE, SizeComparison, are_alike, compared, takes_a_size
from pocketgraph.exporting.tflite.size_limits import unreached_limit
from pocketgraph.litert.program import Operation, Program, Value

FIRST_BATCH, OTHER_BATCH = 2, 3
"""They follow each other. Neither is 1, at which what moves axes and what reshapes are the same."""
FAR_BATCH = 23
"""Where sizes are computed with, what is the same for the first two may still differ, as half of the batch does."""
UNEVEN_BATCH = 5
FEW_PORTS = 4  # inputs whose lengths are tried in all ways; of more, one is another at a time
FEW = 6
"""A length that is neither 1 nor a batch that is tried."""
STEP = 32
"""By how much other sizes differ; most networks halve pictures five times."""


class Opened(NamedTuple):
    """A program for open sizes.

    Attributes:
        program: its shapes are those for the entry point's ``sizes``, or for lengths of ``FEW`` made up as 1.
        shapes: the shape of each value that has open sizes, -1 for each.
        other: the entry point with other sizes, by which to see that the file can be resized.
    """

    program: Program
    shapes: dict[Value, tuple[int, ...]]
    other: EntryPoint


def open_program(entry: EntryPoint, model: ExportModel, refused: Sequence[str] = ()) -> tuple[Opened | None, str]:
    """A program whose open sizes stay open, and what is to be said of those that do not; None where none can.

    First all open sizes are tried, then the first axis alone, which is the batch.

    Args:
        entry, model: what to open.
        refused: why the files of earlier tries did not serve, in order; each is not tried again.
    """
    every, batch = ([_open_axes(port, batch_only=each) for port in entry.inputs] for each in (False, True))
    if not any(every):
        return None, ""
    why = refused[-1] if refused else ""
    for axes in ([every] if every == batch else [every, batch])[len(refused) :]:
        if not any(axes):
            continue
        found = _try(entry, model, axes)
        if isinstance(found, str) and (longer := _longer(entry, axes)) != entry:
            found = _try(longer, model, axes)
        if isinstance(found, Opened):
            closed = [f"{port.name} {list(port.sizes or ())}" for port, taken in zip(entry.inputs, axes, strict=True)
                      if len(taken) < (port.shape or ()).count(None)]  # fmt: skip
            return (
                found,
                f"the sizes of {', '.join(closed)} but for the batch are fixed: {why}{how_to_fix(entry)}"
                if closed
                else "",
            )
        why = why if refused else found
    return None, f"open sizes are fixed: {why}" if refused else fixed_sizes_note(entry, why)


def fixed_sizes_note(entry: EntryPoint, why: str) -> str:
    """What to say of an entry point whose open sizes are fixed, and why."""
    sizes = ", ".join(f"{port.name} {list(port.sizes or ())}" for port in entry.inputs if not port.is_fixed)
    return f"open sizes are fixed ({sizes}): {why}{how_to_fix(entry)}"


def how_to_fix(entry: EntryPoint) -> str:
    """What to say of sizes other than the batch that were made up, such as a sequence of one step; "" for none."""
    places = [
        {port.name: [given if size is not None or not axis else "N" for axis, (size, given) in enumerate(sizes)]}
        for port in entry.inputs
        if port.shape is not None
        and None in port.shape[1:]
        and (sizes := list(zip(port.shape, port.sizes or (), strict=True)))
    ]
    return f"; {shapes_option(places[0])} chooses how long it is" if places else ""


def _longer(entry: EntryPoint, axes: Sequence[list[int]]) -> EntryPoint:
    """The entry point with a length of several steps for each that was made up as one, at which much is left out."""
    inputs = [
        replace(port, sizes=tuple([FEW if size == 1 and axis and axis in opened else size
                                   for axis, size in enumerate(port.sizes or ())]))
        for port, opened in zip(entry.inputs, axes, strict=True)
    ]  # fmt: skip
    return replace(entry, inputs=tuple(inputs))


def _open_axes(port: Port, *, batch_only: bool) -> list[int]:
    return [axis for axis, size in enumerate(port.shape or ()) if size is None and (not axis or not batch_only)]


def _with_sizes(entry: EntryPoint, axes: Sequence[list[int]], batch: int, steps: int) -> EntryPoint:
    """The entry point with this batch, and other open sizes larger by ``steps``: other ones for rows and columns, and
    not in step, so that what is twice as wide as high does not stay so."""
    inputs = []
    for port, opened in zip(entry.inputs, axes, strict=True):
        sizes = list(port.sizes or ())
        for axis in opened:
            sizes[axis] = batch if not axis else sizes[axis] + (steps and STEP * (axis + steps - 1))
        inputs.append(replace(port, sizes=tuple(sizes)))
    return replace(entry, inputs=tuple(inputs))


def _try(entry: EntryPoint, model: ExportModel, axes: Sequence[list[int]]) -> Opened | str:
    """The program with these axes open; why not where that cannot be."""
    is_batch_alone = not any(axis for opened in axes for axis in opened)
    # where parts of windows are cut out of a padded picture depends on its size
    without = (*OF_CODES, *OF_EIGHT_BITS) if is_batch_alone else (*OF_CODES, *OF_EIGHT_BITS, *OF_XNNPACK)
    program = partial(float_program, model=model, without=without)
    nearest, farthest = _with_sizes(entry, axes, OTHER_BATCH, 1), _with_sizes(entry, axes, FAR_BATCH, 3)
    is_computed = any(node.op in LOOK_AT_SIZES for node in model.graph)
    try:
        first = program(_with_sizes(entry, axes, FIRST_BATCH, 0))
        other = grown = program(nearest)
        tried = [compared(first, other)]
        if tried[0].why:
            return tried[0].why
        if not is_batch_alone:
            grown = program(_with_sizes(entry, axes, OTHER_BATCH, 0))
        if is_computed:
            tried.append(compared(first, program(farthest)))
    except PocketgraphError as error:
        return error.what
    last = nearest
    for uneven in _uneven(entry, axes) if is_computed else ():
        if why := _why_unlike(tried):
            return why
        with contextlib.suppress(PocketgraphError):  # the graph takes no such sizes together
            tried.append(compared(first, program(uneven)))
            last = uneven
    if why := _why_unlike(tried):
        return why
    if limit := unreached_limit(model.graph, farthest if is_computed else nearest, axes):
        return f"a size is limited by a number beyond those that were tried ({limit})"
    own = _own_sizes(first, tried, model)
    if isinstance(own, str):
        return own
    _take_merged(tried[0], own)
    shapes = {
        a: tuple(-1 if x != y else x for x, y in zip(a.shape, b.shape, strict=True))
        for a, b in tried[0].pairs.items()
        if a.shape != b.shape and a.constant is None
    }
    if any(0 in opened for opened in axes) and (why := _by_batch(entry, axes, first, grown)):
        return why
    for each in first.programs():
        each.operations[:] = with_computed_sizes(each.operations, own)
    return Opened(first, shapes, last)


def _why_unlike(tried: Sequence[SizeComparison]) -> str:
    """Why the last program of those tried is not as the first one but for what takes sizes; "" where it is."""
    if tried[-1].why:
        return tried[-1].why
    return "" if are_alike(tried[0].patched, tried[-1].patched) else "other sizes need other operators"


def _own_sizes(first: Program, tried: Sequence[SizeComparison], model: ExportModel) -> dict[Operation, Told] | str:
    """Which operations take sizes off shapes, and of what; why one cannot."""
    own: dict[Operation, Told] = {}
    for place, (operation, at, merged) in enumerate(tried[0].patched):
        if isinstance(merged, list):
            numbers = [operation.operands[at].content.numpy().tolist(), *(each.patched[place][2] for each in tried)]
            elements = sizes_of(operation, zip(*numbers, strict=True), first, [each.pairs for each in tried])
            if elements is None or not is_exact(operation, model.graph):
                return takes_a_size(operation)
            own[operation] = at, elements
        elif at == OWN_SIZE:
            if operation.code != "SLICE":
                is_told = is_by_own_size(operation, model.graph)
            else:  # what counts no place from the end is the same for all sizes
                is_told = min(merged.content.numpy()) >= 0 or is_exact(operation, model.graph)
            if not is_told:
                return takes_a_size(operation)
            own[operation] = at, merged
    return own


def _take_merged(found: SizeComparison, own: Mapping[Operation, Told]) -> None:
    """Gives operations the constants that serve all sizes, but for those in ``own``."""
    for operation, at, merged in found.patched:
        if operation in own or isinstance(merged, list):
            continue
        operation.inputs[at] = merged
        if operation.code == "RESHAPE" and merged.constant is not None:
            operation.options["new_shape"] = tuple(map(int, merged.constant.numpy()))


def _uneven(entry: EntryPoint, axes: Sequence[list[int]]) -> Iterator[EntryPoint]:
    """The entry point with sizes that no power of two divides: first all inputs have others, batches too, then the
    same, then some have others, in every way for up to ``FEW_PORTS``."""
    long = [at for at, opened in enumerate(axes) if any(opened)]
    others = [{at} for at in long[1:]] if len(long) > FEW_PORTS else [
        {at for place, at in enumerate(long[1:]) if chosen >> place & 1} for chosen in range(1, 1 << len(long) >> 1)
    ]  # fmt: skip
    for chosen, more in [(set(range(1, len(axes))), 1), (set[int](), 0), *((each, 0) for each in others)]:
        inputs = []
        for at, (port, opened) in enumerate(zip(entry.inputs, axes, strict=True)):
            sizes = list(port.sizes or ())
            for axis in opened:
                is_other = at in chosen
                sizes[axis] = sizes[axis] + 2 * axis + 13 + 4 * is_other if axis else UNEVEN_BATCH + more * is_other
            inputs.append(replace(port, sizes=tuple(sizes)))
        yield replace(entry, inputs=tuple(inputs))


def _by_batch(entry: EntryPoint, axes: Sequence[list[int]], first: Program, grown: Program) -> str:
    """Gives every value of ``first`` the shape that it has for the batch of ``sizes``, by how it grew with the batch
    alone in ``grown``; else says why it cannot."""
    codes = [[one.code for each in made.programs() for one in each.operations] for made in (first, grown)]
    if codes[0] != codes[1]:
        return "other sizes need other operators"
    batch = next((port.sizes or (1,))[0] for port, opened in zip(entry.inputs, axes, strict=True) if 0 in opened)
    more = batch - FIRST_BATCH
    for a, b in zip(_computed(first), _computed(grown), strict=True):
        a.shape = tuple(x + (y - x) * more for x, y in zip(a.shape, b.shape, strict=True))
    is_positive = all(min(value.shape, default=1) > 0 for value in _computed(first))
    return "" if is_positive else "a size does not grow with the batch"


def _computed(program: Program) -> list[Value]:
    """What goes in, and what operations make, in order; once what several bodies share."""
    made: dict[Value, None] = {}
    for each in program.programs():
        made |= dict.fromkeys([*each.inputs, *(value for operation in each.operations for value in operation.outputs)])
    return list(made)
