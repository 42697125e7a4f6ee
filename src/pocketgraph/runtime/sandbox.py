"""The one directory that a session lets its graph read and write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pocketgraph.errors import RunError
from pocketgraph.graph import Tensor

if TYPE_CHECKING:
    from pocketgraph.formats.checkpoints.checkpoint_merge import Saved

LARGEST_READ = 1 << 31  # bytes that a ReadFile may bring in
SHARD = re.compile(r"-(\?{5}|\d{5})-of-(\?{5}|\d{5})$")
"""Behind the prefix in the name of one shard of a V1 checkpoint, or of all of them."""
MOST_LISTED = 100_000  # files that a MatchingFiles looks at


class Directory:
    """What graphs may reach: files inside of one directory, links out of it not followed.

    Args:
        root: the directory; a graph's relative names start there, absolute ones must lie inside.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.realpath(os.fspath(root))
        if not os.path.isdir(self.root):
            raise RunError("files_dir is no directory", where=os.fspath(root))

    def path(self, name: str) -> str:
        """The real path of a name.

        Raises:
            RunError: it lies outside of the directory, or cannot be a name.
        """
        plain = name.removeprefix("file://")
        if not plain or "\0" in plain or re.match(r"[A-Za-z]\w+://", plain):
            raise RunError(f"{name!r} is no file name", hint=f"a graph reaches files in {self.root} only")
        real = os.path.realpath(os.path.join(self.root, plain))
        if os.path.commonpath([self.root, real]) != self.root:
            raise RunError(f"the graph may not reach '{name}': it is outside of {self.root}", hint="change files_dir")
        return real

    def prefix(self, name: str) -> str:
        """The real path of a checkpoint's prefix.

        Raises:
            RunError: it lies outside of the directory, or one of its files is a link that leads out.
        """
        path = self.path(name)
        folder, start = os.path.split(path)
        start = SHARD.sub("", start)
        for file in os.listdir(folder) if os.path.isdir(folder) else ():
            if file.startswith(start):
                self.path(os.path.join(folder, file))
        return path

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            RunError: it lies outside, is too large, or cannot be read.
        """
        path = self.path(name)
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size > LARGEST_READ:
                    raise RunError("the file is too large to be read into a tensor", where=path)
                return file.read(LARGEST_READ)
        except OSError as error:
            raise RunError(f"the file cannot be read: {error.strerror}", where=path) from None

    def write(self, name: str, contents: bytes, *, make_folders: bool = False) -> None:
        """Writes a file, whole or not at all.

        Raises:
            RunError: it lies outside.
        """
        from pocketgraph.formats.files import write_atomically

        path = self.path(name)
        if make_folders:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomically(path, contents)

    def matching(self, patterns: Sequence[str]) -> list[str]:
        """The names that fit any of the patterns, sorted; absolute ones where the pattern is."""
        found: set[str] = set()
        for pattern in patterns:
            self.path(pattern)
            wanted = os.path.join(self.root, pattern.removeprefix("file://"))
            for path in self._everything():
                # A star does not cross folders, as in TensorFlow's own matching.
                if path.count("/") == wanted.count("/") and fnmatchcase(path, wanted):
                    is_whole = os.path.isabs(pattern.removeprefix("file://"))
                    found.add(path if is_whole else os.path.relpath(path, self.root))
        return sorted(found)

    def _everything(self) -> Iterator[str]:
        seen = 0
        for folder, _, files in os.walk(self.root):
            for file in files:
                seen += 1
                if seen > MOST_LISTED:
                    raise RunError(f"there are more than {MOST_LISTED} files", where=self.root)
                yield os.path.join(folder, file)

    def save(self, prefix: str, tensors: Sequence[tuple[str, str, Tensor]]) -> None:
        """Writes a V2 checkpoint.

        Args:
            prefix: of its files.
            tensors: (name, slice or "", tensor) each.
        """
        from pocketgraph.formats.checkpoints.checkpoint_merge import write_part

        path = self.prefix(prefix)
        parts = list(_parts(tensors))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_part(path, parts)

    def save_v1(self, name: str, tensors: Sequence[tuple[str, str, Tensor]]) -> None:
        """Writes a checkpoint of the old form, one file."""
        from pocketgraph.formats.checkpoints.checkpoint_v1_writer import write_checkpoint_v1

        path = self.path(name)
        parts = list(_parts(tensors))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_checkpoint_v1(path, parts)

    def restore(self, prefix: str, wanted: Sequence[tuple[str, str]]) -> list[Tensor]:
        """Tensors of a checkpoint of either form.

        Args:
            prefix: of its files.
            wanted: (name, slice or "") each.

        Raises:
            RunError: it lies outside, or lacks a tensor.
        """
        from pocketgraph.formats import open_checkpoint
        from pocketgraph.formats.checkpoints.checkpoint_merge import parse_slice

        checkpoint = open_checkpoint(self.prefix(prefix))
        found = []
        for name, slice_text in wanted:
            try:
                if not slice_text:
                    found.append(checkpoint[name])
                    continue
                shape, extents = parse_slice(slice_text, f"tensor '{name}'")
                if shape != checkpoint[name].shape:
                    raise RunError(f"'{name}' has the shape {list(checkpoint[name].shape)}, not {list(shape)}")
                found.append(_part(checkpoint, name, extents))
            except KeyError:
                raise RunError(f'Key {name} not found in checkpoint "{prefix}"') from None
        return found

    def merge(self, prefixes: Sequence[str], destination: str, *, delete: bool, allow_missing: bool) -> None:
        """Makes one V2 checkpoint of several; ``delete`` removes the folders that this leaves empty."""
        from pocketgraph.formats.checkpoints.checkpoint_merge import merge

        paths, target = [self.prefix(prefix) for prefix in prefixes], self.prefix(destination)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        merge(paths, target, allow_missing=allow_missing)
        if delete:
            for folder in {os.path.dirname(path) for path in paths} - {os.path.dirname(target), self.root}:
                if os.path.isdir(folder) and not os.listdir(folder):
                    os.rmdir(folder)


def _part(checkpoint: object, name: str, extents: Sequence[tuple[int, int]]) -> Tensor:
    part = getattr(checkpoint, "part", None)
    assert part is not None, "every checkpoint gives slices"
    found = part(name, extents)
    assert isinstance(found, Tensor)
    return found


def _parts(tensors: Sequence[tuple[str, str, Tensor]]) -> Iterator[Saved]:
    """What a save op gives, as what a checkpoint holds."""
    from pocketgraph.formats.checkpoints.checkpoint_merge import Saved, parse_slice

    for name, slice_text, value in tensors:
        if not name or name.startswith("\0"):
            raise RunError(f"a checkpoint cannot hold a tensor called {name!r}")
        if not slice_text:
            yield Saved(name, value.shape, None, value)
            continue
        shape, extents = parse_slice(slice_text, f"tensor '{name}'")
        sizes = tuple(size if n < 0 else n for (_, n), size in zip(extents, shape, strict=True))
        if sizes != value.shape:
            raise RunError(f"the slice '{slice_text}' of '{name}' has not the value's shape {list(value.shape)}")
        yield Saved(name, shape, extents, value)
