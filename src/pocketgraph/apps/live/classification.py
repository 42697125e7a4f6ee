"""Classify: the best classes of each frame, averaged over frames as the original camera applications did."""

from __future__ import annotations

import numpy as np

from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.live.answers import Answer, Frame, Setting, Settings, timed
from pocketgraph.apps.live.geometry import center_square
from pocketgraph.datasets.class_labels import of_two
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.probabilities import are_shares


class DecayingAverage:
    """Scores over frames, as the iOS camera example keeps them.

    In each frame what is kept becomes ``decay`` of itself and is dropped at 0.01; to it comes ``1 - decay`` of each
    score over 0.05 (TensorFlow 1.x, contrib/ios_examples/camera).

    Scores below 0 or over 1 are no shares but logits, of which a small one means nothing: these are averaged whole, as
    are those of a frame in which no class has a share over 0.05.

    Attributes:
        shares: False once a score was none.
    """

    def __init__(self) -> None:
        self.decay, self.shares = 0.75, True
        self._kept: Array | None = None

    def __call__(self, scores: Array) -> Array:
        """The averages after one more frame, float64 [classes]; of the first frame the scores themselves."""
        scores = scores.astype(np.float64)
        self.shares = self.shares and are_shares(scores)
        if self._kept is None or self._kept.shape != scores.shape:
            self._kept = scores.copy()
            return scores
        kept = self._kept * self.decay
        if self.shares and (scores > 0.05).any():  # of a thousand classes often none is
            kept[kept <= 0.01] = 0.0
            scores = np.where(scores > 0.05, scores, 0.0)
        self._kept = kept + scores * (1 - self.decay)
        return np.array(self._kept)

    def forget(self) -> None:
        """Begins anew."""
        self._kept = None


class Classification(Settings):
    """Says what is in each frame."""

    kind = "classify"
    table = (
        Setting("threshold", "Show scores over", 0.05),
        Setting("decay", "Keep of earlier frames", 0.75, 0.0, 0.99),
        Setting("top", "How many classes", 5, 1, 20, 1),
        Setting("fit", "The picture is", "stretched", choices=("stretched", "cropped")),
    )

    def __init__(self, labeler: Labeler) -> None:
        self.labeler = labeler
        self.threshold, self.decay, self.top, self.fit = 0.05, 0.75, 5, "stretched"
        self.begin()

    def __call__(self, given: Frame) -> Answer:
        """The best classes; a frame that is alone is not averaged."""
        pixels = center_square(given.pixels) if self.fit == "cropped" else given.pixels
        scores, took = timed(self.labeler.scores, pixels)
        if given.alone:
            self.average.forget()
        self.average.decay = float(self.decay)
        shares = of_two(scores, self.labeler.labels, is_logit=self.labeler.gives_logits)
        averaged = self.average(shares)
        best = self.labeler.best(averaged, int(self.top))
        least = self.threshold if self.average.shares else -np.inf
        shown = tuple((entry.label, entry.score) for entry in best if entry.score > least or entry is best[0])
        return Answer(classes=shown, shares=self.average.shares, milliseconds=took)

    def begin(self) -> None:
        """Forgets the earlier frames."""
        self.average = DecayingAverage()
