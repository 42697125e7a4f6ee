"""Made-up reviews of films, and a small net that reads them: split, looked up, embedded, averaged."""

from __future__ import annotations

import csv
import pathlib

import numpy as np

from pocketgraph import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse

CLASSES = ("bad", "good")
JUDGING = {
    "good": ("lovely", "superb", "charming", "bright", "warm", "fine"),
    "bad": ("dull", "awful", "boring", "weak", "tedious", "cold"),
}
OTHERS = ("the", "film", "plot", "actor", "music", "was", "is", "with", "and", "quite", "very", "a")
WORDS = sorted((*JUDGING["good"], *JUDGING["bad"], *OTHERS))
LONGEST = 20  # words of a review
WIDTH = 16  # numbers that stand for a word
COUNT = 160


def reviews(count: int = COUNT, seed: int = 0) -> list[tuple[str, str]]:
    """Texts and their classes in turn."""
    rng = np.random.default_rng(seed)
    found = []
    for at in range(count):
        label = CLASSES[at % 2]
        words = list(rng.choice(OTHERS, rng.integers(3, LONGEST - 4)))
        for judging in rng.choice(JUDGING[label], 3):
            words.insert(rng.integers(0, len(words)), judging)
        words.insert(0, str(rng.choice(JUDGING[CLASSES[1 - at % 2]])))
        found.append((" ".join(map(str, words)), label))
    return found


def net() -> Graph:
    """What tells good reviews from bad ones by their words; input ``text`` string [?], output ``scores`` [?, 2]."""
    nodes = parse("""
        text = Placeholder(dtype=string, shape=[?])
        blank = Const(string " ")
        split = StringSplit(text, blank)
        table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
        fill = InitializeTableV2(table, keys, numbers, Tkey=string, Tval=int64)
        unknown = Const(int64 0)
        found = LookupTableFindV2(table, split:1, unknown, ^fill, Tin=string, Tout=int64)
        padding = Const(int64 -1)
        padded = SparseToDense(split, split:2, found, padding, T=int64, Tindices=int64)
        one = Const(int64 1)
        ids = AddV2(padded, one, T=int64)
        axis = Const(int32 0)
        rows = GatherV2(embedding, ids, axis, Tparams=float, Tindices=int64, Taxis=int32)
        none = Const(int64 0)
        is_word = Greater(ids, none, T=int64)
        mask = Cast(is_word, SrcT=bool, DstT=float)
        last = Const(int32 -1)
        column = ExpandDims(mask, last, T=float, Tdim=int32)
        kept = Mul(rows, column, T=float)
        steps = Const(int32 1)
        total = Sum(kept, steps, T=float, Tidx=int32)
        count = Sum(column, steps, T=float, Tidx=int32)
        least = Const(float 1.0)
        divisor = Maximum(count, least, T=float)
        mean = RealDiv(total, divisor, T=float)
        hidden = MatMul(mean, hidden/weights, T=float)
        active = Relu(hidden, T=float)
        logits = MatMul(active, scores/weights, T=float)
        scores = Softmax(logits, T=float)
    """)
    rng = np.random.default_rng(1)
    directions = rng.normal(0, 1, WIDTH)
    signs = [(word in JUDGING["good"]) - (word in JUDGING["bad"]) for word in WORDS]
    table = rng.normal(0, 0.1, (len(WORDS) + 2, WIDTH))
    table[2:] += np.outer(signs, directions)
    hidden = rng.normal(0, 0.02, (WIDTH, 32))
    hidden[:, :16] += np.outer(directions, np.ones(16)) / WIDTH
    hidden[:, 16:] -= np.outer(directions, np.ones(16)) / WIDTH
    scores = np.concatenate([np.outer(np.ones(16), [-1, 1]), np.outer(np.ones(16), [1, -1])])
    constants = {"embedding": table, "hidden/weights": hidden, "scores/weights": scores}
    return Graph([
        *nodes, *(const(name, values.astype(np.float32)) for name, values in constants.items()),
        const("keys", np.array([word.encode() for word in WORDS], object)),
        const("numbers", np.arange(1, len(WORDS) + 1)),
    ])  # fmt: skip


def write_reviews(folder: pathlib.Path) -> None:
    """``reviews.pb``, and reviews as a table, ``reviews.csv``, and as a folder, ``reviews/``, with ``opinions.txt``."""
    save(net(), folder / "reviews.pb")
    (folder / "opinions.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    rows = reviews()
    with open(folder / "reviews.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("text", "label"), *rows])
    for at, (text, label) in enumerate(rows):
        (folder / "reviews" / label).mkdir(parents=True, exist_ok=True)
        (folder / "reviews" / label / f"{at:03}.txt").write_text(text)
