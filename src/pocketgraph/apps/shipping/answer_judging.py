"""How the answers of what ships are judged: as classes or as numbers, and whether they keep what may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pocketgraph.apps.shipping.held_back import is_retrained
from pocketgraph.datasets.class_labels import tells_two
from pocketgraph.datasets.class_scores import says_boxes, says_scores
from pocketgraph.datasets.evaluation_dataset import Dataset
from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.labels import check_count
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.probabilities import are_probabilities
from pocketgraph.kernels.shapes import infer
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.evaluation.model_verdict import ModelVerdict
from pocketgraph.quantization.evaluation.runnable_models import RunnableModel
from pocketgraph.runtime.comparison.answer_metrics import LEAST_DECIBELS, are_picks, noise_words

LOST_ANSWERS = 2.0  # percentage points of right answers that may be lost when nothing is said
CHANGED_ANSWERS = 5.0  # of answers that may be others, where the data tell no classes
FEWEST_JUDGED = 10  # samples; fewer judge nothing


class KeptAnswers(NamedTuple):
    """What became of an output's answers.

    Attributes:
        is_kept: whether the budget is.
        words: the figures.
        budget: what may be lost.
        assumed: what was taken for granted; "" for nothing.
    """

    is_kept: bool
    words: str
    budget: str
    assumed: str = ""


def kept_answers(
    before: ModelVerdict, after: ModelVerdict, count: int, *, most: float | None, assumed: str | None
) -> KeptAnswers:
    """How a form's answers are, beside those of the float model.

    Args:
        before, after: of the float model, and of the form, compared with it.
        count: of samples.
        most: what may be lost, in percentage points, as the caller said it; None for the usual.
        assumed: what was, where the answers are taken for numbers, though they may be scores of classes; None where
            they are not taken so.
    """
    beside = after.comparison
    assert beside is not None
    if before.accuracy is not None and after.accuracy is not None:
        most = most if most is not None else LOST_ANSWERS
        lost = 100 * (before.accuracy.top1 - after.accuracy.top1)
        words = f"{after.accuracy.top1:.1%} of {count} answers are right, {before.accuracy.top1:.1%} before"
        words += f"; same answer in {beside.agreement:.1%}"
        is_stuck = len(after.answers.given) == 1 < len(before.answers.given)  # right, where one class is rare
        words += ", as it gives one answer for all" if is_stuck else ""
        return KeptAnswers(lost <= most and not is_stuck, words, f"{most:g} points")
    if before.tags is not None and after.tags is not None:
        most = most if most is not None else LOST_ANSWERS
        words = f"{after.tags.words(counted(count, 'sample'))}, F1 {before.tags.f1:.1%} before"
        return KeptAnswers(100 * (before.tags.f1 - after.tags.f1) <= most, words, f"{most:g} points of F1")
    if beside.has_classes and assumed is None:
        most = most if most is not None else CHANGED_ANSWERS
        divergence = f", KL {beside.kl:.2g}" if beside.has_scores else ""
        words = f"the same answer as before on {beside.agreement:.1%} of {counted(count, 'sample')}{divergence}"
        return KeptAnswers(100 * (1 - beside.agreement) <= most, words, f"{most:g} % other answers")
    off = [one.errors.average for one in (after, before) if one.errors is not None]
    average = ", off the right numbers by {:.3g} on average, {:.3g} before".format(*off) if len(off) > 1 else ""
    ratio = beside.snr_of_changes
    words = f"{noise_words(ratio)} on {counted(count, 'sample')}{average}"
    told = assumed if assumed is not None and beside.has_classes else ""
    return KeptAnswers(ratio >= LEAST_DECIBELS, words, f"{LEAST_DECIBELS:g} dB", told)


def unjudged(samples: int | None) -> str:
    """What is not known of a model's loss when so few samples judge it; None: there are none."""
    if samples is None:
        give = f"give some with {option('data')}, 100 are enough"
        return f"real inputs: {give}; without, only a form that loses next to nothing is taken"
    if not samples:
        return f"samples that it was not made with: give more with {option('data')}, 100 are enough"
    left = "the one sample" if samples == 1 else f"the {samples} samples"
    return f"others than {left} left to judge it on"


def unseen(graph: Graph, samples: int | None, *, is_held_back: bool = False) -> list[str]:
    """What is not known of a model's answers on samples that neither taught nor calibrated it, a sentence each.

    Args:
        graph: the model; of a retrained one its own photos may be the samples.
        samples: how many judge; None where there are none.
        is_held_back: whether retrain holds these back, unless it was told otherwise.
    """
    found = [] if samples and samples >= FEWEST_JUDGED else [f"what it loses on {unjudged(samples)}"]
    if samples and is_held_back:
        found.append(
            "whether samples that judge it taught it, if retrain was told other percentages, or another path of the "
            "folder: those are taken that it holds back by itself"
        )
    elif samples and is_retrained(graph):
        found.append(
            "whether samples that judge it taught it, too: retrain learns from most of its folder, and its page tells "
            "how many are right of those that it held back"
        )
    return found


def likely_numbers(graph: Graph, outputs: Sequence[str], model: RunnableModel, data: Dataset) -> dict[str, str]:
    """The outputs that give several numbers, of which neither an op, a name, their range nor the data's classes say
    that they are scores of classes, and what is assumed of them. Of pictures and recordings, which are in files, most
    models tell classes.

    Args:
        graph: the model.
        outputs: its outputs, as ``model`` gives them.
        model: the model, to be run on one sample.
        data: the samples.
    """
    unsaid = {name for name in outputs if not says_scores(graph, name)}
    if not unsaid or data.files or data.classes:
        return {}
    answers = model.run(next(iter(data.take(1).samples())))
    found = [name for name, answer in zip(outputs, answers, strict=False) if name in unsaid and _are_numbers(answer)]
    return {name: _assumed_numbers(name) for name in found}


def _are_numbers(answer: Array) -> bool:
    return answer.ndim == 2 and answer.dtype.kind == "f" and answer.shape[1] > 1 and not are_probabilities(answer)


def _assumed_numbers(name: str) -> str:
    """What was assumed of such an output, and how to say otherwise."""
    return (
        f"what the numbers of '{name}' are: they were taken for values such as forecasts, and judged by signal to "
        f"noise; if they are scores of classes, {option('max_accuracy_drop')}=5 judges by how many answers change"
    )


def check_labels(names: Sequence[str], model: RunnableModel, data: Dataset, output: str, *, is_dense: bool) -> None:
    """Refuses labels that are not of the model's classes, or not of the samples'.

    Args:
        names: of the classes.
        model: the model, to be run on one sample.
        data: the samples.
        output: the name of the model's first output.
        is_dense: whether it answers for each place of a sample.

    Raises:
        UsageError: there are more or fewer than scores, or a sample's class is none of them.
    """
    scores = model.run(next(iter(data.take(1).samples())))[0]
    if is_dense or not scores.ndim or are_picks(scores) or tells_two(scores, names):
        data.truth(names, len(names))
        return
    data.truth(names, scores.shape[-1])
    check_count(names, scores.shape[-1], output)


def refuse_labels_of_boxes(graph: Graph, outputs: Sequence[str], labels: object) -> None:
    """Refuses labels where all outputs are boxes by their names.

    Raises:
        UsageError: they are, and labels are given.
    """
    if labels is not None and all(says_boxes(graph, name) for name in outputs):
        raise UsageError(
            f"labels are for scores of classes; '{outputs[0]}' gives boxes by its name",
            hint=f"name the scores with {option('outputs')}, or leave {option('labels')} out",
        )


def takes_labels(graph: Graph, output: str) -> bool:
    """Whether a file's metadata takes labels of an output: one for each score of a row, and so none of a single score
    for the second of two classes."""
    sizes = infer(graph).shape(canonical(output)).dims
    return not sizes or sizes[-1] != 1
