"""A softmax layer on features, solved to convergence: multinomial logistic regression with L2, by L-BFGS.

Nocedal and Wright, "Numerical Optimization", 2nd edition, algorithms 7.4 and 3.5 (with the strong Wolfe conditions).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.nn.activations import softmax

STRENGTHS = tuple(10.0**power for power in np.arange(-3, 1.01, 0.5))
"""C, the inverse of the penalty's weight, of which cross-validation chooses."""
MEMORY, TOLERANCE, LEAST_SPREAD = 10, 1e-5, 1e-6  # pairs of L-BFGS; of its gradient; of features
WIDE, LEAST_SQUARE = 4, 1e-12
"""Times as many features as examples, from which on their span is smaller work; of the longest axis, what is none."""


@dataclass(frozen=True)
class Head:
    """A softmax layer.

    Attributes:
        weights: float32 [features, classes].
        biases: float32 [classes].
        strength: C of the penalty that it was solved with.
    """

    weights: Array
    biases: Array
    strength: float

    def logits(self, features: Array) -> Array:
        """float64 [n, classes]."""
        found: Array = features.astype(np.float64) @ self.weights.astype(np.float64) + self.biases
        return found

    def scores(self, features: Array) -> Array:
        """Shares of the classes, float64 [n, classes]."""
        return softmax(self.logits(features))


def solved(
    features: Array,
    classes: Array,
    count: int,
    strength: float,
    *,
    class_weights: Array | None = None,
    most: int = 500,
    start: Array | None = None,
    on_step: Callable[[int, float], None] | None = None,
) -> tuple[Head, Array]:
    """The head that has the least cross entropy plus penalty.

    Features are centred and scaled by one number for it (their spreads tell what matters), the weights scaled back.

    Args:
        features: [n, size].
        classes: [n] whole numbers.
        count: how many classes there are.
        strength: C: the penalty is the squares of the scaled weights over 2 C n.
        class_weights: [count], how much an example of each class counts; 1 by default.
        most: iterations.
        start: where to begin, as the second result of another call has it.
        on_step: called with each iteration and its loss.

    Returns:
        the head, and its place for ``start``.
    """
    problem = _HeadProblem(features, classes, count, class_weights)
    return problem.solved(strength, most=most, start=start, on_step=on_step)


class _HeadProblem:
    """What of a head's examples does not depend on the strength, of which several are tried.

    Args:
        features, classes, count, class_weights: as in ``solved``.
    """

    def __init__(self, features: Array, classes: Array, count: int, class_weights: Array | None = None) -> None:
        self._mean = features.mean(axis=0, dtype=np.float64)
        spread = np.sqrt(features.var(axis=0, dtype=np.float64).mean())
        self._scale = 1 / max(float(spread), LEAST_SPREAD)
        centred, self._axes = _within_span((features - self._mean) * self._scale)
        self._x = np.concatenate([centred, np.ones((len(features), 1))], axis=1)
        self._wanted = np.eye(count)[classes]
        shares = np.ones(len(features)) if class_weights is None else class_weights[classes].astype(np.float64)
        self._shares = shares / shares.sum()

    def solved(
        self,
        strength: float,
        *,
        most: int = 500,
        start: Array | None = None,
        on_step: Callable[[int, float], None] | None = None,
    ) -> tuple[Head, Array]:
        """As the function ``solved``."""
        x, count = self._x, self._wanted.shape[1]
        begin = np.zeros(x.shape[1] * count) if start is None else start
        flat = minimized(lambda flat: self._loss(flat, 1 / (strength * len(x))), begin, most=most, on_step=on_step)
        table = flat.reshape(x.shape[1], count)
        weights = (table[:-1] if self._axes is None else self._axes @ table[:-1]) * self._scale
        biases = table[-1] - self._mean @ weights
        return Head(weights.astype(np.float32), biases.astype(np.float32), strength), flat

    def _loss(self, flat: Array, penalty: float) -> tuple[float, Array]:
        """The loss and its gradient."""
        x, shares = self._x, self._shares
        table = flat.reshape(x.shape[1], -1)
        logits = x @ table
        top = logits.max(axis=1)
        powers = np.exp(logits - top[:, None])
        total = powers.sum(axis=1)
        value = float((shares * (np.log(total) + top - (logits * self._wanted).sum(axis=1))).sum())
        slope = x.T @ ((powers / total[:, None] - self._wanted) * shares[:, None])
        slope[:-1] += penalty * table[:-1]
        return value + 0.5 * penalty * float((table[:-1] ** 2).sum()), slope.reshape(-1)


def _within_span(table: Array) -> tuple[Array, Array | None]:
    """Rows by as many numbers as there are rows, where they have many more; and the axes, [size, numbers].

    The best weights lie in the span of the rows, and turning the axes changes neither products nor the penalty.
    """
    if table.shape[1] <= WIDE * len(table):
        return table, None
    squares, turned = np.linalg.eigh(table @ table.T)
    kept = squares > LEAST_SQUARE * squares[-1]
    lengths = np.sqrt(squares[kept])
    return turned[:, kept] * lengths, table.T @ (turned[:, kept] / lengths)


def minimized(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    most: int = 500,
    on_step: Callable[[int, float], None] | None = None,
) -> Array:
    """Where a smooth function is least, by L-BFGS.

    Args:
        loss: the value and the gradient at a place.
        start: where to begin.
        most: iterations.
        on_step: called with each iteration and its value.
    """
    place = start.astype(np.float64)
    value, slope = loss(place)
    steps: list[tuple[Array, Array]] = []
    for number in range(most):
        if on_step is not None:
            on_step(number, value)
        if np.abs(slope).max(initial=0.0) <= TOLERANCE * max(1.0, abs(value)) or not np.isfinite(value):
            break
        direction = _direction(slope, steps)
        length = _wolfe(
            loss, place, value, slope, direction, 1.0 if steps else 1 / max(1.0, float(np.linalg.norm(slope)))
        )
        if length is None:
            if not steps:
                break
            steps.clear()
            continue
        after = place + length[0] * direction
        steps = [*steps[1 - MEMORY :], (after - place, length[2] - slope)]
        if length[1] >= value:
            break
        place, value, slope = after, length[1], length[2]
    return place


def _direction(slope: Array, steps: Sequence[tuple[Array, Array]]) -> Array:
    """Minus the inverse of the curvature that the last steps showed, times the gradient."""
    found = slope.copy()
    shares = []
    for moved, turned in reversed(steps):
        share = float(moved @ found) / float(turned @ moved)
        found -= share * turned
        shares.append(share)
    if steps:
        moved, turned = steps[-1]
        found *= float(moved @ turned) / float(turned @ turned)
    for (moved, turned), share in zip(steps, reversed(shares), strict=True):
        found += moved * (share - float(turned @ found) / float(turned @ moved))
    down: Array = -found
    return down


def _wolfe(
    loss: Callable[[Array], tuple[float, Array]],
    place: Array,
    value: float,
    slope: Array,
    direction: Array,
    first: float,
) -> tuple[float, float, Array] | None:
    """A step that lowers the value enough and flattens the slope: (length, value, gradient); None for none."""
    down = float(slope @ direction)
    if down >= 0:
        return None
    low, high, length = 0.0, np.inf, first
    best = None
    for _ in range(30):
        there, turned = loss(place + length * direction)
        if not np.isfinite(there) or there > value + 1e-4 * length * down:
            high = length
        else:
            best = (length, there, turned)
            if float(turned @ direction) < 0.9 * down:
                low = length
            else:
                return best
        length = (low + high) / 2 if np.isfinite(high) else 2 * length
    return best


def cross_validated(
    features: Array,
    classes: Array,
    count: int,
    *,
    variants: Array | None = None,
    groups: Sequence[str] | None = None,
    folds: int = 5,
    seed: int = 0,
    class_weights: Array | None = None,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[float, Array]:
    """The strength whose heads are right most often on examples that they were not solved on.

    Args:
        features, classes, count, class_weights: as in ``solved``.
        variants: further features of the same examples, to train on beside these, [n, variants, size].
        groups: examples of one group stay on one side.
        folds: in how many parts the examples are cut; fewer where a class has fewer.
        seed: of the cutting.
        strengths: to choose of.

    Returns:
        the strength (of equally good ones that of the least cross entropy), and for each example the scores of a head
        that had not seen it, float64 [n, count].
    """
    parts = fold_of(classes, folds, seed, groups)
    held = np.zeros((len(strengths), len(classes), count))
    for part in range(parts.max(initial=0) + 1):
        inside, outside = parts != part, parts == part
        if not outside.any() or not inside.any():
            continue
        start = None
        problem = _HeadProblem(*joined(features, classes, variants, inside), count, class_weights)
        for number, strength in enumerate(strengths):
            head, start = problem.solved(strength, start=start)
            held[number, outside] = head.scores(features[outside])
    right = (held.argmax(axis=2) == classes).sum(axis=1)
    losses = -np.log(np.maximum(held[:, np.arange(len(classes)), classes], 1e-12)).mean(axis=1)
    best = int(np.lexsort((losses, -right))[0])
    return strengths[best], held[best]


def joined(features: Array, classes: Array, variants: Array | None, some: Array) -> tuple[Array, Array]:
    """Features and classes of some examples, as they are and in their variants, [n, variants, size]."""
    if variants is None:
        return features[some], classes[some]
    parts = [features[some], *np.moveaxis(variants[some], 1, 0)]
    return np.concatenate(parts), np.concatenate([classes[some]] * len(parts))


def fold_of(classes: Array, folds: int, seed: int, groups: Sequence[str] | None = None) -> Array:
    """Which part each example is in: of each class as many in each part as can be; a group as a whole."""
    rng = np.random.default_rng(seed)
    keys = np.array([str(i) for i in range(len(classes))] if groups is None else list(groups))
    found = np.zeros(len(classes), np.int64)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        names = rng.permutation(np.unique(keys[members]))
        part = {name: number % folds for number, name in enumerate(names)}
        found[members] = [part[key] for key in keys[members]]
    return found
