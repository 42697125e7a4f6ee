"""Runs several models over the same samples and judges each."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, overload

import numpy as np

from pocketgraph import cluster
from pocketgraph.datasets.evaluation_dataset import Dataset, own_answer, sample_apart
from pocketgraph.datasets.model_input import ModelInput, places_by_name
from pocketgraph.errors import UsageError, option
from pocketgraph.graph import opdefs
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.parts import Verdict
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.evaluation import evaluation_page
from pocketgraph.quantization.evaluation.model_verdict import COLUMNS, ModelVerdict, is_filled
from pocketgraph.quantization.evaluation.plausibility import AnswerCounts, way_in
from pocketgraph.quantization.evaluation.runnable_models import GraphModel, LiteRTModel, RunnableModel
from pocketgraph.quantization.evaluation.text_models import BehindTexts
from pocketgraph.quantization.evaluation.two_class_scores import as_shares, gives_scores, tells_no_classes
from pocketgraph.runtime.comparison.answer_metrics import (
    ClassAccuracy,
    Comparison,
    are_forecasts,
    are_picks,
    are_unit_vectors,
    distance_from_input,
    is_reconstruction,
)
from pocketgraph.runtime.comparison.tag_accuracy import TagAccuracy, are_tags
from pocketgraph.runtime.profiling.statistic import Statistic

LEAST_TIMED = 5  # samples of which the median time is that of a model which has run before; fewer are run once more
MOST_CLASSES = 3  # that a note names
_EFFECTS = ops_with("effect")
MOST_UNLIKE = 1.5  # of the spread of what was fed: a poor autoencoder's distance; logits are further off
DOUBTFUL = 0.5  # of the answers right: fewer, and the order of classes may not be the model's


@dataclass
class Evaluation(Sequence["ModelVerdict"]):
    """What is known of models after all samples, one after the other; it prints as a table.

    Attributes:
        verdicts: of each model.
        samples: how many samples there were.
        notes: what the numbers do not say by themselves.
        has_unsaid_scaling: whether pictures were fed as is usual, because nothing told how the model takes them.
    """

    verdicts: list[ModelVerdict]
    samples: int
    notes: list[str]
    has_unsaid_scaling: bool = False

    def __len__(self) -> int:
        return len(self.verdicts)

    @overload
    def __getitem__(self, at: int) -> ModelVerdict: ...
    @overload
    def __getitem__(self, at: slice) -> list[ModelVerdict]: ...
    def __getitem__(self, at: int | slice) -> ModelVerdict | list[ModelVerdict]:
        return self.verdicts[at]

    def __repr__(self) -> str:
        return "\n".join(table([verdict.as_dict() for verdict in self.verdicts], self.samples))

    def verdict(self) -> Verdict:
        """Which of the models to ship, in plain words, and why."""
        return evaluation_page.finding(self.verdicts, self.samples)

    def as_html(self, place: str) -> str:
        """A page that needs nothing else.

        Args:
            place: the data's name.
        """
        return evaluation_page.to_html(self.verdicts, self.samples, self.notes, place)

    def _repr_html_(self) -> str:
        return evaluation_page.to_fragment(self.verdicts, self.samples, self.notes)


def judge_models(
    models: Sequence[RunnableModel],
    data: Dataset,
    labels: Sequence[str] | None,
    progress: Progress = silent,
    of_two: Sequence[str] | None = None,
) -> Evaluation:
    """Judges models by the first output of each.

    Args:
        models: the models; the first is what the others are compared with.
        data: samples in the form that the first model takes.
        labels: the names of the classes, in the order of the scores.
        progress: told how far it is.
        of_two: the names of the two classes that one score may tell apart, see ``two_classes``.

    Raises:
        UsageError: the models do not give the same shapes, or the labels are not the data's.
    """
    verdicts = [
        ModelVerdict(model.path, model.size, Comparison() if at else None, answers=AnswerCounts(way_in=way_in(data)))
        for at, model in enumerate(models)
    ]
    for verdict in verdicts:
        verdict.answers.kinds.update(data.classes)
    odd: list[int] = []
    classes: list[int] | None = None
    numbers: Array | None = None
    unlike_classes = ""
    key = "" if cluster.current() is None else _key(models, data)
    places = tuple(tuple(places_by_name(model.inputs, data.inputs)) for model in models)
    answering = _Answering(tuple(models), places, data.repetitions)
    is_guessed = labels is None
    rows: Iterable[dict[str, Array]] = _told(
        cluster.map_in_order(answering, data.apart(), key=key), len(data), progress
    )
    is_of_two = False
    if of_two is not None:
        rows, is_of_two = as_shares(rows, models, partial(data.truth, of_two, 2), is_said=labels is not None)
        labels = of_two if is_of_two else labels
    for done, row in enumerate(rows):
        if not row["is_finite"]:
            odd.append(done + 1)
        reference = row["0"]
        if done == 0:
            unlike_classes = _unlike_classes(reference)
            if labels is not None and unlike_classes:
                raise UsageError(
                    f"{unlike_classes}, so labels do not judge them", where=models[0].path,
                    hint=f"leave {option('labels')} out; of a second model it counts how near its answers are",
                )  # fmt: skip
            is_single = of_two is not None and not is_of_two
            told = _of_this_output(data, row, labels, models[0], is_single=is_single)
            are_numbers = labels is None and tells_no_classes(models[0])
            classes, numbers = _wanted(told, labels, reference, verdicts, are_numbers=are_numbers)
            verdicts[0].answers.names.update(zip(classes or (), told.classes, strict=False))
        for at, (model, verdict) in enumerate(zip(models, verdicts, strict=True)):
            answer = row[str(at)]
            verdict.times.append(float(row["seconds"][at]))
            own = reference
            if isinstance(model, BehindTexts):
                own, answer = model.shared_steps(own, answer)
            if answer.size != own.size:
                raise UsageError(
                    f"its output is {list(answer.shape)}, that of {models[0].path} {list(reference.shape)}",
                    where=model.path,
                    hint=f"name the outputs with {option('outputs')}",
                )
            if verdict.comparison is not None and classes is None:
                verdict.comparison.note_distance(*row["distance_from_input"].tolist())
            label = None if classes is None else classes[done]
            verdict.add(own, answer, label, None if numbers is None else numbers[done])
    if len(data) < LEAST_TIMED and cluster.current() is None and not any(map(_has_effects, models)):
        _time_again(verdicts, answering, data)
    verdicts[0].not_finite = _not_finite(verdicts[0], models[0], data, places[0])
    is_guessed = is_guessed and classes is not None
    said = list(notes(verdicts, data, odd, is_guessed=is_guessed, unlike_classes=unlike_classes))
    return Evaluation(verdicts, len(data), said)


def check_inputs(models: Sequence[RunnableModel]) -> None:
    """Refuses models that do not take what the first takes."""
    for model in models[1:]:
        if not _fit(model, models[0]):
            raise UsageError(
                f"it takes {_shapes(model)}, and {models[0].path} takes {_shapes(models[0])}", where=model.path,
                hint="evaluate models of different inputs one by one, or, where the graph leaves sizes open, make the "
                f"file anew with {option('input_shape', 'shapes')}",
            )  # fmt: skip


def _not_finite(verdict: ModelVerdict, model: RunnableModel, data: Dataset, places: Sequence[int]) -> str:
    """That a model gives no numbers for some samples, where that begins, and what helps; "" where it gives some."""
    if not verdict.without_numbers:
        return ""
    first = verdict.without_numbers[0]
    sample = next(data.after(first).samples() if first else data.samples())
    fed = [sample[place] for place in places]
    began = model.where_not_finite(fed) if isinstance(model, GraphModel) else ""
    many = len(verdict.without_numbers)
    which = "it is" if many == 1 else "the first is"
    named = os.path.basename(data.files[first]) if data.files else f"number {first + 1} of those judged"
    return (
        f"{verdict.model} gives NaN or infinity for {many} of {counted(verdict.samples, 'sample')}, {which} {named}"
        f"{f'; it begins {began}' if began else ''}. Are samples prepared as in training ({option('preset')}, "
        f"{option('input_mean')}, {option('input_std')}; gaps, units)? If so, the graph has to keep what it takes "
        "logarithms or roots of, or divides by, above 0"
    )


def _time_again(verdicts: Sequence[ModelVerdict], answering: _Answering, data: Dataset) -> None:
    """Measures once more: most of the first times was what a model prepares in its first run."""
    for verdict in verdicts:
        verdict.times.clear()
    for part in data.apart():
        for verdict, took in zip(verdicts, answering.row(part)["seconds"], strict=True):
            verdict.times.append(float(took))


def _of_this_output(
    data: Dataset, row: dict[str, Array], labels: Sequence[str] | None, model: RunnableModel, *, is_single: bool
) -> Dataset:
    """The samples without classes that are not of the output: of what was fed once more, as an autoencoder gives it
    (near to it, or of its shape and not far, with many more numbers than there are classes, which nothing calls
    scores), and of a single score without a known threshold (``is_single``)."""
    answer, distance = row["0"], row["distance_from_input"].tolist()
    if is_single and answer.size == 1:
        return replace(data, classes=[], targets=None)
    has_many = distance[0] < MOST_UNLIKE * distance[1] and 2 * len(set(data.classes)) <= answer.size
    is_fed_again = is_reconstruction(*distance) or (has_many and not gives_scores(model))
    return replace(data, classes=[]) if labels is None and is_fed_again else data


def _told(rows: Iterable[dict[str, Array]], count: int, progress: Progress) -> Iterator[dict[str, Array]]:
    for done, row in enumerate(rows, 1):
        yield row
        progress("judging", done, count)


def _has_effects(model: RunnableModel) -> bool:
    """Whether one more run of a model prints, or changes what the next one gives."""
    return isinstance(model, GraphModel) and any(
        node.op in _EFFECTS or opdefs.is_stateful(node.op)
        for node in chain(model.graph, *(function.nodes for function in model.graph.functions.values()))
    )


@dataclass(frozen=True)
class _Answering:
    """The first output of each model for a sample; a job for a cluster."""

    models: tuple[RunnableModel, ...]
    places: tuple[tuple[int, ...], ...]  # of each model's inputs in a sample
    repetitions: int = 1  # see Dataset

    def __call__(self) -> Callable[[Dataset | list[Array]], dict[str, Array]]:
        return self.row

    def row(self, part: Dataset | list[Array]) -> dict[str, Array]:
        """The outputs by the models' numbers, how long each took, and whether the sample's numbers are finite."""
        sample = sample_apart(part)
        found: dict[str, Array] = {}
        seconds = []
        for at, model in enumerate(self.models):
            start = time.perf_counter()
            fed = [sample[place] for place in self.places[at]]
            if self.repetitions > 1 and all(item.shape[:1] == (1,) for item in model.inputs):
                fed = [array[:1] for array in fed]
            found[str(at)] = own_answer(np.asarray(model.run(fed)[0]), self.repetitions)
            took = time.perf_counter() - start
            seconds.append(model.seconds if isinstance(model, LiteRTModel | BehindTexts) else took)
        found["seconds"] = np.array(seconds)
        found["distance_from_input"] = np.array(distance_from_input(sample, found["0"]))
        found["is_finite"] = np.array(all(np.isfinite(array).all() for array in sample if array.dtype.kind == "f"))
        return found


def _key(models: Sequence[RunnableModel], data: Dataset) -> str:
    """What a call that was interrupted is found by."""
    return cluster.source_key("evaluate", [model.identity() for model in models], data.scaling, data.identity())


def _wanted(
    data: Dataset, labels: Sequence[str] | None, answer: Array, verdicts: Sequence[ModelVerdict], *, are_numbers: bool
) -> tuple[list[int] | None, Array | None]:
    """What the data tell of each sample, its class or its numbers; verdicts get room for what is counted."""
    size = answer.size
    is_pick = labels is not None and size == 1 and are_picks(answer)
    is_other = labels is None and bool(_unlike_classes(answer)) and answer.shape[-1:] != (1,)
    classes = None if is_other else data.truth(labels, len(labels) if labels is not None and is_pick else size)
    has_classes = classes is not None and (size > 1 or is_pick)
    numbers = None if has_classes else data.wanted(size)
    for verdict in verdicts:
        verdict.accuracy = ClassAccuracy() if has_classes else None
        is_tagged = numbers is not None and are_tags(numbers, answer)
        verdict.tags = TagAccuracy() if is_tagged else None
        verdict.errors = None if numbers is None or is_tagged else Statistic()
        if verdict.comparison is not None:
            told = are_numbers if numbers is None else are_forecasts(numbers, answer)
            verdict.comparison.are_forecasts = told and not has_classes
    return classes, numbers


def _unlike_classes(answer: Array) -> str:
    """What an answer is that the class of its sample does not judge; "" where it may."""
    if are_unit_vectors(answer):
        return "the answers are vectors of length 1 and no scores"
    return "the model answers for each place of a sample" if math.prod(answer.shape[1:-1]) > 1 else ""


def _fit(model: RunnableModel, other: RunnableModel) -> bool:
    """Whether both take samples of the same shapes, 1 being an open size."""
    if len(model.inputs) != len(other.inputs):
        return False
    pairs = zip(model.inputs, places_by_name(model.inputs, other.inputs), strict=True)
    return all(
        len(left.shape) == len(other.inputs[place].shape)
        and all(a == b or 1 in (a, b) for a, b in zip(left.shape, other.inputs[place].shape, strict=True))
        for left, place in pairs
    )


def largest_inputs(models: Sequence[RunnableModel]) -> tuple[ModelInput, ...]:
    """What the model takes that says most about its shapes: others may leave sizes open."""
    return max(models, key=lambda model: sum(math.prod(item.shape) for item in model.inputs)).inputs


def _shapes(model: RunnableModel) -> str:
    return ", ".join(str(list(item.shape)) for item in model.inputs)


def table(rows: list[dict[str, Any]], count: int) -> list[str]:
    """The verdicts in columns."""
    used = [column for column in COLUMNS if any(is_filled(row.get(column[0])) for row in rows)]
    cells = [["model", *(title for _, title, _ in used)]]
    for row in rows:
        filled = [form.format(row[key]) if is_filled(row.get(key)) else "" for key, _, form in used]
        cells.append([row["model"], *filled])
    widths = [max(len(line[index]) for line in cells) for index in range(len(cells[0]))]
    lines = [f"{counted(count, 'sample')}" + (f"; agreement is with {rows[0]['model']}" if len(rows) > 1 else "")]
    for line in cells:
        padded = (text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))
        lines.append("  ".join([line[0].ljust(widths[0]), *padded]).rstrip())
    return lines


def notes(
    verdicts: list[ModelVerdict],
    data: Dataset,
    odd: list[int],
    *,
    is_guessed: bool = False,
    unlike_classes: str = "",
) -> Iterator[str]:
    """What the numbers do not say by themselves.

    Args:
        verdicts: of the models.
        data: what they were judged on.
        odd: the numbers of samples that hold no numbers.
        is_guessed: whether nobody said which score is whose.
        unlike_classes: what answers are that classes of samples do not judge; empty where they may.
    """
    names = sorted(set(data.classes))
    first = verdicts[0].accuracy
    is_doubtful = is_guessed and first is not None and first.top1 < DOUBTFUL
    if is_doubtful and not all(name.isdecimal() for name in names):
        listed = ", ".join(names[:MOST_CLASSES]) + (", …" if len(names) > MOST_CLASSES else "")
        yield (
            f"the scores are taken to be of {listed}, in alphabetical order; if the model has another, "
            f"{option('labels')} names the class of each score"
        )
    if odd:
        which = f"sample {odd[0]} holds" if len(odd) == 1 else f"{len(odd)} samples hold, the first being {odd[0]},"
        yield f"{which} NaN or infinity; take such out of {data.place}"
    is_unjudged = all(one is None for verdict in verdicts for one in (verdict.accuracy, verdict.tags, verdict.errors))
    if unlike_classes and data.classes and is_unjudged:
        yield (
            f"{unlike_classes}, so the classes of {data.place} do not judge that; of a second model it counts how near "
            "its answers are"
        )
    elif data.classes and is_unjudged:
        yield (
            f"{data.place} tells classes, such as '{data.classes[0]}', but not which score is whose; "
            f"{option('labels')} names the class of each score"
        )
    if is_unjudged and not data.classes and data.targets is not None:
        yield (
            f"{data.place} has {counted(data.targets.shape[1], 'number')} for each sample, which is not what the first "
            f"output gives; {option('outputs')} names another"
        )
    elif len(verdicts) == 1 and is_unjudged and not data.classes:
        yield (
            f"nothing tells whether the answers are right: {data.place} has no classes (a folder for each, an array "
            "'labels', a column of a table), no numbers that the model should give (an array 'y' beside the inputs), "
            "and there is no second model to compare with"
        )
    if doubt := verdicts[0].doubt:
        yield doubt
    compared = [verdict.comparison for verdict in verdicts if verdict.comparison is not None]
    if not verdicts[0].not_finite and not all(math.isfinite(comparison.mean_error) for comparison in compared):
        yield f"some results are not finite numbers; look for NaN and infinities in {data.place}"
