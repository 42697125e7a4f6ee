"""Tensors that are looked at where they lie: by several threads where they are large, and freed for the next run."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pocketgraph.litert.program import Value
from pocketgraph.quantization.core import program_runner
from pocketgraph.quantization.core.program_runner import ProgramRunner, Views, look_at
from quantize_nets import float_program, net, samples


def test_several_threads_look_at_large_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    program, together = float_program(net(), ["y"]), threading.Barrier(2, timeout=300)
    values = [value for operation in program.operations for value in operation.outputs][:2]
    (sample,) = samples(1)
    expected = ProgramRunner(program, values)(sample)
    found: dict[Value, np.ndarray] = {}

    def look(value: Value, views: Views) -> None:
        together.wait()  # two threads are here at once
        found[value] = views[value].copy()

    monkeypatch.setattr(program_runner, "WORTH_THREADS", 1)
    look_at(ProgramRunner(program, values, threads=2).views(sample), look, 2)
    for value, array in zip(values, expected, strict=True):
        assert np.array_equal(found[value], array)


def test_one_thread_looks_at_small_tensors_in_order() -> None:
    program, seen, here = float_program(net(), ["y"]), list[Value](), set[int]()
    values = [*program.inputs, *(value for operation in program.operations for value in operation.outputs)]
    (sample,) = samples(1)

    def look(value: Value, views: Views) -> None:
        assert set(views) == set(values)
        seen.append(value)
        here.add(threading.get_ident())

    look_at(ProgramRunner(program, values, threads=2).views(sample), look, 2)
    assert seen == values
    assert here == {threading.get_ident()}
