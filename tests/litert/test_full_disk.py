"""A disk that takes nothing, limits on files, no home: the answer comes all the same, with one warning."""

from __future__ import annotations

import errno
import os
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pocketgraph
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache, cached_executable
from pocketgraph.litert.writing import free_disk_space
from pocketgraph.runtime import Session

WEIGHTS = np.random.default_rng(1).standard_normal((3000, 2600)).astype(np.float32)
"""As many as are packed into a file of their own: 31 MB."""

CHILD = """
import resource, sys
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
import numpy as np
from pocketgraph.runtime import Session

x = np.linspace(-1, 1, 3000, dtype=np.float32).reshape(1, -1)
with Session(sys.argv[1], cache_dir=sys.argv[2]) as session:
    results = [session.run(["y"], {"x": x})[0] for _ in range(40)]
print(all((each == results[0]).all() for each in results), float(np.abs(results[0].astype(float)).sum()))
"""


def product(weights: np.ndarray) -> Graph:
    rows = weights.shape[0]
    text = f"x = Placeholder(dtype=float, shape=[1,{rows}])\np = MatMul(x, w, T=float)\ny = Relu(p, T=float)"
    return Graph([const("w", weights), *parse(text)])


@pytest.mark.skipif(os.name != "posix", reason="limits on the size of files are POSIX's")
@pytest.mark.parametrize("limit", [1_000, 20_000_000, 31_300_000])
def test_limits_on_the_size_of_files_cost_no_answer(limit: int, tmp_path: pathlib.Path) -> None:
    model, folder = tmp_path / "model.pb", tmp_path / "cache"
    pocketgraph.save(product(WEIGHTS), model)
    x = np.linspace(-1, 1, 3000, dtype=np.float32)
    expected = float(np.maximum(x.astype(float) @ WEIGHTS.astype(float), 0).sum())
    for _ in range(2):
        arguments = [sys.executable, "-c", CHILD, str(model), str(folder), str(limit)]
        child = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
        assert child.returncode == 0, child.stderr
        same, total = child.stdout.split()
        assert same == "True"
        assert abs(float(total) - expected) < 1e-4 * expected
        assert child.stderr.count("compiled parts are not kept for the next process") == 1
        assert not [name for name in os.listdir(folder) if name.endswith(".part")]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not warned yet."""
    monkeypatch.setattr(cache, "_warned", [])


def check(folder: str | None) -> list[str]:
    """The warnings of a run whose cache is this folder."""
    small = WEIGHTS[:40, :30]
    x = np.linspace(-1, 1, 40, dtype=np.float32).reshape(1, -1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with Session(product(small), cache_dir=folder) as session:
                np.testing.assert_allclose(session.run(["y"], {"x": x})[0], np.maximum(x @ small, 0), rtol=1e-4)
    return [str(warning.message) for warning in caught if "not kept" in str(warning.message)]


@pytest.mark.usefixtures("told")
def test_a_directory_that_cannot_be_made_is_told_of_once(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    assert len(check(str(tmp_path / "file" / "cache"))) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="file systems of others take UTF-8 only")
@pytest.mark.usefixtures("told")
def test_a_directory_that_is_not_utf8_is_told_of_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_executable, "PACKED_FROM", 0)
    (warning,) = check(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    assert "not UTF-8" in warning
    assert not os.listdir(tmp_path)


@pytest.mark.usefixtures("told")
def test_a_directory_that_cannot_be_written_to_is_told_of_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert len(check(str(tmp_path))) == 1


@pytest.mark.usefixtures("told")
def test_without_a_home_nothing_is_made_elsewhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(cache.ENVIRONMENT, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(sys, "platform", "linux")
    (warning,) = check(None)
    assert "no home directory" in warning
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("told")
def test_a_full_disk_leaves_nothing_behind(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(target: str, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache, "write", full)
    (warning,) = check(str(tmp_path))
    assert "No space left on device" in warning
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("told")
def test_a_cache_directory_may_vanish(tmp_path: pathlib.Path) -> None:
    folder, small = tmp_path / "cache", WEIGHTS[:40, :30]
    x = np.ones((1, 40), np.float32)
    with Session(product(small), cache_dir=folder) as session:
        before = session.run(["y"], {"x": x})[0]
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        assert (session.run(["y"], {"x": x})[0] == before).all()
        both = session.run(["y", "p"], {"x": x})
    np.testing.assert_array_equal(both[0], before)


def test_packed_weights_are_not_begun_without_room(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert free_disk_space.room_for(str(tmp_path / "weights"), 1000) == ""
    assert "MB are free" in free_disk_space.room_for(str(tmp_path / "weights"), 1 << 60)
    assert "No such file" in free_disk_space.room_for(str(tmp_path / "gone" / "weights"), 1000)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(cached_executable, "PACKED_FROM", 0)
    monkeypatch.setattr(free_disk_space, "room_for", lambda path, size: "the disk is full")
    monkeypatch.setattr(cache, "_warned", [])
    (warning,) = check(str(tmp_path))
    assert "the disk is full" in warning
    assert not list(tmp_path.glob("*.xnn*"))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no files in memory")
def test_what_native_code_says_before_it_aborts_is_seen() -> None:
    child = (
        "import os\nfrom pocketgraph.litert.native.native_messages import quiet\n"
        "with quiet():\n    os.write(2, b'INFO: a note\\n')\n"
        "with quiet():\n    os.write(2, b'INFO: another\\nERROR: the disk is full\\n')\n    os.abort()\n"
    )
    for options in ([], ["-X", "faulthandler"]):
        ended = subprocess.run([sys.executable, *options, "-c", child], capture_output=True, text=True, timeout=300)
        assert ended.returncode < 0
        assert "ERROR: the disk is full" in ended.stderr
        assert "note" not in ended.stderr
        assert ("Fatal Python error: Aborted" in ended.stderr) == bool(options)
