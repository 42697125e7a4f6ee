"""A cascade over a stream: a small model hears or sees everything, and wakes a large one by a word or a class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pocketgraph.apps.live.answers import Answer, Application, Frame, Setting, Settings, Sound
from pocketgraph.apps.patterns.cascade import Cascade
from pocketgraph.errors import UsageError, option


class WakeApp(Settings):
    """Runs the large application only for a while after the small one gave the wake word.

    The word is one that the small model tells once (speech), its best class, or a class that it detects. While the
    large one sleeps it does not run; sounds go through its ring all the same, so that it knows the last second when it
    wakes. Words are told by the large one alone.

    Args:
        small, large: both of sound, or both of pictures.
        word: the label that wakes.

    Raises:
        UsageError: one takes sound and the other pictures, or there is no word.
    """

    table = (Setting("awake_s", "Stays awake for (s)", 5.0, 0.5, 60.0, 0.5),)

    def __init__(self, small: Application, large: Application, word: str) -> None:
        if small.hears != large.hears:
            takes = ("pictures", "sound")
            raise UsageError(f"the small model takes {takes[small.hears]}, the large one {takes[large.hears]}")
        if not word:
            raise UsageError(
                "nothing says what wakes the large model", hint=f"pass {option('wake_word', 'word')}=LABEL"
            )
        self.small, self.large, self.word = small, large, word
        self.kind, self.hears, self.rate = large.kind, large.hears, large.rate
        self.awake_s = 5.0
        self._until, self._is_awake = float("-inf"), False
        self._first = Answer()
        self._cascade: Cascade[Frame | Sound, Answer] = Cascade(
            self._look_out, self._go_on, wakes=lambda answer, sure: self._is_awake
        )

    def __call__(self, given: Frame | Sound) -> Answer:
        """The large model's answer while it is awake, else the small one's.

        ``values`` tell whether it is awake, and the share of the last runs that went on to it.
        """
        answer = self._cascade(given)
        values = {**answer.values, "awake": self._is_awake, "went on": round(self._cascade.latencies.passed_on, 4)}
        return replace(answer, word=answer.word if self._is_awake else None, values=values)

    def _look_out(self, given: Frame | Sound) -> tuple[Answer, float]:
        """The small model's answer; where it is the wake word, the large one is awake for a while from now on."""
        answer = self.small(given)
        if self.word in self._labels_of(answer):
            self._until = given.time + float(self.awake_s)
        self._is_awake = given.time < self._until
        if not self._is_awake:
            pass_by = getattr(self.large, "pass_by", None)
            if pass_by is not None:
                pass_by(given)
        self._first = answer
        return answer, 1.0

    def _labels_of(self, answer: Answer) -> set[str]:
        """The labels that the small model tells: a word, the best class, what was detected."""
        if self.small.kind == "speech":
            return {answer.word[0]} if answer.word is not None else set()
        best = {answer.classes[0][0]} if self.small.kind == "classify" and answer.classes else set()
        return best | {entry.label for entry in answer.detections}

    def _go_on(self, given: Frame | Sound) -> Answer:
        answer = self.large(given)
        took = answer.milliseconds + self._first.milliseconds
        return replace(answer, milliseconds=took)

    def settings(self) -> list[Setting]:
        """How long it stays awake, and what can be changed of the large one."""
        return [*super().settings(), *self.large.settings()]

    def change(self, name: str, value: Any) -> None:
        """Changes one.

        Raises:
            UsageError: there is none of this name, or it does not take this value.
        """
        if any(row.name == name for row in self.table):
            super().change(name, value)
        else:
            self.large.change(name, value)

    def another(self) -> WakeApp:
        """For another viewer."""
        twin = WakeApp(self.small.another(), self.large.another(), self.word)
        twin.awake_s = self.awake_s
        return twin
