"""Shards in any order on any worker, rows in order; workers that are killed, and calls that stop."""

import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from pocketgraph.cluster import connected, map_in_order, source_key
from pocketgraph.cluster.journal import Journal
from pocketgraph.cluster.ordered_map import AHEAD
from pocketgraph.errors import FormatError, MissingExtraError, PocketgraphError, UsageError


def has_ray() -> bool:
    try:
        import ray  # noqa: F401
    except ImportError:
        return False
    return True


needs_ray = pytest.mark.skipif(not has_ray(), reason="Ray is not installed (pocketgraph[cluster])")


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    with connected("local:2"):
        yield


class Squares:
    """A job that notes who opened it, and does odd things at some items."""

    def __init__(self, folder: pathlib.Path, deadly: int = -1, broken: int = -1, seconds: float = 0.0) -> None:
        self.folder, self.deadly, self.broken, self.seconds = str(folder), deadly, broken, seconds

    def __call__(self) -> Callable[[int], dict[str, np.ndarray]]:
        pathlib.Path(self.folder, f"opened-{os.getpid()}-{time.monotonic_ns()}").touch()
        return self.row

    def row(self, item: int) -> dict[str, np.ndarray]:
        if item == self.deadly:
            killed = pathlib.Path(self.folder, "killed")
            if not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        if item == self.broken:
            raise FormatError("it is broken", where=f"item {item}", hint="mend it")
        time.sleep(self.seconds)
        pathlib.Path(self.folder, f"done-{item}").touch()
        return {"square": np.array(item * item), "name": np.array(f"item {item}")}


def values(rows: Iterator[dict[str, np.ndarray]]) -> list[int]:
    return [int(row["square"]) for row in rows]


SQUARES = [n * n for n in range(100)]


def test_without_a_cluster_it_is_a_loop(tmp_path: pathlib.Path) -> None:
    rows = map_in_order(Squares(tmp_path), range(100), key="unused")
    assert int(next(rows)["square"]) == 0
    assert not (tmp_path / "done-1").exists()
    assert [0, *values(rows)] == SQUARES


@needs_ray
@pytest.mark.usefixtures("two_workers")
def test_rows_come_in_order_and_each_worker_opens_once(tmp_path: pathlib.Path) -> None:
    assert values(map_in_order(Squares(tmp_path), range(100), most=3)) == SQUARES
    opened = [path.name.split("-")[1] for path in tmp_path.glob("opened-*")]
    assert len(opened) == len(set(opened))


@needs_ray
@pytest.mark.usefixtures("two_workers")
def test_a_killed_worker_loses_nothing(tmp_path: pathlib.Path) -> None:
    assert values(map_in_order(Squares(tmp_path, deadly=50), range(100), most=4)) == SQUARES
    assert (tmp_path / "killed").exists()


@needs_ray
@pytest.mark.usefixtures("two_workers")
def test_items_are_taken_as_they_are_needed(tmp_path: pathlib.Path) -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        number = 0
        while True:
            taken.append(number)
            yield number
            number += 1

    rows = map_in_order(Squares(tmp_path), endless(), most=5)
    for _ in range(200):
        next(rows)
        assert len(taken) <= 200 + 5 * (AHEAD * 2 + 1)
    rows.close()  # type: ignore[attr-defined]


@needs_ray
@pytest.mark.usefixtures("two_workers")
def test_an_error_comes_at_its_turn_and_is_the_same(tmp_path: pathlib.Path) -> None:
    rows = map_in_order(Squares(tmp_path, broken=7), range(20), most=3)
    assert [int(next(rows)["square"]) for _ in range(7)] == SQUARES[:7]
    with pytest.raises(FormatError) as found:
        next(rows)
    assert str(found.value) == "item 7: it is broken; mend it"


@needs_ray
@pytest.mark.usefixtures("two_workers")
def test_an_interrupted_call_goes_on(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETGRAPH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    rows = map_in_order(Squares(tmp_path / "first"), range(100), key="a call", most=4)
    begun = [int(next(rows)["square"]) for _ in range(41)]
    rows.close()  # type: ignore[attr-defined]  # as Ctrl-C does
    journal = tmp_path / "cache" / "cluster" / "a call.journal"
    journal.write_bytes(journal.read_bytes()[:-7])  # and the last shard is half written
    assert values(map_in_order(Squares(tmp_path / "second"), range(100), key="a call", most=4)) == SQUARES
    assert begun == SQUARES[:41]
    done = {int(path.name.split("-")[1]) for path in (tmp_path / "second").glob("done-*")}
    assert done == set(range(40, 100))
    assert not journal.exists()


def test_a_journal_keeps_whole_shards(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETGRAPH_CACHE", str(tmp_path))
    journal = Journal("key")
    assert list(journal.rows()) == []
    journal.append([{"a": np.arange(3), "b": np.array("ü")}, {}])
    journal.append([{"a": np.zeros((2, 0), np.float32)}])
    journal.close()
    path = tmp_path / "cluster" / "key.journal"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        again = Journal("key")
        assert len(list(again.rows())) in (0, 2)
        again.append([{"c": np.array(1)}])
        again.close()
    path.write_bytes(whole)
    rows = list(Journal("key").rows())
    assert len(rows) == 3
    assert rows[0]["a"].tolist() == [0, 1, 2]
    assert str(rows[0]["b"]) == "ü"
    assert rows[2]["a"].shape == (2, 0)


def test_two_calls_of_one_key_leave_the_rows_of_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETGRAPH_CACHE", str(tmp_path))
    calls = Journal("key"), Journal("key")
    for call in calls:
        assert list(call.rows()) == []
    for first in (0, 2, 4):
        for call in calls:
            call.append([{"row": np.array(first)}, {"row": np.array(first + 1)}])
    for call in calls:
        call.close()
    assert [int(row["row"]) for row in Journal("key").rows()] == list(range(6))


def test_keys_tell_files_that_changed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"1")
    before = source_key("model", 3, paths=[str(path)])
    assert before == source_key("model", 3, paths=[str(path)])
    path.write_bytes(b"12")
    assert before != source_key("model", 3, paths=[str(path)])
    assert before != source_key("model", 4)


def test_bad_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("here", "local:0", "ray://", "ray://host", "http://host:1"):
        with pytest.raises(UsageError, match="is no cluster"), connected(wrong):
            pass
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pocketgraph\[cluster\]'"), connected("local"):
        pass


@needs_ray
def test_a_cluster_that_is_not_there() -> None:
    import ray

    if ray.is_initialized():
        ray.shutdown()
    with (
        pytest.raises(PocketgraphError, match=r"ray://127.0.0.1:1: there is no cluster.*ray start --head"),
        connected("ray://127.0.0.1:1"),
    ):
        pass
