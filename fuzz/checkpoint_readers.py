"""Targets: what reads checkpoints. Every tensor is looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

import numpy as np

from fuzz.model_readers import LOOKED_AT, PROTO_WORDS
from fuzz.mutations import message_changed, table_changed
from fuzz.targets import ROOT, files, folder, stored, target
from pocketgraph import formats
from pocketgraph.errors import FormatError
from pocketgraph.formats import crc32c
from pocketgraph.formats.checkpoints import bundle_tensor, snappy, sstable
from pocketgraph.formats.checkpoints.checkpoint_state import find_prefix, read_state
from pocketgraph.formats.object_graph import KEY, keys_by_variable
from pocketgraph.graph import DType, Tensor

FIXTURES = ROOT / "tests" / "fixtures" / "checkpoints"
TABLE_WORDS = (
    b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", b"types", b"weights", b"\x00", b"\x00\x01", b"\x08\x01\x1a\x02\x08\x01",
    b"\xff\xff\xff\xff\x0f", b"_CHECKPOINTABLE_OBJECT_GRAPH",
)  # fmt: skip


def look(prefix: str) -> None:
    """Opens a checkpoint and reads what it holds."""
    tensors = formats.open_checkpoint(prefix)
    for name in tensors:
        try:
            tensor = tensors[name]
            if tensor.size <= LOOKED_AT:
                tensor.numpy()
        except FormatError:
            continue
    keys_by_variable(tensors)


def with_data(name: str) -> str:
    """The path of a file of the test's checkpoint beside the input."""
    path = folder() / name
    if not path.exists():
        shutil.copy(FIXTURES / name, path)
    return str(path)


def indexes() -> list[bytes]:
    return files("*.index", most=4096)


COMMON = "formats/checkpoints/checkpoint_base.py formats/checkpoints/sstable.py"


@target(
    f"{COMMON} formats/checkpoints/checkpoint_v2.py formats/checkpoints/bundle_proto.py",
    indexes,
    TABLE_WORDS,
    table_changed,
)
def read_checkpoint_index(data: bytes) -> None:
    with_data("types.data-00000-of-00001")
    look(stored(data, "types.index").removesuffix(".index"))


@target(
    "formats/checkpoints/checkpoint_v2.py formats/checkpoints/bundle_tensor.py",
    lambda: [(FIXTURES / "types.data-00000-of-00001").read_bytes()],
)
def read_checkpoint_data(data: bytes) -> None:
    with_data("types.index")
    look(stored(data, "types.data-00000-of-00001").partition(".data")[0])


@target(
    f"{COMMON} formats/checkpoints/checkpoint_v1.py",
    lambda: files("v1/*", "*.ckpt", "export-0*", most=8192),
    TABLE_WORDS,
    table_changed,
)
def read_checkpoint_v1(data: bytes) -> None:
    look(stored(data, "model.ckpt"))


def blocks() -> list[bytes]:
    """Blocks of tables: keys that share their beginnings, and values."""
    shared = b"\0\1\x03a/b\x01x" + b"\2\1\x01cy" + bytes(4) + b"\1\0\0\0"
    return [b"\0\3\1a/bx" + b"\2\1\1cy" + bytes(4) + b"\1\0\0\0", shared, bytes(4)]


@target("formats/checkpoints/sstable.py", blocks, TABLE_WORDS)
def read_table(data: bytes) -> None:
    """A table whose blocks have right checksums, whatever is in them."""
    list(sstable.SortedTable(memoryview(resealed(data))))


def resealed(data: bytes) -> bytes:
    """The data as the one block of an index, which stands for any block."""
    block = bytearray(data)
    size = len(block)
    block += b"\0" + crc32c.masked(crc32c.checksum(bytes(block) + b"\0")).to_bytes(4, "little")
    handle = sstable.varint(0) + sstable.varint(size)
    return bytes(block + (handle + handle).ljust(40, b"\0") + sstable.MAGIC.to_bytes(8, "little"))


@target(
    "formats/checkpoints/snappy.py", lambda: [b"\x05\x10hello", b"\x14\x00a\x4e\x01\x00", b"\x80\x80\x04\xfe\x01\x00"]
)
def read_snappy(data: bytes) -> None:
    snappy.decompress(data, "file")


@target(
    "formats/checkpoints/bundle_tensor.py",
    lambda: [bundle_tensor.encode_strings(np.array([b"a", b"bc", b""], object))[0]],
)
def read_stored_strings(data: bytes) -> None:
    bundle_tensor.decode_strings(memoryview(data), (len(data) % 5,), 0, bool(len(data) & 8), "file")


STATE = b'model_checkpoint_path: "types"\nall_model_checkpoint_paths: "types"\nall_model_checkpoint_timestamps: 1.5\n'


@target(
    "formats/checkpoints/checkpoint_state.py", lambda: [STATE, *files("checkpoint", most=2048)],
    rb'model_checkpoint_path all_model_checkpoint_paths " \n \377 \x .. / types -1'.split(),
)  # fmt: skip
def read_checkpoint_state(data: bytes) -> None:
    with_data("types.index")
    with_data("types.data-00000-of-00001")
    path = stored(data, "checkpoint")
    read_state(path)
    find_prefix(path)
    find_prefix(os.path.dirname(path))


def object_graphs() -> list[bytes]:
    import glob

    found = []
    for path in glob.glob(str(ROOT / "tests" / "fixtures" / "saved_models" / "*" / "variables" / "variables.index")):
        tensors: Mapping[str, Tensor] = formats.open_checkpoint(path.removesuffix(".index"))
        if KEY in tensors:
            found.append(tensors[KEY].numpy().item())
    return found


@target("formats/object_graph.py", object_graphs, (*PROTO_WORDS, b"VARIABLE_VALUE"), message_changed)
def read_object_graph(data: bytes) -> None:
    text = np.empty((), object)
    text[()] = data
    keys_by_variable({KEY: Tensor.from_numpy(text, DType.named("string"))})
