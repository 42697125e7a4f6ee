"""Holds a model of the catalogue in one program and times runs of it: ``catalogue_worker.py PROGRAM FOLDER THREADS``.

PROGRAM is pocketgraph, pocketgraph:ENGINE (one engine runs everything; auto is measured at first), reference (its exact
engine alone), unchecked (compiled parts are not compared with that engine) or tensorflow (TensorFlow 2, a session on
the graph). FOLDER has ``model.json``, which names the file, the inputs, the outputs and what to run first, and
``golden.npz`` with the inputs. Prints ``ready``, then for every line with a number n that it reads, ``us T``: the
median time of n runs in microseconds.
With a fourth argument ``once`` it runs once and ends, for timing whole processes. Only then new parts are compared with
the reference engine: that is done once, and takes processor time beside the runs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def pocketgraph_runner(
    path: str, threads: int, fetches: list[str], feeds: Mapping[str, Any], first: list[Any], **options: Any
) -> Callable[[], object]:
    from pocketgraph import Session

    session = Session(path, threads=threads, **options)
    for step in first:
        session.run([], step["feeds"], targets=step["targets"])
    if options["engine"] == "auto":
        from serving import let_choose

        let_choose(session, fetches, feeds)

    def once() -> object:
        return session.run(fetches, feeds)

    if len(sys.argv) <= 4:
        from serving import let_compile

        let_compile(session, once)
    return once


def tensorflow_runner(
    path: str, threads: int, fetches: list[str], feeds: Mapping[str, Any], first: list[Any]
) -> Callable[[], object]:
    from serving import tensorflow_session

    session = tensorflow_session(path, threads)
    for step in first:
        session.run(step["targets"], step["feeds"])
    return lambda: session.run(fetches, feeds)


def inputs_of(folder: str, info: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded inputs, by tensor name; a uint8 array in the place of a string is its bytes, in the place of several
    (``strings``) those of all, whose sizes stand beside them."""
    import numpy as np

    feeds: dict[str, Any] = {}
    with np.load(os.path.join(folder, "golden.npz"), allow_pickle=False) as data:
        for name, about in (info.get("inputs") or {}).items():
            value = data["in_" + name.replace(":", "_")]
            if isinstance(about, dict) and about.get("dtype") == "strings":
                ends = np.cumsum(data["in_" + name.replace(":", "_") + "_sizes"])
                feeds[name] = np.array([part.tobytes() for part in np.split(value, ends[:-1])], object)
                continue
            is_text = isinstance(about, dict) and about.get("dtype") in ("string", "object")
            feeds[name] = np.array(value.tobytes(), object) if is_text else value
    return feeds


def main() -> None:
    program, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(os.path.join(folder, "model.json")) as file:
        info = json.load(file)
    path = os.path.join(folder, info["file"])
    feeds, fetches, first = inputs_of(folder, info), list(info["outputs"]), info.get("pre_run", [])
    if program == "tensorflow":
        once = tensorflow_runner(path, threads, fetches, feeds, first)
    else:
        engine = program.partition(":")[2] or ("reference" if program == "reference" else None)
        is_checked = program != "unchecked" and len(sys.argv) > 4
        options = {"engine": engine, "check": "first" if is_checked else "never"}
        once = pocketgraph_runner(path, threads, fetches, feeds, first, **options)
    once()
    if len(sys.argv) > 4:
        return
    from serving import serve  # not needed, and not to be paid for, by a process that runs once

    once()
    once()
    serve(once)


if __name__ == "__main__":
    main()
