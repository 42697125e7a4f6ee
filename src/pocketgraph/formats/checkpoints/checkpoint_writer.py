"""Writes V2 checkpoints that TensorFlow reads, in any number of data files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from pocketgraph.errors import FormatError, PocketgraphError
from pocketgraph.formats.checkpoints import bundle_tensor, sstable
from pocketgraph.formats.checkpoints.bundle_proto import BundleEntry, Header
from pocketgraph.formats.files import mapped, write_atomically
from pocketgraph.graph import Tensor
from pocketgraph.part_files import is_abandoned, written_whole
from pocketgraph.protobuf.wire import Chunk

MOST_SHARDS = 99_999  # five digits in the file name


def write_checkpoint(prefix: str | os.PathLike[str], tensors: Mapping[str, Tensor], shards: int = 1) -> None:
    """Writes ``PREFIX.data-…`` files and then ``PREFIX.index``, all of them or none.

    Whoever opens the checkpoint finds the old one or the new one, whenever the writing ends. Data files of the prefix
    that belong to neither are removed.

    Tensors are read one at a time, so the whole checkpoint need not fit into memory. Each goes to the data file that
    is smallest so far, in the order of their names.

    Args:
        prefix: such as ``model.ckpt-1000``; its directory must exist.
        tensors: values by name; names are not empty and hold no NUL at the start.
        shards: how many data files, 1 or more.

    Raises:
        FormatError: a name or a number of shards that the format cannot hold.
        PocketgraphError: a file cannot be written.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise FormatError(f"a checkpoint has 1 to {MOST_SHARDS} data files, not {shards}")
    for name in tensors:
        if not name or name.startswith("\0"):
            raise FormatError(f"a checkpoint cannot hold a tensor called {name!r}")
    base = os.fspath(prefix)
    names = sorted(tensors, key=str.encode)
    groups = _spread(names, tensors, shards)
    entries: dict[str, BundleEntry] = {}
    # Data files are known by their number and how many there are. Where the index that is there speaks of such names,
    # new data first have names of one file more, of which an index is written, and then their own.
    is_there = _shards_of(base) == shards and shards < MOST_SHARDS
    count = shards + 1 if is_there else shards
    made: list[str] = []
    try:
        for shard, group in enumerate(groups):
            contents = _contents(shard, {name: tensors[name] for name in group}, entries)
            write_atomically(_data_file(base, shard, count), contents)
            made.append(_data_file(base, shard, count))
        _write_index(base, names, entries, count)
    except BaseException:
        for path in made if _shards_of(base) != count else ():  # no index speaks of them
            with contextlib.suppress(OSError):
                os.unlink(path)
        raise
    if is_there:
        for shard in range(shards):
            _rename_by_link(_data_file(base, shard, count), _data_file(base, shard, shards))
        _write_index(base, names, entries, shards)
    _remove_others(base, shards)


def _shards_of(base: str) -> int:
    """How many data files the index that is there speaks of; 0 when there is none that can be read."""
    from pocketgraph.formats.checkpoints.checkpoint_v2 import CheckpointV2

    try:
        return CheckpointV2(base).num_shards if os.path.exists(base + ".index") else 0
    except PocketgraphError:
        return 0


def _data_file(base: str, shard: int, shards: int) -> str:
    return f"{base}.data-{shard:05d}-of-{shards:05d}"


def _write_index(base: str, names: list[str], entries: Mapping[str, BundleEntry], shards: int) -> None:
    table = sstable.encode([(b"", Header(shards).encode()), *((n.encode(), entries[n].encode()) for n in names)])
    write_atomically(base + ".index", table)


def _rename_by_link(source: str, target: str) -> None:
    """Gives a file a second name, in place of what had it; where there are no links the content is written again."""
    try:
        with written_whole(target) as part:
            os.link(source, part)
    except OSError:
        write_atomically(target, memoryview(mapped(source)))


def _remove_others(base: str, shards: int) -> None:
    """Removes data files of the same prefix that the index does not speak of, and what killed writers left."""
    folder, start = os.path.split(base)
    with contextlib.suppress(OSError):
        for name in os.listdir(folder or "."):
            numbers = name.removeprefix(f"{start}.data-").split("-of-") if name.startswith(f"{start}.data-") else []
            is_data = len(numbers) == 2 and all(len(n) == 5 and n.isdecimal() for n in numbers)
            is_part = name.startswith((f"{start}.data-", f"{start}.index.")) and is_abandoned(name)
            if is_part or (is_data and int(numbers[1]) != shards):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _spread(names: list[str], tensors: Mapping[str, Tensor], shards: int) -> list[list[str]]:
    """The names of each shard's tensors."""
    import heapq

    groups: list[list[str]] = [[] for _ in range(shards)]
    heap = [(0, shard) for shard in range(shards)]
    for name in names:
        size, shard = heapq.heappop(heap)
        groups[shard].append(name)
        heapq.heappush(heap, (size + tensors[name].nbytes, shard))
    return groups


def _contents(shard: int, tensors: Mapping[str, Tensor], entries: dict[str, BundleEntry]) -> Iterator[Chunk]:
    """The bytes of one data file, tensor after tensor; notes in ``entries`` where each lies."""
    offset = 0
    for name, tensor in tensors.items():
        data, checksum = bundle_tensor.encode(tensor.numpy(), tensor.dtype)
        entries[name] = BundleEntry(tensor.dtype.number, tensor.shape, shard, offset, len(data), checksum)
        offset += len(data)
        yield data if isinstance(data, bytes) else data.data
