"""Leaves more and more in float until a model keeps within what it may lose."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from pocketgraph.datasets.class_labels import are_logits, shares_of_two
from pocketgraph.datasets.evaluation_dataset import own_answer
from pocketgraph.errors import RunError, UsageError, option
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Program
from pocketgraph.litert.two_threads import both
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.core.program_runner import ProgramRunner, Sample, Samples, as_fed
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions, silent
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.core.thread_map import mapped_ahead
from pocketgraph.quantization.pipeline import analyze, finish
from pocketgraph.runtime.comparison.answer_metrics import (
    ClassAccuracy,
    Comparison,
    Likeness,
    are_picks,
    distance_from_input,
    is_reconstruction,
    scores_of_classes,
)
from pocketgraph.runtime.comparison.tag_accuracy import TagAccuracy

FLOAT_SHARES = (0.12, 0.25, 0.5, 0.75)
"""Of the multiplications that stay in float, one after the other, until the budget is kept."""
LITTLE_DECIBELS = 10.0  # with less, the noise of an output is more than a tenth of what it says
SURE_ANSWERS = 0.9  # mean probability of the best class, from which noise of scores hardly shows in probabilities

FEWEST_SIDE_BY_SIDE = 16  # samples; opening both programs once more takes as long as a dozen spare

Truth = Callable[[int], "Sequence[int] | None"]
"""Gives the class of each sample, or None, when told how many scores there are."""


@dataclass(frozen=True)
class AccuracyBudget:
    """What a model may lose.

    Attributes:
        kl: the mean Kullback-Leibler divergence of the probabilities, in nats; None for any.
        accuracy_drop: percentage points of right answers; without known classes, of answers that are others than the
            float model's, which are at least as many. None for any.

    Raises:
        UsageError: one of them is negative.
    """

    kl: float | None = None
    accuracy_drop: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("max-kl", self.kl), ("max-accuracy-drop", self.accuracy_drop)):
            if value is not None and not value >= 0:
                raise UsageError(f"{option(name)} must be 0 or more, not {value:g}", hint="leave it out for no limit")

    @property
    def is_set(self) -> bool:
        """Whether anything is asked for."""
        return self.kl is not None or self.accuracy_drop is not None


@dataclass
class ProgramComparison:
    """A quantized program beside the float one, over samples.

    Attributes:
        comparison: of the first outputs.
        exact, coded: how often each is right, when the classes or tags are known.
        others: of the other outputs of floats, by their places.
    """

    comparison: Comparison
    exact: ClassAccuracy | TagAccuracy | None
    coded: ClassAccuracy | TagAccuracy | None
    others: dict[int, Likeness] = field(default_factory=dict)

    def add(self, wanted: Array, given: Array, label: Any) -> None:
        """Takes in the first outputs for one sample, and the index of its class, or its tags, where they are known."""
        self.comparison.add(wanted, given)
        if label is not None and self.exact is not None and self.coded is not None:
            self.exact.add(wanted, label)
            self.coded.add(given, label)

    def warnings(self, outputs: Sequence[str]) -> Iterator[str]:
        """What is lost of outputs that are not judged, a sentence each; ``outputs`` are the names of all."""
        for place, likeness in self.others.items():
            if likeness.signal and likeness.snr < LITTLE_DECIBELS:
                yield (
                    f"warning: little is left of the output '{outputs[place]}': its signal to noise is "
                    f"{likeness.snr:.1f} dB; {option('activations')}=int16 loses less, and {option('keep')} leaves the "
                    "layers in front of it in float"
                )

    def of_known_samples(self) -> str:
        """That other samples do worse than those of calibration, in words, and why where the model is sure of these."""
        sure = self.comparison.certainty / max(self.comparison.count, 1)
        is_sure = self.comparison.width > 1 and sure >= SURE_ANSWERS
        why = f", as the model is {sure:.0%} sure of these" if is_sure else ""
        return f"others do worse{why}; {option('judge')} measures on some"

    @property
    def drop(self) -> float:
        """Percentage points lost, of right answers or of the tags' F1; of agreement, where nothing tells them."""
        if isinstance(self.exact, TagAccuracy) and isinstance(self.coded, TagAccuracy):
            return 100 * (self.exact.f1 - self.coded.f1)
        if isinstance(self.exact, ClassAccuracy) and isinstance(self.coded, ClassAccuracy):
            return 100 * (self.exact.top1 - self.coded.top1)
        return 100 * (1 - self.comparison.agreement)

    def keeps(self, budget: AccuracyBudget) -> bool:
        """Whether it is within the budget."""
        too_far = budget.kl is not None and self.comparison.kl > budget.kl
        too_wrong = budget.accuracy_drop is not None and self.drop > budget.accuracy_drop + 1e-9
        return not too_far and not too_wrong

    def words(self) -> str:
        """The figures in words."""
        if isinstance(self.exact, TagAccuracy):
            return f"F1 of tags lost {self.drop:.2f} points, {self.comparison.words()}"
        lost = f"top-1 lost {self.drop:.2f} points, " if self.exact is not None and self.comparison.width > 1 else ""
        return f"{lost}{self.comparison.words()}"


def compare_programs(
    outcome: QuantizationState,
    samples: Samples,
    count: int,
    truth: Truth,
    threads: int = 1,
    repetitions: int = 1,
    *,
    tags: Array | None = None,
    may_be_logits: bool | None = None,
) -> ProgramComparison:
    """Runs both programs on samples.

    Args:
        outcome: what to judge.
        samples, count: what on; best others than those that it was calibrated with.
        truth: see Truth.
        threads: how many threads to compute with.
        repetitions: how many times a sample is fed in one run.
        tags: which tags are true of each sample, 0 or 1 each, [samples, tags]; None where answers are no tags.
        may_be_logits: whether a single score may be the logit of the second of two classes, see ``are_logits``; None
            where it tells no classes apart.
    """
    result = ProgramComparison(Comparison(are_forecasts=outcome.are_forecasts), None, None)
    if tags is not None:
        result.exact, result.coded = TagAccuracy(), TagAccuracy()
    labels: Sequence[int] | Array | None = tags
    single: list[tuple[Array, Array]] = []
    for index, (sample, exact, coded) in enumerate(_answers(outcome, samples, count, threads)):
        wanted, *wanted_others = (own_answer(answer, repetitions) for answer in exact)
        given, *given_others = (own_answer(answer, repetitions) for answer in coded)
        for place, pair in enumerate(zip(wanted_others, given_others, strict=True), 1):
            if outcome.program.outputs[place].dtype is FLOAT:
                result.others.setdefault(place, Likeness()).add(*pair)
        is_single = wanted.size == 1 and may_be_logits is not None
        if index == 0 and tags is None and (wanted.size > 1 or is_single):
            labels = truth(2 if is_single else wanted.size)
            if labels is not None:
                result.exact, result.coded = ClassAccuracy(), ClassAccuracy()
        if is_single:
            single.append((wanted, given))
            continue
        if labels is None:
            result.comparison.note_distance(*distance_from_input(sample, wanted))
        result.add(wanted, given, None if labels is None else labels[index])
    if single:
        scores = np.concatenate([wanted.reshape(-1) for wanted, _ in single])
        is_logit = are_logits(scores, () if labels is None else labels, may_be=bool(may_be_logits))
        for index, (wanted, given) in enumerate(single):
            shares = [shares_of_two(score, is_logit=is_logit) for score in (wanted, given)]
            result.add(shares[0], shares[1], None if labels is None else labels[index])
    return result


def _answers(
    outcome: QuantizationState, samples: Samples, count: int, threads: int
) -> Iterator[tuple[Sample, list[Array], list[Array]]]:
    """Each sample with the outputs of the float program and of the eight-bit one, as numbers.

    Two samples are computed side by side, each by half of the threads: operators wait less for each other so. Few
    samples are computed one after the other.
    """
    calls = 2 - threads % 2 if count >= FEWEST_SIDE_BY_SIDE else 1
    exact, coded = both(
        lambda: ProgramRunner(outcome.program, threads=threads // calls),
        lambda: ProgramRunner(outcome.converted.program, threads=threads // calls),
        threads,
    )
    free = deque([(exact, coded), *((exact.another(), coded.another()) for _ in range(calls - 1))])

    def answered(sample: Sample) -> tuple[Sample, list[Array], list[Array]]:
        pair = free.popleft()  # there is one for each thread
        try:
            return sample, pair[0](sample), pair[1].numbers(as_fed(sample, outcome.converted.program.inputs))
        finally:
            free.append(pair)

    return mapped_ahead(answered, islice(samples(), count), calls if threads > 1 else 0)


def no_classes() -> UsageError:
    """What is said of a budget where answers are no classes."""
    return UsageError(
        "a budget is of a classifier's answers, and this model gives no scores of classes",
        hint=f"leave {option('max-kl')} and {option('max-accuracy-drop')} out; the summary tells signal to noise",
    )


def _check_classes(program: Program, samples: Samples, threads: int, budget: AccuracyBudget) -> None:
    """Refuses a model whose first output does not tell classes apart, before any work is done."""
    for sample in islice(samples(), 1):
        answer = ProgramRunner(program, threads=threads)(sample)[0]
        if are_picks(answer) and budget.kl is None:
            continue
        if scores_of_classes(answer) is None or is_reconstruction(*distance_from_input(sample, answer)):
            raise no_classes()


def quantize_within(
    program: Program,
    samples: Samples,
    count: int,
    options: QuantizationOptions,
    budget: AccuracyBudget,
    judge: Callable[[QuantizationState], ProgramComparison],
    progress: Progress | None = None,
    resume: ResumeState | None = None,
    *,
    of_two: bool = False,
) -> tuple[QuantizationState, ProgramComparison]:
    """Quantizes as ``pipeline.quantize`` does, with as much in float as the budget asks for.

    First all is done that the options say; while that is not enough, larger shares stay in float.

    Args:
        program, samples, count, options, progress, resume: as for ``quantize_program``.
        budget: what may be lost.
        judge: measures an outcome.
        of_two: whether the model's single score tells two classes apart.

    Raises:
        UsageError: the model gives no scores of classes, so that there is no best one.
        RunError: even with three quarters in float too much is lost.
    """
    tell = progress or silent
    if budget.is_set and not of_two:
        _check_classes(program, samples, options.threads, budget)
    state = analyze(program, samples, count, options, progress, resume)
    shares = [options.float_share, *(share for share in FLOAT_SHARES if share > options.float_share)]
    found: ProgramComparison | None = None
    shares = shares if budget.is_set and state.sensitivity else shares[:1]
    for tried, share in enumerate(shares):
        how = replace(options, float_share=share, quiet=math.inf, loud=math.inf) if tried else options
        outcome = finish(state, how)
        found = judge(outcome)
        tell("keeping the budget", tried + 1, len(shares))
        if found.keeps(budget):
            if budget.is_set:
                kept = f"with up to {share:.0%} of the multiplications in float" if tried else "at once"
                outcome.notes.append(f"within the budget {kept}")
            return outcome, found
    assert found is not None
    raise RunError(
        f"no form with eight bits keeps the budget; with {shares[-1]:.0%} in float, on "
        f"{counted(found.comparison.count, 'sample')}: {found.words()}",
        hint=f"{option('mode')}=weights and {option('activations')}=int16 lose less; or allow more",
    )
