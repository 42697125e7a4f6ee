"""Which outputs are judged as numbers, where nothing says that they are scores of classes."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.datasets.class_scores import says_scores
from pocketgraph.datasets.evaluation_dataset import Dataset
from pocketgraph.errors import option
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.probabilities import are_probabilities
from pocketgraph.quantization.evaluation.runnable_models import RunnableModel


def likely_numbers(graph: Graph, outputs: Sequence[str], model: RunnableModel, data: Dataset) -> set[str]:
    """The outputs that give several numbers, of which neither an op, a name, their range nor the data's classes say
    that they are scores of classes. Of pictures and recordings, which are in files, most models tell classes.

    Args:
        graph: the model.
        outputs: its outputs, as ``model`` gives them.
        model: the model, to be run on one sample.
        data: the samples.
    """
    unsaid = {name for name in outputs if not says_scores(graph, name)}
    if not unsaid or data.files or data.classes:
        return set()
    answers = model.run(next(iter(data.take(1).samples())))
    return {name for name, answer in zip(outputs, answers, strict=False) if name in unsaid and _are_numbers(answer)}


def _are_numbers(answer: Array) -> bool:
    return answer.ndim == 2 and answer.dtype.kind == "f" and answer.shape[1] > 1 and not are_probabilities(answer)


def assumed_numbers(name: str) -> str:
    """What was assumed of such an output, and how to say otherwise."""
    return (
        f"what the numbers of '{name}' are: they were taken for values such as forecasts, and judged by signal to "
        f"noise; if they are scores of classes, {option('max_accuracy_drop')}=5 judges by how many answers change"
    )
