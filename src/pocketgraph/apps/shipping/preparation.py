"""What of a graph ships: the network behind decoders of pictures and records, for one sample at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pocketgraph.apps.shipping.detection_heads import choice_words, outputs_before_selection
from pocketgraph.apps.shipping.encoded_pictures import pictures_before_encoding, pixel_entry
from pocketgraph.apps.shipping.record_entry import behind_tensors, numbers_entry
from pocketgraph.apps.shipping.single_batch import fixed_batch, for_one_sample, is_fixed_picture
from pocketgraph.datasets.class_scores import apart, judged_outputs, numbers_named, picked_note, scores_picked_from
from pocketgraph.datasets.sample_reading import Notify
from pocketgraph.errors import UsageError, command_on_model, option
from pocketgraph.freezing.tree_ensembles import PREDICT
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.entry_points import check_names, main_outputs
from pocketgraph.graph.op_traits import SAME_ELEMENTS
from pocketgraph.graph.order import reachable
from pocketgraph.kernels.shapes import infer
from pocketgraph.quantization.stated_sizes import Sizes, by_tensor, with_sizes
from pocketgraph.runtime.feeding.default_tensors import default_fetches
from pocketgraph.runtime.random_answers import without_dropout_left_on

PLACES = 1024  # from which one picture says as much as many


def prepared(
    graph: Graph,
    outputs: Sequence[str],
    reading: Mapping[str, Any],
    notify: Notify,
    inputs: Sequence[str] = (),
    shapes: Sizes | None = None,
) -> tuple[Graph, list[str], dict[str, Any]]:
    """The graph that ships, what it computes, and how samples are read for it.

    Args:
        graph: the model, frozen.
        outputs: what is to be computed.
        reading: how samples are read, as the caller says.
        notify: told what was done, a sentence each.
        inputs: tensors to feed; by default those that stand behind decoders, else the model's own.
        shapes: sizes of inputs, see ``with_sizes``.

    Raises:
        UsageError: the model is made of decision trees, or there are no such inputs.
    """
    how, shapes = dict(reading), by_tensor(graph, shapes)
    check_names(graph, outputs, is_fed=False)
    if inputs:
        graph = behind_tensors(graph, inputs, outputs)
    outputs = _before_encoding(graph, outputs, notify)
    _refuse_trees(graph, outputs)
    if not inputs:
        graph = _behind_decoders(graph, outputs, how, notify)
    graph, outputs = _before_selection(graph, outputs, notify)
    graph = without_dropout_left_on(graph, outputs, notify)
    return _for_one_sample(with_sizes(graph, outputs, shapes), outputs, notify), outputs, how


def _before_encoding(graph: Graph, outputs: Sequence[str], notify: Notify) -> list[str]:
    """The outputs, with pixels in the place of files of pictures."""
    pictures = pictures_before_encoding(graph, outputs)
    if pictures:
        notify(f"the pixels ship, {', '.join(pictures.values())}; making files of them is the app's")
    return [pictures.get(name, name) for name in outputs]


def _refuse_trees(graph: Graph, outputs: Sequence[str]) -> None:
    needed = reachable(graph, [node_name(name) for name in outputs])
    if trees := sorted(name for name in needed if graph[name].op == PREDICT):
        raise UsageError(
            f"the model is made of decision trees ('{trees[0]}'), which LiteRT has no operators for",
            hint=f"a frozen graph has them ({command_on_model('pocketgraph freeze_graph {} -o frozen.pb')}), and "
            "pocketgraph runs it",
        )


def _behind_decoders(graph: Graph, outputs: Sequence[str], how: dict[str, Any], notify: Notify) -> Graph:
    """The part that takes pixels or numbers; where the graph itself scales pixels, ``how`` says so."""
    pixels = pixel_entry(graph, outputs)
    if pixels is not None:
        notify(
            f"the part behind '{pixels.tensors[0]}' ships, which takes pixels; "
            "reading, cropping and resizing is the app's"
        )
        if pixels.mean is not None and all(how[name] is None for name in ("preset", "input_mean", "input_std")):
            how |= {"input_mean": pixels.mean, "input_std": pixels.std}
            notify(
                f"pixels are scaled as the graph does: {option('input_mean')} {pixels.mean:g}, {option('input_std')} "
                f"{pixels.std:g}"
            )
        return pixels.graph
    records = numbers_entry(graph, outputs)
    if records is None:
        return graph
    notify(
        f"the part behind {', '.join(records.tensors)} ships, which takes numbers; making them of records of "
        "tf.Example is the app's"
    )
    return records.graph


def _before_selection(graph: Graph, outputs: list[str], notify: Notify) -> tuple[Graph, list[str]]:
    """The graph and its outputs, with a detector's answers in the place of what it selects of them."""
    heads = outputs_before_selection(graph, outputs)
    if heads is None:
        return graph, outputs
    notify(
        f"the part in front of the {choice_words(graph, outputs)} ships, which gives {', '.join(heads)}; "
        "the rest is the app's"
    )
    return graph.replace(outputs=heads, signatures={}), heads


def _for_one_sample(graph: Graph, outputs: Sequence[str], notify: Notify) -> Graph:
    """The graph for a single sample, where it takes several at a time and that can be."""
    batch = fixed_batch(graph, outputs)
    single = for_one_sample(graph, outputs) if batch > 1 else None
    if single is not None:
        notify(f"the model takes {batch} samples at a time; what ships takes one, with the same results for each")
        return single
    if batch > 1 and not is_fixed_picture(graph, outputs):
        notify(f"the model takes {batch} samples at a time, and so does what ships; each is judged by itself")
    return graph


def whole_model(graph: Graph, notify: Notify) -> list[str]:
    """All outputs of the model; where nothing states them, the likeliest one and those that are no part of it, with
    scores of classes rather than the class that is picked from them."""
    stated = graph.outputs or graph.public_signatures
    if stated:
        named = default_fetches(graph)
        found = list(dict.fromkeys(judged_outputs(graph, named)))  # a signature may name one twice
        for name in named:
            if name not in found and (scores := scores_picked_from(graph, name)):
                notify(picked_note(name, scores))
        return _numbers_of_sole(graph, found, notify)
    guessed = main_outputs(graph) or list(default_fetches(graph))[:1]
    for name in guessed:
        if scores := scores_picked_from(graph, name):
            notify(f"{picked_note(name, scores)}; {option('outputs')}={name} ships the place alone")
    found = list(dict.fromkeys(scores_picked_from(graph, name) or name for name in guessed))
    return _numbers_of_sole(graph, found, notify)


def _numbers_of_sole(graph: Graph, names: list[str], notify: Notify) -> list[str]:
    """The numbers that the only output names by a table, which says no scores; else the outputs."""
    numbers = numbers_named(graph, names[0]) if len(names) == 1 else None
    if numbers is None:
        return names
    notify(f"'{names[0]}' gives texts, which do not ship; '{numbers}' gives the numbers that they name")
    return [numbers]


def numbers_and_texts(graph: Graph, names: Sequence[str], *, in_order: bool) -> tuple[list[str], list[str]]:
    """The outputs that are numbers, as they are or with what the model is judged by first (shares, then other floats);
    and the texts."""
    check_names(graph, names, is_fed=False)
    if len(names) == 1:
        return list(names), []
    inferred = infer(graph)

    def order(name: str) -> int:
        dtype = inferred.dtype(canonical(name))
        node = graph.find_producer(name, SAME_ELEMENTS) or graph.producer(name)
        return 2 if dtype is None or not dtype.is_floating else 0 if node.op in ("Softmax", "Sigmoid") else 1

    texts = [name for name in names if inferred.dtype(canonical(name)) is STRING]
    left = [name for name in names if name not in texts]
    left = left if in_order else sorted(left, key=order)
    return ([apart(graph, name) for name in left], texts) if texts and left else (left or list(names), [])


def answers_for_places(graph: Graph, outputs: Sequence[str]) -> bool:
    """Whether all outputs are pictures, with an answer for each of many places or for as many as there are."""
    inferred = infer(graph)
    shapes = [inferred.shape(canonical(name)).dims for name in outputs]
    return all(
        shape is not None and len(shape) == 4 and (shape[1] or PLACES) * (shape[2] or PLACES) >= PLACES
        for shape in shapes
    )
