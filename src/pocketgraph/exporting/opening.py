"""A model file or graph as what exporters take: frozen, with entry points that have public names and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pocketgraph.datasets.class_scores import outputs_of_numbers
from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.exporting.entry_sizes import check_sizes_used, named_sizes, sized_entry
from pocketgraph.exporting.model import EntryPoint, ExportModel, Source
from pocketgraph.exporting.text_opening import Texts, outputs_behind, text_front, with_sizes_said
from pocketgraph.exporting.training.training_models import TrainingModel, training_model
from pocketgraph.freezing.ready_models import read_model
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.order import reachable
from pocketgraph.passes.dropout_removal import without_dropout
from pocketgraph.passes.partitioned_lookups import with_joined_tables
from pocketgraph.passes.training_switches import switches_note, training_switches
from pocketgraph.quantization.audio_preprocessing import (
    AudioPreprocessing,
    audio_preprocessing_of,
    behind_audio_preprocessing,
)
from pocketgraph.quantization.float_program import with_value
from pocketgraph.quantization.stated_sizes import Sizes, by_tensor
from pocketgraph.quantization.text_preprocessing import TextPreprocessing
from pocketgraph.runtime.feeding.default_tensors import (
    default_fetches,
    is_cached_layer,
    needed_placeholders,
    side_effects,
)
from pocketgraph.runtime.feeding.synthetic_feeds import check_mapping
from pocketgraph.runtime.random_answers import DRAWS, without_dropout_left_on
from pocketgraph.runtime.tensor_names import feed_endpoints, fetch_endpoint

VARIABLE = "variable "
"""Before a variable's name, so that it is none of an input's or output's."""


def opened(
    source: Source,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    signatures: Sequence[str] | None = None,
    shapes: Sizes | None = None,
    values: Mapping[str, Any] | None = None,
    notify: Callable[[str], None] | None = None,
    texts: Texts | None = None,
    takes_texts: bool = False,
    keep_dropout: bool = False,
) -> ExportModel:
    """A model ready for an exporter.

    Args:
        source: a graph, or what ``read_model`` takes: a model file, or the directory of a SavedModel or training.
        inputs: tensors to feed; by default the signatures' or the placeholders that the outputs need.
        outputs: tensors to compute; by default those of the signatures, else the likely outputs.
        signatures: the keys of the signatures to take; by default all, the main one first.
        shapes: sizes of inputs, by public name or tensor name; what is open is fixed to them.
        values: what other placeholders are set to for good, such as ``{"keep_prob": 1.0}``.
        notify: told what had to be frozen, a sentence each.
        texts: samples of a model that takes texts, by which their lengths are chosen.
        takes_texts: whether the target holds what reads texts, so that nothing is cut off.
        keep_dropout: whether a dropout, or noise, that training left on stays; it does where ``inputs`` feed its draws.

    Raises:
        UsageError: there are no such names; the rank of an input is not known.
        FormatError, FreezeError: the file is damaged, or variables have no values.
    """
    check_mapping(shapes)
    training = training_model(source, signatures) if not inputs and not outputs else None
    if training is not None:
        return _opened_training(training, shapes or {}, dict(values or {}))
    one = signatures[0] if signatures and len(signatures) == 1 else None
    graph = source if isinstance(source, Graph) else read_model(source, outputs, signature=one, notify=notify)
    fixed = dict(values or {})
    check_names(graph, fixed, is_fed=True)
    switches = training_switches(graph, [*fixed, *(inputs or ())])
    fixed |= switches
    graph = with_joined_tables(graph.map_nodes(lambda node: with_value(node, fixed)))
    graph = without_defaults(
        graph, [*(inputs or ()), *(t for s in graph.signatures.values() for t in s.inputs.values())]
    )
    chosen, notes = _chosen(graph, signatures, is_named=bool(inputs or outputs))
    shapes = (shapes or {}) if chosen else by_tensor(graph, shapes)
    front = reads = None
    if not inputs and not takes_texts:
        reads, graph, chosen, shapes = _behind_texts(graph, chosen, outputs, fixed, texts, shapes)
    if not chosen:
        chosen, graph, front = _sole(graph, inputs, outputs)
    if not keep_dropout and not any(graph[node_name(name)].op in DRAWS for name in inputs or ()):  # whose draws are fed
        wanted = [tensor for signature in chosen.values() for tensor in signature.outputs.values()]
        graph = without_dropout_left_on(graph, wanted, notes.append)
    graph = without_dropout(graph, only_noop=True)[0]
    if not outputs and not takes_texts:
        chosen = {key: _without_texts(graph, signature, notes.append) for key, signature in chosen.items()}
    entries = _entries(graph, chosen, fixed, shapes)
    notes += [switches_note(switches)] if switches else []
    notes += _unchecked_assertions(graph, [port.tensor for entry in entries for port in entry.outputs])
    return ExportModel(graph, tuple(entries), front=front, notes=tuple(notes), texts=reads)


def _chosen(
    graph: Graph, signatures: Sequence[str] | None, *, is_named: bool
) -> tuple[dict[str, Signature], list[str]]:
    """The signatures to export, and what is to be said of others; none where inputs or outputs are named.

    Raises:
        UsageError: there is no such signature, or tensors are named besides.
    """
    chosen = {} if is_named else _signatures(graph, signatures)
    if not signatures:
        return _that_devices_take(graph, chosen)
    if not chosen:
        raise UsageError(
            f"{option('signatures')} and {option('inputs')} or {option('outputs')} do not go together",
            hint="give one of the two",
        )
    return chosen, []


def _behind_texts(
    graph: Graph,
    chosen: dict[str, Signature],
    outputs: Sequence[str] | None,
    fixed: Mapping[str, Any],
    texts: Texts | None,
    shapes: Sizes,
) -> tuple[TextPreprocessing | None, Graph, dict[str, Signature], Sizes]:
    """What reads the model's texts, the graph behind it with its one entry point, and the sizes; else all as it is."""
    sized, said = with_sizes_said(graph, chosen, shapes)
    reads = text_front(sized, chosen, outputs, fixed, texts)
    if reads is None:
        return None, graph, chosen, shapes
    kept = {cut.name for cut in reads.cuts}
    entry = Signature({cut.name: canonical(cut.name) for cut in reads.cuts}, outputs_behind(graph, chosen, outputs))
    known = {cut.name: cut.shape for cut in reads.cuts if texts is None}
    stated = {name: size for name, size in shapes.items() if name in kept or name not in said}
    return reads, reads.behind(is_open=True), {DEFAULT_SIGNATURE: entry}, {**known, **stated}


def _entries(
    graph: Graph, chosen: Mapping[str, Signature], fixed: Mapping[str, Any], shapes: Sizes
) -> list[EntryPoint]:
    """The entry points, without inputs that are ``fixed``.

    Raises:
        UsageError: there are sizes of other inputs.
    """
    sizes = named_sizes(shapes, chosen)
    unused = dict(sizes)
    entries = []
    for key, signature in chosen.items():
        inside = {name: tensor for name, tensor in signature.inputs.items() if node_name(tensor) not in fixed}
        entries.append(sized_entry(graph, key, Signature(inside, signature.outputs, signature.method), sizes, unused))
    check_sizes_used(unused, entries)
    return entries


def _unchecked_assertions(graph: Graph, outputs: Sequence[str]) -> list[str]:
    """What is to be said of assertions, which devices do not check."""
    found = [name for name in reachable(graph, outputs) if graph[name].op == "Assert"]
    if not found:
        return []
    return [f"assertions are left out ({len(found)}): devices do not check '{min(found)}'" + ", …" * (len(found) > 1)]


def _opened_training(training: TrainingModel, shapes: Sizes, fixed: dict[str, Any]) -> ExportModel:
    """The model with its variables."""
    graph = training.graph.map_nodes(lambda node: with_value(node, fixed))
    chosen = {key: Signature(f.inputs, f.outputs) for key, f in training.functions.items()}
    sizes = named_sizes(shapes, chosen)
    unused = dict(sizes)
    entries = []
    for key, function in training.functions.items():
        inside = {name: tensor for name, tensor in function.inputs.items() if node_name(tensor) not in fixed}
        # Sizes may be said for one signature alone, as in "train/x".
        own = {name.removeprefix(f"{key}/"): size for name, size in sizes.items() if name.startswith(f"{key}/")}
        for name in own:
            if name in inside:
                unused.pop(f"{key}/{name}", None)
        values = {f"{VARIABLE}{name}": tensor for name, tensor in function.reads.items()}
        changed = {f"{VARIABLE}{name}": tensor for name, tensor in function.writes.items()}
        signature = Signature({**inside, **values}, {**function.outputs, **changed})
        entry = sized_entry(graph, key, signature, {**sizes, **own}, unused)
        entries.append(
            EntryPoint(key, *(
                tuple(port for port in ports if not port.name.startswith(VARIABLE))
                for ports in (entry.inputs, entry.outputs)
            ), *(
                tuple(replace(port, name=port.name.removeprefix(VARIABLE)) for port in ports
                      if port.name.startswith(VARIABLE))
                for ports in (entry.inputs, entry.outputs)
            ))
        )  # fmt: skip
    check_sizes_used(unused, entries)
    return ExportModel(graph, tuple(entries), variables=training.variables, original=training.original)


def without_defaults(graph: Graph, fed: Sequence[str]) -> Graph:
    """The graph with the defaults in place of placeholders that stand for a layer; those that are ``fed`` stay."""
    named = {node_name(name) for name in fed}

    def resolved(node: Node) -> Node:
        if node.name in named or not is_cached_layer(graph, node):
            return node
        return Node(node.name, "Identity", node.inputs, {"T": node.attr("dtype", FLOAT)}, node.device)

    return graph.map_nodes(resolved)


def _signatures(graph: Graph, wanted: Sequence[str] | None) -> dict[str, Signature]:
    """The signatures to export; the default one first, those that share all their tensors with another one once."""
    found = {key: s for key, s in graph.public_signatures.items() if s.outputs}
    if wanted:
        for key in wanted:
            if key not in found:
                hint = did_you_mean(key, found) or (f"it has {', '.join(found)}" if found else "it has none")
                raise UsageError(f"the graph has no signature '{key}'", hint=hint)
        return {key: found[key] for key in wanted}
    return dict(sorted(found.items(), key=lambda item: item[0] != DEFAULT_SIGNATURE))


def _that_devices_take(graph: Graph, chosen: Mapping[str, Signature]) -> tuple[dict[str, Signature], list[str]]:
    """The signatures without those that take texts, as TensorFlow Serving's take encoded examples, or change variables,
    as training does; and what is to be said of these. All of them where none would be left."""
    left: dict[str, Signature] = {}
    notes = []
    for key, signature in chosen.items():
        texts = [name for name, tensor in signature.inputs.items() if graph.producer(tensor).attr("dtype") is STRING]
        if texts:
            notes.append(
                f"left out the signature '{key}': '{texts[0]}' takes texts ({option('signatures')}={key} takes it)"
            )
        elif side_effects(graph, list(signature.outputs.values())):
            notes.append(f"left out the signature '{key}': it changes variables or touches files")
        else:
            left[key] = signature
    return (left, notes) if left else (dict(chosen), [])


def _without_texts(graph: Graph, signature: Signature, notify: Callable[[str], None]) -> Signature:
    """A signature without outputs of texts, unless it has no others."""
    numbers = outputs_of_numbers(graph, list(signature.outputs.values()), notify)
    return Signature(
        signature.inputs, {name: at for name, at in signature.outputs.items() if at in numbers}, signature.method
    )


def _sole(
    graph: Graph, inputs: Sequence[str] | None, outputs: Sequence[str] | None
) -> tuple[dict[str, Signature], Graph, AudioPreprocessing | None]:
    """The one entry point of a graph without signatures, with the graph, and what was cut off: it reads recordings."""
    fetches = list(outputs) if outputs else list(default_fetches(graph))
    for name in fetches:
        fetch_endpoint(graph, name)
    front = None
    if inputs:
        fed = [str(endpoint) for endpoint in feed_endpoints(graph, dict.fromkeys(inputs))]
    else:
        front = audio_preprocessing_of(graph, fetches)
        if front is not None:
            graph = behind_audio_preprocessing(graph, front.shapes)
        fed = list(front.shapes) if front is not None else needed_placeholders(graph, fetches)
    return {DEFAULT_SIGNATURE: Signature(_named(fed), _named(fetches))}, graph, front


def _named(tensors: Sequence[str]) -> dict[str, str]:
    return {canonical(name).removesuffix(":0"): canonical(name) for name in tensors}
