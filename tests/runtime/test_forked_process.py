"""A process that is forked while threads of the other run a session can use that session, and make new ones."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from pocketgraph.exporting import export
from pocketgraph.formats import save
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.state.variables import Variable
from pocketgraph.runtime import Session
from pocketgraph.runtime.certificates import check_schedule
from quantize_nets import SHAPE, net

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")

FORKS = 6
PATIENCE = 60  # seconds until a process that waits for ever is ended


def answered(session: Session, x: np.ndarray, expected: np.ndarray) -> int:
    """What a forked process that runs a session leaves with: 0 for the right answer."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            (found,) = session.run(["y"], {"x": x})
            code = 0 if np.allclose(found, expected, atol=1e-5) else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("callers", [0, 3])
@pytest.mark.parametrize("cache", ["kept", ""])
def test_a_session_answers_in_a_forked_process(threads: int, callers: int, cache: str, tmp_path: pathlib.Path) -> None:
    graph: Graph = net()
    x = np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32)
    session = Session(graph, threads=threads, cache_dir=tmp_path if cache else "")
    (expected,) = session.run(["y"], {"x": x})
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            session.run(["y"], {"x": x})

    running = [threading.Thread(target=call) for _ in range(callers)]
    for thread in running:
        thread.start()
    try:
        assert [answered(session, x, expected) for _ in range(FORKS)] == [0] * FORKS
    finally:
        stop.set()
        for thread in running:
            thread.join()
    (found,) = session.run(["y"], {"x": x})
    np.testing.assert_array_equal(found, expected)


VARIABLE = parse("""
    x = Placeholder(dtype=float, shape=[2])
    v = VarHandleOp(dtype=float, shape=[2])
    first = Const(float [1, 2])
    init = AssignVariableOp(v, first, dtype=float)
    read = ReadVariableOp(v, dtype=float)
    y = Add(x, read, T=float)
""")


def test_a_fork_waits_until_a_variable_has_its_value_again() -> None:
    """The forked process has neither the thread that changes it nor what that took out to be changed."""
    x = np.ones(2, np.float32)
    with Session(VARIABLE, cache_dir="") as session:
        session.run([], targets=["init"])
        session.run(["y"], {"x": x})
        [variable] = [each for each in session._state.values() if isinstance(each, Variable)]
        is_taken = threading.Event()

        def change() -> None:
            with variable.lock:
                value = variable.taken()
                is_taken.set()
                time.sleep(0.5)
                value += 1
                variable.keep(value)

        changing = threading.Thread(target=change)
        changing.start()
        is_taken.wait()
        assert answered(session, x, np.float32([3, 4])) == 0
        changing.join()
        np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], [3, 4])


def test_turns_that_threads_of_the_other_process_have_are_free() -> None:
    x = np.ones(2, np.float32)
    with Session(VARIABLE, cache_dir="", inter_op_threads=1) as session:
        session.run([], targets=["init"])
        turn = session._running._turn
        assert turn is not None
        with turn:  # as long as a run in another thread has it
            assert answered(session, x, np.float32([2, 3])) == 0


def test_comparisons_that_wait_at_a_fork_are_left_to_the_other_process(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_schedule, "BUSY", 0)  # nothing is compared before the fork
    monkeypatch.setattr(check_schedule, "allows", lambda microseconds: False)
    graph: Graph = net()
    x = np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32)
    session = Session(graph, threads=4, cache_dir=tmp_path)
    (expected,) = session.run(["y"], {"x": x})
    del session  # what waits to be compared is all that holds the part
    gc.collect()
    assert check_schedule._waiting
    other = Session(graph, threads=4, cache_dir="")
    assert [answered(other, x, expected) for _ in range(2)] == [0, 0]
    check_schedule.finish()


FREED = """
import gc, os, signal, sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from pocketgraph.litert.running.runner import PlainRunner

path, how, end = sys.argv[1:]
x = np.load(path + ".npy")
gc.disable()
if how == "held":
    runner = PlainRunner(path, 4)
    runner.run([x])
else:  # somebody's own, which only a collector finds
    interpreter = Interpreter(path, num_threads=4)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    circle = [interpreter]
    circle.append(circle)
    del circle, interpreter
child = os.fork()
if not child:
    signal.setitimer(signal.ITIMER_REAL, 60)
    if how == "held":
        del runner
    gc.collect()
    os._exit(0) if end == "at once" else sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("end", ["at once", "after Python has cleared its modules"])
@pytest.mark.parametrize("how", ["held", "let go of"])
def test_interpreters_of_the_other_process_are_not_freed(how: str, end: str, tmp_path: pathlib.Path) -> None:
    save(net(), tmp_path / "model.pb")
    path = tmp_path / "model.tflite"
    export(tmp_path / "model.pb", path, target="tflite", outputs=["y"])
    np.save(f"{path}.npy", np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32))
    ended = subprocess.run(
        [sys.executable, "-c", FREED, str(path), how, end], capture_output=True, text=True, timeout=300
    )
    assert ended.stdout == "0\n", ended.stderr
