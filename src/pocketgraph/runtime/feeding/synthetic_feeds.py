"""Feeds and fetches for when the caller names none: the graph's placeholders and its likely outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import PocketgraphError, UsageError, shapes_option
from pocketgraph.graph import DType, Graph, Shape, canonical, node_name
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64, STRING, UINT8
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import infer
from pocketgraph.passes.graph_resizing import graph_resizing, picture_axes
from pocketgraph.passes.inlining import inlined
from pocketgraph.passes.training_switches import dropout_share, flag_in_use, training_switches
from pocketgraph.runtime.feeding.default_tensors import feed_specs
from pocketgraph.runtime.feeding.encoded_samples import decoder_of, encoded_sample
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.feeding.open_shapes import (
    candidates,
    fitting_shapes,
    leads_to_picture_ops,
    read_as,
    with_stated_batch,
)
from pocketgraph.runtime.feeding.record_samples import parser_of, record_sample, records_shape
from pocketgraph.runtime.feeding.row_numbers import TABLE_READERS, rows_chosen_by, sequences_turned_by
from pocketgraph.runtime.feeding.sample_texts import sample_text
from pocketgraph.runtime.feeding.sparse_inputs import sparse_dims, sparse_part

MOST_BYTES = 1 << 31  # of one made-up tensor
SIDE = 224  # pixels of a picture whose size is open; most networks halve it five times
CHANNELS = (1, 3, 4)
NUMBER = (), (1,)  # shapes
RESIZES = ops_with("resize")


def synthetic_shapes(graph: Graph, fetches: Sequence[str], known: Collection[str] = ()) -> dict[str, tuple[int, ...]]:
    """The shapes of the placeholders that these fetches need; without the ``known`` ones.

    Where a size is open it is 1, but for pictures of no stated size (float or uint8, rank 4, channels last, or three
    first): what the graph itself resizes them to, else 224 x 224; and for a batch that transposed convolutions state.
    Where these do not fit the weights, as the length of a single row that is no batch, or a number of dimensions is not
    declared, others are found; see open_shapes.

    Raises:
        UsageError: a placeholder does not declare how many dimensions it has, and shapes of others are ``known`` that
            do more than tell training from use.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    is_open: dict[str, tuple[Sequence[int | None] | None, DType]] = {}
    open_batches: list[str] = []
    fed = {node_name(name) for name in known}
    switches = training_switches(graph)
    specs = [spec for spec in feed_specs(graph, fetches) if spec.label not in fed]
    for spec in specs:
        dims = _told_dims(graph, spec, is_switch=spec.label in switches)
        if dims and dims[0] is None:
            open_batches.append(spec.label)
        if dims is None or None in dims[1:] or (dims == (None,) and len(specs) > 1):
            is_open[spec.label] = dims, spec.dtype or FLOAT
        if dims is not None:
            shapes[spec.label] = synthetic_sizes(_as_large_as_pictures(graph, spec.label, dims), spec.dtype)
    types = {spec.label: spec.dtype or FLOAT for spec in specs}
    shapes = with_stated_batch(graph, open_batches, shapes, fetches, types)
    if is_open and (not fed or fed <= switches.keys()):
        types |= {name: graph[name].dtype("dtype") for name in fed}
        found = fitting_shapes(graph, is_open, {**shapes, **dict.fromkeys(fed, ())}, fetches, types)
        shapes = {name: shape for name, shape in found.items() if name not in fed}
    for label in is_open.keys() - shapes.keys():
        likeliest = next(candidates(graph, label, None), None)
        if likeliest is not None:
            shapes[label] = likeliest
            continue
        raise UsageError(
            f"the graph does not say how many dimensions the input '{label}' has",
            hint=f"give an array for it, or its sizes: {shapes_option({label: (1, '…')})}",
        )
    return shapes


def _told_dims(graph: Graph, spec: FeedSpec, *, is_switch: bool) -> Sequence[int | None] | None:
    """What a placeholder declares, or what reads it tells, of its sizes; None where even their number is open.

    Args:
        graph: of the placeholder.
        spec: the placeholder.
        is_switch: whether it tells training from use.
    """
    declared, placeholder = graph.declared_shape(spec.endpoint.node), spec.endpoint.node
    dims = spec.shape.dims if spec.shape.dims is not None or declared is None else declared.dims
    is_switch = is_switch and dims is None
    if dims is None:
        is_flag = spec.dtype is BOOL and flag_in_use(graph, graph[placeholder]) is not None
        if is_flag or is_switch or decoder_of(graph, placeholder) is not None:
            dims = ()
        elif (parser := parser_of(graph, placeholder)) is not None:
            dims = records_shape(parser)
    if dims == () and not is_switch and spec.dtype is FLOAT and read_as(graph, spec.label) is not None:
        dims = None  # a scalar is what strip_unused_nodes writes when it is not told a shape
    return sparse_dims(graph, placeholder, dims) if spec.dtype in (INT32, INT64) else dims


def _as_large_as_pictures(graph: Graph, label: str, dims: Sequence[int | None]) -> Sequence[int | None]:
    """A placeholder's sizes with those that its graph resizes pictures to, or that one picture is likely to have."""
    own = graph_resizing(graph, label) if None in dims[1:] else None
    if own is not None and len(dims) in (3, 4):
        resized = dict(zip(picture_axes(graph, label, dims), own.size, strict=True))
        return tuple(resized.get(axis) if size is None else size for axis, size in enumerate(dims))
    is_one_picture = len(dims) == 3 and dims[0] is dims[1] is None and dims[2] in CHANNELS
    return (SIDE, SIDE, dims[2]) if is_one_picture and leads_to_picture_ops(graph, label) else dims


def check_mapping(shapes: Mapping[str, Sequence[int]] | None) -> None:
    """Refuses sizes that come without the inputs' names.

    Raises:
        UsageError: they do.
    """
    if shapes is not None and not isinstance(shapes, Mapping):
        raise UsageError(
            f"shapes are a mapping of input names to sizes, not a {type(shapes).__name__}",
            hint='as {"x": (1, 224, 224, 3)}; the name "" is the only input\'s',
        )


def synthetic_sizes(dims: Sequence[int | None], dtype: DType | None) -> tuple[int, ...]:
    """A shape with a number for each open size, as ``synthetic_shapes`` chooses them."""
    sides: tuple[int, ...] = ()
    if len(dims) == 4 and (dtype in (FLOAT, UINT8) or (dtype is INT32 and dims[3] == CHANNELS[1])):
        if dims[1] is dims[2] is None and dims[3] in CHANNELS:
            sides = 1, 2
        elif dims[2] is dims[3] is None and dims[1] == 3:  # with one channel in front it may be attention's mask
            sides = 2, 3
    return tuple(size if size is not None else SIDE if axis in sides else 1 for axis, size in enumerate(dims))


def synthetic_lengths(
    graph: Graph, shapes: Mapping[str, Sequence[int]], outputs: Sequence[str], *, of_any_size: bool = False
) -> list[str]:
    """The inputs of these shapes, in the graph's own names, of which an axis is 1 because the graph leaves it open; or,
    ``of_any_size``, has a size that the graph needs or pictures usually have.

    That is the length of a series. The first axis is the batch's, but the only one is a length, as that of a waveform,
    where all outputs have the same rows however long it is.
    """
    inferred = infer(graph)
    results = [inferred.shape(canonical(name)).dims for name in outputs]
    first = 0 if all(dims and dims[0] is not None for dims in results) else 1
    found = []
    for name, made in shapes.items():
        declared = inferred.shape(canonical(name)).dims
        if declared is not None and len(declared) == len(made):
            behind = first if len(declared) == 1 else 1
            pairs = zip(declared[behind:], made[behind:], strict=True)
            found += [name] if any(size is None and (of_any_size or chosen == 1) for size, chosen in pairs) else []
    return found


def synthetic_feeds(
    graph: Graph, fetches: Sequence[str], seed: int = 0, given: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Random feeds for the placeholders that these fetches need; the same for the same seed.

    Floats are uniform in [-1, 1), but 1 where pictures are scaled by one, 8-bit integers over their range, other
    integers in [0, 10), all of them numbers of rows where they choose rows of a table, and no longer than the sequences
    whose lengths they are, booleans False; strings are a recording, a picture or a record of noise where they are
    decoded as one, words where they are looked up, else empty.
    ``given`` are shapes by the placeholders' names.

    Raises:
        UsageError: a placeholder's shape or type is not declared, or it is too large to make up.
    """
    shapes = {**synthetic_shapes(graph, fetches, given or ()), **(given or {})}
    switches, inside = training_switches(graph), _without_calls(graph, fetches)
    rng = np.random.default_rng(seed)
    feeds = {}
    for spec in feed_specs(graph, fetches):
        if spec.dtype is None:
            raise UsageError(
                f"the graph does not say the type of the input '{spec.label}'", hint="give an array for it"
            )
        decoder = decoder_of(graph, spec.endpoint.node) if spec.dtype is STRING else None
        if decoder is not None:
            sample = np.array(encoded_sample(graph, decoder, rng), object)
            feeds[spec.label] = np.full(shapes[spec.label], sample, object)
            continue
        parser = parser_of(graph, spec.endpoint.node) if spec.dtype is STRING else None
        if parser is not None:
            feeds[spec.label] = np.full(shapes[spec.label], np.array(record_sample(graph, parser, rng), object), object)
            continue
        name = spec.endpoint.node
        if spec.dtype is STRING:
            feeds[spec.label] = _texts(graph, name, shapes[spec.label], rng)
            continue
        share = None if shapes[spec.label] else switches.get(name, dropout_share(graph, name))
        if share is not None:
            feeds[spec.label] = np.array(share, spec.dtype.numpy)
            continue
        if spec.dtype.is_floating and shapes[spec.label] in NUMBER and scales_pictures(graph, name):
            feeds[spec.label] = np.ones(shapes[spec.label], spec.dtype.numpy)
            continue
        made = feeds[spec.label] = random_values(spec.dtype, shapes[spec.label], rng, spec.label)
        part = sparse_part(graph, name) if spec.dtype in (INT32, INT64) else None
        if part is not None and made.ndim:
            made[:] = (1,) if len(part) == 2 and shapes[spec.label] != (2,) else part
        turned = sequences_turned_by(graph, name) if made.ndim == 1 and made.dtype.kind in "iu" else ()
        if turned:
            most = _fewest_steps(graph, fetches, shapes, turned)
            feeds[spec.label] = made.clip(min(1, most), most)
            continue
        rows = rows_chosen_by(inside, name)
        if rows and (made.dtype.kind == "f" or (made.dtype.kind in "iu" and not ((made >= 0) & (made < rows)).all())):
            feeds[spec.label] = rng.integers(0, rows, shapes[spec.label]).astype(spec.dtype.numpy)
    return feeds


def _without_calls(graph: Graph, fetches: Sequence[str]) -> Graph:
    """The graph with the bodies of its functions in it, as far as they are there, so that what reads tables is seen."""
    ops = graph.ops.union(node.op for body in graph.functions.values() for node in body.nodes)
    try:
        return inlined(graph, fetches) if graph.functions and not TABLE_READERS.isdisjoint(ops) else graph
    except PocketgraphError:
        return graph


def _fewest_steps(
    graph: Graph, fetches: Sequence[str], shapes: Mapping[str, tuple[int, ...]], sequences: Sequence[tuple[str, int]]
) -> int:
    """How long the shortest of these sequences is where the inputs have these shapes; 1 where that is not known."""
    specs = [spec for spec in feed_specs(graph, fetches) if spec.dtype is not None]
    fed = {canonical(spec.label): (spec.dtype or FLOAT, Shape(shapes[spec.label])) for spec in specs}
    known = infer(graph, fed, outputs=[tensor for tensor, _ in sequences], complete=False)
    found = []
    for tensor, axis in sequences:
        dims = known.shape(tensor).dims or ()
        size = dims[axis] if axis < len(dims) else None
        found.append(1 if size is None else size)
    return min(found)


def scales_pictures(graph: Graph, name: str) -> bool:
    """Whether the number that an input holds decides how large a picture becomes."""
    sizes = [node.data_inputs[1] for node in graph if node.op in RESIZES]
    return name in reachable(graph, sizes, data_only=True)


def _texts(graph: Graph, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    texts = random_values(STRING, shape, rng, name)
    flat = texts.reshape(-1)
    flat[:] = [sample_text(graph, name, rng) for _ in range(flat.size)]
    return texts


def random_values(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, label: str) -> np.ndarray[Any, Any]:
    """An array for the input ``label``, as ``synthetic_feeds`` makes them; errors as there."""
    elements = 1
    for size in shape:
        elements *= size
    if elements * max(1, dtype.size) > MOST_BYTES:
        raise UsageError(
            f"an input of shape {list(shape)} is too large to make up", where=f"input '{label}'",
            hint="feed it, or give it smaller sizes",
        )  # fmt: skip
    if dtype is STRING:
        return np.full(shape, b"", dtype=object)
    if dtype is BOOL:
        return np.zeros(shape, np.bool_)
    holder = dtype.numpy
    if holder.kind in "iu":
        info = np.iinfo(holder)
        low, high = (int(info.min), int(info.max) + 1) if holder.itemsize == 1 else (0, 10)
        return rng.integers(low, high, shape, dtype=holder)
    if holder.kind == "c":
        return np.asarray(rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(holder)
    return np.asarray(rng.uniform(-1, 1, shape)).astype(holder)
