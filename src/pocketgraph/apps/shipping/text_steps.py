"""What reads texts in front of a model, in words and for programs: the app does it, as the file begins behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.op_traits import BINARY_SWITCHES, EXIT, MERGE, NEXT_ITERATION, PLACEHOLDERS, ops_with
from pocketgraph.graph.order import inside_loops, reachable, topological
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.pooled_embeddings import STEPS, WEIGHTS
from pocketgraph.quantization.text_preprocessing import TextPreprocessing
from pocketgraph.quantization.vocabulary import Vocabulary, numbered_by_hash, vocabularies
from pocketgraph.runtime.feeding.record_samples import PARSERS, features_of

QUIET = frozenset((
    "Const", "Identity", "Placeholder", "PlaceholderV2", "Reshape", "Squeeze", "ExpandDims", "Shape", "StridedSlice",
    "NoOp", "Pack", "ConcatV2", "Cast", "HashTableV2", "HashTable", "InitializeTableV2", "InitializeTable",
    "LookupTableImportV2", "LookupTableImport", "LookupTableSizeV2", "Assert", "MutableHashTableV2", "Prod", "Max",
    "Min", "Minimum", "Maximum", "Mul", "Sub", "Slice", "GatherV2", "RaggedTensorToVariant", "RaggedTensorFromVariant",
    "SparseReshape", "SparseFillEmptyRows", "Greater", "GreaterEqual", "Less", "NotEqual", "Where", "Size", "Rank",
    "Range", "Tile", "RaggedTensorToSparse", "LogicalNot", "BroadcastTo", "Equal", "Select", "SelectV2",
    "Cumsum", "Sum", "Fill", "ZerosLike", "LogicalAnd", "GatherNd", "TensorListReserve",
)) | ops_with("control_flow", "array_read", "array_write")  # fmt: skip
"""Not a trait: what says nothing to somebody who writes the steps in another language."""


NUMBERING = ops_with("table_lookup") | {
    "StringToHashBucketFast", "StringToHashBucketStrong", "StringToHashBucket", "UnicodeDecode",
    "UnicodeDecodeWithOffsets",
}  # fmt: skip
"""Not a trait: what makes numbers of words."""
OF_NUMBERS = frozenset(("Add", "AddV2", "RaggedBincount", "DenseBincount", "Bincount", "Pad", "PadV2"))
"""Not a trait: what is told only where it changes the words' numbers, not their places or counts."""


def text_steps(front: TextPreprocessing, files: Mapping[str, str]) -> list[str]:
    """The steps from a text to what the model takes, a sentence each.

    Args:
        front: the part of the graph.
        files: the file with the words of each table, by the table's name.
    """
    graph, steps = front.graph, []
    fed = {name for name in front.front if graph[name].op in PLACEHOLDERS}
    given = {node_name(cut.name) for cut in front.cuts}
    numbered: set[str] = set()
    looping = inside_loops(graph)
    for node in _loops_first(graph):
        if node.name not in front.front:
            continue
        behind = any(node_name(ref) in numbered for ref in node.data_inputs)
        if behind or node.op in NUMBERING:
            numbered.add(node.name)
        said = _said(graph, node, files) if behind or node.op not in OF_NUMBERS or node.name in given else ""
        said = said if behind else said.replace("the words by their numbers", "how often each number comes")
        if said and len(fed) > 1:
            sources = sorted(fed & reachable(graph, [node.name], data_only=True))
            said = f"of {' and '.join(repr(name) for name in sources)}: {said}" if len(sources) < len(fed) else said
        said = f"in a loop: {said}" if said and node.name in looping else said
        if said and said not in steps:
            steps.append(said)
    return [*steps, *_given(front)]


def _loops_first(graph: Graph) -> list[Node]:
    """The nodes, producers first, and what is behind a loop behind all of its rounds."""
    rounds: dict[str, list[str]] = {}  # what each loop's condition lets go on to a next round
    for node in graph:
        if node.op in BINARY_SWITCHES and graph.producer(node.data_inputs[1]).op in ops_with("loop_condition"):
            back = [ref for ref in graph.producer(node.data_inputs[0]).data_inputs
                    if graph.producer(ref).op in NEXT_ITERATION]  # fmt: skip
            rounds.setdefault(node_name(node.data_inputs[1]), []).extend(f"^{node_name(ref)}" for ref in back)
    nodes: list[Node] = []
    for node in graph:
        if node.op in MERGE:
            node = node.replace(inputs=[ref for ref in node.inputs if graph.producer(ref).op not in NEXT_ITERATION])
        elif node.op in EXIT and graph.producer(node.data_inputs[0]).op in BINARY_SWITCHES:
            condition = node_name(graph.producer(node.data_inputs[0]).data_inputs[1])
            node = node.replace(inputs=[*node.inputs, *rounds.get(condition, ())])
        nodes.append(node)
    return topological(graph.replace(nodes), partial=True)


def vocabulary_files(front: TextPreprocessing) -> Iterator[tuple[str, Vocabulary, bytes]]:
    """Name and content of a file for each table that is looked up in: a word a line where their numbers count up, else
    words and numbers with a tab between."""
    found = list(vocabularies(front.graph, front.front))
    for at, vocabulary in enumerate(found):
        name = "vocabulary" + (f"_{at + 1}" if len(found) > 1 else "")
        if vocabulary.first is not None and not any("\n" in word for word in vocabulary.words):
            yield f"{name}.txt", vocabulary, "".join(f"{word}\n" for word in vocabulary.words).encode()
        else:
            rows = zip(vocabulary.words, vocabulary.numbers, strict=True)
            yield f"{name}.tsv", vocabulary, "".join(f"{_escaped(word)}\t{number}\n" for word, number in rows).encode()


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def facts(
    front: TextPreprocessing, files: Mapping[str, str], examples: Sequence[tuple[str, list[Any]]]
) -> dict[str, Any]:
    """The same for programs: steps, files, what the model takes, and texts with what becomes of them."""
    return {
        "steps": text_steps(front, files),
        "vocabularies": [
            {"file": files[found.table], "first": found.first, "words": len(found.words)}
            for found in vocabularies(front.graph, front.front)
            if found.table in files
        ],
        "operations": sorted({front.graph[name].op for name in front.front}),
        "inputs": [
            {"name": cut.name, "type": cut.dtype.name, "shape": list(cut.shape),
             "length": "any" if not cut.is_padded else "fixed"} for cut in front.cuts
        ],
        "examples": [
            {"text": text, "inputs": {cut.name: np.asarray(array).tolist()
                                      for cut, array in zip(front.cuts, arrays, strict=True)}}
            for text, arrays in examples
        ],
    }  # fmt: skip


def _given(front: TextPreprocessing) -> Iterator[str]:
    for cut in front.cuts:
        sizes = ", ".join(str(size) for size in cut.shape)
        how = f"the model takes '{cut.name}' ({cut.dtype.name} [{sizes}])"
        if cut.name.endswith((STEPS, WEIGHTS)):
            yield f"{how}: texts are padded with 0 or cut to {front.length} steps"
            continue
        opened = [size for size, is_open in zip(cut.shape, cut.is_open, strict=True) if is_open]
        if opened and cut.is_padded:
            how += f": texts are padded or cut to {opened[0]} steps"
        elif opened or not cut.is_padded:
            how += ", resized to as many steps as a text has (resizeInput)"
        yield how


def _is_pooled(graph: Graph, node: Node) -> str:
    """The name of the pooled embedding that a node brings to a fixed length; "" where it is none's."""
    base = node.name.rpartition("/")[0]
    return base if f"{base}{STEPS}" in graph and f"{base}{WEIGHTS}" in graph else ""


def _weighed(graph: Graph, node: Node) -> str:
    """How much each of the words counts that are pooled."""
    if not node.name.endswith(WEIGHTS):
        return ""
    power = graph.constant(f"{_is_pooled(graph, node)}/power")
    share = {-1.0: "1 / n", -0.5: "1 / sqrt(n)"}.get(float(power.numpy()) if power is not None else 0.0, "1")
    return (
        f"give each of a text's n words the weight {share}, and 0 to what pads it; words beyond the length do not count"
    )


def _said(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    if _is_pooled(graph, node):
        return _weighed(graph, node)
    tell = TELLERS.get(node.op)
    if tell is not None:
        return tell(graph, node, files)
    if node.op in PARSERS:
        keys = ", ".join(f"'{feature.key.decode('utf-8', 'replace')}'" for feature in features_of(graph, node))
        return f"take {keys or 'the fields'} out of the record; the app has the text itself" if keys else ""
    return "" if node.op in QUIET else f"then {node.op}, as TensorFlow does ('{node.name}')"


def _constant(graph: Graph, node: Node, at: int) -> str:
    value = graph.constant(node.data_inputs[at]) if len(node.data_inputs) > at else None
    if value is None or value.size != 1:
        return ""
    item = value.numpy().reshape(-1)[0]
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else f"{item:g}"


def _text(node: Node, name: str) -> str:
    value = node.attr(name, b"")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _split(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    where = _constant(graph, node, 1)
    if not where and node.op == "StringSplit":
        return "split into single bytes"
    return f"split at '{where}'" if where else "split at white space, any number of it at a time"


def _ngrams(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    widths = node.attr("ngram_widths", ())
    counts = " or ".join(str(width) for width in widths) if isinstance(widths, tuple | list) else "some"
    said = f"join each {counts} neighbours with '{_text(node, 'separator')}' between"
    left, right = _text(node, "left_pad"), _text(node, "right_pad")
    return f"{said}, '{left}' in front of the first and '{right}' behind the last" if left or right else said


def _regex(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    pattern, new = (_text(node, "pattern"), _text(node, "rewrite")) if node.op == "StaticRegexReplace" else (
        _constant(graph, node, 1), _constant(graph, node, 2)
    )  # fmt: skip
    return f"replace what matches {pattern} by '{new}' (a regular expression of RE2)"


def _lookup(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    table = node_name(node.data_inputs[0])
    other = _constant(graph, node, 2)
    numbered = numbered_by_hash(graph, node)
    if numbered is not None:
        hashed = numbered[0]
        base, count = len(next(v for v in vocabularies(graph) if v.table == table).words), hashed.attr("num_buckets", 0)
        other = f"{base}" if count == 1 else f"{base} + {_hash(hashed)} modulo {count}"
    found = next((v for v in vocabularies(graph) if v.table == table), None)
    file = files.get(table)
    if found is None or file is None:
        return f"look each word up in the table '{table}'; {other} for others"
    which = f"the first line is {found.first}" if found.first is not None else f"{found.kind}s and their numbers"
    return (
        f"look each {found.kind} up in {file} ({counted(len(found.words), found.kind)}; {which}); {found.kind}s that "
        f"are not there are {other}"
    )


def _hash(node: Node) -> str:
    return {"StringToHashBucketFast": "FarmHash's Fingerprint64", "StringToHashBucketStrong": "SipHash"}.get(
        node.op, "TensorFlow's Hash64"
    )


def _buckets(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    lookups = [other for other in graph if other.op in ops_with("table_lookup")]
    if any(node in (numbered_by_hash(graph, lookup) or ()) for lookup in lookups):
        return ""  # said with the lookup
    count = int(node.attr("num_buckets", 0))
    return f"number each word by its hash: {_hash(node)} modulo {count:,} ({node.op}, '{node.name}')"


def _padded(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    at = 3 if node.op == "SparseToDense" else 2
    value = _constant(graph, node, at)
    return f"pad shorter texts with {value}" if value else ""


def _added(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    values = [_constant(graph, node, at) for at in (0, 1)]
    found = next((value for value in values if value), "")
    return f"add {found}" if found and found != "0" else ""


def _bounded(graph: Graph, node: Node, files: Mapping[str, str]) -> str:
    boundaries = node.attr("boundaries", ())
    listed = ", ".join(f"{number:g}" for number in boundaries) if isinstance(boundaries, tuple | list) else ""
    return f"number each by how many of these it has reached: {listed}"


TELLERS: Mapping[str, Callable[[Graph, Node, Mapping[str, str]], str]] = {
    "StringLower": lambda graph, node, files: "make letters small",
    "StringUpper": lambda graph, node, files: "make letters large",
    "StringStrip": lambda graph, node, files: "take white space off both ends",
    "StaticRegexReplace": _regex,
    "RegexReplace": _regex,
    "StringSplit": _split,
    "StringSplitV2": _split,
    "UnicodeDecodeWithOffsets": lambda graph, node, files: "take characters by their code points",
    "UnicodeDecode": lambda graph, node, files: "take characters by their code points",
    "StringNGrams": _ngrams,
    "LookupTableFindV2": _lookup,
    "LookupTableFind": _lookup,
    "StringToHashBucketFast": _buckets,
    "StringToHashBucketStrong": _buckets,
    "StringToHashBucket": _buckets,
    "SparseToDense": _padded,
    "RaggedTensorToTensor": _padded,
    "Add": _added,
    "AddV2": _added,
    "RaggedBincount": lambda graph, node, files: f"count the words by their numbers{_binary(node)}",
    "DenseBincount": lambda graph, node, files: f"count the words by their numbers{_binary(node)}",
    "Bincount": lambda graph, node, files: f"count the words by their numbers{_binary(node)}",
    "Bucketize": _bounded,
    "Pad": lambda graph, node, files: "pad shorter texts with 0",
    "PadV2": _padded,
}


def _binary(node: Node) -> str:
    return " (1 for any number of them)" if node.attr("binary_output", False) else ""


def embeds(front: TextPreprocessing) -> list[str]:
    """Tensors of floats in the part that words are looked up in by number: embeddings that the file does not have."""
    found = []
    for name in front.front:
        node = front.graph[name]
        if node.op in ("GatherV2", "Gather", "ResourceGather") and node.data_inputs:
            weights = front.graph.constant(canonical(node.data_inputs[0]))
            if weights is not None and weights.dtype.is_floating and weights.size >= 64:
                found.append(node_name(node.data_inputs[0]))
    return found
