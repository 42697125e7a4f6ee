"""Models whose inputs come in many lengths: what each new length costs, beside runs of one length.

python benchmarks/lengths.py MODEL.pb … [--first 10] [--lengths 100] [--step 1] [--without]

Each row is the work of new processes without a cache, but with the bytecode of all modules: so many runs of one length;
the same number of runs, each of another length; and ``--without`` these without the pass ``resizable_programs``, and
without ``open_sizes`` either. "Put off" is what a process did when it had nothing else to do after the second length,
and "third" the third length after that; "at once" is the third length without a pause. Open sizes of inputs are the
length, but for the first axis. NumPy's products take one thread too: several, on a busy machine, wait for each other
and keep the processor.

``PYTHON benchmarks/peers/length_models.py FOLDER`` makes such models with TensorFlow; its recording is measured with
``--first 4000 --step 160``, its sound (wavenet) with ``--first 400 --step 16``, its pictures (fully_convolutional) and
the networks that ``picture_models.py`` there makes with ``--first 64 --step 2``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import pocketgraph
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime import Session

LEFT_OUT = ((), ("resizable_programs",), ("resizable_programs", "open_sizes"))
ROUNDS = 5  # of the first lengths; the others are sums of many runs


def fed(session: Session, length: int) -> dict[str, Array]:
    """Values for all inputs, whose open sizes are ``length``; whole numbers are small, or in a vector the length."""
    random = np.random.default_rng(length)
    values: dict[str, Array] = {}
    for name, spec in session.inputs.items():
        open_sizes = [1 if axis == 0 else length for axis in range(len(spec.shape or ()))]
        shape = [own if size is None else size for size, own in zip(spec.shape or (), open_sizes, strict=True)]
        kind = spec.dtype.numpy
        if kind.kind == "f":
            values[name] = random.standard_normal(shape).astype(kind)
        else:
            values[name] = (random.integers(0, 9, shape) if len(shape) > 1 else np.full(shape, length)).astype(kind)
    return values


def seconds(
    model: str, lengths: list[int], without: tuple[str, ...] = (), pause: Callable[[], object] | None = None
) -> list[float]:
    """The time of each run of a new session without a cache, in seconds of the processor; after each that of ``pause``,
    where there is one."""
    found = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache,
        Session(model, threads=1, cache_dir=cache, without=without) as session,
    ):
        outputs = list(session.outputs)
        for length in lengths:
            values = fed(session, length)
            began = time.process_time()
            session.run(outputs, values)
            ran = time.process_time()
            found.append(ran - began)
            if pause is not None:
                pause()
                found.append(time.process_time() - ran)
    return found


def without_pause(model: str, lengths: list[int], without: tuple[str, ...] = ()) -> list[float]:
    """As ``seconds``; however slow the machine is, nothing that waits for a pause is done between two runs."""
    from pocketgraph.runtime.certificates import check_schedule

    check_schedule.LOOK = 3600.0
    return seconds(model, lengths, without)


def with_pauses(model: str, lengths: list[int], without: tuple[str, ...] = ()) -> list[float]:
    """The time of each run of a new session, and after each that of what waits until the process has nothing to do."""
    from pocketgraph.runtime.certificates import check_schedule

    check_schedule.LOOK = 3600.0
    return seconds(model, lengths, without, check_schedule.finish)


def in_new_process(
    model: str, lengths: list[int], without: tuple[str, ...] = (), work: Callable[..., list[float]] = seconds
) -> list[float]:
    """``work`` where nothing was imported before."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, model, lengths, without).result()


def main() -> None:
    """Prints a row a model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--first", type=int, default=10)
    parser.add_argument("--lengths", type=int, default=100)
    parser.add_argument("--step", type=int, default=1, help="between one length and the next: samples of a recording")
    parser.add_argument("--without", action="store_true", help="measure without the passes for many lengths, too")
    options = parser.parse_args()
    if sys.flags.dont_write_bytecode:  # which new processes would take over
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    lengths = [options.first + place * options.step for place in range(options.lengths)]
    with tempfile.TemporaryDirectory() as compiled:
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        print(f"pocketgraph {pocketgraph.__version__}")
        rows(options.models, lengths, options.without)


def rows(models: list[str], lengths: list[int], without: bool) -> None:
    """Prints the head of the table and its rows."""
    count = len(lengths)
    head = ["model", "first s", "second, of it", "put off", "third", "at once"]
    head += [f"{count} runs of one length s", f"of {count} lengths, of it"]
    head += ["without resizable_programs", "without open_sizes either"] * without
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|", flush=True)
    for model in models:
        in_new_process(model, lengths[:3])
        first, second, at_once = medians(model, lengths[:3], without_pause)
        _, _, _, put_off, third, _ = medians(model, lengths[:3], with_pauses)
        one = sum(in_new_process(model, [lengths[count // 2]] * count))
        shares = [share / first for share in (second, put_off, third, at_once)]
        many = [sum(in_new_process(model, lengths, left_out)) / one for left_out in LEFT_OUT[: 3 if without else 1]]
        cells = [f"{figure:.2f}" for figure in (first, *shares, one, *many)]
        print(f"| {' | '.join([pathlib.Path(model).name, *cells])} |", flush=True)


def medians(model: str, lengths: list[int], work: Callable[..., list[float]]) -> list[float]:
    """Of ``work`` in several new processes, each of its figures by itself."""
    rounds = [in_new_process(model, lengths, (), work) for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


if __name__ == "__main__":
    main()
