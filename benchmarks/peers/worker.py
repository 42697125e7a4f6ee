"""Holds one model in one program and times runs of it on request: ``worker.py PROGRAM MODEL THREADS SIZE``.

SIZE is the side of a square picture, or BATCHxSIDE of several. PROGRAM is pocketgraph, pocketgraph:ENGINE (one engine
runs everything; auto is measured at first), litert (a .tflite file) or tensorflow (TensorFlow 2, a session on a .pb).
Prints ``ready``, then for every line with a number n that it
reads, ``us T``: the median time of n runs in microseconds.
With a fifth argument ``once`` it runs once and ends: for timing whole processes. Only then new parts are compared with
the reference engine as in anybody's session: that is done once, and takes processor time beside the runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def pocketgraph_runner(
    model: str, threads: int, size: str, engine: str | None = None, check: str = "first"
) -> Callable[[], object]:
    import numpy as np

    from pocketgraph import Session

    session = Session(model, threads=threads, engine=engine, check=check)
    feeds = {"input:0": image(np, size)}
    if engine == "auto":
        from serving import let_choose

        let_choose(session, ["Identity:0"], feeds)

    def once() -> object:
        return session.run(["Identity:0"], feeds)

    if len(sys.argv) <= 5:
        from serving import let_compile

        let_compile(session, once)
    return once


def litert_runner(model: str, threads: int, size: str) -> Callable[[], object]:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=model, num_threads=threads)
    source = interpreter.get_input_details()[0]["index"]
    target = interpreter.get_output_details()[0]["index"]
    feed = image(np, size)
    if list(interpreter.get_input_details()[0]["shape"]) != list(feed.shape):  # type: ignore[attr-defined]
        interpreter.resize_tensor_input(source, feed.shape)  # type: ignore[attr-defined]
    interpreter.allocate_tensors()

    def once() -> object:
        interpreter.set_tensor(source, feed)
        interpreter.invoke()
        return interpreter.get_tensor(target)

    return once


def tensorflow_runner(model: str, threads: int, size: str) -> Callable[[], object]:
    import numpy as np
    from serving import tensorflow_session

    session = tensorflow_session(model, threads)
    feeds = {"input:0": image(np, size)}
    return lambda: session.run(["Identity:0"], feeds)


def image(np: object, size: str) -> object:
    """Pictures of ramps; drawing random numbers would add an import to what is measured."""
    batch, _, side = (size if "x" in size else f"1x{size}").partition("x")
    shape = int(batch), int(side), int(side), 3
    ramp = np.arange(shape[0] * shape[1] * shape[2] * 3, dtype="f4")  # type: ignore[attr-defined]
    return (ramp * 0.37 % 1.0).reshape(shape)


def main() -> None:
    program, model, threads, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    name, _, engine = program.partition(":")
    if name == "pocketgraph":
        check = "first" if len(sys.argv) > 5 else "never"
        once = pocketgraph_runner(model, threads, size, engine or None, check)
    else:
        once = {"litert": litert_runner, "tensorflow": tensorflow_runner}[name](model, threads, size)
    once()
    if len(sys.argv) > 5:
        return
    from serving import serve  # not needed, and not to be paid for, by a process that runs once

    once()
    serve(once)


if __name__ == "__main__":
    main()
