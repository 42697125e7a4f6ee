"""Shows how models did on data as one HTML page, or as a piece of one for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pocketgraph.pages.document import fragment, report
from pocketgraph.pages.page_glossary import GLOSSARY
from pocketgraph.pages.parts import Cell, Column, Row, Verdict, glossary, notes, section, table, words
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.evaluation.model_verdict import COLUMNS, ModelVerdict, is_filled
from pocketgraph.runtime.comparison.answer_metrics import FEWEST, interval

MOST = 50  # models and notes in a notebook
FEW = 100  # samples; of fewer a verdict says how few they are
SAID = {
    "good": "Ship {}", "fair": "Ship {} after a look at what it lost", "bad": "Do not ship {}",
}  # fmt: skip
MEANS = {
    "top1": GLOSSARY["top-1"], "top5": GLOSSARY["top-1"], "agreement": GLOSSARY["same best class"],
    "kl": GLOSSARY["KL divergence"], "snr_db": GLOSSARY["signal to noise"], "true_error": GLOSSARY["mean error"],
    "tags_f1": GLOSSARY["F1 of tags"], "tags_right": GLOSSARY["F1 of tags"], "all_tags_right": GLOSSARY["F1 of tags"],
    "mean_error": GLOSSARY["mean error"], "milliseconds": "The median time of one sample, measured here.",
    "bytes": "Of the model file.",
}  # fmt: skip
USED = (
    "top-1",
    "F1 of tags",
    "95 % confident",
    "same best class",
    "KL divergence",
    "signal to noise",
    "mean error",
    "ms",
    "median",
)
"""The words that a page explains."""


def to_html(found: Sequence[ModelVerdict], samples: int, said: Sequence[str], place: str) -> str:
    """The page.

    Args:
        found: what is known of each model.
        samples: how many there were.
        said: what the numbers do not say by themselves.
        place: the data's name.
    """
    return report(
        f"{counted(len(found), 'model')} on {place}" if len(found) != 1 else f"{found[0].model} on {place}",
        finding(found, samples).html(),
        section(f"On {counted(samples, 'sample')}", _table(found)),
        notes(said),
        glossary(USED),
    )


def to_fragment(found: Sequence[ModelVerdict], samples: int, said: Sequence[str]) -> str:
    """Verdict and table for a notebook."""
    return fragment(finding(found, samples).html(), _table(found[:MOST]), notes(said[:MOST]))


def finding(found: Sequence[ModelVerdict], samples: int) -> Verdict:
    """Which of the models to ship, in plain words, and why."""
    if not found:
        return Verdict("", "No models")
    first = found[0]
    few = (
        [f"{counted(samples, 'sample is', 'samples are')} few: another hundred may say otherwise."]
        if samples < FEW
        else []
    )
    if len(found) == 1:
        return Verdict("", _alone(first), few)
    judged = [(one, *_judged(one, first)) for one in found[1:]]
    order = {"good": 0, "fair": 1, "bad": 2}
    best, kind, _ = min(judged, key=lambda item: (order[item[1]], item[0].size or 0))
    kind = "fair" if kind == "good" and samples < FEWEST else kind
    reasons = [f"{one.model}: {why}" for one, _, why in judged]
    return Verdict(kind, SAID[kind].format(best.model), [*reasons, *few])


def _alone(one: ModelVerdict) -> str:
    if one.accuracy is not None:
        low, high = one.accuracy.top1_interval
        return (
            f"{one.model} is right in {one.accuracy.top1:.1%} of {counted(one.accuracy.count, 'sample')} "
            f"({low:.1%} to {high:.1%})"
        )
    if one.tags is not None:
        return f"{one.model}: {one.tags.words(counted(one.tags.count, 'sample'))}"
    if one.errors is not None:
        return f"{one.model} is off by {one.errors.average:.4g} in the mean"
    return f"{one.model} ran; the data do not tell what is right"


def _judged(one: ModelVerdict, first: ModelVerdict) -> tuple[str, str]:
    """``good``, ``fair`` or ``bad``, and why."""
    beside = one.comparison
    assert beside is not None
    kind, said = beside.quality, [f"{beside.words()}, against {first.model}"]
    if one.accuracy is not None and first.accuracy is not None:
        lost = first.accuracy.top1 - one.accuracy.top1
        low, _ = interval(first.accuracy.first, first.accuracy.count)
        within = one.accuracy.top1 >= low
        kind = ("good" if lost <= 0.01 else "fair") if within else "bad"
        change = f"{'loses' if lost > 0 else 'gains'} {100 * abs(lost):.2f} points of right answers" if lost else ""
        said.insert(
            0, f"{change}, {'which may be chance' if within else 'more than chance'}" if change else "as often right"
        )
    if one.tags is not None and first.tags is not None:
        lost = first.tags.f1 - one.tags.f1
        kind = "good" if lost <= 0.01 else "fair" if lost <= 0.02 else "bad"
        said.insert(0, f"{one.tags.words(counted(one.tags.count, 'sample'))}, {first.tags.f1:.1%} before")
    if one.size and first.size:
        said.append(f"{one.size / first.size:.2f} x the bytes")
    times = one.as_dict()["milliseconds"], first.as_dict()["milliseconds"]
    said.append(f"{times[0]:.3g} ms a sample beside {times[1]:.3g} ms")
    return kind, "; ".join(said) + "."


def _table(found: Sequence[ModelVerdict]) -> str:
    rows = [one.as_dict() for one in found]
    used = [column for column in COLUMNS if any(is_filled(row.get(column[0])) for row in rows)]
    head = [Column("model"), *(Column(title, MEANS.get(key, GLOSSARY.get(title, ""))) for key, title, _ in used)]
    made = [Row([words(row["model"]), *(_cell(row.get(key), form) for key, _, form in used)]) for row in rows]
    return table(head, made)


def _cell(value: Any, form: str) -> Cell:
    if not is_filled(value):
        return Cell("")
    return Cell(form.format(value), value[0] if isinstance(value, list) else float(value))
