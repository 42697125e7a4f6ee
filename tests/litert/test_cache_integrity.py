"""What is taken from the cache is what was put there: no flipped bit, no file of somebody else's, anywhere."""

from __future__ import annotations

import os
import pathlib
import random
import stat
import subprocess
import sys
import zlib

import google_crc32c
import numpy as np
import pytest

from litert.test_cache import check, compiled, found
from pocketgraph.litert import cache, cache_eviction, cache_integrity, cached_executable, digest
from pocketgraph.litert.running.packed_runner import PackedRunner

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps packed weights even of small segments."""
    monkeypatch.setattr(cached_executable, "PACKED_FROM", 0)


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("ending", [".json", ".tflite", ".xnn", ".xnn.sum"])
def test_a_flipped_bit_anywhere_is_found(tmp_path: pathlib.Path, ending: str) -> None:
    check(compiled(tmp_path))
    (path,) = tmp_path.glob(f"*{ending}")
    name = path.name.partition(".")[0].partition("-")[0]
    kept = {each: each.read_bytes() for each in tmp_path.iterdir()}
    draw = random.Random(3)
    for _ in range(60):
        changed = bytearray(kept[path])
        at = draw.randrange(len(changed))
        changed[at] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        entry = cache.find(str(tmp_path), name)
        assert entry is None or (not entry.has_packed and ".xnn" in ending), at
        for each, content in kept.items():
            if not each.exists() or each.read_bytes() != content:
                each.write_bytes(content)
                each.chmod(0o600)
    entry = cache.find(str(tmp_path), name)
    assert entry is not None
    assert entry.has_packed


@posix
@pytest.mark.usefixtures("packed")
def test_files_and_directories_are_private_whatever_the_mask(tmp_path: pathlib.Path) -> None:
    before = os.umask(0)
    try:
        check(compiled(tmp_path / "cache"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cache").iterdir()}
    assert modes == {".json": 0o600, ".tflite": 0o600, ".xnn": 0o600, ".sum": 0o600}


@posix
@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("ending", [".json", ".tflite", ".xnn", ".xnn.sum"])
@pytest.mark.parametrize("how", ["another owner", "writable by others"])
def test_files_of_others_are_not_used(
    tmp_path: pathlib.Path, ending: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(compiled(tmp_path))
    (path,) = tmp_path.glob(f"*{ending}")
    if how == "writable by others":
        path.chmod(0o622)
    else:
        (tmp_path / "its.number").hardlink_to(path)  # which no new file gets meanwhile
        number, true = path.stat().st_ino, cache_integrity.is_own
        monkeypatch.setattr(cache_integrity, "is_own", lambda status: status.st_ino != number and true(status))
    again = found(tmp_path)
    if ".xnn" in ending:
        check(again)
    else:
        assert again is None
    check(compiled(tmp_path))
    monkeypatch.undo()
    check(found(tmp_path))


@posix
@pytest.mark.parametrize("ending", [".json", ".tflite"])
def test_pipes_in_place_of_files_are_not_waited_for(tmp_path: pathlib.Path, ending: str) -> None:
    compiled(tmp_path).close()
    for path in tmp_path.glob(f"*{ending}"):
        path.unlink()
        os.mkfifo(path, 0o600)
    child = (
        "import sys; from pocketgraph.litert import cache; print([cache.find(sys.argv[1], n) for n in sys.argv[2:]])"
    )
    names = sorted({path.name[:40] for path in tmp_path.iterdir()})
    found = subprocess.run(
        [sys.executable, "-c", child, str(tmp_path), *names], capture_output=True, text=True, timeout=300
    )
    assert found.stdout == f"{[None] * len(names)}\n", found.stderr


@posix
def test_owners_are_told_apart(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(0o644)
    assert cache_integrity.is_own(path.stat())
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 12345, -1)
    assert not cache_integrity.is_own(path.stat())


@posix
def test_a_directory_where_others_may_exchange_files_is_not_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_warned", [])
    tmp_path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others may exchange files"):
        check(compiled(tmp_path))
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o1777)  # as /tmp is
    check(compiled(tmp_path))
    check(found(tmp_path))


def test_the_number_of_files_is_bounded(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_eviction, "MOST_FILES", 6)
    for number in range(5):
        compiled(tmp_path, key=f"model {number}").close()
        for path in tmp_path.iterdir():
            status = path.stat()
            os.utime(path, (status.st_atime - 100, status.st_mtime - 100))
    assert len(list(tmp_path.iterdir())) == 6
    assert found(tmp_path, "model 0") is None
    check(found(tmp_path, "model 4"))


@pytest.mark.usefixtures("packed")
def test_large_entries_are_read_by_another_thread(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LARGE", 0)
    check(compiled(tmp_path))
    monkeypatch.setattr(cache_integrity, "_known", {})
    again = found(tmp_path)
    assert again is not None
    assert isinstance(again._runner, PackedRunner)
    check(again)
    (path,) = tmp_path.glob("*.xnn")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    (entry,) = {each.stem for each in tmp_path.glob("*.tflite")}
    whole = cache.find(str(tmp_path), entry, lambda: None)
    assert whole is not None
    assert not whole.has_packed


@posix
def test_a_model_changed_in_place_with_size_and_time_kept_is_noticed(tmp_path: pathlib.Path) -> None:
    path, notes = tmp_path / "model.pb", tmp_path / "notes"
    for number in range(20):
        path.write_bytes(np.full(1000, number, np.uint8).tobytes())
        os.utime(path, ns=(1_000_000_000, 1_000_000_000))
        assert digest.file_digest(path, notes) == digest.file_digest(path, ""), number


def test_checksums_of_two_sections_are_joined(tmp_path: pathlib.Path) -> None:
    content = np.random.default_rng(1).bytes(100_000)
    for kind, of in (("c", google_crc32c.value), ("z", zlib.crc32)):
        for cut in (0, 1, 7, 4096, 99_999, 100_000):
            first, second = content[:cut], content[cut:]
            moved = cache_integrity.shifted(of(first), len(second), cache_integrity.POLYNOMIALS[kind])
            assert moved ^ of(second) == of(content)
    path = tmp_path / "file"
    cut = 60_000
    with path.open("xb") as file:
        pieces = [content[:10], memoryview(content)[10:cut]], [content[cut:]]
        sections = [cache_integrity.Section(start, part) for start, part in zip((0, cut), pieces, strict=True)]
        mark = cache_integrity.write_sections(file, sections)
    path.chmod(0o600)
    assert path.read_bytes() == content
    assert mark == cache_integrity.checksum(str(path))
