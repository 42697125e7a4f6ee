"""Programs with large tensors are quantized and looked at group by group, to the same file and the same figures."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from pocketgraph.litert.program import Value
from pocketgraph.quantization.core import layerwise_execution, program_runner
from pocketgraph.quantization.core.layerwise_execution import (
    ShownProgram,
    bytes_of,
    groups_to_show,
    peak_bytes,
    samples_in_memory,
)
from pocketgraph.quantization.core.program_runner import ProgramRunner
from pocketgraph.quantization.core.quantization_options import QuantizationOptions
from pocketgraph.quantization.mixed_precision import sensitivity
from pocketgraph.quantization.pipeline import quantize_program
from pocketgraph.quantization.report.layer_report import QuantizationReport, report_of
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from quantize_nets import float_program, net, samples

SMALL = 3000  # bytes of a group: a tensor of the small net has up to 1152


def made(monkeypatch: pytest.MonkeyPatch, *, is_large: bool) -> tuple[bytes, QuantizationReport, int]:
    """The file and the report of the small net, and the most bytes that one runner gave at once."""
    most = [0]

    class Counted(ProgramRunner):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            most[0] = max(most[0], bytes_of([[v for v in self.outputs if v.constant is None]]))

    monkeypatch.setattr(layerwise_execution, "ProgramRunner", Counted)
    if is_large:
        for module in (layerwise_execution, sensitivity):
            monkeypatch.setattr(module, "MOST_SHOWN_BYTES", 0)
        monkeypatch.setattr(layerwise_execution, "BYTES_SHOWN_TOGETHER", SMALL)
    given = samples(4)
    outcome = quantize_program(
        float_program(net(), ["y"]), lambda: iter(given), 4, QuantizationOptions(threads=2, float_share=0)
    )
    report = report_of(outcome, lambda: iter(given), 1000, threads=2)
    return model_bytes(outcome.converted.program), report, most[0]


def test_large_tensors_are_shown_in_groups_and_everything_found_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        content, report, at_once = made(patch, is_large=False)
    with monkeypatch.context() as patch:
        content_in_groups, report_in_groups, in_groups = made(patch, is_large=True)
    assert content == content_in_groups
    assert report.samples == report_in_groups.samples == 4
    for one, other in zip(report.layers, report_in_groups.layers, strict=True):
        assert repr(asdict(one)) == repr(asdict(other))
    assert in_groups < at_once / 2


def test_groups_are_small_in_order_and_keep_together_what_belongs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    program = float_program(net(), ["y"])
    values = [value for operation in program.operations for value in operation.outputs]
    pairs: list[list[Value]] = [values[at : at + 2] for at in range(0, len(values), 2)]
    assert groups_to_show(program, pairs) == [values]
    monkeypatch.setattr(layerwise_execution, "MOST_SHOWN_BYTES", 0)
    monkeypatch.setattr(layerwise_execution, "BYTES_SHOWN_TOGETHER", SMALL)
    groups = groups_to_show(program, pairs[::-1])
    assert [value for group in groups for value in group] == values
    assert all(bytes_of([group]) <= SMALL or group in pairs for group in groups)
    (sample,) = samples(1)
    wanted = dict(zip(values, ProgramRunner(program, values)(sample), strict=True))
    shown = ShownProgram(program, groups)
    for _ in range(2):
        for group, views in zip(groups, shown.views(sample), strict=True):
            assert list(views) == group
            assert all(np.array_equal(views[value], wanted[value]) for value in group)


def test_as_many_samples_are_held_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    program = float_program(net(), ["y"])
    peak, given = peak_bytes(program), samples(24)
    for most, least, held in ((0, 0, 1), (0, 3 * peak, 3), (0, 1 << 30, 16), (20 * peak, 3 * peak, 20)):
        monkeypatch.setattr(layerwise_execution, "MOST_BYTES", most)
        monkeypatch.setattr(layerwise_execution, "MOST_BYTES_OF_FEWEST", least)
        assert len(samples_in_memory(program, lambda: iter(given), len(given))) == held


def test_a_runner_that_is_not_kept_is_made_for_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    program, opened = float_program(net(), ["y"]), list[int]()

    class Counted(program_runner.PlainRunner):
        def __init__(self, model: str | bytes, threads: int) -> None:
            opened.append(threads)
            super().__init__(model, threads)

    monkeypatch.setattr(program_runner, "PlainRunner", Counted)
    running, given = ProgramRunner(program, threads=2, is_kept=False), samples(2)
    assert opened == []
    found = [running(sample)[0] for sample in given]
    assert opened == [2, 2]
    for array, sample in zip(found, given, strict=True):
        assert np.array_equal(array, ProgramRunner(program)(sample)[0])
