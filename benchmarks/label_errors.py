"""How many of the labels that were made wrong `dataset check` finds, and how many of those it names were.

python benchmarks/label_errors.py BASE.pb PHOTOS [--share 0.05] [--times 100] [--first 100]
"""

from __future__ import annotations

import argparse

import numpy as np

import pocketgraph
from pocketgraph.apps.retraining.base_model import cut_model
from pocketgraph.apps.retraining.example_lists import examples_of
from pocketgraph.apps.training_data.label_errors import doubts, held_out_scores, label_errors, of_views
from pocketgraph.datasets import image_loading


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("photos")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--first", type=int, default=100, help="seed of the first draw")
    flags = parser.parse_args()
    _, model = cut_model(pocketgraph.load(flags.base))
    labels, examples = examples_of(flags.photos, testing=0, validation=0)
    features = np.stack([of_views(model, image_loading.read(entry.path))[1] for entry in examples])
    true = np.array([labels.index(entry.label) for entry in examples])
    wrong = round(flags.share * len(true))
    wanted = int(np.ceil(0.8 * wrong))
    rows = []
    for seed in range(flags.first, flags.first + flags.times):
        rng = np.random.default_rng(seed)
        classes, places = true.copy(), rng.choice(len(true), wrong, replace=False)
        classes[places] = (classes[places] + rng.integers(1, len(labels), wrong)) % len(labels)
        held = held_out_scores(features, classes, len(labels))
        hits = np.isin([error.place for error in label_errors(held, classes)], places)
        ranked = np.cumsum(np.isin(np.argsort(-doubts(held, classes)), places))
        needed = int(np.searchsorted(ranked, wanted)) + 1
        rows.append((len(hits), hits.sum() / wrong, hits.mean() if len(hits) else 1.0, wanted / needed))
    named, recall, precision, at_80 = np.mean(rows, axis=0)
    print(f"{len(true)} photos, {len(labels)} classes, {wrong} labels made wrong, {flags.times} times")
    print(f"named {named:.1f}: recall {100 * recall:.1f} %, precision {100 * precision:.1f} %")
    print(f"precision of the ranking where 80 % are found: {100 * at_80:.1f} %")


if __name__ == "__main__":
    main()
