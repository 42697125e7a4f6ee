"""What a graph does with texts before numbers are at hand that LiteRT can take.

    text ─StringSplit─ LookupTableFindV2 ─SparseToDense─┊─ GatherV2 (embedding) ─ Mean ─ MatMul …

The part in front of the mark runs once for each text; the part behind it is what gets quantized and exported. Where the
mark stands, text_cut.py finds. A length that a text has is made one for all by padding, as the graph pads the shorter
texts of a batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.text_samples import other_sample
from pocketgraph.errors import FormatError, RunError
from pocketgraph.graph import DType, Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.order import dependents
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.input_cut import behind
from pocketgraph.quantization.pooled_embeddings import STEPS
from pocketgraph.quantization.vocabulary import SPOKEN

Sample = Sequence[Array]
MOST_COMPARED = 50  # texts, to see what padding does
CHANGING = 0.01  # of the largest result, from which padding is said to change the answers
LONGER = 12  # doublings of a text that is to fill a length


@dataclass(frozen=True)
class CutTensor:
    """A tensor where the part that reads texts ends.

    Attributes:
        tensor: its name in the whole graph.
        name: that of the placeholder in its place.
        dtype: its type.
        shape: for one text; what differs from text to text is the longest one's.
        is_open: for each axis, whether its size differs from text to text.
        is_padded: whether shorter texts are padded to the shape, and longer ones cut.
    """

    tensor: str
    name: str
    dtype: DType
    shape: tuple[int, ...]
    is_open: tuple[bool, ...]
    is_padded: bool = True


class TextPreprocessing:
    """The part of a graph that reads texts.

    Args:
        graph: the whole graph, ready to be cut.
        inputs: what it takes.
        cuts: where the part ends.
        front: the nodes of the part.

    Attributes:
        whole: the graph as it was.
    """

    def __init__(
        self, graph: Graph, inputs: tuple[ModelInput, ...], cuts: Sequence[CutTensor], front: Collection[str]
    ) -> None:
        from pocketgraph.runtime import Session

        self.graph, self.inputs, self.cuts, self.front = graph, inputs, list(cuts), frozenset(front)
        self.whole = graph
        self._session = Session(_with_open_batches(graph, {node_name(item.name) for item in inputs}))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each input of the part behind, by its name."""
        return {canonical(cut.name): cut.shape for cut in self.cuts}

    @property
    def takes_texts(self) -> bool:
        """Whether there are texts among what it takes; else it makes spectra of numbers."""
        return any(item.takes_text for item in self.inputs)

    @property
    def length(self) -> int | None:
        """How many steps a text has that is padded or cut; None where the graph makes all texts the same size."""
        steps = [cut.shape[-1] for cut in self.cuts if cut.name.endswith(STEPS)]
        sizes = steps + [
            size for cut in self.cuts for size, is_open in zip(cut.shape, cut.is_open, strict=True) if is_open
        ]
        return max(sizes, default=None)

    def words(self, *, is_open: bool = False) -> str:
        """What is to be said of the cut, in a sentence; with ``is_open`` lengths of texts may be left open."""
        names = ", ".join(cut.name for cut in self.cuts)
        what = "reads texts" if self.takes_texts else "makes the spectrum"
        text = f"the part behind {names} is taken; what {what} in front of it stays with the app"
        if self.length is None:
            return text
        return f"{text}; {f'{self.length} steps are a text by default' if is_open else self.sized()}"

    def sized(self) -> str:
        """What becomes of lengths of texts, in words."""
        return f"texts are padded or cut to {self.length} steps"

    def open_elsewhere(self) -> str:
        """What else changes results where lengths could be open, and what leaves them open; "" where nothing does."""
        is_pooled = any(cut.name.endswith(STEPS) for cut in self.cuts)
        return "" if is_pooled else ", or the model tells padding from nothing; export leaves lengths open"

    def change(self, outputs: Sequence[str], samples: Iterable[Sample]) -> float:
        """By how much padding and cutting change the results, at most, as a share of the largest one."""
        from pocketgraph.runtime import Session

        worst = peak = 0.0
        names = list(self.shapes)
        with Session(self.whole) as whole, Session(self.behind()) as part:
            for sample in itertools.islice(samples, MOST_COMPARED):
                feeds = {item.name: array for item, array in zip(self.inputs, sample, strict=True)}
                wanted = whole.run(list(outputs), feeds)
                given = part.run(list(outputs), dict(zip(names, self(sample), strict=True)))
                for one, other in zip(wanted, given, strict=True):
                    if one.dtype.kind != "f" or one.shape != other.shape or not one.size:
                        continue
                    worst = max(worst, float(np.abs(one - other).max()))
                    peak = max(peak, float(np.abs(one).max()))
        return worst / peak if peak else 0.0

    def behind(self, *, is_open: bool = False) -> Graph:
        """The graph of the part behind, with placeholders; lengths of texts are left open where that is asked for."""
        cuts = {
            cut.tensor: (cut.dtype, tuple(None if is_open and opened else size
                                          for size, opened in zip(cut.shape, cut.is_open, strict=True)))
            for cut in self.cuts
        }  # fmt: skip
        return behind(self.graph, cuts, self.front).replace(inputs=(), signatures={})

    def __call__(self, sample: Sample) -> list[Array]:
        """What the part behind takes for a text, padded or cut to its length.

        Raises:
            FormatError: the graph does not take the text.
        """
        made = self._run(sample)
        pairs = list(zip(made, self.cuts, strict=True))
        if not any(cut.is_padded and array.shape != cut.shape for array, cut in pairs):
            return made
        padded = self._padded(sample, made)
        for array, cut in zip(padded, self.cuts, strict=True):
            if array.shape != cut.shape:
                raise FormatError(
                    f"this text gives '{cut.name}' the shape {list(array.shape)}, not {list(cut.shape)}: "
                    f"{_shown(sample)}"
                )
        return padded

    def _padded(self, sample: Sample, made: list[Array]) -> list[Array]:
        """As the graph pads a text in a batch with a longer one; what is too long is cut."""
        short = any(size < wanted for array, cut in zip(made, self.cuts, strict=True)
                    for size, wanted in zip(array.shape, cut.shape, strict=False))  # fmt: skip
        found = made
        for doubled in range(LONGER if short else 0):
            longer = [other_sample(item, " ".join([SPOKEN] * (1 << doubled)), array) for item, array in
                      zip(self.inputs, sample, strict=True)]  # fmt: skip
            batch = [_batched(one, other) for one, other in zip(sample, longer, strict=True)]
            if any(array is None for array in batch):
                break
            found = [array[:1] if array.ndim else array for array in self._both([a for a in batch if a is not None])]
            if all(array.ndim == len(cut.shape) and
                   all(size >= wanted for size, wanted in zip(array.shape, cut.shape, strict=True))
                   for array, cut in zip(found, self.cuts, strict=True)):  # fmt: skip
                break
        return [_fitted(array, cut) for array, cut in zip(found, self.cuts, strict=True)]

    def _both(self, batch: Sample) -> list[Array]:
        """The cuts for two texts at once; by the whole graph where this one has the shapes of one text as constants."""
        from pocketgraph.runtime import Session

        try:
            return self._run(batch)
        except FormatError:
            tensors = [cut.tensor for cut in self.cuts]
            if any(node_name(tensor) not in self.whole for tensor in tensors):
                raise
            feeds = {item.name: array for item, array in zip(self.inputs, batch, strict=True)}
            with Session(self.whole) as session:
                try:
                    return [np.asarray(array) for array in session.run(tensors, feeds)]
                except RunError:
                    pass
            raise

    def _run(self, sample: Sample) -> list[Array]:
        feeds = {item.name: array for item, array in zip(self.inputs, sample, strict=True)}
        try:
            return [np.asarray(array) for array in self._session.run([cut.tensor for cut in self.cuts], feeds)]
        except RunError as error:
            shown = f"text: {error.what}: {_shown(sample)}" if self.takes_texts else f"sample: {error.what}"
            raise FormatError(f"the model does not take this {shown}") from error

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from pocketgraph.runtime import Session

        self.__dict__.update(state)
        self._session = Session(self.graph, threads=1)


def _shown(sample: Sample) -> str:
    texts = [array.reshape(-1)[0] for array in sample if array.dtype.kind == "O" and array.size]
    return repr(texts[0][:60].decode("utf-8", "replace")) if texts and isinstance(texts[0], bytes) else ""


def _with_open_batches(graph: Graph, names: Collection[str]) -> Graph:
    """The graph with placeholders that take two texts as well as one: a batch with a longer one shows what pads."""

    def opened(node: Node) -> Node:
        dims = (node.shape() or Shape(None)).dims if node.name in names else None
        return node.with_attrs(shape=Shape((None, *dims[1:]))) if dims and dims[0] == 1 else node

    return graph.map_nodes(opened)


def _batched(one: Array, other: Array) -> Array | None:
    """Both as a batch of two; None where the input takes no batches."""
    if not one.ndim:
        return None
    if one.dtype.kind == "O" and one.shape[1:] != other.shape[1:]:
        sizes = [max(pair) for pair in zip(one.shape[1:], other.shape[1:], strict=True)]
        one, other = _filled(one, sizes), _filled(other, sizes)
    return np.concatenate([one, other], 0)


def _filled(array: Array, sizes: Sequence[int]) -> Array:
    """Rows of words with empty ones behind, up to these sizes."""
    filled = np.full((len(array), *sizes), b"", object)
    filled[tuple(slice(size) for size in array.shape)] = array
    return filled


def _fitted(array: Array, cut: CutTensor) -> Array:
    """CutTensor to the wanted sizes; zeros where nobody said what pads."""
    if array.ndim != len(cut.shape):
        return array
    taken = array[tuple(slice(size) for size in cut.shape)]
    if taken.shape == cut.shape:
        return np.ascontiguousarray(taken)
    made = np.zeros(cut.shape, array.dtype)
    made[tuple(slice(size) for size in taken.shape)] = taken
    return made


def dependent_nodes(graph: Graph, sources: Iterable[str]) -> set[str]:
    """The nodes that what is fed reaches, also by the way back of a loop, and the sources themselves."""
    fed: set[str] = set()
    found = set(sources)
    while len(found) > len(fed):
        fed = found
        found = fed | {node.name for node in dependents(graph, fed)}
    return found
