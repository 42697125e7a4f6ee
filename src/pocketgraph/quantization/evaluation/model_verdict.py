"""The figures of one model on data: against the truth, and beside another model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pocketgraph.errors import UsageError, option
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.json_text import finite
from pocketgraph.quantization.evaluation.plausibility import AnswerCounts
from pocketgraph.runtime.comparison.answer_metrics import ClassAccuracy, Comparison, interval, mean_interval
from pocketgraph.runtime.comparison.tag_accuracy import TagAccuracy
from pocketgraph.runtime.profiling.statistic import Statistic

COLUMNS = (
    ("top1", "top-1", "{:.2%}"),
    ("top1_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("top5", "top-5", "{:.2%}"),
    ("top5_interval", "95 % confident", "{0[0]:.1%}-{0[1]:.1%}"),
    ("tags_f1", "F1 of tags", "{:.2%}"),
    ("tags_right", "tags right", "{:.2%}"),
    ("all_tags_right", "all right", "{:.2%}"),
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
class ModelVerdict:
    """What is known of one model after all samples.

    Attributes:
        path: its file, or a name.
        size: bytes of its file, where it has one.
        comparison: with the first model; None for that one.
        accuracy: against the data's classes, when they tell them.
        tags: against the tags that the data tell, several of which may be true of a sample, when they do.
        errors: the samples' mean absolute differences from the numbers that the data tell, when they do.
        times: seconds of each sample.
        answers: which classes it gave.
        samples: how many were taken in.
        without_numbers: the places of the samples for which it gave NaN, or nothing but infinity.
        not_finite: that there are such, and where it begins, in a sentence; empty where there are none.
    """

    path: str
    size: int | None = None
    comparison: Comparison | None = None
    accuracy: ClassAccuracy | None = None
    tags: TagAccuracy | None = None
    errors: Statistic[float] | None = None
    times: list[float] = field(default_factory=list)
    answers: AnswerCounts = field(default_factory=AnswerCounts)
    samples: int = 0
    without_numbers: list[int] = field(default_factory=list)
    not_finite: str = ""

    def add(self, reference: Array, answer: Array, label: int | None, numbers: Array | None) -> None:
        """Takes in one sample's output, beside that of the first model and beside what the data tell.

        Raises:
            UsageError: the output is of texts.
        """
        if answer.dtype.kind in "OSU":
            hint = f"name the numbers that the texts are made of, with {option('outputs')}"
            raise UsageError("the output is of texts, and numbers are judged", where=self.path, hint=hint)
        if answer.dtype.kind == "f" and answer.size and (np.isnan(answer).any() or not np.isfinite(answer).any()):
            self.without_numbers.append(self.samples)
        self.samples += 1
        if self.comparison is not None:
            self.comparison.add(reference, answer)
        if self.accuracy is not None and label is not None:
            self.accuracy.add(answer, label)
        self.answers.add(answer, label if self.accuracy is not None else None)
        if self.tags is not None and numbers is not None:
            self.tags.add(answer, numbers)
        if self.errors is not None and numbers is not None:
            self.errors.update(float(np.abs(answer.reshape(-1).astype(np.float64) - numbers).mean()))

    @property
    def model(self) -> str:
        """The name of its file, without folders."""
        return os.path.basename(self.path) or self.path

    @property
    def doubt(self) -> str:
        """What speaks against its answers, whatever they are compared with; empty where nothing does."""
        return self.not_finite or self.answers.doubt(self.model, self.accuracy)

    def as_dict(self) -> dict[str, Any]:
        """All numbers by name; None for what is not known."""
        right, beside = self.accuracy, self.comparison
        row: dict[str, Any] = {"model": self.model, "bytes": self.size}
        if right is not None:
            row |= {"top1": right.top1, "top1_interval": right.top1_interval}
            if right.has_top_five:
                row |= {"top5": right.top5, "top5_interval": right.top5_interval}
        if self.tags is not None:
            row |= {"tags_f1": self.tags.f1, "tags_right": self.tags.right, "all_tags_right": self.tags.all_right}
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
                "snr_db": beside.snr if beside.has_scores else None,
                "mean_error": beside.mean_error,
                "mean_error_interval": beside.mean_error_interval,
                "largest_error": beside.largest,
            }
        return {
            **finite(row),
            "milliseconds": float(np.median(self.times)) * 1e3,
        }


def is_filled(value: Any) -> bool:
    """Whether there is a number, or an interval with both ends."""
    return value is not None and not (isinstance(value, list) and None in value)
