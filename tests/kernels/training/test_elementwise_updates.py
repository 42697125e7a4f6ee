"""Variables that are updated where their values lie."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.state.variables import Variable
from pocketgraph.kernels.training import elementwise_updates
from pocketgraph.kernels.training.elementwise_updates import update


def variable(value: Array) -> Variable:
    made = Variable("w")
    made.assign(value)
    return made


def subtract(now: Array, grad: Array) -> None:
    now -= grad


def test_blocks_cover_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_updates, "BLOCK", 4)
    one, value = variable(np.arange(11, dtype=np.float32).reshape(11, 1)), np.arange(11, dtype=np.float32)
    update([one], value.reshape(11, 1), subtract)
    np.testing.assert_array_equal(one.read(), np.zeros((11, 1)))
    none = variable(np.empty((0, 3), np.float32))
    update([none], np.empty((0, 3), np.float32), subtract)
    assert none.read().shape == (0, 3)


def test_who_has_the_value_keeps_it() -> None:
    one = variable(np.ones(5, np.float32))
    had, part = one.read(), one.read()[1:]
    update([one], np.ones(5, np.float32), subtract)
    np.testing.assert_array_equal(had, np.ones(5))
    np.testing.assert_array_equal(part, np.ones(4))
    np.testing.assert_array_equal(one.read(), np.zeros(5))
    assert not one.read().flags.writeable


def test_a_value_that_nobody_has_stays_in_its_place() -> None:
    one = variable(np.ones(5, np.float32))
    place = one.read().ctypes.data
    update([one], np.ones(5, np.float32), subtract)
    assert one.read().ctypes.data == place


def test_a_gradient_of_another_shape_is_refused_and_changes_nothing() -> None:
    one = variable(np.ones((2, 3), np.float32))
    with pytest.raises(RunError, match=r"\[3\] does not fit the value's shape \[2, 3\].*"):
        update([one], np.ones(3, np.float32), subtract)
    np.testing.assert_array_equal(one.read(), np.ones((2, 3)))


def test_who_reads_meanwhile_waits_for_the_next_value() -> None:
    one, began, read = variable(np.ones(5, np.float32)), threading.Event(), []

    def slowly(now: Array, grad: Array) -> None:
        began.set()
        other.join(0.2)
        now -= grad

    other = threading.Thread(target=lambda: (began.wait(), read.append(one.read())))
    other.start()
    update([one], np.ones(5, np.float32), slowly)
    other.join()
    np.testing.assert_array_equal(read[0], np.zeros(5))


def test_a_step_that_fails_leaves_a_value() -> None:
    one = variable(np.ones(5, np.float32))

    def failing(now: Array, grad: Array) -> None:
        raise RunError("no")

    with pytest.raises(RunError):
        update([one], np.ones(5, np.float32), failing)
    np.testing.assert_array_equal(one.read(), np.ones(5))
