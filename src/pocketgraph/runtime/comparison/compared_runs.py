"""Two models run on the same feeds, set by set, with further sets where made-up ones show little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import MissingKernelError, RunError, option
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.comparison.compare import run_on_plainer
from pocketgraph.runtime.comparison.compared_models import ComparedModel
from pocketgraph.runtime.comparison.counterparts import Counterparts
from pocketgraph.runtime.comparison.output_verdict import is_certain, mute

Feeds = Mapping[str, Any]
SMALLER = (0.1, 0.01, 0.001, 0.0001)
"""What made-up feeds are multiplied by until a softmax shows more than its largest class."""


class ComparedRuns:
    """What both models gave.

    Args:
        first, second: the models.
        same: what the second calls what the first has.
        outputs: those of the first to compare.
        is_made_up: whether the feeds are made up, so that others may take their place.

    Attributes:
        pairs: by output: by set of feeds, what the first and the second gave.
        fed: the sets of feeds.
    """

    def __init__(
        self,
        first: ComparedModel,
        second: ComparedModel,
        same: Counterparts,
        outputs: Sequence[str],
        *,
        is_made_up: bool,
    ) -> None:
        self.first, self.second, self.same = first, second, same
        self.is_made_up = is_made_up
        self.pairs: dict[str, list[tuple[Array, Array]]] = {name: [] for name in outputs}
        self.fed: list[Feeds] = []

    def add(self, feeds: dict[str, Any]) -> None:
        """Runs both on a set of feeds.

        Raises:
            RunError: one of them does not run.
        """
        outputs = list(self.pairs)
        try:
            ours = self.first.run(outputs, feeds)
        except RunError as error:
            if not self.is_made_up or isinstance(error, MissingKernelError):
                raise
            made_up = f"the feeds were made up, pass some that fit with {option('inputs')}"
            hint = f"{error.hint}; {made_up}" if error.hint else made_up
            feeds, ours = run_on_plainer(feeds, lambda tried: self.first.run(outputs, tried), error, hint)
        self.fed.append(feeds)
        missing = self.same.missing(feeds)
        made = dict(zip(missing, self.first.run(list(missing.values()), feeds), strict=True)) if missing else {}
        try:
            theirs = self.second.run([self.same.output(name) for name in outputs], {**self.same.feeds(feeds), **made})
        except RunError as error:
            hint = error.hint or "both are run on the same feeds"
            raise type(error)(error.what, where=error.where or "the second model", hint=hint) from None
        for pair, x, y in zip(self.pairs.values(), ours, theirs, strict=True):
            pair.append((x, y))

    def unanswered(self, outputs: Iterable[str]) -> dict[str, str]:
        """Why what both gave says nothing about either model, by output; "" where it does."""
        return {name: mute(self.pairs[name], self.fed) for name in outputs}

    def prove_nothing(self, unanswered: Mapping[str, str]) -> bool:
        """Whether no output says anything about either model, floats among them: classes may well be the same.

        Args:
            unanswered: by output that depends on an input, why its answers say nothing.
        """
        has_floats = any(a.dtype.kind in "fV" for name in unanswered for a, _ in self.pairs[name])
        return all(unanswered.values()) and has_floats

    def add_smaller(self, feeds: dict[str, Any], outputs: Sequence[str]) -> None:
        """Runs both on smaller and smaller feeds while of some of these outputs only the largest class shows; keeps the
        set that shows more alone."""
        hidden = [self.pairs[name] for name in outputs if is_certain(self.pairs[name], 1)]
        for share in SMALLER if hidden else ():
            self.add({name: _times(value, share) for name, value in feeds.items()})
            if not any(is_certain(pair[-1:]) for pair in hidden):
                break
            self.fed.pop()  # as these say no more than the others
            for pair in self.pairs.values():
                pair.pop()

    def add_wider(self, feeds: dict[str, Any]) -> None:
        """Runs both on feeds with the values of pictures, which may wake what noise leaves dead.

        A first model that takes no such values, as one of numbers of words, is left as it was judged.
        """
        before = len(self.fed)
        try:
            self.add({name: _wider(value) for name, value in feeds.items()})
        except RunError:
            if len(self.fed) > before:
                raise


def _times(value: Any, share: float) -> Any:
    """A made-up input times this, where it has floats."""
    array = np.asarray(value)
    return array * array.dtype.type(share) if array.dtype.kind == "f" and array.ndim else value


def _wider(value: Any) -> Any:
    """A made-up input with the values of pictures, where it has floats."""
    array = np.asarray(value)
    return np.abs(array) * array.dtype.type(255) if array.dtype.kind == "f" and array.ndim else value
