"""Which of a model's outputs the data's classes or numbers are of, so that it is judged by that one."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.datasets.class_labels import two_classes
from pocketgraph.datasets.class_scores import says_scores
from pocketgraph.datasets.evaluation_dataset import Dataset
from pocketgraph.datasets.sample_reading import Notify
from pocketgraph.errors import option
from pocketgraph.graph import Graph
from pocketgraph.quantization.evaluation.runnable_models import GraphModel, LiteRTModel, RunnableModel


def with_labelled_first(
    graph: Graph, outputs: Sequence[str], model: RunnableModel, data: Dataset, names: Sequence[str] | None
) -> list[str]:
    """The outputs, first the one that the samples' classes are of, scores that are as many, or the only one with as
    many numbers as the samples have; as they are where none is.

    Args:
        graph: the model.
        outputs: its outputs, as ``model`` gives them.
        model: the model, to be run on one sample.
        data: the samples.
        names: of the classes, in the order of scores; None where nobody said them.
    """
    found = list(outputs)
    if len(found) < 2 or not (data.classes or data.targets is not None):
        return found
    answers = model.run(next(iter(data.take(1).samples())))
    fitting = [name for name, answer in zip(outputs, answers, strict=False) if data.wanted(answer.size) is not None]
    if not data.classes and len(fitting) == 1:
        return [*fitting, *(other for other in found if other != fitting[0])]
    for name, answer in zip(outputs, answers, strict=False):
        width = answer.shape[-1] if answer.ndim == 2 and answer.dtype.kind == "f" and says_scores(graph, name) else 0
        is_of_two = width == 1 and two_classes(data.classes, names) is not None
        is_row = width > 1 and (names is None or len(names) == width) and data.truth(names, width) is not None
        if is_of_two or is_row:
            return [name, *(other for other in found if other != name)]
    return found


def judge_by_labelled(
    models: Sequence[RunnableModel],
    runs: RunnableModel,
    data: Dataset,
    names: Sequence[str] | None,
    notify: Notify,
) -> None:
    """Has models of several outputs give the one first that the samples' classes or numbers are of.

    Args:
        models: graphs and files, whose outputs are in one order.
        runs: the first of them, as it takes the samples.
        data: the samples.
        names: of the classes, in the order of scores; None where nobody said them.
        notify: told by which output they are judged, where it is not the first.
    """
    first = models[0]
    if not isinstance(first, GraphModel | LiteRTModel) or len(first.outputs) < 2:
        return
    if not data.classes and data.targets is None:
        return
    graph = first.graph if isinstance(first, GraphModel) else first.as_graph()
    chosen = with_labelled_first(graph, first.outputs, runs, data, names)[0]
    place = first.outputs.index(chosen)
    if not place:
        return
    for model in models:
        if isinstance(model, GraphModel | LiteRTModel) and len(model.outputs) > place:
            model.judge_by(place)
    notify(f"judged by '{chosen}', which the data are of; {option('outputs')} chooses another")
