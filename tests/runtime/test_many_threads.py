"""One session, many callers at once, each with a shape of its own: planning, compiling and running side by side."""

from __future__ import annotations

import pathlib
import threading
import time

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import RunOptions, Session, StepTrace

CALLERS = 8
RUNS = 4

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[?, ?, ?, 2])
    w = Const(float[1, 1, 2, 3] [[[[1, 2, 3], [4, 5, 6]]]])
    c = Conv2D(x, w, T=float, strides=list[1,1,1,1], padding="SAME")
    r = Relu(c, T=float)
    wide = Cast(r, SrcT=float, DstT=double)
    axes = Const(int32 [1, 2])
    y = Sum(wide, axes, T=double, Tidx=int32, keep_dims=false)
    small = Relu(x, T=float)
    size = Shape(r, T=float, out_type=int32)
""")
"""Partly on LiteRT, partly not (double)."""
WEIGHTS = np.arange(1, 7).reshape(2, 3)


@pytest.mark.parametrize("options", [{}, {"engine": "reference"}, {"inter_op_threads": 1}, {"memory_limit": 1 << 26}])
def test_eight_callers_with_eight_shapes(options: dict[str, object], tmp_path: pathlib.Path) -> None:
    session = Session(GRAPH, cache_dir=tmp_path, **options)  # type: ignore[arg-type]
    start = threading.Barrier(CALLERS)
    problems: list[BaseException] = []

    def call(number: int) -> None:
        random = np.random.default_rng(number)
        try:
            start.wait(timeout=300)
            for turn in range(RUNS):
                shape = (1 + (number + turn) % 3, 2 + number, 3 + turn % 2, 2)
                x = random.integers(0, 5, shape).astype(np.float32)
                expected = (x @ WEIGHTS.astype(np.float32)).sum(axis=(1, 2)).astype(np.float64)
                if turn % 4 == 3:
                    trace = StepTrace()
                    options = RunOptions(timeout_in_ms=60_000, trace_level=RunOptions.FULL_TRACE)
                    (y,) = session.run("y", {"x": x}, trace=trace, options=options)
                    assert "y" in {node.name for node in trace.nodes}
                else:
                    y, size = session.run(["y", "size"], {"x": x})
                    assert size.tolist() == [*shape[:3], 3]
                np.testing.assert_array_equal(y, expected)
                (small,) = session.run(["small"], {"x": x})
                np.testing.assert_array_equal(small, x)
                small[:] = -1  # results are the caller's: nobody else may see this
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    session.close()
    assert not problems, problems[0]
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("engine", [None, "reference"])
def test_closing_while_others_run(engine: str | None) -> None:
    """As in TensorFlow, a run ends or says that the session is closed, whatever was closed under it."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 64])
        a = MatMul(x, x, T=float, transpose_a=true)
        y = Tanh(a, T=float)
    """)
    for _ in range(3):
        session = Session(graph, engine=engine)
        said: list[str] = []
        started = threading.Barrier(5)

        def work(session: Session = session, said: list[str] = said, started: threading.Barrier = started) -> None:
            started.wait()
            rows = 1
            while True:
                rows = rows % 7 + 1
                try:
                    assert session.run("y", {"x": np.ones((rows, 64), np.float32)})[0].shape == (64, 64)
                except Exception as error:
                    said.append(f"{type(error).__name__}: {error}")
                    return

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        time.sleep(0.02)
        session.close()
        for thread in threads:
            thread.join()
        assert said == ["RunError: Attempted to use a closed Session; make a new one"] * 4
