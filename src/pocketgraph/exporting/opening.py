"""A model file or graph as what exporters take: frozen, with entry points that have public names and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pocketgraph.datasets.class_scores import outputs_of_numbers
from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.exporting.model import EntryPoint, ExportModel, Port, Source
from pocketgraph.exporting.text_opening import Texts, outputs_behind, text_front, with_sizes_said
from pocketgraph.exporting.training.training_models import TrainingModel, training_model
from pocketgraph.freezing.ready_models import read_model
from pocketgraph.graph import Graph, Node, Shape, canonical, node_name
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.model_file_graph import is_model_file
from pocketgraph.graph.op_traits import PLACEHOLDERS
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.pages.quantities import counted
from pocketgraph.passes.dropout_removal import without_dropout
from pocketgraph.passes.graph_resizing import graph_resizing
from pocketgraph.passes.partitioned_lookups import with_joined_tables
from pocketgraph.passes.training_switches import dropout_share, switches_note, training_switches
from pocketgraph.quantization.audio_preprocessing import (
    AudioPreprocessing,
    audio_preprocessing_of,
    behind_audio_preprocessing,
)
from pocketgraph.quantization.float_program import with_value
from pocketgraph.quantization.stated_sizes import Sizes, by_tensor
from pocketgraph.runtime.feeding.default_tensors import (
    default_fetches,
    is_cached_layer,
    needed_placeholders,
    side_effects,
)
from pocketgraph.runtime.feeding.feeds import FeedSpec
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes, synthetic_sizes
from pocketgraph.runtime.random_answers import DRAWS, without_dropout_left_on
from pocketgraph.runtime.tensor_names import feed_endpoint, feed_endpoints, fetch_endpoint

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
    chosen = _signatures(graph, signatures) if not inputs and not outputs else {}
    notes: list[str] = []
    if not signatures:
        chosen, notes = _that_devices_take(graph, chosen)
    if signatures and not chosen:
        raise UsageError(
            f"{option('signatures')} and {option('inputs')} or {option('outputs')} do not go together",
            hint="give one of the two",
        )
    front = None
    shapes = shapes if chosen else by_tensor(graph, shapes or {})
    sized, said = with_sizes_said(graph, chosen, shapes or {})
    reads = None if inputs or takes_texts else text_front(sized, chosen, outputs, fixed, texts)
    if reads is not None:
        ends = outputs_behind(graph, chosen, outputs)
        kept = {cut.name for cut in reads.cuts}
        shapes = {name: size for name, size in (shapes or {}).items() if name in kept or name not in said}
        graph = reads.behind(is_open=True)
        chosen = {DEFAULT_SIGNATURE: Signature({cut.name: canonical(cut.name) for cut in reads.cuts}, ends)}
        shapes = {**{cut.name: cut.shape for cut in reads.cuts if texts is None}, **(shapes or {})}
    elif not chosen:
        chosen, graph, front = _sole(graph, inputs, outputs)
    if not keep_dropout and not any(graph[node_name(name)].op in DRAWS for name in inputs or ()):  # whose draws are fed
        wanted = [tensor for signature in chosen.values() for tensor in signature.outputs.values()]
        graph = without_dropout_left_on(graph, wanted, notes.append)
    graph = without_dropout(graph, only_noop=True)[0]
    if not outputs and not takes_texts:
        chosen = {key: _without_texts(graph, signature, notes.append) for key, signature in chosen.items()}
    entries = []
    sizes = _named_sizes(shapes or {}, chosen)
    unused = dict(sizes)
    for key, signature in chosen.items():
        inside = {name: tensor for name, tensor in signature.inputs.items() if node_name(tensor) not in fixed}
        entries.append(_entry(graph, key, Signature(inside, signature.outputs, signature.method), sizes, unused))
    _check_sizes_used(unused, entries)
    notes += [switches_note(switches)] if switches else []
    notes += _unchecked_assertions(graph, [port.tensor for entry in entries for port in entry.outputs])
    return ExportModel(graph, tuple(entries), front=front, notes=tuple(notes), texts=reads)


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
    sizes = _named_sizes(shapes, chosen)
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
        entry = _entry(graph, key, signature, {**sizes, **own}, unused)
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
    _check_sizes_used(unused, entries)
    return ExportModel(graph, tuple(entries), variables=training.variables, original=training.original)


def _check_sizes_used(unused: Mapping[str, Any], entries: Sequence[EntryPoint]) -> None:
    """Refuses sizes of inputs that are not there.

    Raises:
        UsageError: there are some.
    """
    if unused:
        known = [port.name for entry in entries for port in entry.inputs]
        name = next(iter(unused))
        raise UsageError(f"there is no input '{name}' to give a shape", hint=did_you_mean(name, known))


def _named_sizes(shapes: Sizes, chosen: Mapping[str, Signature]) -> dict[str, Sequence[int]]:
    """Shapes by name; "" stands for the only input.

    Raises:
        UsageError: there are several inputs.
    """
    found = dict(shapes)
    if "" in found:
        inputs = list(dict.fromkeys(name for signature in chosen.values() for name in signature.inputs))
        if len(inputs) != 1:
            raise UsageError(
                f"there are {counted(len(inputs), 'input')} ({', '.join(inputs)})",
                hint=f"{option('input_shape', 'shapes')}=NAME:SIZES",
            )
        found[inputs[0]] = found.pop("")
    return found


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


def _entry(graph: Graph, key: str, signature: Signature, shapes: Sizes, unused: dict[str, Any]) -> EntryPoint:
    declared = infer(graph, outputs=[*signature.inputs.values(), *signature.outputs.values()])
    said = {
        tensor: next((s for s in (name, tensor, canonical(tensor), node_name(tensor)) if s in shapes), None)
        for name, tensor in signature.inputs.items()
    }
    fitting = _fitting_sizes(graph, signature, [tensor for tensor, given in said.items() if given is not None])
    inputs = []
    for name, tensor in signature.inputs.items():
        given = said[tensor]
        unused.pop(given or "", None)
        sizes = shapes[given] if given is not None else None
        inputs.append(_input(graph, declared, name, tensor, sizes, fitting.get(canonical(tensor))))
    outputs = [
        Port(name, canonical(tensor), FLOAT, declared.shape(canonical(tensor)).dims, None)
        for name, tensor in signature.outputs.items()
    ]
    return _with_outputs(graph, EntryPoint(key, tuple(inputs), tuple(outputs)))


def _fitting_sizes(graph: Graph, signature: Signature, known: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Sizes of placeholders that fit the weights behind them, by tensor; none where they cannot be found."""
    try:
        found = synthetic_shapes(graph, list(signature.outputs.values()), known)
    except UsageError:
        return {}
    return {canonical(name): sizes for name, sizes in found.items()}


def _with_outputs(graph: Graph, entry: EntryPoint) -> EntryPoint:
    """The entry point with what follows for its outputs from the types and sizes of its inputs."""
    feeds = {port.tensor: (port.dtype, Shape(port.sizes)) for port in entry.inputs}
    known = infer(graph, feeds, outputs=[port.tensor for port in entry.outputs])
    outputs, batches = [], {p.sizes[0] for p in entry.inputs if p.sizes and p.shape and p.shape[0] is None}
    for port in entry.outputs:
        dtype, sizes = known.dtype(port.tensor) or FLOAT, known.shape(port.tensor).dims
        if sizes and sizes[0] is None and len(batches) == 1 and is_model_file(graph):  # whose operators infer nothing
            sizes = (*batches, *sizes[1:])
        whole = None if sizes is None or None in sizes else tuple(size for size in sizes if size is not None)
        outputs.append(replace(port, dtype=dtype.base, sizes=whole))
    return replace(entry, outputs=tuple(outputs))


def with_sizes(model: ExportModel, sizes: Sizes) -> ExportModel:
    """The model with other ``sizes`` of inputs of the main entry point, by tensor name; open sizes stay open."""
    main = model.main
    inputs = tuple(
        replace(port, sizes=tuple(sizes[port.tensor]), is_told=True) if port.tensor in sizes else port
        for port in main.inputs
    )
    return replace(model, entries=(_with_outputs(model.graph, replace(main, inputs=inputs)), *model.entries[1:]))


def _input(
    graph: Graph,
    declared: Inferred,
    name: str,
    tensor: str,
    given: Sequence[int] | None,
    fitting: tuple[int, ...] | None,
) -> Port:
    """An input; its sizes are those ``given``, else those ``fitting`` the weights where the graph leaves them open."""
    ref = canonical(tensor)
    node = graph.producer(ref)
    dims = declared.shape(ref).dims
    dtype = (declared.dtype(ref) or FLOAT).base
    if node.op in PLACEHOLDERS or dims is None:  # which may declare more, or, in old files, mean less by []
        spec = FeedSpec.of(graph, feed_endpoint(graph, ref), name)
        stated = graph.declared_shape(node.name)
        dims, dtype = spec.shape.dims, spec.dtype or dtype
        if given is None and dims is None and stated is not None:
            dims = stated.dims
        if given is None and not dims and fitting:
            return Port(name, ref, dtype, fitting, fitting)
    if given is not None:
        sizes = tuple(int(size) for size in given)
        if (dims is not None and not Shape(dims).fits(sizes)) or min(sizes, default=1) < 0:
            raise UsageError(f"the input '{name}' has the shape {_text(dims)}, {list(sizes)} does not fit")
        return Port(name, ref, dtype, sizes, sizes)
    if dims is None:
        raise UsageError(
            f"the graph does not say how many dimensions the input '{name}' has",
            hint=f"set it for good: {option('feed', 'values')}={name}=1"
            if dropout_share(graph, node.name) is not None
            else f"say it with its sizes, as in {option('input_shape', 'shapes')}={name}:1,224,224,3",
        )
    return Port(
        name, ref, dtype, dims, fitting if fitting and Shape(dims).fits(fitting) else synthetic_sizes(dims, dtype)
    )


def _text(dims: Sequence[int | None] | None) -> str:
    return "?" if dims is None else "[" + ", ".join("?" if size is None else str(size) for size in dims) + "]"


def as_large_as_resized(model: ExportModel, made_of: Graph) -> tuple[ExportModel, list[str]]:
    """The model whose main entry point takes pictures in the size to which its graph, or that which its finished file
    was ``made_of``, resizes them, where it leaves theirs open; and a note of each."""
    notes, inputs = [], []
    for port in model.main.inputs:
        shape = port.shape or ()
        is_open = len(shape) == 4 and shape[1] is shape[2] is None
        own = graph_resizing(made_of, port.tensor) if is_open else None
        if own is not None:
            how = (
                f"; it does so by {own.special}, the project without, so pixels differ a little" if own.special else ""
            )
            notes.append(
                f"pictures are {own.width} x {own.height}, as the graph resizes those of '{port.name}' to that{how}"
            )
            picture = *own.size, shape[3] or 3
            port = replace(port, shape=(shape[0], *picture), sizes=(shape[0] or 1, *picture))
        inputs.append(port)
    entry = _with_outputs(model.graph, replace(model.main, inputs=tuple(inputs))) if notes else model.main
    return replace(model, entries=(entry, *model.entries[1:])), notes


def with_fixed_shapes(model: ExportModel) -> ExportModel:
    """The model with every open size of its inputs as the number in ``sizes``; for targets that need fixed ones."""
    entries = []
    for entry in model.entries:
        inputs = tuple(replace(port, shape=port.sizes) for port in entry.inputs)
        outputs = tuple(replace(port, shape=port.sizes) for port in entry.outputs)
        entries.append(replace(entry, inputs=inputs, outputs=outputs))
    return replace(model, entries=tuple(entries))
