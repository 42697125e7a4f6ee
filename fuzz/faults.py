"""Every command that writes, struck by bad luck: killed half-way, a full disk, a read-only folder, a clock gone wrong.

    python fuzz/faults.py [--minutes 10] [--seed 0] [--writer NAME …]

Each writer first makes its output from one model, and then from another one over it; both times whole. After that the
second writing is struck again and again, in a process of its own. What lies there afterwards has to be the first
output or the second, whole; an error is one line; and when the same is called once more, it is the second output, and
nothing else is left in the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pocketgraph import formats
from pocketgraph.cli.main import main as command_line
from pocketgraph.formats import sealed
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import Graph, Tensor, const
from pocketgraph.graph.text_format import parse

WIDE = 400  # of the square weights of the models: 640 kB
PATIENCE = 300  # seconds for a writer that nobody strikes
Strike = Callable[[], None]
State = dict[str, bytes]


@dataclass(frozen=True)
class Writer:
    """A command with outputs.

    Attributes:
        name: of it.
        words: what is typed; ``MODEL`` stands for the model, of which there are two.
        outputs: patterns of what it writes; what they do not match is not compared (reports with times in them).
        again: whether what was struck may be called once more over what is there; a SavedModel's place must be free.
    """

    name: str
    words: str
    outputs: tuple[str, ...]
    again: bool = True


WRITERS = (
    Writer("transform_graph", "transform_graph MODEL.pb -o out.pb --inputs=x --outputs=y "
           "--transforms=fold_constants", ("out.pb",)),
    Writer("freeze_graph", "freeze_graph --input_graph=training.pb --input_checkpoint=MODEL.ckpt -o out.pb "
           "--outputs=y", ("out.pb",)),
    Writer("strip_unused", "strip_unused --input_graph=MODEL.pb -o out.pb --input_node_names=x "
           "--output_node_names=y", ("out.pb",)),
    Writer("optimize_for_inference", "optimize_for_inference --input=MODEL.pb -o out.pb --input_names=x "
           "--output_names=y", ("out.pb",)),
    Writer("text", "convert MODEL.pb out.pbtxt", ("out.pbtxt",)),
    Writer("memmapped", "convert MODEL.pb out.mmap --to=memmapped", ("out.mmap",)),
    Writer("meta", "convert MODEL.pb out.meta --inputs=x --outputs=y", ("out.meta",)),
    Writer("saved_model", "convert MODEL.pb out --to=saved_model --inputs=x --outputs=y", ("out/*",), again=False),
    Writer("checkpoint", "convert MODEL.ckpt out.ckpt --to=checkpoint", ("out.ckpt.*",)),
    Writer("unseal", "unseal MODEL.sealed out.pb --key-file=key", ("out.pb",)),
    Writer("seal", "seal MODEL.pb out.sealed --key-file=key", ()),
    Writer("export_tflite", "export MODEL.pb -o out.tflite --outputs=y", ("out.tflite",)),
    Writer("export_onnx", "export MODEL.pb -o out.onnx --outputs=y", ("out.onnx",)),
    Writer("graph_to_dot", "graph_to_dot MODEL.pb -o out.dot", ("out.dot",)),
    Writer("view", "view MODEL.pb -o out.svg", ("out.svg",)),
    Writer("quantize", "quantize MODEL.pb --calibrate=samples.npz -o out.tflite --outputs=y", ("out.tflite",)),
)  # fmt: skip


def model(seed: int) -> Graph:
    """A model of two layers with its own weights."""
    rng = np.random.default_rng(seed)
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 400])
        a = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        r = Relu(a, T=float)
        b = MatMul(r, v, T=float, transpose_a=false, transpose_b=false)
        y = Softmax(b, T=float)
    """)
    weights = [
        const("w", rng.normal(0, 0.1, (WIDE, WIDE)).astype(np.float32)),
        const("v", rng.normal(0, 0.1, (WIDE, 10)).astype(np.float32)),
    ]
    return Graph([*graph, *weights], outputs=["y"])


def training() -> Graph:
    """The same with variables, whose values are in a checkpoint."""
    return parse("""
        x = Placeholder(dtype=float, shape=[1, 400])
        w = VariableV2(dtype=float, shape=[400, 400])
        v = VariableV2(dtype=float, shape=[400, 10])
        wr = Identity(w, T=float)
        vr = Identity(v, T=float)
        a = MatMul(x, wr, T=float, transpose_a=false, transpose_b=false)
        b = MatMul(a, vr, T=float, transpose_a=false, transpose_b=false)
        y = Softmax(b, T=float)
    """)


def inputs(folder: pathlib.Path) -> None:
    """What the writers read: models ``a`` and ``b`` in the forms that they take, and samples."""
    (folder / "key").write_text("ab" * 32)
    np.savez(folder / "samples.npz", x=np.random.default_rng(3).normal(size=(8, WIDE)).astype(np.float32))
    formats.save(training(), folder / "training.pb")
    for seed, name in enumerate("ab"):
        graph = model(seed)
        formats.save(graph, folder / f"{name}.pb")
        values = {node.name: value for node in graph if isinstance(value := node.attr("value", None), Tensor)}
        write_checkpoint(folder / f"{name}.ckpt", values)
        sealed.seal(folder / f"{name}.pb", folder / f"{name}.sealed", "ab" * 32)


def state(folder: pathlib.Path, writer: Writer) -> State:
    """The bytes of what a writer made."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for pattern in writer.outputs
        for path in sorted(folder.glob(pattern))
        if path.is_file() and not path.name.endswith(".part")
    }


class Called:
    """A writer in a forked process.

    Attributes:
        code: what it left with; negative for a signal, None while it runs.
        said: what it printed.
    """

    def __init__(self, writer: Writer, which: str, folder: pathlib.Path, strike: Strike | None = None) -> None:
        self.code: int | None = None
        self.said = ""
        self._heard, told = os.pipe()  # no file: those may be limited
        self._child = os.fork()
        if self._child:
            os.close(told)
            return
        code = 99
        try:
            os.chdir(folder)
            for number in (1, 2):
                os.dup2(told, number)
            sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
            if strike is not None:
                strike()
            command_line(writer.words.replace("MODEL", which).split())
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def wait(self, seconds: float = PATIENCE, then_kill: bool = False) -> Called:
        """Waits for its end, or so long; one that is killed then leaves with -9."""
        end = time.monotonic() + seconds
        while self.code is None:
            done, status = os.waitpid(self._child, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)
                self.code = -9 if then_kill else -1000
            else:
                time.sleep(0.001)
        with os.fdopen(self._heard, "rb") as pipe:
            self.said = pipe.read().decode("utf-8", "replace")
        return self


def resume_at_once() -> None:
    """Has an interrupted quantization write down each step, not every five seconds."""
    from pocketgraph.quantization.core import resume_state

    resume_state.PAUSE = -1.0


def full_disk(bytes_left: int) -> Strike:
    """Files cannot grow beyond so many bytes: the system refuses as it does when a disk is full."""

    def strike() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, bytes_left))

    return strike


@contextlib.contextmanager
def read_only(folder: pathlib.Path) -> Iterator[None]:
    """Nobody may write to the folder; for root, who may write anywhere, it is mounted so."""
    is_root = os.geteuid() == 0
    if is_root:
        subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
    else:
        os.chmod(folder, 0o555)
    try:
        yield
    finally:
        if is_root:
            subprocess.run(["umount", "-l", str(folder)], check=True)  # files in it may still be mapped
        else:
            os.chmod(folder, 0o755)


def clock_backwards() -> None:
    """Each look at the clock is an hour before the last one; the files that are there are of the future."""
    real = time.time_ns()
    looks = iter(range(1, 1 << 40))
    time.time_ns = lambda: real - 3_600_000_000_000 * next(looks)
    time.time = lambda: time.time_ns() / 1e9
    for path in pathlib.Path.cwd().iterdir():
        os.utime(path, (real / 1e9 + 86400,) * 2)


class Struck:
    """A writer with both of its outputs, to be struck.

    Attributes:
        counts: what happened, by kind.
        problems: what may not happen.
    """

    def __init__(self, writer: Writer, prepared: pathlib.Path, folder: pathlib.Path) -> None:
        self.writer, self.prepared, self.folder = writer, prepared, folder
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.both: list[State] = []
        self.empty = set(os.listdir(prepared))
        self._renew()
        begun = time.monotonic()
        for which in "ab":
            if not writer.again:
                self._renew()
            called = Called(writer, which, folder).wait()
            if called.code:
                raise RuntimeError(f"{writer.name} left with {called.code}: {called.said}")
            self.both.append(state(folder, writer))
        self.seconds = (time.monotonic() - begun) / 2
        self.names = set(os.listdir(folder))
        self._keep_first()

    def _renew(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.prepared, self.folder)

    def _keep_first(self) -> None:
        """Keeps the folder as it is after the first writing, to begin from."""
        self._renew()
        if self.writer.again and Called(self.writer, "a", self.folder).wait().code:
            raise RuntimeError(f"{self.writer.name} does not work twice")
        self.first = self.folder.with_name("first")
        shutil.rmtree(self.first, ignore_errors=True)
        shutil.copytree(self.folder, self.first)

    def strike(self, how: str, strike: Strike | None, kill_after: float | None = None, writable: bool = True) -> None:
        """One strike, and what is there afterwards."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.first, self.folder)
        with contextlib.nullcontext() if writable else read_only(self.folder):
            called = Called(self.writer, "b", self.folder, strike)
            called.wait(PATIENCE if kill_after is None else kill_after, then_kill=kill_after is not None)
        self.judge(how, called, writable)
        self._again(f"{self.writer.name}, {how}")

    def judge(self, how: str, called: Called, writable: bool = True) -> None:
        """Whether a struck writer ended, spoke and left things as it may."""
        self.counts[f"{how}: {'worked' if not called.code else 'killed' if called.code == -9 else 'refused'}"] += 1
        what = f"{self.writer.name}, {how}"
        if called.code not in (0, 1, -9) or "Traceback" in called.said:
            self.problems.append(f"{what}: left with {called.code}: {called.said[-500:]}")
        if called.code == 0 and not writable:
            self.problems.append(f"{what}: it worked")
        if called.code == 1 and sum(line.startswith("error: ") for line in called.said.splitlines()) != 1:
            self.problems.append(f"{what}: no single error: {called.said[-500:]}")
        allowed = self.both if self.writer.again else [{}, self.both[1]]
        if called.code != -9:
            allowed = allowed[1:] if called.code == 0 else allowed[:1]
        if not self._is_one_of(state(self.folder, self.writer), allowed):
            self.problems.append(f"{what}: left with {called.code}, and not with the output that goes with it")
        if called.code != -9:
            self._check_names(what, called.code == 1)

    def _is_one_of(self, found: State, allowed: list[State]) -> bool:
        if self.writer.name != "checkpoint":
            return found in allowed
        try:  # while it is being written its data files have other names
            opened = formats.open_checkpoint(self.folder / "out.ckpt")
            weights = [opened[name].numpy() for name in "wv"]
        except Exception:
            return False
        return any(
            all(np.array_equal(weight, formats.load(self.folder / f"{which}.pb")[name].attr("value").numpy())
                for name, weight in zip("wv", weights, strict=True))
            for which, made in zip("ab", self.both, strict=True)
            if made in allowed
        )  # fmt: skip

    def _again(self, what: str) -> None:
        """The same call once more: the second output, and nothing left beside it."""
        if not self.writer.again and (self.folder / "out").exists():
            return
        called = Called(self.writer, "b", self.folder).wait()
        if called.code or state(self.folder, self.writer) != self.both[1]:
            self.problems.append(f"{what}: once more, it left with {called.code}: {called.said[-500:]}")
        self._check_names(f"{what}, once more")

    def _check_names(self, what: str, may_be_resumed: bool = False) -> None:
        left = set(os.listdir(self.folder)) - self.names
        if may_be_resumed:
            left.discard("out.resume.npz")
        if left:
            self.problems.append(f"{what}: left behind {sorted(left)}")


PAGE = os.sysconf("SC_PAGE_SIZE")  # bytes: what a tmpfs gives out


def pages(folder: pathlib.Path) -> int:
    """What the files below a folder take on a tmpfs, in pages; the folder at its root takes one, too."""
    return 1 + sum(-(-path.stat().st_size // PAGE) for path in folder.rglob("*") if path.is_file())


def small_disk(struck: Struck, rng: random.Random) -> None:
    """The writing on a real file system of its own that has room for a part of it; needs root."""
    room = pages(struck.first) + rng.randrange((1 << 20) // PAGE)
    shutil.rmtree(struck.folder, ignore_errors=True)
    struck.folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={room * PAGE}", "tmpfs", str(struck.folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        struck.counts["small disk: not here (root mounts it)"] += 1
        return
    try:
        shutil.copytree(struck.first, struck.folder, dirs_exist_ok=True)
        struck.judge("small disk", Called(struck.writer, "b", struck.folder).wait())
    finally:
        subprocess.run(["umount", "-l", str(struck.folder)], check=False)  # files may still be mapped


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--writer", action="append", default=[])
    asked = parser.parse_args()
    resume_at_once()
    chosen = [writer for writer in WRITERS if not asked.writer or writer.name in asked.writer]
    rng = random.Random(asked.seed)
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        os.environ["POCKETGRAPH_CACHE"] = os.path.join(place, "cache")
        os.chmod(place, 0o755)
        prepared = pathlib.Path(place) / "prepared"
        prepared.mkdir()
        inputs(prepared)
        for writer in chosen:
            end = time.monotonic() + 60 * asked.minutes / len(chosen)
            struck = Struck(writer, prepared, pathlib.Path(place) / "work")
            struck.strike("read-only folder", None, writable=False)
            struck.strike("clock backwards", clock_backwards)
            small_disk(struck, rng)
            while time.monotonic() < end:
                largest = max((len(data) for data in struck.both[1].values()), default=1 << 20)
                struck.strike("full disk", full_disk(rng.randrange(largest)))
                small_disk(struck, rng)
                for _ in range(3):
                    struck.strike("kill -9", None, kill_after=rng.random() * struck.seconds * 1.1)
            problems += struck.problems
            print(f"{writer.name:24} {struck.seconds:6.2f} s  {dict(struck.counts)}", flush=True)
    for problem in problems:
        print(f"find: {problem}")
    print(f"{len(problems)} finds" if problems else "no finds")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
