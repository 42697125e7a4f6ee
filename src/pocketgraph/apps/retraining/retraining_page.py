"""What came of retraining as one HTML page: the verdict first, then mistakes, and whether more photos would help."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pocketgraph.apps.photo_figures import figure, thumbnail
from pocketgraph.apps.retraining.classifier_metrics import Mistake, gain_of_last_half
from pocketgraph.apps.retraining.table_features import is_table
from pocketgraph.apps.retraining.tool import HEAD_ALONE, Retrained
from pocketgraph.datasets import presets
from pocketgraph.errors import quoted
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.document import report, text
from pocketgraph.pages.parts import (
    Cell,
    Column,
    Row,
    Verdict,
    cards,
    curve,
    glossary,
    meter,
    notes,
    number,
    paragraph,
    section,
    table,
    words,
)
from pocketgraph.pages.parts import commands as command_lines
from pocketgraph.pages.quantities import counted, duration
from pocketgraph.runtime.comparison.answer_metrics import interval

GOOD, FAIR = 0.9, 0.7
"""Shares of right answers on examples that the classifier had not seen."""
FEW = 100  # examples of a test set, of fewer of which cross-validation is the better judge
SHOWN = 24  # mistakes
CONFUSED = 3  # pairs of classes that the verdict names
WELL_CALIBRATED = 0.05
USED = ("95 % confident", "ms", "median")
"""The words that the page explains."""


def as_html(made: Retrained, title: str, size: int, commands: Sequence[str]) -> str:
    """The page.

    Args:
        made: what ``retrain`` gave.
        title: the new graph's name.
        size: its bytes.
        commands: to go on with.
    """
    share, count, _ = headline(made)
    mistakes = [*made.mistakes, *made.held_mistakes]
    return report(
        f"{title}: {counted(len(made.labels), 'class')}",
        Verdict("good" if share >= GOOD else "fair" if share >= FAIR else "bad", verdict(made), _reasons(made)).html(),
        cards(
            [
                (f"{100 * share:.1f} %", f"right, of {count:,} not seen"),
                (f"{len(made.labels):,}", "classes"),
                (f"{sum(made.counts.values()):,}", "examples"),
                (f"{size / 1e6:.2f} MB", "graph"),
                (duration(made.milliseconds / 1e3), "an example, here"),
            ]
        ),
        section("What to type next", command_lines(commands)),
        section("What it takes for what: the test set", _matrix(made.labels, made.confusion)),
        section(
            "What it takes for what: cross-validated",
            paragraph(f"Each training example, named by a {_judges(made)} that was solved without it."),
            _matrix(made.labels, made.held_confusion),
        ),
        section(f"The surest mistakes, {min(SHOWN, len(mistakes))} of {len(mistakes)}", _mistakes(mistakes)),
        section("Would more examples help?", paragraph(_more(made)), _curve(made)),
        section("How sure, and how often right", paragraph(_calibration(made)), _certainties(made)),
        section("Accuracy", _accuracies(made)),
        notes(f"left out: {path}" for path in made.left_out),
        glossary(USED),
    )


def headline(made: Retrained) -> tuple[float, int, str]:
    """The share of right answers on examples that the classifier had not seen, of how many, and of which."""
    if made.counts["testing"] >= FEW or (made.trained_layers and made.counts["testing"]):
        return made.accuracy.get("testing", 0.0), made.counts["testing"], "test set"
    return (
        made.accuracy.get("cross_validation", made.accuracy.get(HEAD_ALONE, 0.0)),
        made.counts["training"],
        "cross-validation",
    )


def verdict(made: Retrained) -> str:
    """In a sentence, how often it is right."""
    share, count, where = headline(made)
    low, high = interval(share * count, count)
    return (
        f"Right in {100 * share:.1f} % of {counted(count, 'example')} that it had not seen "
        f"({where}; {100 * low:.0f} % to {100 * high:.0f} %)"
    )


def next_commands(made: Retrained, graph: str, labels: str, folder: str) -> list[str]:
    """What to type next, as a shell takes it.

    Args:
        made: what ``retrain`` gave.
        graph, labels: the files that were written.
        folder: the photos, recordings or table.
    """
    preset = presets.recognise(made.graph)
    scaling = []
    if made.scaling is not None and (preset is None or (preset.mean, preset.std) != made.scaling):
        scaling = [f"--input_mean={made.scaling[0]:g}", f"--input_std={made.scaling[1]:g}"]
    graph = f"./{graph}" if graph.startswith("-") else graph
    stem = os.path.splitext(graph)[0]
    first = [
        ["quantize", graph, f"--calibrate={folder}", "-o", f"{stem}_small.tflite"],
        ["live", graph, f"--labels={labels}"],
    ]
    if is_table(folder):
        first = [["evaluate", graph, f"--data={folder}", f"--labels={labels}"]]
    last = ["export", graph, "-o", f"{stem}.tflite", f"--labels={labels}", f"--data={folder}"]
    return [" ".join(map(quoted, ("pocketgraph", *words, *scaling))) for words in (*first, last)]


def _judges(made: Retrained) -> str:
    return "new layer, on the base as it was," if made.trained_layers else "new layer"


def _reasons(made: Retrained) -> list[str]:
    """What stands behind the verdict, and what may be done about it."""
    found = []
    tested = made.counts["testing"]
    if tested and headline(made)[2] != "test set":
        found.append(f"On the test set of {tested}: {100 * made.accuracy['testing']:.1f} %.")
    if made.trained_layers:
        found.append(
            f"{counted(len(made.trained_layers), 'layer of the base was', 'layers of the base were')} trained too; "
            "the new layer alone was right in "
            f"{100 * made.accuracy[HEAD_ALONE]:.1f} % (cross-validation)."
        )
    pairs = _confused(made)
    if pairs:
        listed = ", ".join(f"{made.labels[one]} for {made.labels[other]} ({count})" for count, one, other in pairs)
        found.append(f"Most often it takes {listed}.")
    found.append(_more(made))
    found.append(_calibration(made))
    if made.left_out:
        found.append(
            f"{counted(len(made.left_out), 'file that did not open was', 'files that did not open were')} left out."
        )
    return found


def _confused(made: Retrained) -> list[tuple[int, int, int]]:
    """(how often, what it is, what it was taken for), the most frequent first."""
    both = made.confusion + made.held_confusion
    count = len(made.labels)
    pairs = [(int(both[i, j]), i, j) for i in range(count) for j in range(count) if i != j and both[i, j]]
    return sorted(pairs, key=lambda pair: -pair[0])[:CONFUSED]


def _more(made: Retrained) -> str:
    gain = gain_of_last_half(made.curve)
    if gain is None:
        return "There are too few examples to say whether more of them would help."
    if made.wants_more_photos:
        return f"More examples would help: the second half of them brought {100 * gain:.1f} points."
    return f"More examples of the same kind would help little: the second half of them brought {100 * gain:.1f} points."


def _calibration(made: Retrained) -> str:
    off, count = made.calibration, sum(one.count for one in made.certainties)
    if not count:
        return "There are too few examples to say how far scores can be trusted."
    over = sum(one.count * (one.mean - one.accuracy) for one in made.certainties)
    if off <= WELL_CALIBRATED:
        return f"Its scores can be taken at their word: they are off by {100 * off:.1f} points in the mean."
    return f"It is {'surer' if over > 0 else 'less sure'} than it is right, by {100 * off:.1f} points in the mean."


def _matrix(labels: Sequence[str], found: Array) -> str:
    """Rows are what examples are, columns what was answered."""
    if not found.sum():
        return paragraph("There are no examples.")
    rows = []
    for i, label in enumerate(labels):
        total = int(found[i].sum())
        cells = [Cell(str(n) if n else "", int(n), _shade(i == j, int(n), total)) for j, n in enumerate(found[i])]
        right = found[i, i] / total if total else float("nan")
        rows.append(Row([words(label), *cells, number(float(100 * right), ".0f", " %")]))
    head = [Column("is, named …", is_words=True), *(Column(label) for label in labels), Column("right")]
    return table(head, rows)


def _shade(is_right: bool, count: int, total: int) -> str:
    """A tenth of a class that is taken for one other stands out; a fifth more."""
    if is_right or not count:
        return ""
    return "bad" if count >= 0.2 * total else "fair" if count >= 0.1 * total else ""


def _mistakes(mistakes: Sequence[Mistake]) -> str:
    shown = "".join(
        figure(
            thumbnail(one.path),
            f"<b>{text(one.label)}</b>, named <b>{text(one.answer)}</b> ({one.score:.2f})",
            text("/".join(one.path.split(os.sep)[-2:])),
        )
        for one in sorted(mistakes, key=lambda one: -one.score)[:SHOWN]
    )
    return f'<div class="figures">{shown}</div>' if shown else paragraph("None.")


def _curve(made: Retrained) -> str:
    if len(made.curve) < 2:
        return ""
    points = [(f"{counted(size, 'example')}: {100 * right:.1f} %", 100 * right, False) for size, right in made.curve]
    return curve(points, 100, "% right", range(len(points)))


def _certainties(made: Retrained) -> str:
    rows = [
        Row(
            [
                number(100 * one.mean, ".0f", " %"),
                Cell(f"{100 * one.accuracy:.0f} %", one.accuracy, more=meter(one.accuracy)),
                number(one.count, ","),
            ]
        )
        for one in made.certainties
    ]
    return table([Column("sure"), Column("right"), Column("examples")], rows) if rows else ""


def _accuracies(made: Retrained) -> str:
    rows = []
    for name, right in made.accuracy.items():
        count = made.counts.get(name, made.counts["training"])
        low, high = interval(right * count, count)
        cells = [number(100 * right, ".1f", " %"), Cell(f"{100 * low:.1f} to {100 * high:.1f} %"), number(count, ",")]
        rows.append(Row([words(name.replace("_", " ")), *cells]))
    return table([Column("set", is_words=True), Column("right"), Column("95 % confident"), Column("examples")], rows)
