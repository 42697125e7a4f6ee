"""Writes V2 checkpoints that TensorFlow reads, in any number of data files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from pocketgraph.errors import FormatError
from pocketgraph.formats import bundle_tensor, sstable
from pocketgraph.formats.bundle_proto import Entry, Header
from pocketgraph.formats.files import write_atomically
from pocketgraph.formats.wire import Chunk
from pocketgraph.graph import Tensor

MOST_SHARDS = 99_999  # five digits in the file name


def write_checkpoint(prefix: str | os.PathLike[str], tensors: Mapping[str, Tensor], shards: int = 1) -> None:
    """Writes ``PREFIX.data-…`` files and then ``PREFIX.index``, each whole or not at all.

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
    entries: dict[str, Entry] = {}
    for shard, group in enumerate(_spread(names, tensors, shards)):
        path = f"{base}.data-{shard:05d}-of-{shards:05d}"
        write_atomically(path, _contents(shard, {name: tensors[name] for name in group}, entries))
    table = sstable.encode([(b"", Header(shards).encode()), *((n.encode(), entries[n].encode()) for n in names)])
    write_atomically(base + ".index", table)


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


def _contents(shard: int, tensors: Mapping[str, Tensor], entries: dict[str, Entry]) -> Iterator[Chunk]:
    """The bytes of one data file, tensor after tensor; notes in ``entries`` where each lies."""
    offset = 0
    for name, tensor in tensors.items():
        data, checksum = bundle_tensor.encode(tensor.numpy(), tensor.dtype)
        entries[name] = Entry(tensor.dtype.number, tensor.shape, shard, offset, len(data), checksum)
        offset += len(data)
        yield data if isinstance(data, bytes) else data.data
