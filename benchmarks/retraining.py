"""Five-fold accuracy of `retrain`'s head beside retrain.py's own procedure and scikit-learn, on the same features.

python benchmarks/retraining.py BASE.pb PHOTOS [--cuttings 2] [--train_layers 20]

The second and third are here in a few lines: 4,000 steps of gradient descent (rate 0.01, batches of 100, classes drawn
evenly), and LogisticRegressionCV where scikit-learn is installed. With --train_layers, a fifth row: the last layers
trained too, on the same photos, none of them being left to validation (--validation_percentage=0).
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

import pocketgraph
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.retraining.base_model import cut_model
from pocketgraph.apps.retraining.bottlenecks import Bottlenecks
from pocketgraph.apps.retraining.distortions import Distortions
from pocketgraph.apps.retraining.example_lists import examples_of
from pocketgraph.apps.retraining.fine_tuning import FineTuning, Tuning
from pocketgraph.apps.retraining.photo_features import DISTORTED, MIRRORED, PLAIN, PhotoFeatures
from pocketgraph.apps.retraining.softmax_head import cross_validated, fold_of, joined, solved
from pocketgraph.apps.retraining.trained_tail import tail_of
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.nn.activations import softmax


def ours(x: Array, mirrored: Array, y: Array, count: int, seed: int) -> Any:
    """What retrain does."""
    strength, _ = cross_validated(x, y, count, variants=mirrored, seed=seed)
    head, _ = solved(*joined(x, y, mirrored, np.ones(len(y), bool)), count, strength)
    return lambda rows: head.logits(rows).argmax(axis=1)


def descent(x: Array, mirrored: Array, y: Array, count: int, seed: int) -> Any:
    """What retrain.py does."""
    rng = np.random.default_rng(seed)
    weights, biases = rng.normal(0, 0.001, (x.shape[1], count)), np.zeros(count)
    members = [np.flatnonzero(y == label) for label in range(count)]
    for _ in range(4000):
        labels = rng.integers(0, count, 100)
        rows = np.array([members[label][rng.integers(0, 1 << 27) % len(members[label])] for label in labels])
        slope = softmax(x[rows] @ weights + biases)
        slope[np.arange(100), labels] -= 1
        weights -= 0.0001 * x[rows].T @ slope
        biases -= 0.0001 * slope.sum(axis=0)
    return lambda rows: (rows @ weights + biases).argmax(axis=1)


def scikit(x: Array, mirrored: Array, y: Array, count: int, seed: int) -> Any:
    """scikit-learn's regression, C by cross-validation."""
    from sklearn.linear_model import LogisticRegressionCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegressionCV(Cs=10, cv=5, max_iter=1000).fit(x, y).predict


class Tuned:
    """What retrain --train_layers does; what the layers before give is computed once for all folds."""

    def __init__(self, graph: Any, source: str, cut: str, model: PictureModel, examples: Any, layers: int) -> None:
        self.cut, self.tuning = cut, Tuning(layers)
        self.tail = tail_of(graph, source, cut, layers)
        before = PhotoFeatures(model, Distortions(flip=True, phone=True)).at(self.tail.graph, self.tail.start)
        cached = Bottlenecks(before, "")
        self.rows = cached.all(examples, [PLAIN, MIRRORED, *range(DISTORTED, DISTORTED + self.tuning.variants)])[1]
        self.shape = cached.shape or ()

    def right(self, x: Array, mirrored: Array, y: Array, inside: Array, count: int, seed: int) -> float:
        """The accuracy on photos that are not inside."""
        strength, _ = cross_validated(x[inside], y[inside], count, variants=mirrored[inside], seed=seed)
        head, _ = solved(*joined(x, y, mirrored, inside), count, strength)
        training = FineTuning(self.tail, self.cut, head, self.shape, self.tuning)
        training.run(self.rows[inside], y[inside], seed=seed)
        return float((training.logits(self.rows[~inside, 0]).argmax(axis=1) == y[~inside]).mean())


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("photos")
    parser.add_argument("--cuttings", type=int, default=2)
    parser.add_argument("--train_layers", type=int, default=0)
    flags = parser.parse_args()
    graph = pocketgraph.load(flags.base)
    cut, model = cut_model(graph)
    labels, examples = examples_of(flags.photos, testing=0, validation=0)
    rows = Bottlenecks(PhotoFeatures(model), "").all(examples, (PLAIN, MIRRORED))[1].astype(np.float64)
    x, mirrored = rows[:, 0], rows[:, 1:]
    y = np.array([labels.index(entry.label) for entry in examples])
    tuned = None
    if flags.train_layers:
        tuned = Tuned(graph, model.input.tensor, cut.tensor, model, examples, flags.train_layers)
    ways = {"retrain": ours, "retrain.py's procedure": descent}
    if find_spec("sklearn") is not None:
        ways["LogisticRegressionCV"] = scikit
    print(f"{len(y)} photos, {len(labels)} classes, {x.shape[1]} features at '{cut.tensor}'")
    for name, way in ways.items():
        right, begun = [], time.perf_counter()
        for seed in range(flags.cuttings):
            parts = fold_of(y, 5, seed)
            for part in range(5):
                inside, outside = parts != part, parts == part
                answer = way(x[inside], mirrored[inside], y[inside], len(labels), seed)
                right.append(float((answer(x[outside]) == y[outside]).mean()))
        print(f"{name:24} {100 * np.mean(right):6.2f} %  ({(time.perf_counter() - begun) / len(right):.2f} s a fold)")
    if tuned is None:
        return
    right, begun = [], time.perf_counter()
    for seed in range(flags.cuttings):
        parts = fold_of(y, 5, seed)
        for part in range(5):
            right.append(tuned.right(x, mirrored, y, parts != part, len(labels), seed))
            print(f"  fold {part}: {100 * right[-1]:.2f} %", flush=True)
    print(f"{'with the last layers':24} {100 * np.mean(right):6.2f} %  "
          f"({(time.perf_counter() - begun) / len(right):.2f} s a fold)")  # fmt: skip


if __name__ == "__main__":
    main()
