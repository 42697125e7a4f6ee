"""Runs several models over the same samples and judges each."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from pocketgraph.datasets.dataset import Dataset
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.errors import UsageError, option
from pocketgraph.quantization.core.program_runner import Array
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.evaluation.runnable_models import LiteRTModel, RunnableModel
from pocketgraph.runtime.answer_metrics import Accuracy, Comparison, interval, mean_interval
from pocketgraph.runtime.statistic import Statistic

COLUMNS = (
    ("top1", "top-1", "{:.2%}"),
    ("top1_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("top5", "top-5", "{:.2%}"),
    ("top5_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("true_error", "true error", "{:.4g}"),
    ("true_error_interval", "95 % confident", "{0[0]:.3g}-{0[1]:.3g}"),
    ("agreement", "agrees", "{:.2%}"),
    ("agreement_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("kl", "KL", "{:.5f}"),
    ("snr_db", "SNR dB", "{:.2f}"),
    ("mean_error", "mean error", "{:.3g}"),
    ("mean_error_interval", "95 % confident", "{0[0]:.2g}-{0[1]:.2g}"),
    ("milliseconds", "ms", "{:.2f}"),
    ("bytes", "bytes", "{:,}"),
)


@dataclass
class Evaluation(Sequence["Verdict"]):
    """What is known of models after all samples, one after the other; it prints as a table.

    Attributes:
        verdicts: of each model.
        samples: how many samples there were.
        notes: what the numbers do not say by themselves.
    """

    verdicts: list[Verdict]
    samples: int
    notes: list[str]

    def __len__(self) -> int:
        return len(self.verdicts)

    @overload
    def __getitem__(self, at: int) -> Verdict: ...
    @overload
    def __getitem__(self, at: slice) -> list[Verdict]: ...
    def __getitem__(self, at: int | slice) -> Verdict | list[Verdict]:
        return self.verdicts[at]

    def __repr__(self) -> str:
        return "\n".join(table([verdict.as_dict() for verdict in self.verdicts], self.samples))


@dataclass
class Verdict:
    """What is known of one model after all samples.

    Attributes:
        path: its file, or a name.
        size: bytes of its file, where it has one.
        comparison: with the first model; None for that one.
        accuracy: against the data's classes, when they tell them.
        errors: the samples' mean absolute differences from the numbers that the data tell, when they do.
        times: seconds of each sample.
    """

    path: str
    size: int | None = None
    comparison: Comparison | None = None
    accuracy: Accuracy | None = None
    errors: Statistic[float] | None = None
    times: list[float] = field(default_factory=list)

    def add(self, reference: Array, answer: Array, label: int | None, numbers: Array | None) -> None:
        """Takes in one sample's output, beside that of the first model and beside what the data tell."""
        if self.comparison is not None:
            self.comparison.add(reference, answer)
        if self.accuracy is not None and label is not None:
            self.accuracy.add(answer, label)
        if self.errors is not None and numbers is not None:
            self.errors.update(float(np.abs(answer.reshape(-1).astype(np.float64) - numbers).mean()))

    @property
    def model(self) -> str:
        """The name of its file, without folders."""
        return os.path.basename(self.path) or self.path

    def as_dict(self) -> dict[str, Any]:
        """All numbers by name; None for what is not known."""
        right, beside = self.accuracy, self.comparison
        row: dict[str, Any] = {"model": self.model, "bytes": self.size}
        if right is not None:
            row |= {"top1": right.top1, "top1_interval": right.top1_interval}
            if right.tells_five:
                row |= {"top5": right.top5, "top5_interval": right.top5_interval}
        if self.errors is not None:
            row |= {"true_error": self.errors.average, "true_error_interval": mean_interval(self.errors)}
        if beside is not None:
            if beside.width > 1:
                row |= {
                    "agreement": beside.agreement,
                    "agreement_interval": interval(beside.agreed, beside.count),
                    "kl": beside.kl,
                }
            row |= {
                "snr_db": beside.snr,
                "mean_error": beside.mean_error,
                "mean_error_interval": beside.mean_error_interval,
                "largest_error": beside.largest,
            }
        return {
            **{key: _finite(value) for key, value in row.items()},
            "milliseconds": float(np.median(self.times)) * 1e3,
        }


def _finite(value: Any) -> Any:
    """None in place of infinities and NaN, which JSON does not know."""
    if isinstance(value, tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def judge_models(
    models: Sequence[RunnableModel], data: Dataset, labels: Sequence[str] | None, progress: Progress = silent
) -> Evaluation:
    """Judges models by the first output of each.

    Args:
        models: the models; the first is what the others are compared with.
        data: samples in the form that the first model takes.
        labels: the names of the classes, in the order of the scores.
        progress: told how far it is.

    Raises:
        UsageError: the models do not take or give the same shapes, or the labels are not the data's.
    """
    for model in models[1:]:
        if not _fit(model, models[0]):
            raise UsageError(
                f"it takes {_shapes(model)}, and {models[0].path} takes {_shapes(models[0])}", where=model.path
            )
    verdicts = [Verdict(model.path, model.size, Comparison() if at else None) for at, model in enumerate(models)]
    odd: list[int] = []
    classes: list[int] | None = None
    numbers: Array | None = None
    for done, sample in enumerate(data.samples()):
        if not all(np.isfinite(array).all() for array in sample if array.dtype.kind == "f"):
            odd.append(done + 1)
        reference: Array | None = None
        for model, verdict in zip(models, verdicts, strict=True):
            start = time.perf_counter()
            answer = np.asarray(model.run(sample)[0])
            took = time.perf_counter() - start
            verdict.times.append(model.seconds if isinstance(model, LiteRTModel) else took)
            if reference is None:
                reference = answer
                if done == 0:
                    classes, numbers = _wanted(data, labels, answer.size, verdicts)
            if answer.size != reference.size:
                raise UsageError(
                    f"its output is {list(answer.shape)}, that of {models[0].path} {list(reference.shape)}",
                    where=model.path,
                    hint=f"name the outputs with {option('outputs')}",
                )
            label = None if classes is None else classes[done]
            verdict.add(reference, answer, label, None if numbers is None else numbers[done])
        progress("judging", done + 1, len(data))
    return Evaluation(verdicts, len(data), list(notes(verdicts, data, odd)))


def _wanted(
    data: Dataset, labels: Sequence[str] | None, size: int, verdicts: Sequence[Verdict]
) -> tuple[list[int] | None, Array | None]:
    """What the data tell of each sample, its class or its numbers; verdicts get room for what is counted."""
    classes = data.truth(labels, size)
    has_classes = classes is not None and size > 1
    numbers = None if has_classes else data.wanted(size)
    for verdict in verdicts:
        verdict.accuracy = Accuracy() if has_classes else None
        verdict.errors = None if numbers is None else Statistic()
    return classes, numbers


def _fit(model: RunnableModel, other: RunnableModel) -> bool:
    """Whether both take samples of the same shapes, 1 being an open size."""
    if len(model.inputs) != len(other.inputs):
        return False
    return all(
        len(left.shape) == len(right.shape)
        and all(a == b or 1 in (a, b) for a, b in zip(left.shape, right.shape, strict=True))
        for left, right in zip(model.inputs, other.inputs, strict=True)
    )


def largest_inputs(models: Sequence[RunnableModel]) -> tuple[ModelInput, ...]:
    """What the model takes that says most about its shapes: others may leave sizes open."""
    return max(models, key=lambda model: sum(math.prod(item.shape) for item in model.inputs)).inputs


def _shapes(model: RunnableModel) -> str:
    return ", ".join(str(list(item.shape)) for item in model.inputs)


def _is_told(value: Any) -> bool:
    """Whether there is a number, or an interval with both ends."""
    return value is not None and not (isinstance(value, list) and None in value)


def table(rows: list[dict[str, Any]], count: int) -> list[str]:
    """The verdicts in columns."""
    used = [column for column in COLUMNS if any(_is_told(row.get(column[0])) for row in rows)]
    cells = [["model", *(title for _, title, _ in used)]]
    for row in rows:
        filled = [form.format(row[key]) if _is_told(row.get(key)) else "" for key, _, form in used]
        cells.append([row["model"], *filled])
    widths = [max(len(line[index]) for line in cells) for index in range(len(cells[0]))]
    lines = [f"{count} samples" + (f"; agreement is with {rows[0]['model']}" if len(rows) > 1 else "")]
    for line in cells:
        padded = (text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))
        lines.append("  ".join([line[0].ljust(widths[0]), *padded]).rstrip())
    return lines


def notes(verdicts: list[Verdict], data: Dataset, odd: list[int]) -> Iterator[str]:
    """What the numbers do not say by themselves."""
    if odd:
        which = f"sample {odd[0]} holds" if len(odd) == 1 else f"{len(odd)} samples hold, the first being {odd[0]},"
        yield f"{which} NaN or infinity; take such out of {data.place}"
    if data.classes and all(verdict.accuracy is None and verdict.errors is None for verdict in verdicts):
        yield (
            f"{data.place} tells classes, such as '{data.classes[0]}', but not which score is whose; "
            f"{option('labels')} names the class of each score"
        )
    compared = [verdict.comparison for verdict in verdicts if verdict.comparison is not None]
    if not all(math.isfinite(comparison.mean_error) for comparison in compared):
        yield f"some results are not finite numbers; look for NaN and infinities in {data.place}"
