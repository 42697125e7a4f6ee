"""Words out of a stream of scores: averaged over a window, and each told once (TensorFlow's RecognizeCommands)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.errors import RunError

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array

SILENCE = "_silence_"
NO_WORDS = ("silence", "background", "noise")
"""Parts of labels, in any case, that stand for no word; so do labels that begin with an underscore."""


def may_repeat(labels: Sequence[str]) -> bool:
    """Whether a model of these classes may tell a word again though no other one came between: none is of silence,
    which would come between, and would be told as often itself."""
    silent = (name.startswith("_") or any(part in name.lower() for part in NO_WORDS) for name in labels)
    return bool(labels) and not any(silent)


@dataclass(frozen=True)
class Heard:
    """What is heard now.

    Attributes:
        label: the word, ``_silence_`` before there was one.
        score: its average over the window; 0 while there is too little to judge by.
        is_new: whether it begins now.
    """

    label: str
    score: float
    is_new: bool


class WordRecognizer:
    """Scores of pieces of sound in, words out.

    Args:
        labels: one a score.
        window_ms: over which scores are averaged.
        threshold: an average has to be over it.
        suppression_ms: after a word for which no other one begins.
        minimum_count: results that have to be in the window.
        repeats: whether a word may begin again after ``suppression_ms`` though no other one came between.

    As tensorflow/examples/speech_commands/recognize_commands.cc of TensorFlow 1.15, with ``repeats`` as its Android
    demo does it; of equal averages the first wins.
    """

    def __init__(
        self,
        labels: Sequence[str],
        window_ms: int = 1000,
        threshold: float = 0.2,
        suppression_ms: int = 500,
        minimum_count: int = 3,
        *,
        repeats: bool = False,
    ) -> None:
        self.labels = tuple(labels)
        self.window_ms, self.threshold = window_ms, threshold
        self.suppression_ms, self.minimum_count, self.repeats = suppression_ms, minimum_count, repeats
        self._kept: deque[tuple[int, Array]] = deque()
        self._label, self._time = SILENCE, None if not labels else -(1 << 62)

    def __call__(self, scores: Array, time_ms: int) -> Heard:
        """One more result.

        Args:
            scores: float [labels].
            time_ms: when, not before the earlier ones.

        Raises:
            RunError: there are not as many scores as labels, or the time runs backwards.
        """
        if len(scores) != len(self.labels):
            raise RunError(
                f"The results for recognition should contain {len(self.labels)} elements, but there are {len(scores)}"
            )
        if self._kept and time_ms < self._kept[0][0]:
            raise RunError(
                f"Results must be fed in increasing time order, but received a timestamp of {time_ms} that was earlier "
                f"than the previous one of {self._kept[0][0]}"
            )
        self._kept.append((time_ms, np.asarray(scores, np.float32)))
        while self._kept[0][0] < time_ms - self.window_ms:
            self._kept.popleft()
        if len(self._kept) < self.minimum_count or time_ms - self._kept[0][0] < self.window_ms // 4:
            return Heard(self._label, 0.0, False)
        averages = np.stack([kept for _, kept in self._kept]).mean(axis=0, dtype=np.float32)
        best = int(np.argmax(averages))
        label, score = self.labels[best], float(averages[best])
        since = None if self._label == SILENCE or self._time is None else time_ms - self._time
        is_other = self.repeats or label != self._label
        is_new = score > self.threshold and is_other and (since is None or since > self.suppression_ms)
        if is_new:
            self._label, self._time = label, time_ms
        return Heard(label, score, is_new)


@dataclass(frozen=True)
class Accuracy:
    """How words that were found meet those that were said.

    Attributes:
        truths: how many were said.
        matched, correct, wrong, false_positives: counts.
    """

    truths: int
    matched: int
    correct: int
    wrong: int
    false_positives: int

    @property
    def missed(self) -> int:
        """Words that nothing found."""
        return self.truths - self.matched

    def __str__(self) -> str:
        """The line of the original test_streaming_accuracy."""
        if not self.truths:
            return f"No ground truth yet, {self.false_positives} false positives"

        def share(count: int) -> str:
            return f"{100 * count / self.truths:.1f}%"

        return (
            f"{share(self.matched)} matched, {share(self.correct)} correctly, {share(self.wrong)} wrongly, "
            f"{share(self.false_positives)} false positives "
        )


def judged(
    said: Sequence[tuple[str, int]], found: Sequence[tuple[str, int]], tolerance_ms: int = 750, until_ms: int = -1
) -> tuple[Accuracy, list[str]]:
    """Found words beside those that were said, as test_streaming_accuracy counts them.

    Each found word is held against the first one that was said within ``tolerance_ms``.

    Args:
        said, found: words with their times in ms.
        tolerance_ms: how far apart the two may be.
        until_ms: words that were said later, by more than the tolerance, are left out; -1 for none.

    Returns:
        the counts, and for each found word "Correct", "Wrong" or "False Positive".
    """
    limit = until_ms + tolerance_ms if until_ms >= 0 else None
    truths = sorted(((label, time) for label, time in said if limit is None or time <= limit), key=lambda t: t[1])
    used: set[int] = set()
    correct = wrong = false = 0
    verdicts = []
    for label, time in found:
        near = next((truth for truth in truths if abs(truth[1] - time) <= tolerance_ms), None)
        if near is None:
            false += 1
            verdicts.append("False Positive")
        elif near[0] == label and near[1] not in used:
            correct += 1
            verdicts.append("Correct")
        else:
            wrong += 1
            verdicts.append("Wrong")
        if near is not None:
            used.add(near[1])
    return Accuracy(len(truths), len(used), correct, wrong, false), verdicts
