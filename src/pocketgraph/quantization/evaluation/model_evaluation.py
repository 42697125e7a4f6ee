"""Runs several models over the same samples and judges each."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.errors import UsageError, option
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress
from pocketgraph.quantization.evaluation.metrics import Accuracy, Comparison, interval, mean_interval
from pocketgraph.quantization.evaluation.runnable_models import LiteRTModel, RunnableModel
from pocketgraph.runtime.statistic import Statistic

Truth = Callable[[int], "list[int] | None"]
"""Gives the class of each sample, or None, when told how many scores there are."""
Wanted = Callable[[int], "np.ndarray[Any, Any] | None"]
"""Gives the numbers that a model should give, [samples, size], or None, when told how many it gives."""

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
        accuracy: against the data's classes, when they tell them.
        errors: the samples' mean absolute differences from the numbers that the data tell, when they do.
        comparison: with the first model; None for that one.
        seconds: the median time of one sample.
        size: bytes of its file, where it has one.
    """

    path: str
    accuracy: Accuracy | None
    comparison: Comparison | None
    seconds: float
    errors: Statistic[float] | None = None
    size: int | None = None

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
        return {**{key: _finite(value) for key, value in row.items()}, "milliseconds": self.seconds * 1e3}


def _finite(value: Any) -> Any:
    """None in place of infinities and NaN, which JSON does not know."""
    if isinstance(value, tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def judge_models(
    models: Sequence[RunnableModel],
    samples: Samples,
    count: int,
    truth: Truth,
    progress: Progress | None = None,
    wanted: Wanted | None = None,
) -> list[Verdict]:
    """Judges models by the first output of each.

    Args:
        models: the models; the first is what the others are compared with.
        samples: arrays in the form that the first model takes.
        count: how many samples there are.
        truth: see Truth.
        progress: told how far it is.
        wanted: see Wanted.

    Raises:
        UsageError: there are no samples, or the models do not take or give the same shapes.
    """
    if count < 1:
        raise UsageError("there is no sample to judge with")
    for model in models[1:]:
        if not _fit(model, models[0]):
            raise UsageError(
                f"it takes {_shapes(model)}, and {models[0].path} takes {_shapes(models[0])}", where=model.path
            )
    comparisons = [None if index == 0 else Comparison() for index in range(len(models))]
    accuracies: list[Accuracy | None] = [None] * len(models)
    errors: list[Statistic[float] | None] = [None] * len(models)
    times: list[list[float]] = [[] for _ in models]
    labels: list[int] | None = None
    numbers: Any = None
    for done, sample in enumerate(samples()):
        reference: Any = None
        for index, model in enumerate(models):
            start = time.perf_counter()
            answer = np.asarray(model.run(sample)[0])
            took = time.perf_counter() - start
            times[index].append(model.seconds if isinstance(model, LiteRTModel) else took)
            if index == 0:
                reference = answer
                if done == 0:
                    labels = truth(answer.size)
                    has_classes = labels is not None and answer.size > 1
                    accuracies = [Accuracy() if has_classes else None for _ in models]
                    numbers = None if has_classes or wanted is None else wanted(answer.size)
                    errors = [None if numbers is None else Statistic() for _ in models]
            if answer.size != reference.size:
                raise UsageError(
                    f"its output is {list(answer.shape)}, that of {models[0].path} {list(reference.shape)}",
                    where=model.path,
                    hint=f"name the outputs with {option('outputs')}",
                )
            comparison, accuracy = comparisons[index], accuracies[index]
            if comparison is not None:
                comparison.add(reference, answer)
            if accuracy is not None and labels is not None:
                accuracy.add(answer, labels[done])
            off = errors[index]
            if off is not None:
                off.update(float(np.abs(answer.reshape(-1).astype(np.float64) - numbers[done]).mean()))
        if progress is not None:
            progress("judging", done + 1, count)
    return [
        Verdict(
            model.path, accuracies[index], comparisons[index], float(np.median(times[index])), errors[index], model.size
        )
        for index, model in enumerate(models)
    ]


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
