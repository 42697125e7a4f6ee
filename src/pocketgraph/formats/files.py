"""Files as the formats need them: mapped for reading, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO, TypeAlias

from pocketgraph.errors import FormatError, PocketgraphError, UsageError, nearest, new_folder
from pocketgraph.part_files import LONGEST_NAME, remove_abandoned, written_whole
from pocketgraph.protobuf.wire import Buffer, Chunk

PathLike: TypeAlias = str | os.PathLike[str]
Content: TypeAlias = Chunk | Iterable[Chunk] | Callable[[BinaryIO], object]
"""What to write: bytes, pieces of bytes, or a function that writes into the open file."""


HELD_OPEN = (5, 32, 1224)
"""Windows' numbers for a file that is not replaced because it is open or mapped: access denied, shared, mapped."""


class _MappedFile(mmap):
    """A mapped file.

    Attributes:
        status: the file's when it was opened; another file lies at its path where that one has another.
    """

    status: os.stat_result


def opened(path: PathLike, *, is_sought: bool = False) -> BinaryIO:
    """A file to read all of: no device, which may never end, and act when it is opened.

    Args:
        path: the file's. Of a pipe what somebody writes is read, as from standard input.
        is_sought: whether places of it are read again, which a pipe does not have any more.

    Raises:
        OSError: it cannot be opened.
        FormatError: it is a device, or a pipe whose places are sought.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise FormatError("this is a device, which may never end, and no file", where=os.fspath(path))
    if is_sought and stat.S_ISFIFO(mode):
        raise FormatError("this is a pipe, and a file is needed", where=os.fspath(path))
    return open(path, "rb")


def mapped(path: PathLike) -> Buffer:
    """A file's content without reading it: pages come in when they are touched.

    Pipes and other files that cannot be mapped are read. An empty file gives ``b""``.

    Raises:
        FormatError: there is no such file, it is a directory or a device, or it cannot be read.
    """
    name = os.fspath(path)
    try:
        with opened(name) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return file.read()
            if not status.st_size:
                return b""
            found = _MappedFile(file.fileno(), 0, access=ACCESS_READ)
            found.status = status
            return found
    except FileNotFoundError:
        raise FormatError("there is no such file", where=name, hint=near(name)) from None
    except IsADirectoryError:
        raise FormatError("this is a directory", where=name) from None
    except (OSError, ValueError) as error:
        raise FormatError(f"the file cannot be read: {reason(error)}", where=name) from None


def version_of(status: os.stat_result) -> tuple[int, ...]:
    """What is another one when a file was written into, or another one lies at its path."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def is_still(buffer: mmap, path: str) -> bool:
    """Whether the file at ``path`` is the mapped one still, as it was then; one that reads files tells how.

    Raises:
        OSError: there is none.
    """
    then = getattr(buffer, "status", None)
    return isinstance(then, os.stat_result) and version_of(then) == version_of(os.stat(path))


def is_overwritten(nodes: Iterable[Any]) -> bool:
    """Whether a file that nodes are mapped from was written over where it lies since it was read: their values may be
    others by now, or gone, which ends a process that reads them. One that was replaced, or removed, is still mapped."""
    files = {id(node.buffer): node for node in nodes if isinstance(getattr(node, "buffer", None), mmap)}
    for source in files.values():
        path, then = str(getattr(source, "file", "")), getattr(source.buffer, "status", None)
        with contextlib.suppress(OSError, ValueError):
            is_there = isinstance(then, os.stat_result) and os.path.samestat(then, os.stat(path))
            if is_there and not is_still(source.buffer, path):
                return True
    return False


def check_length(buffer: object, stop: int, where: str) -> None:
    """Makes sure that a mapped file still reaches to ``stop``: touching what was cut off would end the process.

    It cannot hold what is cut between this and the reading, or arrays that are views of the file.

    Raises:
        FormatError: it has become shorter.
    """
    if isinstance(buffer, mmap) and buffer.size() < stop:
        raise FormatError(
            f"the file has become shorter since it was opened: {buffer.size():,} bytes are left of {len(buffer):,}",
            where=where, hint="open it again",
        )  # fmt: skip


def near(path: str) -> str:
    """A hint where a file is missing: that an address is to be fetched, or files of a similar name in its folder."""
    if not path:
        return "the name given is empty, as of a variable of the shell that is not set"
    if "://" in path:
        return "that is an address, and files are read from this machine: fetch it first, then give the file"
    folder, name = os.path.split(path)
    if os.path.islink(path):
        return f"it is a link to '{os.readlink(path)}', which leads nowhere"
    try:
        beside = os.listdir(folder or ".")
    except PermissionError:
        return f"what is in the directory '{folder}' cannot be seen: permission denied"
    except OSError:
        return f"there is no directory '{folder}' either"
    found = nearest(name, beside)
    named = " or ".join(f"'{os.path.join(folder, one)}'" for one in found)
    return f"did you mean {named}?" if found else ""


def unreadable(what: str, place: PathLike, error: OSError) -> FormatError:
    """The error of a file that cannot be opened, with a hint where it is missing.

    Args:
        what: what should be in it, for the message: ``the labels``.
        place: its path.
        error: what the operating system said.
    """
    name = os.fspath(place)
    hint = near(name) if isinstance(error, FileNotFoundError) else ""
    return FormatError(f"{what} cannot be read: {error.strerror or error}", where=name, hint=hint)


def no_folder(place: PathLike) -> FormatError:
    """The error of a folder that is not there, or is a file."""
    name = os.fspath(place)
    if os.path.exists(name):
        return FormatError("this is a file, not a folder", where=name, hint="give the folder that it is in")
    return FormatError("there is no such folder", where=name, hint=near(name))


def reason(error: Exception) -> str:
    """What an operating system error says, in lower case and without its number and path."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said[:1].lower() + said[1:]


def write_atomically(path: PathLike, content: Content) -> None:
    """Writes a file whole or not at all: beside its place first, to the disk, then renamed into place.

    The file that is there may be the mapped input of what is being written. An existing file keeps its mode; a
    symbolic link stays one, and what it points at is replaced. Devices and pipes are written to directly. The content
    is on the disk before it gets its name; the name is not waited for (that takes as long again), so after a power cut
    the old file may still be there, whole.

    Args:
        path: where the file goes; its directory must exist.
        content: bytes, pieces of bytes, or a function that is given the open file.

    Raises:
        PocketgraphError: the directory does not exist or the file cannot be written.
    """
    name, target = os.fspath(path), check_place(path)
    try:
        if takes_bytes(target):
            with open(target, "wb") as file:
                write_into(file, content)
            return
        replace(target, content)
    except OSError as error:
        hint = "on Windows a file that is open, as the one that was read is, stays: give another name"
        is_open = getattr(error, "winerror", None) in HELD_OPEN
        raise PocketgraphError(
            f"the file cannot be written: {reason(error)}", where=name, hint=hint if is_open else ""
        ) from None


def check_not_model(path: str, model: str | None) -> None:
    """Refuses to write over the model that is read.

    Raises:
        UsageError: they are one file or folder.
    """
    if model and os.path.exists(model) and os.path.exists(path) and os.path.samefile(model, path):
        raise UsageError(f"'{path}' is the model itself, which would be lost", hint="give another name")


def check_place(path: PathLike, model: str | None = None) -> str:
    """Refuses a path that no file can be written to; long work does so before it begins.

    Args:
        path: where a file is to go.
        model: what is read and must stay.

    Returns:
        The path, ``resolved``.

    Raises:
        UsageError: it is the model itself.
        PocketgraphError: it is a directory, or in one that does not exist or cannot be written to, or too long.
    """
    name = os.fspath(path)
    check_not_model(name, model)
    target = resolved(name)
    if len(os.fsencode(os.path.basename(target))) > LONGEST_NAME:
        raise PocketgraphError(
            f"the file cannot be written: its name has more than {LONGEST_NAME} bytes", where=name,
            hint="give a shorter one",
        )  # fmt: skip
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise PocketgraphError("this is a directory, not a place for a file", where=name)
    if not os.path.isdir(folder):
        raise PocketgraphError("the directory to write to does not exist", where=name, hint=new_folder(folder))
    if not os.access(folder, os.W_OK) and (os.path.isfile(target) or not os.path.exists(target)):
        raise PocketgraphError(f"the file cannot be written: nothing can be written to {folder}", where=name)
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise PocketgraphError(
            "the file cannot be written: permission denied", where=name, hint="it is read-only, or another user's"
        )
    return target


def path_below(file: str, name: str) -> str:
    """The real path of a name that a file tells, with slashes as in addresses; "" where it is none in the file's folder
    or below. Of a link, as caches of downloads have them, it may also lie where the file itself does."""
    if not name or "\0" in name or "://" in name or os.path.isabs(name):
        return ""
    folder = os.path.dirname(os.path.abspath(file))
    path = os.path.realpath(os.path.join(folder, *name.split("/")))
    roots = os.path.realpath(folder), os.path.dirname(os.path.realpath(file))
    return path if path.startswith(tuple(os.path.join(root, "") for root in roots)) else ""


def takes_bytes(path: str) -> bool:
    """Whether this is a device or a pipe, which are written to; no file may take their place."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def resolved(path: str) -> str:
    """The path with symbolic links followed; not those of a device or a pipe, which may lead to no other name."""
    return path if takes_bytes(path) else os.path.realpath(path)


def check_folder(path: PathLike) -> None:
    """Refuses a folder that cannot be made, or that nothing can be written to; long work does so before it begins.

    Raises:
        PocketgraphError: it lies in a file, or in a folder that cannot be written to.
    """
    name = os.fspath(path)
    there = os.path.realpath(name)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise PocketgraphError(f"the directory cannot be made: {there} is a file", where=name)
    if not os.access(there, os.W_OK):
        raise PocketgraphError(f"the directory cannot be made: nothing can be written to {there}", where=name)


def replace(target: str, content: Content) -> None:
    """Writes to a file of a new name beside ``target`` and gives it that name at the end.

    What killed writers of the same file left behind goes.
    """
    remove_abandoned(target)
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666
    with written_whole(target) as part:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        with os.fdopen(handle, "wb") as file:
            write_into(file, content)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(part, mode)


def write_into(file: BinaryIO, content: Content) -> None:
    """Writes bytes, the pieces of an iterable, or whatever a function writes."""
    if isinstance(content, bytes | bytearray | memoryview):
        file.write(content)
    elif callable(content):
        content(file)
    else:
        for piece in content:
            file.write(piece)


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Writes files, by their paths with slashes, into a folder that is made where it is not there."""
    for path, content in files.items():
        place = os.path.join(folder, *path.split("/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(content)
