"""Files are mapped for reading, and written whole or not at all."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from pocketgraph.datasets.file_lists import files_in
from pocketgraph.errors import FormatError, PocketgraphError
from pocketgraph.formats.detect import identify
from pocketgraph.formats.files import check_place, mapped, write_atomically


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_three_ways_to_give_content(tmp_path: pathlib.Path) -> None:
    def write(file: BinaryIO) -> None:
        file.write(b"by a function")

    for content, expected in (
        (b"bytes", b"bytes"),
        (memoryview(b"a view"), b"a view"),
        ((b"in ", memoryview(b"pieces")), b"in pieces"),
        (write, b"by a function"),
    ):
        write_atomically(tmp_path / "out", content)
        assert mapped(tmp_path / "out")[:] == expected
        assert names(tmp_path) == ["out"]


def test_a_failure_half_way_leaves_the_old_file(tmp_path: pathlib.Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("no more")

    (tmp_path / "out").write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_atomically(tmp_path / "out", pieces())
    assert (tmp_path / "out").read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_a_link_that_leads_nowhere_is_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / "link.pb").symlink_to("gone.pb")
    with pytest.raises(FormatError, match=r"it is a link to 'gone\.pb', which leads nowhere"):
        mapped(tmp_path / "link.pb")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device")
def test_a_device_is_not_read_until_memory_ends() -> None:
    with pytest.raises(FormatError, match="/dev/zero: this is a device, which may never end"):
        mapped("/dev/zero")


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    os.chmod(tmp_path / "real", 0o640)
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_mode_that_the_user_asks_for(tmp_path: pathlib.Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "out", b"x")
    finally:
        os.umask(old)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def test_a_file_that_windows_keeps_open(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the input of what is written, which is mapped, cannot be replaced; POSIX systems have no such errors."""

    def refuse(part: str, target: str) -> None:
        error = PermissionError(13, "Access is denied")
        error.winerror = 5  # type: ignore[attr-defined, unused-ignore]
        raise error

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PocketgraphError, match=r"access is denied; on Windows a file that is open.* give another name"):
        write_atomically(tmp_path / "net.pb", b"x")
    assert names(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(PocketgraphError, match="directory to write to does not exist; mkdir -p"):
        write_atomically(tmp_path / "missing" / "out", b"x")
    with pytest.raises(PocketgraphError, match="is a directory"):
        write_atomically(tmp_path, b"x")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(PocketgraphError, match="does not exist"):
        write_atomically(tmp_path / "file" / "out", b"x")
    assert names(tmp_path) == ["file"]


def test_a_directory_without_permission(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):  # we are root, who may write everywhere but here
        folder = pathlib.Path("/proc/self")
    with pytest.raises(PocketgraphError, match=r"out: the file cannot be written: [a-z]+"):
        write_atomically(folder / "out", b"x")
    with pytest.raises(PocketgraphError, match="nothing can be written to"):  # before any work
        check_place(folder / "out")


def test_what_permissions_protect_is_refused_before_the_work(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system is asked, and answers as it does to users who are not root."""
    kept, closed = tmp_path / "kept.tflite", tmp_path / "closed"
    kept.write_bytes(b"old")
    closed.mkdir()
    may, listed = os.access, os.listdir

    def denied(path: str) -> list[str]:
        if path == str(closed):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "access", lambda path, mode: path != str(kept) and may(path, mode))
    monkeypatch.setattr(os, "listdir", denied)
    monkeypatch.setattr(os, "scandir", denied)
    for write in (lambda: check_place(kept), lambda: write_atomically(kept, b"new")):
        with pytest.raises(PocketgraphError, match="permission denied; it is read-only, or another user's"):
            write()
    assert kept.read_bytes() == b"old"
    with pytest.raises(FormatError, match=r"what is in the directory '.*closed' cannot be seen: permission denied"):
        mapped(closed / "model.pb")
    with pytest.raises(FormatError, match="this directory cannot be read: permission denied"):
        identify(closed)
    with pytest.raises(FormatError, match=r"closed: the folder cannot be read: permission denied"):
        files_in(str(tmp_path / "closed"))


def test_a_full_disk_is_one_clear_error() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with pytest.raises(PocketgraphError, match="cannot be written: no space left on device"):
        write_atomically("/dev/full", b"x" * 100_000)


def test_files_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "frozen_graph.pb").write_bytes(b"x")
    with pytest.raises(FormatError, match=r"no such file; did you mean '.*frozen_graph.pb'"):
        mapped(tmp_path / "frozen_graf.pb")
    with pytest.raises(FormatError, match="directory"):
        mapped(tmp_path)
    with pytest.raises(FormatError, match="no directory"):
        mapped(tmp_path / "nowhere" / "x.pb")
    with pytest.raises(FormatError, match=r"that is an address, .* fetch it first"):
        mapped("https://example.org/frozen_graph.pb")
    (tmp_path / "empty").write_bytes(b"")
    assert mapped(tmp_path / "empty") == b""
