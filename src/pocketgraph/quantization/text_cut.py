"""Finds where the part of a graph ends that reads texts.

As far in front as LiteRT allows, so that embeddings are in the file that is made of the rest; further back where that
makes its sizes those of all texts.

From the ops of texts and lookups on, each node that LiteRT refuses joins the part in front, with what leads to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.text_samples import other_sample
from pocketgraph.errors import PocketgraphError, RunError, UsageError, option, shapes_option
from pocketgraph.freezing.tables import empty_tables
from pocketgraph.graph import DType, Graph, Node, canonical, const, node_name
from pocketgraph.graph.dtype import COMPLEX64, COMPLEX128, RESOURCE, STRING, VARIANT
from pocketgraph.graph.node import parse_ref
from pocketgraph.graph.op_traits import CONTRACTIONS, SAME_ELEMENTS, ops_with
from pocketgraph.graph.order import reachable, topological
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert.lowering import Unsupported
from pocketgraph.passes.inlining import inlined
from pocketgraph.quantization.float_program import simplified, with_value
from pocketgraph.quantization.input_cut import behind, tensor_name
from pocketgraph.quantization.pooled_embeddings import STEPS, WEIGHTS, poolings, with_fixed_length
from pocketgraph.quantization.text_inputs import text_inputs
from pocketgraph.quantization.text_preprocessing import CutTensor, Sample, TextPreprocessing, dependent_nodes
from pocketgraph.quantization.text_probing import TensorSizes, probed, probed_where_possible
from pocketgraph.quantization.vocabulary import numbered_by_hash, synthetic_texts
from pocketgraph.runtime.tensor_names import output_types
from pocketgraph.runtime.unsupported_help import help_with

MOST_PROBED = 200  # texts that are looked at for their length
MOST_LENGTH = 512  # steps of a text; longer ones are cut
MOST_POOLED = 1 << 24  # bytes of the rows that are pooled for one text, which are taken and summed up and no more
MOST_TRIES = 40  # places for the cut
SMALL = 64  # elements of a constant that is no weight
NOT_ON_LITERT = (STRING, COMPLEX64, COMPLEX128)
USUAL_LENGTH = 64  # steps of a text where none are given to try with
FEWEST = 4  # made-up texts to try with


class NoCutError(UsageError):
    """No part of a model behind its texts runs on LiteRT."""


def text_preprocessing_of(
    graph: Graph,
    outputs: Sequence[str],
    fed: Collection[str] = (),
    samples: Iterable[Sample] = (),
    *,
    values: Mapping[str, Any] | None = None,
) -> TextPreprocessing | None:
    """The part of a graph that reads texts; None where it reads none.

    Args:
        outputs: what is to be computed.
        fed: placeholders that are set to something else.
        samples: texts, as the inputs take them, by which lengths are chosen; without any USUAL_LENGTH is.
        values: what the placeholders in ``fed`` are set to.

    Raises:
        NoCutError: no part of the graph behind the texts runs on LiteRT.
        UsageError: a table that is needed for that stays empty.
    """
    taken = text_inputs(graph, outputs, fed)
    if not taken:
        return None
    needed = reachable(graph, [node_name(name) for name in outputs])
    if empty := [table for table in empty_tables(graph) if table in needed]:
        raise UsageError(
            f"texts are looked up in '{empty[0]}', and nothing in the file fills that table",
            hint="give the SavedModel or the training that the file was frozen from, or freeze that anew with "
            "freeze_graph, which keeps what fills it",
        )
    graph = inlined(graph, outputs) if graph.functions else graph
    whole = graph
    texts = []
    for sample in samples:
        texts.append(list(sample))
        if len(texts) == MOST_PROBED:
            break
    if not texts:
        made = [[other_sample(item, text) for item in taken] for text in synthetic_texts(graph, FEWEST)]
        graph = _ready(graph, outputs, taken, made, USUAL_LENGTH)
        found = _Search(graph, list(outputs), taken, made, dict(values or {}), USUAL_LENGTH).found()
    else:
        graph = _ready(graph, outputs, taken, texts)
        found = _Search(graph, list(outputs), taken, texts, dict(values or {})).found()
    found.whole = whole
    return found


def _ready(
    graph: Graph, outputs: Sequence[str], taken: tuple[ModelInput, ...], texts: Sequence[Sample],
    length: int | None = None, lengths: Mapping[str, int] | None = None,
) -> Graph:  # fmt: skip
    """The graph with pooled embeddings of a fixed length, and as constants the shapes that all texts are given.

    Args:
        length: of all poolings; by default the longest text's.
        lengths: of the pooling of each name; by default of all.
    """
    needed = reachable(graph, [node_name(name) for name in outputs])
    for pooling in list(poolings(graph, needed)):
        if lengths is not None and pooling.name not in lengths:
            continue
        try:
            most = max(MOST_LENGTH, MOST_POOLED // pooling.row_bytes)
            size = (lengths or {}).get(pooling.name) or length or min(
                most, max(array.size for array in probed(graph, taken, [pooling.ids], texts)[0])
            )  # fmt: skip
            graph = with_fixed_length(graph, pooling, max(2, size))
        except RunError:
            continue
    dependent = dependent_nodes(graph, [node_name(item.name) for item in taken])
    shaped = [node.name for node in graph if node.op == "Reshape" and node.name in needed
              and node_name(node.data_inputs[1]) in dependent]  # fmt: skip
    fixed: dict[str, Array] = {}
    shapes = {name: graph[name].data_inputs[1] for name in shaped}
    known = probed_where_possible(graph, taken, list(shapes.values()), texts)
    for name, found in ((name, known[ref]) for name, ref in shapes.items() if ref in known):
        if all(np.array_equal(array, found[0]) for array in found[1:]) and len(found) > 1:
            fixed[name] = found[0]
    if not fixed:
        return graph
    nodes: list[Node] = []
    for node in graph:
        if node.name in fixed:
            shape = const(f"{node.name}/fixed_shape", fixed[node.name])
            nodes.append(shape)
            node = node.replace(inputs=[node.data_inputs[0], shape.name, *node.control_inputs])
        nodes.append(node)
    return graph.replace(nodes)


def text_preprocessing_at(
    graph: Graph, outputs: Sequence[str], ends: Sequence[ModelInput], fed: Collection[str] = ()
) -> TextPreprocessing | None:
    """The part of a graph that reads texts, ended where a file takes over that was made of the part behind.

    Args:
        graph: the whole graph.
        outputs: what is to be computed.
        ends: what the file takes, by the names of the graph's tensors; a size of -1 is a text's own.
        fed: placeholders of the graph that are set to something else.

    Returns:
        None where the graph takes no texts, or does not have these tensors behind them.
    """
    taken = text_inputs(graph, outputs, fed)
    if not taken:
        return None
    graph = inlined(graph, outputs) if graph.functions else graph
    whole = graph
    texts = [[other_sample(item, text) for item in taken] for text in synthetic_texts(graph, FEWEST)]
    lengths = {canonical(item.name).removesuffix(":0").removesuffix(STEPS): item.shape[-1] for item in ends
               if canonical(item.name).removesuffix(":0").endswith(STEPS)}  # fmt: skip
    graph = _ready(graph, outputs, taken, texts, lengths=lengths)
    dependent = dependent_nodes(graph, [node_name(item.name) for item in taken])
    cuts = []
    for item in ends:
        tensor = _tensor_of(graph, item.name)
        if tensor is None or node_name(tensor) not in dependent:
            return None
        dtype = (infer(graph).dtype(tensor) or DType.of_numpy(item.dtype)).base
        shape = tuple(max(1, size) for size in item.shape)
        opened = tuple(size < 0 for size in item.shape)
        cuts.append(CutTensor(tensor, tensor_name(graph, tensor), dtype, shape, opened, is_padded=not any(opened)))
    front = reachable(graph, [node_name(cut.tensor) for cut in cuts]) & dependent
    found = TextPreprocessing(graph, taken, cuts, front)
    found.whole = whole
    return found


def _tensor_of(graph: Graph, name: str) -> str | None:
    """The tensor of the graph that an input of a file is named after; None without."""
    plain = canonical(name).removesuffix(":0")
    if plain in graph:
        return f"{plain}:0"
    base, _, port = plain.removesuffix("_cut").rpartition("_")
    return f"{base}:{port}" if base in graph and port.isdigit() else None


def _cut(graph: Graph, tensor: str, arrays: Sequence[Array], length: int | None = None) -> CutTensor:
    """A cut by what the tensor is for several texts; ``length`` is for sizes that differ, by default the longest."""
    name, port, _ = parse_ref(canonical(tensor))
    types = output_types(graph[name])
    dtype = types[port] if types is not None and port < len(types) else DType.of_numpy(arrays[0].dtype)
    ranks = {array.ndim for array in arrays}
    if len(ranks) > 1:
        raise UsageError(f"'{tensor}' has {' or '.join(map(str, sorted(ranks)))} dimensions, by the text")
    sizes = list(zip(*(array.shape for array in arrays), strict=True))
    shape = tuple(
        length or max(1, min(max(found), MOST_LENGTH)) if len(set(found)) > 1 else found[0] for found in sizes
    )
    return CutTensor(canonical(tensor), tensor_name(graph, tensor), dtype, shape, tuple(len(set(f)) > 1 for f in sizes))


class _Search:
    """Looks for the place of the cut."""

    def __init__(
        self, graph: Graph, outputs: list[str], taken: tuple[ModelInput, ...], texts: Sequence[Sample],
        values: dict[str, Any], length: int | None = None,
    ) -> None:  # fmt: skip
        self.length = length
        self.graph, self.outputs, self.taken, self.texts, self.values = graph, outputs, taken, texts, values
        self.needed = reachable(graph, [node_name(name) for name in outputs], data_only=True)  # no assertions
        self.dependent = dependent_nodes(graph, [node_name(item.name) for item in taken]) & self.needed
        self.ends = {node_name(name) for name in outputs}
        self.sizes = TensorSizes(graph, taken, texts, self.needed, self.dependent)

    def found(self) -> TextPreprocessing:
        front = self._reads_texts()
        why = ""
        for _ in range(MOST_TRIES):
            try:
                cuts = self.cuts(front)
            except (UsageError, RunError) as error:
                raise self._refusal(why or error.what) from error
            refusals = self._refused(cuts, front)
            if not refusals and not self._computes_behind(front):
                raise self._refusal("what LiteRT does not take, as spectra, is in front of all layers and results")
            if not refusals:
                return self._of_one_size(cuts, front) or TextPreprocessing(self.graph, self.taken, cuts, front)
            told = help_with(self.graph, refusals[0].node, "feeds")
            why = f"{refusals[0].reason} (node '{refusals[0].node}')" + (f"; {told}" if told else "")
            found = [at for refusal in refusals for at in self._nodes_of(refusal, front)]
            front |= set().union(*map(self._before, found))
            if not found or front & self.ends or not self._computes_behind(front):  # nor does it further back
                break
        raise self._refusal(why)

    def _refusal(self, why: str) -> NoCutError:
        return NoCutError(
            f"no part of the model behind its texts runs on LiteRT{': ' if why else ''}{why}",
            hint=f"texts have no codes: give texts that the model takes, or name tensors of numbers behind them with "
            f"{option('inputs')}, and give samples of those",
        )

    def _reads_texts(self) -> set[str]:
        """What takes or gives strings or complex numbers, or looks up, or brings pooled words to a fixed length, or
        picks a word's number in the table or that of its hash; and what leads there."""
        inferred = infer(self.graph)
        front = {node_name(item.name) for item in self.taken if item.takes_text}
        for name in self.dependent:
            node = self.graph[name]
            refs = [ref for ref in node.data_inputs if node_name(ref) in self.dependent]  # not an assertion's words
            types = [inferred.dtype(canonical(ref)) for ref in refs]
            types += list(output_types(node) or ())
            base = name.removesuffix(STEPS)
            if base != name and f"{base}{WEIGHTS}" in self.graph:
                front |= self._before(name) | self._before(f"{base}{WEIGHTS}")
            looks_up = any(self._is_table(ref) for ref in node.data_inputs)
            if looks_up or any(dtype is not None and dtype.base in NOT_ON_LITERT for dtype in types):
                front |= self._before(name)
            if node.op in ops_with("table_lookup") and (numbered := numbered_by_hash(self.graph, node)) is not None:
                front |= self._before(numbered[1].name)
        return front

    def _is_table(self, ref: str) -> bool:
        node = self.graph.producer(ref)
        return node.op in ops_with("table")

    def _before(self, name: str) -> set[str]:
        """A node and what leads from the texts to it; none of a loop's nodes without the loop's end."""
        return reachable(self.graph, [name]) & self.dependent

    def cuts(self, front: set[str]) -> list[CutTensor]:
        names: dict[str, None] = {}
        for node in self.graph:
            if node.name in self.needed and node.name not in front:
                names.update((canonical(ref), None) for ref in node.data_inputs if node_name(ref) in front)
        for output in self.outputs:
            if node_name(output) in front:
                raise UsageError("its results are texts, or are looked up")
        names = {name: None for name in names if node_name(name) in self.dependent}
        numeric = [item.name for item in self.taken if not item.takes_text and node_name(item.name) not in front
                   and node_name(item.name) in self.needed]  # fmt: skip
        tensors = [*names, *(name for name in numeric if name not in names)]
        sizes = self.sizes.of(tensors)
        return [_cut(self.graph, name, found, self.length) for name, found in zip(tensors, sizes, strict=True)]

    def _computes_behind(self, front: set[str]) -> bool:
        """Whether the part behind makes something of what it takes, and has layers where the model has some."""
        does = {name for name in self.dependent - front if self.graph[name].op not in SAME_ELEMENTS}
        layers = {name for name in self.needed if self.graph[name].op in CONTRACTIONS}
        return bool(does & layers if layers else does)

    def _refused(self, cuts: Sequence[CutTensor], front: set[str]) -> list[Unsupported]:
        """Why LiteRT does not take the part behind; nothing where it does."""
        for cut in cuts:
            if cut.dtype.base in (STRING, RESOURCE, VARIANT):
                raise UsageError(f"'{cut.tensor}' is no tensor of numbers")
            if 0 in cut.shape and not all(item.takes_text for item in self.taken):
                fed = ", ".join(f"{item.name.removesuffix(':0')} {list(item.shape)}" for item in self.taken)
                raise UsageError(
                    f"the model leaves sizes open, and '{cut.tensor}' has no elements with {fed}",
                    hint=f"export and ship take a size, as in {shapes_option({self.taken[0].name: (16000,)})}",
                )
        many = [cut.tensor for cut in cuts if any(cut.is_open[:1]) or 0 in cut.shape]
        if many:  # nothing pads what has no row for each text
            return [
                Unsupported(f"'{each}' has as many rows as a text has words", self._user(each, front)) for each in many
            ]
        names = {cut.tensor: (cut.dtype, cut.shape) for cut in cuts}
        part = behind(self.graph, names, front).replace(inputs=(), signatures={})
        part = part.map_nodes(lambda node: with_value(node, self.values))
        try:
            simplified(part, self.outputs, {canonical(cut.name): cut.shape for cut in cuts}).lowered()
        except Unsupported as refusal:
            return [refusal]
        return []

    def _user(self, tensor: str, front: set[str]) -> str:
        name = node_name(tensor)
        users = [user.name for user in self.graph.consumers.get(name, ())
                 if user.name in self.dependent and user.name not in front
                 and any(node_name(ref) == name for ref in user.data_inputs)]  # fmt: skip
        return users[0] if users else name

    def _nodes_of(self, refusal: Unsupported, front: set[str]) -> list[str]:
        """The nodes of the graph that stand in the way and that texts lead to: the refused one, or else those that take
        what it gives, as a table's size is that of a one-hot vector."""
        name = str(refusal.node)
        while name and name not in self.graph:
            name = name.rpartition("/")[0]
        if not name or name in self.dependent:
            return [name] if name else []
        users, waiting = {name}, [name]
        found = []
        while waiting:
            for user in self.graph.consumers.get(waiting.pop(), ()):
                if user.name in users or user.name not in self.needed:
                    continue
                users.add(user.name)
                if user.name not in self.dependent:
                    waiting.append(user.name)
                elif user.name not in front:
                    found.append(user.name)
        return found

    def _of_one_size(self, cuts: Sequence[CutTensor], front: set[str]) -> TextPreprocessing | None:
        """The cut further back where all texts have one size, if no weights stand before it."""
        if not any(any(cut.is_open) for cut in cuts):
            return None
        further = set(front)
        for node in topological(self.graph, partial=True):
            if node.name not in self.dependent or node.name in further or self._has_weights(node.name):
                continue
            if all(node_name(ref) in further for ref in node.data_inputs if node_name(ref) in self.dependent):
                further.add(node.name)
        if further & self.ends or further == front:
            return None
        try:
            later = self.cuts(further)
            if any(any(cut.is_open) for cut in later) or self._refused(later, further):
                return None
        except PocketgraphError:
            return None
        return TextPreprocessing(self.graph, self.taken, later, further)

    def _has_weights(self, name: str) -> bool:
        node = self.graph[name]
        types = output_types(node) or ()
        if node.op in ops_with("control_flow") or any(dtype.base in (RESOURCE, VARIANT) for dtype in types):
            return True
        for ref in node.data_inputs:
            if node_name(ref) not in self.dependent:
                constant = self.graph.constant(ref)
                if constant is None or constant.size > SMALL:
                    return True
        return False
