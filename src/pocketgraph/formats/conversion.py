"""From one form of a file to another that carries the same information; what would lose a model is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pocketgraph import formats
from pocketgraph.errors import FormatError, UsageError, option, path_of
from pocketgraph.formats import meta_graph
from pocketgraph.formats.detect import CHECKPOINTS, Kind, identify, model_at
from pocketgraph.formats.files import PathLike, mapped
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.entry_points import check_names
from pocketgraph.graph.op_traits import VARIABLES

TARGET_FORMS = ("graphdef", "text", "memmapped", "saved_model", "meta", "checkpoint")
SUFFIXES = {
    ".pb": "graphdef", ".pbtxt": "text", ".meta": "meta", ".mmap": "memmapped", ".memmapped": "memmapped",
    ".ckpt": "checkpoint", ".index": "checkpoint",
}  # fmt: skip


@dataclass(frozen=True)
class ConvertedFile:
    """What was done.

    Attributes:
        source: what the input is, in words.
        form: the form that was written, one of TARGET_FORMS.
        left_out: what of the input the new form has no place for and a frozen model does not need.
    """

    source: str
    form: str
    left_out: tuple[str, ...] = ()


def convert(
    source: PathLike,
    target: PathLike,
    to: str = "",
    *,
    tags: str | Iterable[str] | None = None,
    signature: str | None = None,
    inputs: Iterable[str] = (),
    outputs: Iterable[str] = (),
    min_size: int | None = None,
    shapes_of: Callable[[Graph], Mapping[str, Shape]] | None = None,
    with_shapes: Callable[[Graph], Graph] | None = None,
) -> ConvertedFile:
    """Writes the model or checkpoint at ``source`` in another form.

    Args:
        source: a graph in any form that ``load`` takes, or a checkpoint.
        target: where to. Its suffix says the form when ``to`` does not: .pb, .pbtxt, .meta, .mmap; no suffix is a
            SavedModel's directory, or the prefix of a checkpoint.
        to: one of TARGET_FORMS.
        tags, signature: which graph of a SavedModel, as for ``load``.
        inputs, outputs: of the signature that a SavedModel or MetaGraphDef gets when the input has none; by default the
            nodes that stand out.
        min_size: of the constants that go into regions of a memory-mapped package, in bytes.
        shapes_of: infers the shapes of the tensors in a graph's signatures, for the forms that state them.
        with_shapes: writes shapes into the graph's nodes.

    Raises:
        FormatError: the form cannot carry what the input holds; the message says what would be lost.
        UsageError: there is no such form, or nothing says which is meant.
    """
    source = model_at(path_of(source))
    identity = identify(source)
    if identity.kind is Kind.MISSING:
        raise identity.refusal()
    is_checkpoint = identity.kind in CHECKPOINTS
    form = to or form_of(os.fspath(target), is_checkpoint)
    if form not in TARGET_FORMS:
        raise UsageError(f"there is no form '{form}'", hint=f"there are {', '.join(TARGET_FORMS)}")
    if is_checkpoint != (form == "checkpoint"):
        raise FormatError(
            f"this is {identity.description}, which cannot become "
            + ("a checkpoint: constants are not variables" if form == "checkpoint" else "a graph"),
            where=source, hint="" if form == "checkpoint" else identity.next,
        )  # fmt: skip
    if is_checkpoint:
        if with_shapes is not None:
            raise UsageError(f"{option('shapes')} is for graphs, and this is {identity.description}")
        from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint

        write_checkpoint(os.fspath(target).removesuffix(".index"), formats.open_checkpoint(source))
        return ConvertedFile(identity.description, form)
    graph = formats.load(source, tags=tags, signature=signature)
    check_names(graph, inputs, is_fed=True)
    check_names(graph, outputs, is_fed=False)
    graph = graph.replace(inputs=tuple(inputs) or graph.inputs, outputs=tuple(outputs) or graph.outputs)
    lost = left_out(graph, identity.kind, source, form, tags)
    shapes = shapes_of(graph) if shapes_of is not None and form in ("saved_model", "meta") else None
    if with_shapes is not None:
        graph = with_shapes(graph)
    write(graph, target, form, min_size, shapes)
    return ConvertedFile(identity.description, form, tuple(lost))


def form_of(target: str, is_checkpoint: bool) -> str:
    """The form that a path's name stands for."""
    suffix = os.path.splitext(target)[1].lower()
    if is_checkpoint and suffix not in (".pb", ".pbtxt", ".meta", ".mmap", ".memmapped"):
        return "checkpoint"  # prefixes look like model.ckpt-1000 or anything else
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if not suffix or target.endswith(os.sep):
        return "saved_model"
    raise UsageError(
        f"the suffix {suffix} says no form", where=target, hint=f"add {option('to')}={'|'.join(TARGET_FORMS)}"
    )


def left_out(graph: Graph, kind: Kind, source: str, form: str, tags: str | Iterable[str] | None) -> list[str]:
    """What the new form does not carry, in words.

    Raises:
        FormatError: it is more than a frozen model can do without.
    """
    variables = sum(node.op in VARIABLES for node in graph)
    saved_model = kind in (Kind.SAVED_MODEL, Kind.SAVED_MODEL_FILE, Kind.SAVED_MODEL_TEXT)
    if variables and saved_model:
        folder = source if kind is Kind.SAVED_MODEL else os.path.dirname(source) or "."
        raise FormatError(
            f"the values of the SavedModel's {variables} variables would be lost", where=source,
            hint=f"freeze it first: pocketgraph freeze_graph --input_saved_model_dir={folder}",
        )  # fmt: skip
    lost = []
    if graph.public_signatures and form in ("graphdef", "text", "memmapped"):
        lost.append(f"the signatures {', '.join(graph.public_signatures)}")
    if kind in (Kind.META_GRAPH, Kind.SAVED_MODEL, Kind.SAVED_MODEL_FILE):
        chosen = meta_graph.parse(mapped(source), source) if kind is Kind.META_GRAPH else None
        if chosen is None:
            chosen = meta_graph.with_tags(meta_graph.read_saved_model(source), tags, source)
        names = {3: "the saver", 4: "the collections", 6: "the list of asset files", 7: "the object graph"}
        numbers = meta_graph.field_numbers(chosen.encoded)
        if 6 in numbers and saved_model:
            raise FormatError(
                "the graph reads asset files that lie in the SavedModel's directory and would be lost", where=source,
                hint="freeze it, which says which tables need them: pocketgraph freeze_graph",
            )  # fmt: skip
        lost += [names[number] for number in sorted(numbers) if number in names]
    return lost


def write(graph: Graph, target: PathLike, form: str, min_size: int | None, shapes: Mapping[str, Shape] | None) -> None:
    """Writes a graph in one of TARGET_FORMS."""
    if form == "memmapped" and min_size is not None:
        from pocketgraph.formats.memmapped_writer import save_memmapped

        save_memmapped(graph, target, min_size)
    elif form in ("saved_model", "meta"):
        from pocketgraph.formats import meta_graph_writer

        writer = meta_graph_writer.save_saved_model if form == "saved_model" else meta_graph_writer.save_meta_graph
        writer(graph, target, shapes=shapes)
    else:
        formats.save(graph, target, form=form)
