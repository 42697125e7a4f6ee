"""What a model takes photos for, and how much in doubt it is: photos are labelled in that order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.apps.label_image import Labeler
from pocketgraph.datasets.class_labels import label_of
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.pages.quantities import counted
from pocketgraph.runtime.comparison.answer_metrics import probabilities


@dataclass(frozen=True)
class Suggestion:
    """A class for a photo, and the doubt in it: 1 less the distance to the second best, from 0 to 1."""

    label: str
    doubt: float


def suggestions(
    labeler: Labeler,
    classes: Sequence[str],
    photos: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
) -> list[Suggestion | None]:
    """A class for each photo by a classifier's scores of these classes alone; None where the photo does not open.

    Raises:
        UsageError: none of the model's labels is one of the classes.
    """
    columns = [[i for i, name in enumerate(labeler.labels) if label_of(name) == label_of(one)] for one in classes]
    if not any(columns):
        known = ", ".join(labeler.labels[:5]) or "none"
        raise UsageError(
            f"the model knows none of these classes; its labels are {known}", hint=f"pass its {option('labels')}"
        )
    found: list[Suggestion | None] = []
    for number, path in enumerate(photos):
        try:
            scores = probabilities(labeler.scores(path))[0]
        except FormatError:
            found.append(None)
        else:
            if max(max(places, default=0) for places in columns) >= len(scores):
                raise UsageError(
                    f"the labels file has {counted(len(labeler.labels), 'line')}, but the model gives "
                    f"{counted(len(scores), 'score')}"
                )
            ours = np.array([scores[places].sum() for places in columns])
            best, second = np.sort(ours)[::-1][:2] if len(ours) > 1 else (ours[0], 0.0)
            found.append(Suggestion(classes[int(ours.argmax())], float(1 - (best - second))))
        if progress is not None:
            progress(number + 1, len(photos))
    return found


def in_doubt_first(found: Sequence[Suggestion | None]) -> list[int]:
    """The places of photos, the most doubtful first; those that do not open last."""
    return sorted(range(len(found)), key=lambda i: (-one.doubt if (one := found[i]) is not None else 1.0, i))
