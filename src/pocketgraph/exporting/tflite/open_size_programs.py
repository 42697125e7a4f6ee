"""Programs that work for more than one size: the batch, and other sizes that the graph leaves open.

The graph is lowered for two sets of sizes. Where both programs are the same but for the shapes that reshapes are given,
and these differ in one place, -1 in that place makes one program of both. A picture that is resized to a whole multiple
of its own size takes that size off its shape:

    x ─ SHAPE ─ STRIDED_SLICE [rows, columns] ─ MUL [2, 2] ─ RESIZE_BILINEAR (x, ·)

and so does a reshape that puts axes of size 1 in or leaves such out, where -1 in one place is not enough. What differs
otherwise cannot be left open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from pocketgraph.errors import PocketgraphError, option
from pocketgraph.exporting.model import EntryPoint, ExportModel, Port
from pocketgraph.exporting.programs import OF_CODES, OF_EIGHT_BITS, OF_XNNPACK, float_program
from pocketgraph.exporting.tflite.size_limits import unreached_limit
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import DOUBLE, FLOAT, INT32, INT64
from pocketgraph.graph.groups import closure
from pocketgraph.graph.op_traits import GATHERS, MOVES, PASSES, PRODUCTS, ops_with
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.operator_traits import BINARY
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.sizes.operator_sizes import RESIZES
from pocketgraph.litert.sizes.size_operands import constant
from pocketgraph.litert.sizes.unit_axes import part_of_shape, unit_axes, with_unit_axes

FIRST_BATCH, OTHER_BATCH = 2, 3
"""They follow each other. Neither is 1, at which what moves axes and what reshapes are the same."""
FAR_BATCH = 23
"""Where sizes are computed with, what is the same for the first two may still differ, as half of the batch does."""
STEP = 32
"""By how much other sizes differ; most networks halve pictures five times."""
LOOK_AT_SIZES = ops_with("shape")
CONSTANTS = ops_with("constant")
TAKE_PARTS = {"Slice", "StridedSlice", *GATHERS}
"""Ops that could look up in a table of constants what belongs to a size."""
HOLD_SIZES = (INT32, INT64, FLOAT, DOUBLE)
"""The types that hold every size of a picture exactly."""
KEEP_SIZES = ops_with("passes", "checks", "elementwise", "transcendental")
"""Ops whose result has the size of their operand, where that is the only one."""
CHANGE_CHANNELS = ops_with("bias", "batch_norm")
"""Likewise of their first operand; the others are numbers for each channel."""
OWN_SIZE = -1
"""The place of what tells how an operation takes a size off the shape of its input."""


class Opened(NamedTuple):
    """A program for open sizes.

    Attributes:
        program: its shapes are those for the entry point's ``sizes``.
        shapes: the shape of each value that has open sizes, -1 for each.
        other: the entry point with other sizes, by which to see that the file can be resized.
    """

    program: Program
    shapes: dict[Value, tuple[int, ...]]
    other: EntryPoint


def open_program(entry: EntryPoint, model: ExportModel) -> tuple[Opened | None, str]:
    """A program whose open sizes stay open; None and why where that cannot be.

    First all open sizes are tried, then the first axis alone, which is the batch.
    """
    if all(port.is_fixed for port in entry.inputs):
        return None, ""
    why = ""
    for batch_only in (False, True):
        axes = [_open_axes(port, batch_only=batch_only) for port in entry.inputs]
        if not any(axes):
            continue
        found = _try(entry, model, axes)
        if isinstance(found, Opened):
            closed = [f"{port.name} {list(port.sizes or ())}" for port, taken in zip(entry.inputs, axes, strict=True)
                      if len(taken) < (port.shape or ()).count(None)]  # fmt: skip
            return (
                found,
                f"the sizes of {', '.join(closed)} but for the batch are fixed: {why}{how_to_fix(entry)}"
                if closed
                else "",
            )
        why = found
    return None, fixed_sizes_note(entry, why)


def fixed_sizes_note(entry: EntryPoint, why: str) -> str:
    """What to say of an entry point whose open sizes are fixed, and why."""
    sizes = ", ".join(f"{port.name} {list(port.sizes or ())}" for port in entry.inputs if not port.is_fixed)
    return f"open sizes are fixed ({sizes}): {why}{how_to_fix(entry)}"


def how_to_fix(entry: EntryPoint) -> str:
    """What to say of sizes other than the batch that were made up, such as a sequence of one step; "" for none."""
    places = [
        f"{option('input_shape', 'shapes')}={port.name}:"
        + ",".join(str(given) if size is not None or not axis else "N" for axis, (size, given) in enumerate(sizes))
        for port in entry.inputs
        if port.shape is not None
        and None in port.shape[1:]
        and (sizes := list(zip(port.shape, port.sizes or (), strict=True)))
    ]
    return f"; {places[0]} chooses how long it is" if places else ""


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
    is_batch_alone = not any(axis for opened in axes for axis in opened)
    # where parts of windows are cut out of a padded picture depends on its size
    without = (*OF_CODES, *OF_EIGHT_BITS) if is_batch_alone else (*OF_CODES, *OF_EIGHT_BITS, *OF_XNNPACK)
    program = partial(float_program, model=model, without=without)
    try:
        first = program(_with_sizes(entry, axes, FIRST_BATCH, 0))
        other = grown = program(_with_sizes(entry, axes, OTHER_BATCH, 1))
        if not is_batch_alone:
            grown = program(_with_sizes(entry, axes, OTHER_BATCH, 0))
        is_computed = any(node.op in LOOK_AT_SIZES for node in model.graph)
        far = program(_with_sizes(entry, axes, FAR_BATCH, 3)) if is_computed else None
    except PocketgraphError as error:
        return error.what
    pairs, patched = _compared(first, other)
    if isinstance(patched, str):
        return patched
    if far is not None:
        _, further = _compared(first, far)
        if isinstance(further, str):
            return further
        if [place[:2] for place in patched] != [place[:2] for place in further] or not all(
            _equal(a, b) for (_, _, a), (_, _, b) in zip(patched, further, strict=True)
        ):
            return "other sizes need other operators"
    largest = _with_sizes(entry, axes, OTHER_BATCH if far is None else FAR_BATCH, 1 if far is None else 3)
    if limit := unreached_limit(model.graph, largest, axes):
        return f"a size is limited by a number beyond those that were tried ({limit})"
    own = {operation: told for operation, at, told in patched if at == OWN_SIZE}
    for operation in own:
        if operation.code in RESIZES and not _is_by_own_size(operation, model.graph):
            return _takes_a_size(operation)
    for operation, at, merged in patched:
        if operation in own:
            continue
        operation.inputs[at] = merged
        if operation.code == "RESHAPE" and merged.constant is not None:
            operation.options["new_shape"] = tuple(map(int, merged.constant.numpy()))
    shapes = {
        a: tuple(-1 if x != y else x for x, y in zip(a.shape, b.shape, strict=True))
        for a, b in pairs.items()
        if a.shape != b.shape and a.constant is None
    }
    if any(0 in opened for opened in axes):
        why = _by_batch(entry, axes, first, grown)
        if why:
            return why
    for each in first.programs():
        each.operations[:] = _with_own_sizes(each.operations, own)
    return Opened(first, shapes, _with_sizes(entry, axes, OTHER_BATCH, 1))


def _compared(first: Program, other: Program) -> tuple[dict[Value, Value], list[tuple[Operation, int, Value]] | str]:
    """The values of two programs that belong together, and what takes the place of constants that differ: operation,
    place and value; or why the programs are not the same for any size."""
    counts = [(len(each.inputs), len(each.operations), len(each.outputs)) for each in (first, other)]
    if counts[0] != counts[1]:
        return {}, "other sizes need other operators"
    pairs: dict[Value, Value] = dict(zip(first.inputs, other.inputs, strict=True))
    patched: list[tuple[Operation, int, Value]] = []
    for one, two in zip(first.operations, other.operations, strict=True):
        said = _same(one, two, pairs, patched)
        if said:
            return pairs, said
    if any(pairs.get(a) is not b and (a.constant is None or not _equal(a, b))
           for a, b in zip(first.outputs, other.outputs, strict=True)):  # fmt: skip
        return pairs, "other sizes need other operators"
    return pairs, patched


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


def _same(
    one: Operation, two: Operation, pairs: dict[Value, Value], patched: list[tuple[Operation, int, Value]]
) -> str:
    """Why two operations are not the same for any size; else "", and the values that belong together are paired."""
    where = f" ({one.nodes[-1]})" if one.nodes else ""
    if one.code != two.code or len(one.inputs) != len(two.inputs) or len(one.outputs) != len(two.outputs):
        return f"other sizes need other operators{where}"
    for body, other in zip(one.bodies, two.bodies, strict=True):
        inside, found = _compared(body, other)
        if isinstance(found, str):
            return found
        pairs.update(inside)
        patched += found
    options = {key: value for key, value in one.options.items() if key != "new_shape"}
    if options != {key: value for key, value in two.options.items() if key != "new_shape"}:
        return f"{one.code} depends on the size{where}"
    for at, (a, b) in enumerate(zip(one.inputs, two.inputs, strict=True)):
        if a is None or b is None:
            if a is not b:
                return f"other sizes need other operators{where}"
        elif a.constant is None:
            if pairs.get(a) is not b:
                return f"other sizes need other operators{where}"
        elif not _equal(a, b):
            merged = _merged(a, b) if one.code == "RESHAPE" and at == 1 else None
            if one.code in BINARY:  # a constant of size 1 serves a larger operand
                merged = _repeated(a, b)
            elif one.code == "SLICE" and at == 2:
                merged = _to_the_end(one, two)
            if merged is None and at == 1 and one.code in {"RESHAPE", *RESIZES}:
                merged = _times(one, two) if one.code in RESIZES else _units(two)
                at = OWN_SIZE
            if merged is None:
                return _takes_a_size(one)
            patched.append((one, at, merged))
    pairs.update(zip(one.outputs, two.outputs, strict=True))
    return ""


def _takes_a_size(operation: Operation) -> str:
    where = f" ({operation.nodes[-1]})" if operation.nodes else ""
    return f"{operation.code} takes a constant that depends on the size{where}"


def _times(one: Operation, two: Operation) -> Value | None:
    """How many times as high and as wide both make a picture; None where that is no whole number, or not the same."""
    made = []
    for operation in (one, two):
        source, size = operation.operands
        times, rest = np.divmod(size.content.numpy(), source.shape[1:3])
        if rest.any():
            return None
        made.append(times.tolist())
    return constant(made[0]) if made[0] == made[1] else None


def _is_by_own_size(operation: Operation, graph: Graph) -> bool:
    """Whether the size that a picture gets is its own one, times whole numbers, and not the same by chance, as that of
    an earlier picture that was halved, and 2.002 times its own, rounded."""
    node = graph.nodes.get(operation.nodes[-1]) if operation.nodes else None
    if node is None or not node.op.startswith("Resize"):
        return False
    source, size = node.data_inputs
    found = [
        graph[name]
        for name in closure(
            [graph.producer(size).name],
            lambda name: [] if graph[name].op in LOOK_AT_SIZES else map(node_name, graph[name].data_inputs),
        )
    ]
    own = _sized_first(source, graph)
    return all(
        all(_sized_first(name, graph) == own for name in each.data_inputs)
        if each.op in LOOK_AT_SIZES
        else _multiplies(each, graph)
        for each in found
    )


def _sized_first(name: str, graph: Graph) -> str:
    """The value of the graph that has the size of this one, before ops that keep it."""
    node = graph.producer(name)
    while node.op in CHANGE_CHANNELS or (node.op in KEEP_SIZES and len(node.data_inputs) == 1):
        name = node.data_inputs[0]
        node = graph.producer(name)
    return canonical(name)


def _multiplies(node: Node, graph: Graph) -> bool:
    """Whether what an op makes of sizes is for every size one of them, times a whole number."""
    if node.op in CONSTANTS:
        values = node.tensor.numpy()
        return values.dtype.kind in "iuf" and bool((values == np.rint(values)).all())
    if node.op == "Cast":
        return node.dtype("DstT") in HOLD_SIZES
    computed = [at for at, name in enumerate(node.data_inputs) if graph.producer(name).op not in CONSTANTS]
    if node.op in PRODUCTS:
        return len(computed) <= 1
    return not any(computed) if node.op in TAKE_PARTS else node.op in MOVES or node.op in PASSES


def _units(reshape: Operation) -> Value | None:
    """Of each axis of the result that of what is reshaped, -1 for one of size 1 that is put in; None where but for such
    axes others come out. The open sizes are none of 1."""
    axes = unit_axes(reshape.operands[0].shape, reshape.outputs[0].shape)
    return None if axes is None else constant([OWN_SIZE if axis is None else axis for axis in axes])


def _with_own_sizes(operations: Sequence[Operation], own: Mapping[Operation, Value]) -> list[Operation]:
    """The operations; those in ``own`` take sizes off the shapes of their inputs."""
    made = []
    for operation in operations:
        told = own.get(operation)
        if told is not None and operation.code == "RESHAPE":
            axes = tuple([None if axis == OWN_SIZE else axis for axis in told.content.numpy().tolist()])
            made += with_unit_axes(operation, axes)[1]
            continue
        if told is not None:
            size, taking = part_of_shape(operation.operands[0], (1, 3), operation.nodes)
            larger = Value("", INT32, (2,))
            made += [*taking, Operation("MUL", [size, told], [larger], {"activation": ""}, operation.nodes)]
            operation.inputs[1] = larger
        made.append(operation)
    return made


def _equal(a: Value, b: Value) -> bool:
    if a is b:
        return True
    if a.constant is None or b.constant is None or a.shape != b.shape or a.dtype is not b.dtype:
        return False
    return bool(np.array_equal(a.constant.numpy(), b.constant.numpy(), equal_nan=a.dtype.numpy.kind == "f"))


def _repeated(a: Value, b: Value) -> Value | None:
    """The constant of size 1 where both repeat it along the one axis that they differ in, as states of zeros do."""
    axes = [axis for axis, (x, y) in enumerate(zip(a.shape, b.shape, strict=False)) if x != y]
    if len(a.shape) != len(b.shape) or len(axes) != 1 or a.dtype is not b.dtype:
        return None
    first, other = a.content.numpy(), b.content.numpy()
    one = first.take([0], axes[0])
    if not ((first == one).all() and (other == one).all()):
        return None
    constant = Constant.of(one)
    return Value(a.name, a.dtype, constant.shape, constant)


def _to_the_end(one: Operation, two: Operation) -> Value | None:
    """The sizes of a slice, -1 where both take all that there is behind their start."""
    taken = []
    for operation in (one, two):
        source, begin, size = operation.inputs
        if source is None or begin is None or begin.constant is None or size is None or size.constant is None:
            return None
        sizes = size.constant.numpy()
        rest = np.array(source.shape) - begin.constant.numpy()
        taken.append((sizes, np.where(sizes == rest, -1, sizes)))
    (first, first_open), (other, other_open) = taken
    merged = np.where(first == other, first, first_open)
    if not np.array_equal(merged, np.where(first == other, first, other_open)) or (merged[first != other] != -1).any():
        return None
    value = one.operands[2]
    constant = Constant.of(merged.astype(first.dtype))
    return Value(value.name, value.dtype, constant.shape, constant)


def _merged(a: Value, b: Value) -> Value | None:
    """The shape constant that stands for both, with -1 where they differ; None where that is in several places."""
    first, other = a.content.numpy(), b.content.numpy()
    if first.shape != other.shape or np.count_nonzero(first != other) != 1:
        return None
    constant = Constant.of(np.where(first == other, first, -1).astype(np.int32))
    return Value(a.name, a.dtype, constant.shape, constant)
