"""Holds one model in one program and times runs of it on request: ``worker.py PROGRAM MODEL THREADS SIDE``.

PROGRAM is pocketgraph, pocketgraph:ENGINE (one engine runs everything; auto is measured at first), litert (a .tflite
file) or tensorflow (TensorFlow 2, a session on a .pb). Prints ``ready``, then for every line with a number n that it
reads, ``us T``: the median time of n runs in microseconds.
With a fifth argument ``once`` it runs once and ends: for timing whole processes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def pocketgraph_runner(model: str, threads: int, side: int, engine: str | None = None) -> Callable[[], object]:
    import numpy as np

    from pocketgraph import Session

    session = Session(model, threads=threads, engine=engine)
    feeds = {"input:0": image(np, side)}
    if engine == "auto":
        from serving import let_choose

        let_choose(session, ["Identity:0"], feeds)
    return lambda: session.run(["Identity:0"], feeds)


def litert_runner(model: str, threads: int, side: int) -> Callable[[], object]:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=model, num_threads=threads)
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]["index"]
    target = interpreter.get_output_details()[0]["index"]
    feed = image(np, side)

    def once() -> object:
        interpreter.set_tensor(source, feed)
        interpreter.invoke()
        return interpreter.get_tensor(target)

    return once


def tensorflow_runner(model: str, threads: int, side: int) -> Callable[[], object]:
    import numpy as np
    from serving import tensorflow_session

    session = tensorflow_session(model, threads)
    feeds = {"input:0": image(np, side)}
    return lambda: session.run(["Identity:0"], feeds)


def image(np: object, side: int) -> object:
    """A picture of ramps; drawing random numbers would add an import to what is measured."""
    ramp = np.arange(side * side * 3, dtype="f4")  # type: ignore[attr-defined]
    return (ramp * 0.37 % 1.0).reshape(1, side, side, 3)


def main() -> None:
    program, model, threads, side = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    name, _, engine = program.partition(":")
    if engine:
        once = pocketgraph_runner(model, threads, side, engine)
    else:
        make = {"pocketgraph": pocketgraph_runner, "litert": litert_runner, "tensorflow": tensorflow_runner}[name]
        once = make(model, threads, side)
    once()
    if len(sys.argv) > 5:
        return
    from serving import serve  # not needed, and not to be paid for, by a process that runs once

    once()
    serve(once)


if __name__ == "__main__":
    main()
