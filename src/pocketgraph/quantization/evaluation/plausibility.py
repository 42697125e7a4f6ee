"""Doubts about the model that others are judged by: answers that are always the same, or right by chance alone."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.datasets.evaluation_dataset import Dataset
from pocketgraph.errors import option
from pocketgraph.pages.quantities import counted
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy

FEWEST = 20  # samples; fewer may be alike unless the data tell their classes, and have no interval worth the name
FEWEST_TOLD = 5  # samples of known classes; fewer say nothing of how often a model is right
ALL_ALIKE = 0.95  # of the samples, from which answers count as always the same
VARIED = 0.8  # of the samples have one class at most, where answers that are always the same are wrong
POOR = "If so, the model itself is poor on these samples, before any bits are saved: train it longer, or ship another"
SUM_TOLERANCE = 1e-2  # by which shares may miss 1 in all
REORDERED = 0.9  # of the samples right if the labels had another order, from which that is what is wrong
EACH_CLASS = 3  # samples of a class in the mean, from which an order of the classes, or of those moved, is no accident
MOST_NAMED = 10  # classes whose places an order is told of


def way_in(data: Dataset) -> str:
    """What is easily wrong about how these samples go into a model, as a question; empty where nothing is."""
    if data.are_recordings:
        return f"does the model hear {data.rate:,} samples a second ({option('sample_rate')})"
    if any(item.takes_text for item in data.inputs):
        return ""
    scaling = f"is the scaling of the inputs right ({option('preset')}, {option('input_mean')}, {option('input_std')})"
    if not (data.are_pictures and data.inputs[0].has_open_size):
        return scaling
    height, width = data.inputs[0].shape[1:3]
    sizes = f"{option('input_width')}, {option('input_height')}"
    return f"was the model trained on pictures of {width} x {height} ({sizes}; it leaves their size open), {scaling}"


@dataclass
class AnswerCounts:
    """How often a model gave which class, and how often the data told which.

    Attributes:
        given: how often each class had the largest score.
        labels: how often each was the right one.
        kinds: how many samples the data have of each class, whatever it is called in the model.
        pairs: how often which class was given where which one was right.
        names: the data's name of each class that is right for some sample.
        way_in: what is easily wrong about how samples of this kind go in, as a question; empty where nothing is.
    """

    given: Counter[int] = field(default_factory=Counter)
    labels: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    names: dict[int, str] = field(default_factory=dict)
    way_in: str = ""

    @property
    def are_varied(self) -> bool:
        """Whether the data tell that samples are of several classes, none of which most have."""
        return bool(self.kinds) and self.kinds.most_common(1)[0][1] <= VARIED * self.kinds.total()

    def add(self, answer: np.ndarray[Any, Any], label: int | None) -> None:
        """Takes in one sample; without its class only scores that are shares of a whole."""
        if answer.size < 2 or answer.dtype.kind != "f":
            return
        if label is None and (answer.min() < 0 or abs(float(answer.sum()) - 1) > SUM_TOLERANCE):
            return
        self.given[int(answer.argmax())] += 1
        if label is not None:
            self.labels[label] += 1
            self.pairs[int(answer.argmax()), label] += 1

    def doubt(self, model: str, accuracy: ClassAccuracy | None) -> str:
        """What speaks against the answers, in a sentence; empty where nothing does.

        Args:
            model: its name.
            accuracy: how often it is right, where the data tell.
        """
        count = self.given.total()
        if count < FEWEST_TOLD:
            return ""
        remedy = f"{self.way_in}{', and ' if self.way_in else ''}are the labels in the order of the scores? {POOR}"
        most = self.given.most_common(1)[0][1]
        is_varied = not self.labels or self.labels.most_common(1)[0][1] <= VARIED * count
        is_enough = count >= FEWEST or bool(self.labels) or self.are_varied
        if is_enough and most >= ALL_ALIKE * count and is_varied:
            return f"{model} gives the same answer for {most} of {counted(count, 'sample')}: {remedy}"
        if accuracy is not None and (order := self._other_order()):
            return f"{model} is right in {accuracy.top1:.1%} of {counted(count, 'sample')}, and {order}"
        if accuracy is not None and _is_guesswork(accuracy):
            return (
                f"{model} is right in {accuracy.top1:.1%} of {counted(count, 'sample')}, and guessing "
                f"among {accuracy.width} "
                f"classes would be in {1 / accuracy.width:.1%}: {remedy}"
            )
        return ""

    def _other_order(self) -> str:
        """In which order of the labels nearly all answers would be right, and how to say it; empty where in none."""
        meant: dict[int, int] = {}
        for (given, label), _ in reversed(self.pairs.most_common()):
            meant[given] = label
        moved = [place for place in sorted(meant) if meant[place] != place]
        if not moved or sorted(meant) != sorted(meant.values()):
            return ""
        for places in (moved, list(meant)):  # two rare classes that are mixed up once are no other order
            count = sum(self.given[place] for place in places)
            right = sum(self.pairs[place, meant[place]] for place in places)
            if right < REORDERED * count or count < EACH_CLASS * len(places):
                return ""
        listed = ", ".join(
            f"{place} is of {self.names.get(meant[place], meant[place])}" for place in moved[:MOST_NAMED]
        )
        return (
            f"{right / count:.1%} would be if the labels had another order: score {listed}"
            f"{', …' if len(moved) > MOST_NAMED else ''}, counted from 0. {option('labels')} takes a file of the names "
            "in the order of the scores, one a line"
        )


def _is_guesswork(accuracy: ClassAccuracy) -> bool:
    """Whether guessing explains how often a model is right; of few samples, whether it is as good every second time."""
    if accuracy.width < 2:
        return False
    if accuracy.count >= FEWEST:
        return accuracy.top1_interval[0] <= 1 / accuracy.width
    odds = accuracy.width - 1
    worse = sum(math.comb(accuracy.count, right) * odds ** (accuracy.count - right) for right in range(accuracy.first))
    return bool(2 * worse <= accuracy.width**accuracy.count)
