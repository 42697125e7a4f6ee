"""The arrays of .npz and .npy files; large ones stay there, and their samples are read when they are asked for."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from typing import IO, Any, TypeAlias

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats.files import unreadable
from pocketgraph.graph.tensor import Array

LARGE = 1 << 24  # bytes, from which an array stays in its file
LOCAL_HEADER = 30  # bytes of a member's header in a zip file, before its name
PIECE = 1 << 20  # bytes that are unpacked at a time
READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class _KeptFile:
    """An open file, without a buffer, that closes when the last array in it has gone; threads may read it at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._lock = threading.Lock()

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset`` on; fewer where the file ends."""
        with self._lock:
            self.file.seek(offset)
            return self.file.read(size)

    def __del__(self) -> None:
        self.file.close()


class StoredArray:
    """An array whose samples, along the first axis, are read from a file one at a time.

    Args:
        offset: where the numbers begin, in C order.
        shape, dtype: of the array.
        chosen: which samples there are; all of them by default.
    """

    def __init__(
        self, file: _KeptFile, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], chosen: Array | None = None
    ) -> None:
        self._file, self._offset, self._shape, self.dtype = file, offset, shape, dtype
        self._chosen = np.arange(shape[0]) if chosen is None else chosen

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self._chosen), *self._shape[1:]

    @property
    def ndim(self) -> int:
        return len(self._shape)

    def __len__(self) -> int:
        return len(self._chosen)

    def __iter__(self) -> Iterator[Array]:
        return (self.sample(index) for index in range(len(self)))

    def sample(self, index: int) -> Array:
        """One sample, of the array's shape without its first axis."""
        size = math.prod(self._shape[1:]) * self.dtype.itemsize
        found = self._file.read_at(self._offset + int(self._chosen[index]) * size, size)
        if len(found) < size:
            raise FormatError("the file has become shorter since it was opened", where=str(self._file.file.name))
        result: Array = np.frombuffer(found, self.dtype).reshape(self._shape[1:])
        return result

    def subset(self, chosen: Array) -> StoredArray:
        """The array of some of the samples."""
        return StoredArray(self._file, self._offset, self._shape, self.dtype, self._chosen[chosen])


SampleArray: TypeAlias = "Array | StoredArray"


def sample_of(array: SampleArray, index: int) -> Array:
    """One sample of an array of either kind."""
    if isinstance(array, StoredArray):
        return array.sample(index)
    result: Array = array[index]
    return result


def subset_of(array: SampleArray, chosen: Array) -> SampleArray:
    """Some of the samples of an array of either kind."""
    return array.subset(chosen) if isinstance(array, StoredArray) else array[chosen]


def whole(array: SampleArray) -> Array:
    """All of an array of either kind, in memory."""
    if not isinstance(array, StoredArray):
        return array
    return np.stack(list(array)) if len(array) else np.empty(array.shape, array.dtype)


def read_arrays(path: str) -> dict[str, SampleArray]:
    """The arrays of a file by their names; that of an ``.npy`` file has the name "".

    Raises:
        FormatError: it cannot be read, is damaged, or holds other things than plain numbers.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return {
                    member.filename.removesuffix(".npy"): _member(path, archive, member)
                    for member in archive.infolist()
                    if member.filename.endswith(".npy")
                }
        if os.path.getsize(path) > LARGE:
            return {"": _stored(_KeptFile(open(path, "rb", buffering=0)), 0)}
        with open(path, "rb") as file:  # a file that NumPy opens stays open when it is damaged
            loaded = np.load(file, allow_pickle=False)
            return {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except OSError as error:
        raise unreadable("the data", path, error) from None
    except Exception as error:  # NumPy answers a damaged file with whatever its parser runs into
        if "Object arrays" in str(error):
            raise FormatError(
                "this holds Python objects, which are not read", where=path,
                hint="texts are read where they are saved as such: np.savez(path, name=array.astype(str))",
            ) from None  # fmt: skip
        why = "it does not hold plain numbers" if "pickle" in str(error) else error
        raise FormatError(f"this is no .npz or .npy file, or a damaged one ({why})", where=path) from None


def _member(path: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> SampleArray:
    if member.file_size <= LARGE:
        with archive.open(member) as inside:
            loaded: Array = np.lib.format.read_array(inside, allow_pickle=False)
            return loaded
    if member.compress_type == zipfile.ZIP_STORED:
        kept = _KeptFile(open(path, "rb", buffering=0))  # noqa: SIM115  it closes with the array
        header = kept.read_at(member.header_offset, LOCAL_HEADER)
        name, extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        return _stored(kept, member.header_offset + LOCAL_HEADER + name + extra)
    with archive.open(member) as inside:
        np.lib.format.read_magic(inside)  # or this is no array, whatever it unpacks to
    if shutil.disk_usage(tempfile.gettempdir()).free < member.file_size:
        raise OSError(f"there is no room to unpack '{member.filename}' to")
    kept = _KeptFile(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115  likewise
    with archive.open(member) as inside:
        shutil.copyfileobj(inside, kept.file, PIECE)
    return _stored(kept, 0)


def _stored(kept: _KeptFile, start: int) -> SampleArray:
    """The array that begins at a place of a file, with its header; one that is read whole closes the file."""
    try:
        found = _header_read(kept, start)
    except BaseException:
        kept.file.close()
        raise
    if not isinstance(found, StoredArray):
        kept.file.close()
    return found


def _header_read(kept: _KeptFile, start: int) -> SampleArray:
    file = kept.file
    file.seek(start)
    version = np.lib.format.read_magic(file)
    is_known = version in READERS
    shape, is_fortran, dtype = READERS[version](file) if is_known else ((), True, np.dtype(np.uint8))
    if any(size < 0 for size in shape):
        raise ValueError(f"an array of the shape {list(shape)}")
    is_plain = dtype.subdtype is None and not dtype.hasobject and math.prod(shape[1:]) * dtype.itemsize > 0
    if is_fortran or not shape or not is_plain:
        file.seek(start)
        loaded: Array = np.lib.format.read_array(file, allow_pickle=False)
        return loaded
    offset = file.tell()
    if offset + math.prod(shape) * dtype.itemsize > os.fstat(file.fileno()).st_size:
        raise ValueError("it is shorter than it says")
    return StoredArray(kept, offset, shape, dtype)
