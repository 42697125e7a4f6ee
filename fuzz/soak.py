"""Sessions for half an hour: in threads, forked, closed while they run, with a cache that two processes share.

    python fuzz/soak.py [--minutes 30] [--seed 0]

Eight threads run sessions of small models with changing shapes: their own ones, and some that all of them share and one
now and then closes while the others run. Meanwhile processes are forked that answer once, a second process does the
same with the same cache directory, is killed now and then and begins again, and the directory is emptied. Each answer
is compared with the reference engine's; a call that fails has to fail because its session was closed. Memory, open
files and threads are counted from a third of the time on, and have to stay where they are.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator

import numpy as np

from pocketgraph import formats
from pocketgraph.errors import RunError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.tensor import Array
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

THREADS = 8
SHARED = 3  # sessions that all threads use
MOST_GROWTH = 0.05  # between the second third of the time and the last
PATIENCE = 60  # seconds for a forked process
LIFE = (5.0, 20.0)  # seconds that the other process lives
TOLERANCE = 1e-4


def models() -> list[Graph]:
    """A net with convolutions, a loop, a net partly in double, and one with a branch that a feed decides."""
    rng = np.random.default_rng(0)
    weights = [
        const("w", rng.normal(0, 0.4, (3, 3, 2, 6)).astype(np.float32)),
        const("v", rng.normal(0, 0.4, (6, 4)).astype(np.float32)),
        const("axes", np.array([1, 2], np.int32)),
    ]
    net = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, ?, 2])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        r = Relu(c, T=float)
        m = Mean(r, axes, T=float, Tidx=int32, keep_dims=false)
        f = MatMul(m, v, T=float, transpose_a=false, transpose_b=false)
        y = Softmax(f, T=float)
    """)
    double = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, ?, 2])
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        d = Cast(c, SrcT=float, DstT=double)
        s = Sum(d, axes, T=double, Tidx=int32, keep_dims=false)
        t = Tanh(s, T=double)
        e = Cast(t, SrcT=double, DstT=float)
        y = MatMul(e, v, T=float, transpose_a=false, transpose_b=false)
    """)
    branch = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, ?, 2])
        p = Placeholder(dtype=bool, shape=[])
        s = Switch(x, p, T=float)
        a = Neg(s, T=float)
        b = Sqrt(s:1, T=float)
        y = Merge(a, b, N=2, T=float)
    """)
    loop = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, ?, 2])
        zero = Const(int32 0)
        five = Const(int32 5)
        one = Const(int32 1)
        half = Const(float 0.5)
        ei = Enter(zero, T=int32, frame_name="loop")
        ex = Enter(x, T=float, frame_name="loop")
        en = Enter(five, T=int32, frame_name="loop", is_constant=true)
        e1 = Enter(one, T=int32, frame_name="loop", is_constant=true)
        eh = Enter(half, T=float, frame_name="loop", is_constant=true)
        mi = Merge(ei, ni, N=2, T=int32)
        mx = Merge(ex, nx, N=2, T=float)
        l = Less(mi, en, T=int32)
        c = LoopCond(l)
        si = Switch(mi, c, T=int32)
        sx = Switch(mx, c, T=float)
        y = Exit(sx, T=float)
        ai = AddV2("si:1", e1, T=int32)
        ax = Mul("sx:1", eh, T=float)
        ni = NextIteration(ai, T=int32)
        nx = NextIteration(ax, T=float)
    """)
    graphs = [Graph([*net, *weights]), Graph([*double, *weights]), branch, loop]
    return [graph.replace(outputs=["y"]) for graph in graphs]


class Soak:
    """What all threads of a process know.

    Attributes:
        counts: what happened, by kind.
        problems: what may not happen.
    """

    def __init__(self, folder: pathlib.Path, seed: int) -> None:
        self.paths = sorted(folder.glob("*.pb"))
        self.cache = folder / "cache"
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._expected: dict[tuple[int, tuple[int, ...], bool], tuple[dict[str, Array], Array]] = {}
        self.shared = [self.opened(number % len(self.paths)) for number in range(SHARED)]

    def opened(self, number: int) -> tuple[int, Session]:
        """A new session of a model."""
        return number, Session(self.paths[number], cache_dir=self.cache, threads=1 + number % 2)

    def case(self, number: int, rng: random.Random) -> tuple[dict[str, Array], Array]:
        """Feeds of one of twelve shapes for a model, and what it has to answer."""
        shape, decided = (rng.choice((1, 2)), rng.choice((3, 4, 6)), rng.choice((3, 5)), 2), rng.random() < 0.5
        key = (number, shape, decided)
        if key not in self._expected:
            feeds: dict[str, Array] = {"x": np.random.default_rng(shape).uniform(0, 1, shape).astype(np.float32)}
            if "p" in (graph := formats.load(self.paths[number])):
                feeds["p"] = np.array(decided)
            with Session(graph, engine="reference") as session:
                self._expected[key] = feeds, session.run(["y"], feeds)[0]
        return self._expected[key]

    def ask(self, number: int, session: Session, rng: random.Random, may_be_closed: bool) -> None:
        """One call, and whether it is answered rightly."""
        feeds, expected = self.case(number, rng)
        try:
            (found,) = session.run(["y"], feeds)
        except RunError as error:
            if not (may_be_closed and "closed" in str(error)):
                self.problem(f"model {number}: {error}")
            self.count("calls of a session that was closed")
            return
        if found.shape != expected.shape or not np.allclose(found, expected, atol=TOLERANCE, rtol=TOLERANCE):
            self.problem(f"model {number}: {found.ravel()[:4]} and not {expected.ravel()[:4]}")
        self.count("right answers")

    def work(self, thread: int) -> None:
        """What one thread does until it is stopped."""
        rng = random.Random(self.seed * 100 + thread)
        while not self.stop.is_set():
            try:
                self._step(rng)
            except Exception:
                self.problem(traceback.format_exc())

    def _step(self, rng: random.Random) -> None:
        way = rng.random()
        if way < 0.15:
            number, session = self.opened(rng.randrange(len(self.paths)))
            with session:
                for _ in range(rng.choice((1, 3, 10))):
                    self.ask(number, session, rng, False)
            self.count("sessions")
        elif way < 0.17:
            place = rng.randrange(SHARED)
            with self._lock:
                (number, old), self.shared[place] = self.shared[place], self.opened(rng.randrange(len(self.paths)))
            self.ask(number, old, rng, False)
            old.close()
            self.count("sessions closed while others run them")
        else:
            number, session = self.shared[rng.randrange(SHARED)]
            for _ in range(5):
                self.ask(number, session, rng, True)

    def fork(self, rng: random.Random) -> None:
        """A process that answers once with a session of this one, and once with its own."""
        number, session = self.shared[0]
        feeds, expected = self.case(number, rng)
        child = os.fork()
        if not child:
            code = 1
            try:
                signal.setitimer(signal.ITIMER_REAL, PATIENCE)
                answers = [self.opened(number)[1].run(["y"], feeds)[0]]
                with contextlib.suppress(RunError):  # it may have been closed just then
                    answers.append(session.run(["y"], feeds)[0])
                right = [np.allclose(answer, expected, atol=TOLERANCE, rtol=TOLERANCE) for answer in answers]
                code = 0 if all(right) else 2
            finally:
                os._exit(code)
        left = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if left:
            self.problem(f"a forked process left with {left}")
        self.count("forked processes")

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def problem(self, what: str) -> None:
        with self._lock:
            if len(self.problems) < 20:
                self.problems.append(what)


def memory() -> int:
    """Bytes that this process has in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Beside:
    """The other process, which is killed now and then."""

    def __init__(self, folder: pathlib.Path, seed: int) -> None:
        self._words = [sys.executable, __file__, "--beside", str(folder), "--seed", str(seed)]
        self._rng = random.Random(seed)
        self._begin()

    def _begin(self) -> None:
        self._process = subprocess.Popen(self._words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._end = time.monotonic() + self._rng.uniform(*LIFE)

    def look(self, soak: Soak) -> None:
        """Kills it when its time is over, and begins another."""
        if self._process.poll() is not None:
            soak.problem(f"the other process left with {self._process.returncode}: {self._process.communicate()[0]}")
        elif time.monotonic() < self._end:
            return
        self.kill()
        soak.count("processes killed")
        self._begin()

    def kill(self) -> None:
        self._process.kill()
        said = self._process.communicate()[0]
        assert not said, said


def watched(soak: Soak, folder: pathlib.Path, seconds: float) -> list[tuple[float, int, int, int]]:
    """(time, bytes, open files, threads) while the threads run; forks, and sees to the other process and the cache."""
    rng = random.Random(soak.seed)
    begun = time.monotonic()
    beside = Beside(folder, soak.seed + 1)
    samples = []
    try:
        while (now := time.monotonic() - begun) < seconds and not soak.problems:
            time.sleep(min(1.0, seconds / 60))
            beside.look(soak)
            if rng.random() < 0.2:
                soak.fork(rng)
            if rng.random() < 0.01:
                shutil.rmtree(soak.cache, ignore_errors=True)
                soak.count("caches emptied")
            samples.append((now, memory(), len(os.listdir("/proc/self/fd")), threading.active_count()))
    finally:
        beside.kill()
    return samples


def settled(samples: list[tuple[float, int, int, int]], seconds: float) -> Iterator[tuple[str, float, float, float]]:
    """Of memory, files and threads: what they were in the second third of the time, in the last, and may be in it.

    Files of compiled parts are open as long as a session has them, so that their least number tells of forgotten ones.
    """
    second = [sample for sample in samples if seconds / 3 <= sample[0] < 2 * seconds / 3]
    last = [sample for sample in samples if sample[0] >= 2 * seconds / 3]
    counted = (
        ("MB of memory, in the middle", statistics.median, 1e6, 16),
        ("open files, at least", min, 1, 40),
        ("threads, at least", min, 1, 4),
    )
    for place, (name, of, unit, least) in enumerate(counted, 1):
        before, after = (of(sample[place] for sample in part) / unit for part in (second, last))
        yield name, before, after, before + max(MOST_GROWTH * before, least)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--beside", type=pathlib.Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = asked.beside or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        if asked.beside is None:
            for number, graph in enumerate(models()):
                formats.save(graph, folder / f"{number}.pb")
        soak = Soak(folder, asked.seed)
        threads = [threading.Thread(target=soak.work, args=(n,), daemon=True) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        if asked.beside is not None:  # until it is killed
            while not soak.problems:
                time.sleep(0.1)
            print(*soak.problems, sep="\n", flush=True)
            return 1
        seconds = 60 * asked.minutes
        samples = watched(soak, folder, seconds)
        soak.stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        if any(thread.is_alive() for thread in threads):
            soak.problem("a thread does not end")
    if len(samples) > 9:
        for name, before, after, most in settled(samples, seconds):
            print(f"{before:12,.0f} {name}; in the last third of the time {after:,.0f}")
            if after > most:
                soak.problem(f"{name} grow: {before:,.0f}, at last {after:,.0f}")
    for what, count in soak.counts.most_common():
        print(f"{count:12,} {what}")
    for problem in soak.problems:
        print(f"find: {problem}")
    print(f"{len(soak.problems)} finds" if soak.problems else "no finds")
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
