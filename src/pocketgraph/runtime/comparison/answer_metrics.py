"""How far a model's answers are from another's, and from the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.nn.activations import softmax
from pocketgraph.kernels.probabilities import are_probabilities
from pocketgraph.runtime.profiling.statistic import Statistic

LEAST_DECIBELS = 20.0  # of results that are no scores of classes; with less, many answers are others
SMALLEST = 1e-10  # added to probabilities before their logarithm
BLOCK = 1 << 13  # numbers that are taken together: OpenBLAS shares more than 10,000 out among threads, to wait for them
FEWEST = 10  # samples; with fewer, no model is shipped without a look
EXACT_DECIBELS = 144.0  # what 24 bits of a float32 tell apart; numbers that are nearer are the same
UNIT_EPSILONS = 64  # float32 sums the squares of 1,024 numbers to some of its smallest steps
SAME = 1e-9  # of the squares' sum: less of it about the mean, and all numbers are the same
SURE = 1.959964  # standard deviations to each side that 95 % of a normal distribution lie in


def noise_words(snr: float, same: str = "the same results") -> str:
    """A signal-to-noise ratio, in dB, in words; ``same`` for numbers that float32 does not tell apart."""
    if snr == -math.inf:
        return "no signal to noise, as results are 0, NaN or infinite"
    return same if snr > EXACT_DECIBELS else f"signal to noise {snr:.1f} dB"


def signal_to_noise(signal: float, noise: float) -> float:
    """Decibels of the squares' sums; infinite for no noise, and minus that where the noise is, or is no number."""
    if noise <= 0:
        return math.inf
    ratio = signal / noise
    return 10 * math.log10(ratio) if ratio > 0 else -math.inf


def interval(hits: float, count: int) -> tuple[float, float]:
    """Between which shares the true one lies in 95 of 100 cases (Wilson's score interval)."""
    if not count:
        return 0.0, 1.0
    share, square = hits / count, SURE**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = SURE * math.sqrt(share * (1 - share) / count + square / (4 * count**2)) / (1 + square / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def mean_interval(numbers: Statistic[float]) -> tuple[float, float]:
    """Between which means the true one lies in 95 of 100 cases, by the spread of the numbers (Student's t)."""
    if numbers.count < 2:
        return 0.0, math.inf
    half = _student(numbers.count - 1) * math.sqrt(numbers.variance / (numbers.count - 1))
    return max(0.0, numbers.average - half), numbers.average + half


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: exact up to 2 degrees of freedom, then the series about the normal one.

    The series is that of Abramowitz and Stegun, 26.7.5; it is off by 0.2 % with 3 degrees and less with more.
    """
    if freedom == 1:
        return math.tan(math.pi * 0.475)
    if freedom == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    z = SURE
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom ** (power + 1) for power, term in enumerate(terms)))


def probabilities(scores: Array) -> Array:
    """Rows that are probabilities as they are; others through softmax; a vector is one row. float64 [rows, classes]."""
    rows = np.atleast_2d(scores.astype(np.float64))
    return np.maximum(rows, 0) if are_probabilities(rows) else softmax(rows)


def are_picks(output: Array) -> bool:
    """Whether an output is classes that the model has picked, such as those of a picture's places.

    Bytes are none, as they may be pixels.
    """
    return bool(output.dtype.kind == "b" or (output.dtype.kind == "i" and output.dtype.itemsize > 2))


def are_unit_vectors(output: Array) -> bool:
    """Whether the rows of an output are vectors of length 1 whose numbers have both signs, as embeddings are: of texts,
    faces, voices. Their places are no classes."""
    if output.dtype.kind != "f" or output.size < 2 or output.ndim not in (1, 2) or output.min() >= 0:
        return False
    lengths = np.linalg.norm(output.reshape(-1, output.shape[-1]).astype(np.float64), axis=1)
    return bool((np.abs(lengths - 1) < UNIT_EPSILONS * np.finfo(output.dtype).eps).all())


def scores_of_classes(output: Array) -> Array | None:
    """The scores of an output, float64 [answers, classes]; None for one that has no classes.

    A vector is one answer, a matrix one for each row. What has more dimensions, such as a picture's places, has an
    answer for each place when those are probabilities; other numbers may be boxes, colours or features. Classes that
    are picked already have no scores, nor have vectors of length 1.
    """
    places = math.prod(output.shape[:-1])
    if output.size < 2 or places == output.size or are_picks(output) or are_unit_vectors(output):
        return None
    rows = output.reshape(places, -1).astype(np.float64)
    return rows if places == 1 or output.ndim == 2 or are_probabilities(rows) else None


def are_forecasts(wanted: Array, answer: Array) -> bool:
    """Whether what data want of answers are numbers to come near to, such as prices: not which class each place has,
    picked or as probabilities, one for sure.

    Args:
        wanted: float64 [samples, numbers of an answer].
        answer: an answer of the model; values count only by their type.
    """
    if are_picks(answer):
        return not np.array_equal(wanted, np.rint(wanted))
    width = answer.shape[-1] if answer.ndim > 2 else 1
    return width < 2 or not are_probabilities(wanted.reshape(-1, width))


def distance_from_input(sample: Iterable[Array], answer: Array) -> tuple[float, float]:
    """The squared distance of an answer from what was fed in its place, and the squared spread of what was fed.

    Both are 0 where nothing that was fed has the answer's shape, or where the answer is not of rows of plain numbers.
    """
    nearest = 0.0, 0.0
    if answer.ndim != 2 or answer.size < 2 or answer.dtype.kind != "f" or are_probabilities(answer):
        return nearest
    for fed in sample:
        if fed.shape == answer.shape and fed.dtype.kind == "f":
            values = fed.astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                distance = float(np.square(answer - values).sum())
                spread = float(np.square(values - values.mean(axis=1, keepdims=True)).sum())
            nearest = (distance, spread) if not nearest[1] or distance < nearest[0] else nearest
    return nearest


def is_reconstruction(distance: float, spread: float) -> bool:
    """Whether answers are nearer to what was fed than half its spread, as an autoencoder's are.

    Scores of as many classes as there are features are not. See ``distance_from_input``.
    """
    return distance < spread / 2


@dataclass(frozen=True)
class Standard:
    """What a quantized model's answers have to reach: shares of the same class, nats at most, decibels at least."""

    agreement: float
    kl: float
    snr: float


ACCEPTABLE = Standard(0.9, 0.1, 15.0)
GOOD = Standard(0.97, 0.03, 20.0)


@dataclass
class Likeness:
    """Numbers beside those that they stand for, over samples taken in one by one.

    Attributes:
        count: how many samples.
        signal, noise: sums of squares of the reference and of the difference.
        across, own: sums of the products of both, and of squares of the others.
        sums: of each number of the reference over the samples, where that is one row of few; else None.
    """

    count: int = 0
    signal: float = 0.0
    noise: float = 0.0
    across: float = 0.0
    own: float = 0.0
    sums: Array | None = field(default_factory=lambda: np.zeros(1))

    def add(self, reference: Array, answer: Array) -> None:
        """Takes in one sample's numbers, as many of both."""
        self.count += 1
        first, second = reference.reshape(-1), answer.reshape(-1)
        is_row = first.size <= BLOCK and sum(size > 1 for size in reference.shape) < 2
        is_like_others = self.sums is not None and (self.count == 1 or self.sums.size == first.size)
        self.sums = self.sums + np.where(np.isinf(first), 0, first) if is_row and is_like_others else None
        for start in range(0, first.size, BLOCK):
            left = first[start : start + BLOCK].astype(np.float64)
            right = second[start : start + BLOCK].astype(np.float64)
            with np.errstate(invalid="ignore"):
                apart = left - right
                noise = float(apart @ apart)
            if not math.isfinite(noise):  # masked scores are infinite on both sides
                is_same = np.isinf(left) & (left == right)
                left, right, apart = left[~is_same], right[~is_same], apart[~is_same]
                noise = float(apart @ apart)
            self.signal += float(left @ left)
            self.noise += noise
            self.across += float(left @ right)
            self.own += float(right @ right)

    @property
    def snr(self) -> float:
        """Signal to noise in decibels."""
        return signal_to_noise(self.signal, self.noise)

    @property
    def snr_of_changes(self) -> float:
        """Signal to noise in decibels, the signal of a row of numbers being how far each is from its mean: what all
        samples have in common, such as the 273 of temperatures in kelvin, tells nothing of what goes in. Of numbers
        that are the same in all samples, and of pictures, it is that of the numbers themselves."""
        common = 0.0 if self.sums is None else float(self.sums @ self.sums) / max(self.count, 1)
        changes = self.signal - common
        return signal_to_noise(changes if changes > SAME * self.signal else self.signal, self.noise)

    @property
    def cosine(self) -> float:
        """Of the angle between all numbers of both."""
        length = math.sqrt(self.signal * self.own)
        return self.across / length if length else 1.0


@dataclass
class Comparison(Likeness):
    """A model's answers beside those of the one it stands for, over samples taken in one by one.

    Attributes:
        agreed: in how many both have the same largest element, or picked the same class; of a sample with many answers,
            the share of those.
        divergence: the sum of the Kullback-Leibler divergences, in nats, of the answers as probabilities.
        errors: the samples' mean absolute differences.
        largest: the largest absolute difference.
        certainty: the sum of the largest probabilities that the reference gives a class, of a sample with many answers
            their mean.
        width: how many classes an answer tells apart; below 2 agreement and divergence say nothing.
        has_scores: whether classes have scores, without which there is no divergence, and noise says nothing.
        distance, spread: sums of what ``distance_from_input`` gives, of whose answers rows may be no scores of classes.
        are_forecasts: whether the answers are known to be numbers that are wanted, such as prices: no scores.
    """

    agreed: float = 0
    divergence: float = 0.0
    certainty: float = 0.0
    errors: Statistic[float] = field(default_factory=Statistic)
    largest: float = 0.0
    width: int = 0
    has_scores: bool = True
    distance: float = 0.0
    spread: float = 0.0
    are_forecasts: bool = False

    def add(self, reference: Array, answer: Array) -> None:
        """Takes in one sample's outputs, of the same size; the shape of the reference says what is an answer."""
        super().add(reference, answer)
        left, right = (array.reshape(-1).astype(np.float64) for array in (reference, answer))
        with np.errstate(invalid="ignore"):
            apart = np.where(np.isinf(left) & (left == right), 0, np.abs(left - right))
        wanted = None if self.are_forecasts else scores_of_classes(reference)
        self.width = 0 if wanted is None or is_reconstruction(self.distance, self.spread) else wanted.shape[1]
        if are_picks(reference) and reference.size and not self.are_forecasts:
            self.has_scores = False
            self.width = max(2, int(reference.max()) + 1)
            self.agreed += 1 - float(np.count_nonzero(apart)) / apart.size
        if wanted is not None:
            given = right.reshape(wanted.shape)
            are_numbers = ~(np.isnan(wanted) | np.isnan(given)).any(axis=1)
            self.agreed += float(((wanted.argmax(axis=1) == given.argmax(axis=1)) & are_numbers).mean())
            p, q = probabilities(wanted), probabilities(given)
            self.certainty += float(p.max(axis=1).mean())
            apart_by = float((p * np.log((p + SMALLEST) / (q + SMALLEST))).sum(axis=1).mean())
            self.divergence += max(apart_by, 0.0)  # sums of float32 are not quite 1
        self.errors.update(float(apart.mean()) if apart.size else 0.0)
        self.largest = max(self.largest, float(apart.max(initial=0)))

    def note_distance(self, distance: float, spread: float) -> None:
        """Takes in how far the next sample's reference is from what was fed; see ``distance_from_input``."""
        self.distance += distance
        self.spread += spread

    @property
    def has_classes(self) -> bool:
        """Whether answers are classes: finite scores of some, or those that the model picked."""
        return self.width > 1 and (not self.has_scores or math.isfinite(self.kl))

    @property
    def agreement(self) -> float:
        """The share of samples whose largest element is the same."""
        return self.agreed / max(self.count, 1)

    @property
    def mean_error(self) -> float:
        """The mean absolute difference, over samples."""
        return self.errors.average

    @property
    def mean_error_interval(self) -> tuple[float, float]:
        """Between which means the true one lies in 95 of 100 cases, by the spread over samples."""
        return mean_interval(self.errors)

    @property
    def kl(self) -> float:
        """The mean divergence; NaN without scores."""
        if not self.has_scores:
            return math.nan
        return self.divergence / max(self.count, 1)

    def meets(self, standard: Standard) -> bool:
        """Whether the answers reach a standard; agreement and divergence count where there are classes."""
        if not self.has_scores:
            return self.agreement >= standard.agreement
        if self.snr < standard.snr or math.isnan(self.snr):
            return False
        return self.width < 2 or (self.agreement >= standard.agreement and self.kl <= standard.kl)

    @property
    def quality(self) -> str:
        """``good``, ``fair`` or ``bad``, by the standards GOOD and ACCEPTABLE."""
        return "good" if self.meets(GOOD) else "fair" if self.meets(ACCEPTABLE) else "bad"

    def words(self) -> str:
        """The figures in words."""
        noise = noise_words(self.snr, "signal to noise exact")
        if self.width < 2:
            return f"{noise}, mean error {self.mean_error:.3g}"
        low, high = interval(self.agreed, self.count)
        others = f" ({low:.0%} to {high:.0%} of others)" if self.count < FEWEST else ""
        if not self.has_scores:
            return f"same class {self.agreement:.2%}{others}"
        return f"same best class {self.agreement:.2%}{others}, KL {self.kl:.4g}, {noise}"


@dataclass
class ClassAccuracy:
    """How often the right class is the first, or among the first five.

    Attributes:
        count: how many samples.
        first: in how many the right class has the largest score.
        among: in how many it has one of the five largest.
        width: how many classes there are; of classes that were picked, how many are known.
        has_scores: whether classes have scores, without which nothing is known of the first five.
    """

    count: int = 0
    first: int = 0
    among: int = 0
    width: int = 0
    has_scores: bool = True

    def add(self, scores: Array, label: int) -> None:
        """Takes in one sample's scores, or the class that was picked; ``label`` is the index of the right class."""
        row = scores.reshape(-1)
        self.count += 1
        if row.size == 1:
            self.has_scores = False
            self.width = max(self.width, 2, label + 1, int(row[0]) + 1)
            self.first += int(row[0] == label)
            self.among = self.first
            return
        self.width = row.size
        if np.isnan(row).any():  # no answer
            return
        best = np.argsort(-row, kind="stable")[:5]
        self.first += int(best[0] == label)
        self.among += int(label in best)

    @property
    def top1(self) -> float:
        """The share of samples whose class has the highest score."""
        return self.first / max(self.count, 1)

    @property
    def top5(self) -> float:
        """The share of samples whose class is among the five highest scores."""
        return self.among / max(self.count, 1)

    @property
    def has_top_five(self) -> bool:
        """Whether to be among the first five says anything, which it does of more classes than that."""
        return self.has_scores and self.width > 5

    @property
    def top5_interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 % confidence."""
        return interval(self.among, self.count)

    @property
    def top1_interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 % confidence."""
        return interval(self.first, self.count)
