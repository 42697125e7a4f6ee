"""The fuzzer's own parts: its targets read their seeds, its changes keep formats whole, and it sees what goes wrong."""

from __future__ import annotations

import contextlib
import pathlib
import random
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

import pytest

from support import ROOT

sys.path.insert(0, str(ROOT))

from fuzz import executing, targets
from fuzz.executing import Execution
from fuzz.mutations import bytes_changed, message_changed, table_changed
from fuzz.targets import Target, all_targets

from pocketgraph.errors import FormatError, PocketgraphError
from pocketgraph.formats.checkpoints.sstable import SortedTable
from pocketgraph.protobuf import wire

NAMES = sorted(all_targets())
FIXTURES = ROOT / "tests" / "fixtures"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    monkeypatch.setattr(targets, "folder", lambda: folder)
    for module in [module for name, module in sys.modules.items() if name.startswith("fuzz.")]:
        if hasattr(module, "folder"):
            monkeypatch.setattr(module, "folder", lambda: folder)
    monkeypatch.setattr(Execution, "_limit", lambda self: None)
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_target_reads_its_seeds_and_changes_of_them(name: str, tmp_path: pathlib.Path) -> None:
    target = all_targets()[name]
    seeds = list(target.seeds())
    if not seeds:
        pytest.skip("no file of this kind is here, nor what makes one")
    rng = random.Random(name)
    plain = partial(bytes_changed, rng=rng)
    execute = Execution(target, tmp_path / "finds")
    read = 0
    for seed in [*seeds[:3], *rng.sample(seeds, min(5, len(seeds)))]:
        with contextlib.suppress(PocketgraphError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(seed)
            read += 1
        execute(plain(seed, target.longest))
        if target.mutate is not None:
            execute(target.mutate(seed, target.longest, rng, plain))
    assert read or name in ("snappy", "stored_strings")  # theirs are damaged on purpose
    assert not (tmp_path / "finds").exists(), [path.read_text() for path in (tmp_path / "finds").glob("*.txt")]
    assert all((ROOT / "src" / "pocketgraph" / place).exists() for place in target.covers)


def found(read: Callable[[bytes], object], folder: pathlib.Path) -> list[str]:
    """The names of what an execution finds in a reader, after some that go well."""
    calls = iter(range(10))

    def at_last(data: bytes) -> None:
        if next(calls) >= 4:
            read(data)

    execute = Execution(Target("t", at_last, list, (), (), None, 9), folder)
    for _ in range(6):
        execute(b"data")
    return sorted(path.name.partition("-")[2] for path in folder.glob("*.txt"))


def test_what_counts_as_a_find(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: bytes) -> None:
        raise FormatError("damaged")

    def wrong(_: bytes) -> None:
        raise KeyError("x")

    def leaves(_: bytes) -> None:
        (targets.folder() / "out.pb.1.abcd.part").touch()

    def busy(_: bytes) -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass

    assert found(refused, tmp_path / "a") == []
    (name,) = found(wrong, tmp_path / "b")
    assert name.startswith("KeyError-test_fuzz.wrong-")
    assert (tmp_path / "b" / f"t-{name.removesuffix('.txt')}").read_bytes() == b"data"
    assert found(leaves, tmp_path / "c") == ["left.txt"]
    monkeypatch.setattr(executing, "MOST_SECONDS", 0.01)
    assert found(busy, tmp_path / "d") == ["slow.txt"]


def test_changed_messages_keep_their_lengths_right() -> None:
    data = wire.bytes_field(1, wire.bytes_field(2, b"inside") + wire.number_field(3, 7)) * 3
    rng = random.Random(0)
    made = [message_changed(data, 200, rng, lambda inside, most: inside[::-1][:most]) for _ in range(300)]
    assert len(set(made)) > 30
    whole = 0
    for one in made:
        with contextlib.suppress(wire.WireError):
            whole += bool(list(wire.fields(one, 0, len(one))))
    assert whole > 290


def test_changed_tables_keep_their_checksums_right() -> None:
    data = (FIXTURES / "checkpoints" / "types.index").read_bytes()
    rng = random.Random(0)
    plain = partial(bytes_changed, rng=rng)
    whole = 0
    for _ in range(100):
        with contextlib.suppress(FormatError):
            whole += bool(list(SortedTable(memoryview(table_changed(data, 4096, rng, plain)))))
    assert whole > 80
