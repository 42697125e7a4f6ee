"""Critical sections: what a mutex guards, runs of several threads do one after the other."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from pocketgraph.errors import DeadlineError, RunError
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import RunOptions, Session

# What tf.CriticalSection of TensorFlow 1.15 makes, twice, of lambda: v.assign(v.read_value() + x).
GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[?])
    v = VarHandleOp(dtype=float, shape=[1])
    first = Const(float [0])
    init = AssignVariableOp(v, first, dtype=float)
    value = ReadVariableOp(v, dtype=float)
    mutex = MutexV2(shared_name="cs")
    lock = MutexLock(mutex)
    read = ReadVariableOp(v, ^lock, dtype=float)
    more = Add(read, x, T=float)
    write = AssignVariableOp(v, more, dtype=float)
    leave = ConsumeMutexLock(lock, ^write)
    one = NoOp(^leave)
    lock2 = MutexLock(mutex)
    read2 = ReadVariableOp(v, ^lock2, dtype=float)
    more2 = Add(read2, x, T=float)
    write2 = AssignVariableOp(v, more2, dtype=float)
    leave2 = ConsumeMutexLock(lock2, ^write2)
    three = NoOp(^leave, ^leave2)
    wrong = AssignAddVariableOp(v, x, ^lock, dtype=float)
""")
ONE = np.ones(1, np.float32)


@pytest.mark.parametrize("engine", [None, "reference"])
def test_threads_lose_no_update(engine: str | None) -> None:
    """TensorFlow 1.15 gives 400."""
    problems: list[BaseException] = []

    def call() -> None:
        try:
            for _ in range(100):
                session.run([], {"x": ONE}, targets=["one"])
        except BaseException as error:
            problems.append(error)

    interval = sys.getswitchinterval()
    with Session(GRAPH, engine=engine) as session:
        session.run([], targets=["init"])
        threads = [threading.Thread(target=call) for _ in range(4)]
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert not problems
        assert session.run("value")[0].tolist() == [400]


def test_two_sections_of_one_run_do_not_wait_for_each_other() -> None:
    with Session(GRAPH) as session:
        session.run([], targets=["init"])
        for _ in range(2):
            session.run([], {"x": ONE}, targets=["three"])


def test_a_run_that_fails_in_a_section_leaves_it() -> None:
    """Also while somebody holds its error, and with it what the run computed."""
    with Session(GRAPH) as session:
        session.run([], targets=["init"])
        for _ in range(2):
            with pytest.raises(RunError) as failed:
                session.run([], {"x": np.ones(3, np.float32)}, targets=["wrong"])
            session.run([], {"x": ONE}, targets=["one"])
            del failed
        assert session.run("value")[0].tolist() == [2]


def test_who_waits_for_another_run_looks_at_the_time() -> None:
    with Session(GRAPH) as session:
        session.run([], targets=["init"])
        session.run([], {"x": ONE}, targets=["one"])
        [gate] = [each for name, each in session._state.items() if name.startswith("critical sections")]
        with gate.lock, pytest.raises(DeadlineError, match="critical section"):
            session.run([], {"x": ONE}, targets=["one"], options=RunOptions(timeout_in_ms=200))
        session.run([], {"x": ONE}, targets=["one"])
        assert session.run("value")[0].tolist() == [2]
