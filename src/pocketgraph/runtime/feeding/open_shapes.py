"""Shapes for inputs that a graph leaves open, so that what reads them fits: found backwards, from the weights.

x = Placeholder(dtype=float)             x has the shape [1,784]
y = MatMul(x, Const(float[784, 10]))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from pocketgraph.errors import GraphError, PocketgraphError, RunError
from pocketgraph.graph import DType, Graph, Shape, Tensor, canonical, node_name
from pocketgraph.graph.dtype import BOOL, FLOAT, INT32, INT64
from pocketgraph.graph.model_file_graph import is_litert_file, is_model_file
from pocketgraph.graph.op_traits import CONVOLUTIONS, PRODUCTS, SUMS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import infer
from pocketgraph.passes.training_switches import dropout_share
from pocketgraph.runtime.feeding.sizes_from_weights import averages_whole_maps, told_sizes

Dims = Sequence[int | None]
SIDES = (224, 256, 128, 112, 64, 56, 32, 28, 16, 8)
"""Pixels of a picture's side, in the order in which they are tried where no weights tell them."""
LENGTHS = tuple(2**power for power in range(17))
"""Steps of a sequence that are tried where no weights tell them; networks cut off long borders."""
COLOURS = 3  # channels of a picture of which nothing else is known
MOST_STATED = 256  # samples; a larger first size of a reshape is no batch
FARTHEST = 8  # operations behind an input
MOST_READERS = 32
"""Operations behind a row whose other operands are asked for its length."""
STATES_BATCH = frozenset(("Conv2DBackpropInput",))
"""Not a trait: the shape of the result is an operand, and as a rule a constant one."""
RESHAPES = frozenset(("Reshape", "onnx.Reshape"))
"""Not a trait: they may say how many rows there are."""
SCALED = SUMS | PRODUCTS | ops_with("order") | {"Equal", "NotEqual"}
PADS = ops_with("pad")
"""They tell how many dimensions there are."""


def fitting_shapes(
    graph: Graph, open_inputs: Mapping[str, tuple[Dims | None, DType]], chosen: Mapping[str, tuple[int, ...]],
    fetches: Sequence[str], types: Mapping[str, DType],
) -> dict[str, tuple[int, ...]]:  # fmt: skip
    """The shapes ``chosen`` of all inputs, or others for those that are open, with which the fetches can be computed.

    Args:
        open_inputs: what is declared of inputs whose sizes are open, and their types; no dims where not even their
            number is known.
        chosen: the shapes to begin with, by node name; those of inputs of unknown rank may be missing.
        fetches: what is to be computed.
        types: of all inputs.

    Returns:
        Shapes that fit; ``chosen`` where none do.
    """
    shapes = dict(chosen)
    if is_model_file(graph):
        return _taken_shapes(graph, {name: dims for name, (dims, _) in open_inputs.items()}, shapes, types)
    fitting: dict[str, tuple[int, ...]] | None = None
    for name, (dims, dtype) in open_inputs.items():
        alike = [other for other, declared in open_inputs.items() if dims is not None and declared == (dims, dtype)]
        first = shapes.get(name)
        for shape in _tried(graph, name, dims, dtype, shapes, fetches, types):
            first = shape if first is None else first
            tried = [{**shapes, name: shape}]
            together = {**shapes, **dict.fromkeys(alike, shape)}
            if alike[:1] == [name] and together != tried[0]:  # what they lead to may have to be as long
                tried.append(together)
            fits = (each for each in tried if each == fitting or _fits(graph, each, fetches, types))
            if found := next(fits, None):
                shapes = fitting = found
                break
        else:
            if first is not None:
                shapes[name] = first
    return shapes


def _taken_shapes(
    graph: Graph, open_inputs: Mapping[str, Dims | None], chosen: dict[str, tuple[int, ...]],
    types: Mapping[str, DType],
) -> dict[str, tuple[int, ...]]:  # fmt: skip
    """The same for a LiteRT or ONNX file, whose operators tell no shapes: those that it runs with, on zeros."""
    runs = _runs(graph, chosen, types)
    if runs is None:
        return chosen
    for name, dims in open_inputs.items():
        tried = ({**chosen, name: shape} for shape in (chosen[name], *candidates(graph, name, dims)))
        chosen = next((shapes for shapes in tried if runs(shapes)), chosen)
    return chosen


def _runs(
    graph: Graph, chosen: Mapping[str, tuple[int, ...]], types: Mapping[str, DType]
) -> Callable[[Mapping[str, tuple[int, ...]]], bool] | None:
    """Whether a file of the inputs ``chosen`` runs with shapes, on zeros; None where nothing here runs it."""
    if {node_name(tensor) for tensor in next(iter(graph.signatures.values())).inputs.values()} != chosen.keys():
        return None  # of another signature
    try:
        run = _runner(graph)
    except PocketgraphError:
        return None  # whoever runs it is told

    def runs(shapes: Mapping[str, tuple[int, ...]]) -> bool:
        feeds = {f"{one}:0": np.zeros(shape, types.get(one, FLOAT).numpy) for one, shape in shapes.items()}
        try:
            return all(array.size for array in run(feeds))
        except RunError:
            return False

    return runs


def _runner(graph: Graph) -> Callable[[Mapping[str, Array]], Iterable[Array]]:
    """What runs a file's first signature on arrays by tensor.

    Raises:
        PocketgraphError: it is damaged, or what runs it refuses it or is not installed.
    """
    from pocketgraph.litert.model_file import ModelFile
    from pocketgraph.litert.untrusted.verifier import fault
    from pocketgraph.runtime.onnx_runner import OnnxRunner

    key, signature = next(iter(graph.signatures.items()))
    names = {tensor: name for name, tensor in signature.inputs.items()}
    if is_litert_file(graph):
        if problem := fault(graph.extra):
            raise RunError(problem)
        file = ModelFile(graph.extra)
        return lambda feeds: file.run(key, {names[tensor]: array for tensor, array in feeds.items()}).values()
    runner = OnnxRunner(graph.extra[8:], 1)
    return lambda feeds: runner.run(None, {names[tensor]: array for tensor, array in feeds.items()})


def _tried(
    graph: Graph, name: str, dims: Dims | None, dtype: DType, chosen: Mapping[str, tuple[int, ...]],
    fetches: Sequence[str], types: Mapping[str, DType],
) -> Iterator[tuple[int, ...]]:  # fmt: skip
    """Shapes for one input, the likeliest first; what weights tell is asked only where what is chosen does not fit."""
    if name in chosen and not averages_whole_maps(graph, name):
        yield chosen[name]
    if dims is None and dtype is BOOL:
        yield ()  # whether training goes on
    read = dims if dims is not None else read_as(graph, name)
    told = told_sizes(graph, name, read, chosen, fetches, types) if read is not None and len(read) > 2 else None
    if told is not None:
        yield told
    if dims is not None and len(dims) == 1:
        yield from _rows_beside(graph, name, chosen, types)
    yield from candidates(graph, name, dims)


def _rows_beside(
    graph: Graph, name: str, chosen: Mapping[str, tuple[int, ...]], types: Mapping[str, DType]
) -> Iterator[tuple[int]]:
    """Lengths of a single row of numbers: the sizes of what it is soon computed with, as a bias has those of sums."""
    feeds = {f"{one}:0": (types.get(one, FLOAT), Shape(shape)) for one, shape in chosen.items()}
    known, sizes = infer(graph, feeds), dict[int, None]()
    seen, waiting = {name}, deque([name])
    while waiting and len(seen) < MOST_READERS:
        for reader in graph.consumers.get(waiting.popleft(), ()):
            others = [known.shape(canonical(ref)).dims for ref in reader.data_inputs if node_name(ref) not in seen]
            sizes |= dict.fromkeys(size for dims in others for size in dims or () if size)
            if reader.name not in seen:
                seen.add(reader.name)
                waiting.append(reader.name)
    return ((size,) for size in sizes)


def is_told_by_weights(graph: Graph, tensor: str, sizes: Sequence[int], fetches: Sequence[str]) -> bool:
    """Whether an input has to be about as large as ``sizes``: with twice any size that it leaves open, but the batch's,
    the fetches cannot be computed, or are those of several samples.

    Args:
        tensor: the input.
        sizes: of one sample, with which the fetches can be computed.
        fetches: what is computed.
    """
    name = node_name(tensor)
    shape, types = graph.declared_shape(name), {name: graph[name].dtype("dtype", FLOAT)}
    dims = (None,) * len(sizes) if shape is None or not shape.dims else shape.dims
    places = [at for at, size in enumerate(dims) if size is None and at > 0]
    larger = [tuple(2 * size if at == place else size for at, size in enumerate(sizes)) for place in places]
    fits = (_fits(graph, {name: other}, fetches, types) for other in (tuple(sizes), *larger))
    return bool(places) and next(fits) and not any(fits)


def candidates(graph: Graph, name: str, dims: Dims | None) -> Iterator[tuple[int, ...]]:
    """Shapes that an input may have, by what reads it, the likeliest first."""
    if dims is None:
        if dropout_share(graph, name) is not None:
            yield ()
            return
        dims = read_as(graph, name)
        if dims is None:
            if _is_scaled(graph, name):
                yield from ((1,), ())
            return
    places = [at for at, size in enumerate(dims) if size is None and at > 0]
    if not places:
        yield tuple(1 if size is None else size for size in dims)
        return
    for side in SIDES if len(dims) == 4 else LENGTHS:
        yield tuple(1 if at == 0 and size is None else side if size is None else size for at, size in enumerate(dims))


def with_stated_batch(
    graph: Graph, open_batches: Sequence[str], chosen: Mapping[str, tuple[int, ...]], fetches: Sequence[str],
    types: Mapping[str, DType],
) -> dict[str, tuple[int, ...]]:  # fmt: skip
    """The shapes ``chosen``, with a batch that fits where that of 1 does not: what transposed convolutions state, or
    reshapes to a number of rows, or two where all that has size 1 is squeezed away.

    Args:
        open_batches: inputs of no declared batch.
        chosen, fetches, types: as for ``fitting_shapes``.
    """
    deconvolutions = [node for node in graph if node.op in STATES_BATCH] if open_batches else []
    reached = reachable(graph, fetches, data_only=True, missing_ok=True) if deconvolutions else set()
    stated: dict[str, int] = {}
    for node in deconvolutions:
        sizes = graph.constant(node.data_inputs[0]) if node.name in reached else None
        if sizes is not None and sizes.size == 4:
            stated[node.data_inputs[2]] = int(sizes.numpy()[0])
    if len({*stated.values()}) != 1:
        return _with_batch_that_fits(graph, open_batches, chosen, fetches, types)
    batch = next(iter(stated.values()))
    wider = {name: (batch, *shape[1:]) if name in open_batches else shape for name, shape in chosen.items()}
    failed = _batches(graph, chosen, stated, types) != {batch}
    return wider if failed and _batches(graph, wider, stated, types) == {batch} else dict(chosen)


def _with_batch_that_fits(
    graph: Graph, open_batches: Sequence[str], chosen: Mapping[str, tuple[int, ...]], fetches: Sequence[str],
    types: Mapping[str, DType],
) -> dict[str, tuple[int, ...]]:  # fmt: skip
    batches = stated_batches(graph, fetches) if open_batches else []
    if not batches:
        return dict(chosen)

    def computes(shapes: Mapping[str, tuple[int, ...]]) -> bool:
        feeds = {f"{name}:0": (types.get(name, FLOAT), Shape(shape)) for name, shape in shapes.items()}
        try:
            infer(graph, feeds, outputs=fetches, strict=True, complete=False)
        except GraphError:
            return False
        return True

    fits = _runs(graph, chosen, types) if is_model_file(graph) else computes
    wider = ({name: (batch, *chosen[name][1:]) for name in open_batches} for batch in batches)
    tried = ({**chosen, **batched} for batched in ({}, *wider))
    return next((shapes for shapes in tried if fits is None or fits(shapes)), dict(chosen))


def stated_batches(graph: Graph, fetches: Sequence[str] = ()) -> list[int]:
    """Batches that a graph may need where one sample is too few, the likeliest first; none where nothing says so."""
    nodes = [node for node in graph if node.op in RESHAPES or node.op == "Squeeze"]
    reached = reachable(graph, fetches, data_only=True, missing_ok=True) if nodes and fetches else None
    found: dict[int, None] = {}
    for node in nodes:
        if reached is not None and node.name not in reached:
            continue
        if node.op == "Squeeze":
            found |= {} if node.attrs.get("squeeze_dims") else {2: None}
        elif len(node.data_inputs) == 2 and (sizes := graph.constant(node.data_inputs[1])) is not None:
            is_row = sizes.dtype in (INT32, INT64) and sizes.size > 1
            found |= {int(sizes.numpy().reshape(-1)[0]): None} if is_row else {}
    return [batch for batch in found if 1 < batch <= MOST_STATED]


def _batches(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], tensors: Iterable[str], types: Mapping[str, DType]
) -> set[int | None]:
    """The first sizes of tensors, by those of the inputs."""
    feeds = {f"{name}:0": (types.get(name, FLOAT), Shape(shape)) for name, shape in shapes.items()}
    known = infer(graph, feeds, outputs=[*tensors])
    found = [known.shape(canonical(name)).dims for name in tensors]
    return {dims[0] if dims else None for dims in found}


def _is_scaled(graph: Graph, name: str) -> bool:
    """Whether one number will do for a tensor: it is added to, multiplied or compared with one constant number, as in a
    regression of one variable, or broadcast, as the first state of what is called frame by frame."""
    for reader in graph.consumers.get(name, ()):
        if reader.op == "BroadcastTo" and node_name(reader.data_inputs[0]) == name:
            return True
        if reader.op == "Identity" and _is_scaled(graph, reader.name):
            return True
        if reader.op in SCALED:
            others = [graph.constant(ref) for ref in reader.data_inputs if node_name(ref) != name]
            if any(value is not None and value.size == 1 for value in others):
                return True
    return False


def leads_to_picture_ops(graph: Graph, name: str) -> bool:
    """Whether what an input holds is soon resized as pictures are."""
    waiting, seen = [(name, 0)], {name}
    while waiting:
        current, far = waiting.pop()
        for reader in graph.consumers.get(current, ()):
            if reader.op.startswith("Resize"):
                return True
            if far < FARTHEST and reader.name not in seen:
                seen.add(reader.name)
                waiting.append((reader.name, far + 1))
    return False


def read_as(graph: Graph, name: str) -> Dims | None:
    """What the first weights behind an input, or a Reshape before them, say of its shape; None where nothing does."""
    queue, seen = deque([name]), {name}
    padded: Dims | None = None
    while queue:
        current = queue.popleft()
        for reader in graph.consumers.get(current, ()):
            data = reader.data_inputs
            if not data:
                continue
            is_first = node_name(data[0]) == current
            weights = graph.constant(data[1]) if is_first and len(data) > 1 else None
            if weights is not None and reader.op == "MatMul" and len(weights.shape) == 2:
                return (None, weights.shape[1] if reader.attr("transpose_b") else weights.shape[0])
            if weights is not None and reader.op in CONVOLUTIONS and len(weights.shape) == 4:
                return (None, None, None, weights.shape[2])
            if weights is not None and reader.op == "Transpose" and weights.size > 1:
                return (*[None] * (weights.size - 1), _last_behind(graph, reader.name))
            if weights is not None and reader.op in PADS and weights.shape == (4, 2) and padded is None:
                padded = (None, None, None, COLOURS)
            if weights is not None and reader.op == "Reshape" and padded is None and (dims := _made_by(weights)):
                return dims
            if reader.op in CARRYING and reader.name not in seen:
                seen.add(reader.name)
                queue.append(reader.name)
    return padded


def _made_by(shape: Tensor) -> Dims:
    """The shape that a Reshape makes, which what it takes may have, too; () where any single number would do, or the
    shape says nothing but that all is in one row."""
    sizes = [int(size) for size in shape.numpy().reshape(-1)]
    return tuple(size if size > 0 else None for size in sizes) if len(sizes) > 1 and max(sizes) > 1 else ()


def _last_behind(graph: Graph, name: str) -> int | None:
    """How many numbers the rows have that a tensor is taken apart into; None where no Reshape behind it says so."""
    for reader in graph.consumers.get(name, ()):
        shape = graph.constant(reader.data_inputs[1]) if reader.op == "Reshape" else None
        if shape is not None and shape.size:
            last = int(shape.numpy().reshape(-1)[-1])
            return last if last > 0 else None
    return None


CARRYING = PADS | ops_with("passes", "elementwise", "sum", "product", "fused_batch_norm") | {"BiasAdd", "Switch"}
"""What may stand before the first weights and leaves dimensions and channels as many as they are."""


def _fits(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], fetches: Sequence[str], types: Mapping[str, DType]
) -> bool:
    """Whether nothing is certain to fail, no mean is that of nothing, all windows have a place, and one sample leads to
    one row of results."""
    feeds = {f"{name}:0": (types.get(name, FLOAT), Shape(shape)) for name, shape in shapes.items()}
    try:
        found = infer(graph, feeds, outputs=fetches, strict=True, complete=False)
    except GraphError:
        return False
    averaged = (canonical(node.data_inputs[0]) for node in graph if node.op == "Mean")
    windows = (f"{node.name}:0" for node in graph if node.op in CONVOLUTIONS or "ksize" in node.attrs)
    if any(0 in dims for name in (*averaged, *windows) if (dims := found.shape(name).dims)):
        return False
    if any(shape and shape[0] != 1 for shape in shapes.values()):
        return True
    results = [found.shape(name if ":" in name else f"{name}:0").dims for name in fetches]
    return not any(0 in dims for dims in results if dims) and all(
        not dims or dims[0] in (1, None) or len(dims) == 1 for dims in results
    )
