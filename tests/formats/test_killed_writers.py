"""Writers that are killed at any step leave the old file or the new one; the next writer cleans up behind them."""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from subprocess import PIPE

import numpy as np
import pytest

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.atomic_output import workshop
from pocketgraph.formats import open_checkpoint
from pocketgraph.formats.checkpoints import checkpoint_writer
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.formats.files import check_place, write_atomically
from pocketgraph.graph import Tensor
from pocketgraph.part_files import is_abandoned, part_name

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are forked and looked up")

WRITERS = """
import os, sys, traceback
from pocketgraph.formats.files import write_atomically
from formats.test_killed_writers import values
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint

def counted(call):
    def step(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return call(*arguments, **named)
    return step

def write(place, number, shards):
    for name in ("replace", "link", "unlink", "fsync"):
        setattr(os, name, counted(getattr(os, name)))
    if shards:
        write_checkpoint(place, values(number), shards)
    else:
        write_atomically(place, b"%d" % number * 1000)

for line in sys.stdin:
    place, *numbers = line.rstrip("\\n").split("\\0")
    number, shards, left = map(int, numbers)
    process = os.fork()
    if process == 0:
        try:
            write(place, number, shards)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""
"""Forks a writer a line, each a process of its own: imports are done once."""


def values(number: int) -> dict[str, Tensor]:
    return {
        "w": Tensor.from_numpy(np.full((40, 30), number, np.float32)),
        "b": Tensor.from_numpy(np.full(3, number, np.int32)),
    }


@functools.cache
def writers() -> subprocess.Popen[str]:
    tests = str(pathlib.Path(__file__).parents[1])
    program = f"import sys; sys.path[:0] = [{tests!r}]\n{WRITERS}"
    return subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def _writers_end() -> Iterator[None]:
    yield
    if writers.cache_info().currsize:
        writers().communicate()
        writers.cache_clear()


def killed(place: pathlib.Path, number: int, shards: int, last: int) -> bool:
    """Whether a writer was ended after so many steps."""
    process = writers()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\0".join(map(str, (place, number, shards, last))) + "\n")
    process.stdin.flush()
    ended = int(process.stdout.readline())
    assert ended in (0, 9)
    return ended == 9


def content(prefix: pathlib.Path) -> int:
    """The number that all of a checkpoint's tensors hold."""
    found = open_checkpoint(prefix)
    (number,) = {float(number) for name in found for number in found[name].numpy().ravel()}
    return int(number)


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (2, 1), (1, 3)])
def test_a_checkpoint_is_the_old_one_or_the_new_one(tmp_path: pathlib.Path, before: int, after: int) -> None:
    prefix = tmp_path / "model.ckpt"
    number, last, was_killed = 1, 0, True
    seen = set()
    while was_killed:
        write_checkpoint(prefix, values(number), before)
        was_killed = killed(prefix, number + 1, after, last)
        assert content(prefix) in (number, number + 1)
        seen.add(content(prefix) - number)
        was_killed_again = killed(prefix, number + 2, after, last)  # what lies there is the work of a killed writer
        assert content(prefix) in (number, number + 1, number + 2)
        assert was_killed_again or content(prefix) == number + 2
        number, last = number + 3, last + 1
    assert seen == {0, 1}
    write_checkpoint(prefix, values(number), after)
    expected = {f"model.ckpt.data-{shard:05d}-of-{after:05d}" for shard in range(after)} | {"model.ckpt.index"}
    assert {path.name for path in tmp_path.iterdir()} == expected


@pytest.mark.parametrize("before", [0, 1, 2])
def test_data_of_which_no_index_was_written_are_not_left(
    before: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise PocketgraphError("no space left on device")

    if before:
        write_checkpoint(tmp_path / "c", values(1), before)
    there = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(checkpoint_writer, "_write_index", full)
    with pytest.raises(PocketgraphError, match="no space"):
        write_checkpoint(tmp_path / "c", values(2), 2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == there


def test_leftovers_go_with_the_next_writing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pb"
    write_atomically(path, b"old")
    assert killed(path, 1, 0, 0)
    assert path.read_bytes() == b"old"
    (left,) = tmp_path.glob("*.part")
    assert is_abandoned(left.name)
    other = tmp_path / part_name("other.pb")
    other.write_bytes(b"somebody writes")
    assert not is_abandoned(other.name)
    write_atomically(path, b"new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model.pb", other.name]


def test_names_may_be_as_long_as_file_systems_take(tmp_path: pathlib.Path) -> None:
    long, longer = (tmp_path / ("ü" * 125 + rest) for rest in ("a.tfl", "ab.tfl"))
    other = tmp_path / ("ü" * 125 + "b.tfl")
    write_atomically(long, b"old")
    assert killed(long, 1, 0, 0)
    (left,) = tmp_path.glob("*.part")
    write_atomically(other, b"other")
    assert left.exists()  # names that differ late have parts of their own
    write_atomically(long, b"new")
    assert sorted(tmp_path.iterdir()) == [long, other]
    assert long.read_bytes() == b"new"
    with workshop(str(long)) as made:
        pathlib.Path(made).write_bytes(b"made")
    for write in (lambda: write_atomically(longer, b"new"), lambda: check_place(longer)):
        with pytest.raises(PocketgraphError, match="its name has more than 255 bytes; give a shorter one"):
            write()


def test_the_folder_of_a_killed_exporter_goes_with_the_next_export(tmp_path: pathlib.Path) -> None:
    program = (
        "import os, sys; from pocketgraph.exporting.atomic_output import workshop\n"
        "with workshop(sys.argv[1]) as made:\n    open(made, 'wb').write(b'half'); os._exit(9)"
    )
    path = tmp_path / "model.tflite"
    subprocess.run([sys.executable, "-c", program, str(path)], timeout=300)
    (left,) = tmp_path.iterdir()
    assert is_abandoned(left.name)
    assert [each.name for each in left.iterdir()] == ["model.tflite"]
    with workshop(str(path)) as made:
        assert os.listdir(tmp_path) == [pathlib.Path(made).parent.name]
        assert os.stat(os.path.dirname(made)).st_mode & 0o777 == 0o700
    assert not list(tmp_path.iterdir())


def test_files_of_other_machines_and_names_are_left_alone() -> None:
    process, mark = part_name("model.pb").split(".")[2:4]
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert is_abandoned(f"model.pb.{gone.pid}.{mark}.part")
    assert not is_abandoned(f"model.pb.{process}.{mark}.part")
    other = f"{int(mark[:4], 16) ^ 1:04x}{mark[4:]}"
    for name in (
        f"model.pb.{gone.pid}.{other}.part",
        f"model.pb.{gone.pid}.{mark}",
        "model.pb.part",
        "model.pb.99999999999999999999.abcd.part",
        ".part",
    ):
        assert not is_abandoned(name)
