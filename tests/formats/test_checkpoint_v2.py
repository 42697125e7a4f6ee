"""V2 checkpoints that TensorFlow wrote, that we wrote, and that were damaged on the way."""

import pathlib
import shutil
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pocketgraph.errors import FormatError
from pocketgraph.formats import crc32c
from pocketgraph.formats.checkpoints import bundle_tensor, sstable
from pocketgraph.formats.checkpoints.bundle_proto import BundleEntry, Header
from pocketgraph.formats.checkpoints.checkpoint import open_checkpoint
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import DType, Tensor
from support import model_dir, needs_shared

TYPES = pathlib.Path(__file__).parent.parent / "fixtures" / "checkpoints" / "types"
DTYPES = {"float16": "half", "float32": "float", "float64": "double"}
NUMBERS = [
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128", "quint8", "qint8", "qint32", "quint16", "qint16",
]  # fmt: skip


def small(folder: pathlib.Path, shards: int = 1) -> pathlib.Path:
    tensors = {f"layer{i}/w": Tensor.from_numpy(np.full((4, 3), i, np.float32)) for i in range(6)}
    tensors["names"] = Tensor.from_numpy(np.array([b"cat", b"dog"], object))
    write_checkpoint(folder / "model.ckpt-7", tensors, shards=shards)
    return folder / "model.ckpt-7"


def forged(
    folder: pathlib.Path, entries: dict[str, bytes], header: bytes | None = None, data: bytes = b""
) -> pathlib.Path:
    """A checkpoint whose index says what we want."""
    pairs = {b"": Header(1).encode() if header is None else header}
    pairs |= {name.encode(): entry for name, entry in entries.items()}
    (folder / "f.index").write_bytes(sstable.encode(sorted(pairs.items())))
    (folder / "f.data-00000-of-00001").write_bytes(data)
    return folder / "f"


@pytest.mark.parametrize("name", NUMBERS)
def test_every_type_that_tensorflow_writes(name: str) -> None:
    tensor = open_checkpoint(TYPES)[name]
    assert tensor.dtype.name == DTYPES.get(name, name)
    assert tensor.shape == (2, 3)
    expected = np.arange(6).reshape(2, 3).astype(tensor.dtype.numpy)
    assert tensor.numpy().dtype == expected.dtype
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_strings_scalars_and_empty_tensors() -> None:
    checkpoint = open_checkpoint(TYPES)
    assert checkpoint["strings"].numpy().tolist() == [[b"", b"abc"], [b"\x00\xff", b"x" * 200]]
    assert checkpoint["scalar"].shape == ()
    assert checkpoint["scalar"].numpy() == 2.5
    assert checkpoint["empty"].numpy().shape == (0, 3)


def test_a_sliced_tensor_is_put_together_and_taken_apart() -> None:
    checkpoint = open_checkpoint(TYPES)
    whole = np.arange(200).reshape(100, 2)
    np.testing.assert_array_equal(checkpoint["sliced"].numpy(), whole)
    np.testing.assert_array_equal(checkpoint.part("sliced", [(3, 97), (1, 1)]).numpy(), whole[3:, 1:])
    np.testing.assert_array_equal(checkpoint.part("sliced", [(2, 3), (0, -1)]).numpy(), whole[2:5])
    np.testing.assert_array_equal(checkpoint.part("int32", [(1, 1), (0, -1)]).numpy(), [[3, 4, 5]])
    with pytest.raises(FormatError, match="not inside its shape"):
        checkpoint.part("sliced", [(99, 2), (0, -1)])


def test_the_mapping_needs_no_data_files(tmp_path: pathlib.Path) -> None:
    shutil.copy(f"{TYPES}.index", tmp_path / "types.index")
    checkpoint = open_checkpoint(tmp_path / "types")
    assert len(checkpoint) == len(NUMBERS) + 4 == len(list(checkpoint))
    assert "int8" in checkpoint
    assert "int9" not in checkpoint
    assert checkpoint.shapes["sliced"] == (100, 2)
    assert checkpoint.dtypes["quint8"] is DType.named("quint8")
    with pytest.raises(KeyError, match="did you mean 'float16'"):
        checkpoint["float1"]


def test_nothing_is_copied(tmp_path: pathlib.Path) -> None:
    values = open_checkpoint(small(tmp_path))["layer3/w"].numpy()
    assert not values.flags.owndata
    assert not values.flags.writeable


def test_files_that_we_write_are_those_that_tensorflow_writes(tmp_path: pathlib.Path) -> None:
    original = open_checkpoint(TYPES)
    whole = {name: original[name] for name in original if name != "sliced"}
    write_checkpoint(tmp_path / "types", whole)
    again = open_checkpoint(tmp_path / "types")
    assert all(again[name].same_values(original[name]) for name in whole)
    ours = {k: v for k, v in index_entries(tmp_path / "types") if k and not k.startswith(b"\0")}
    theirs = {k: v for k, v in index_entries(TYPES) if k in ours}
    assert {k: BundleEntry.decode(v).crc32c for k, v in ours.items()} == {
        k: BundleEntry.decode(v).crc32c for k, v in theirs.items()
    }


def index_entries(prefix: pathlib.Path) -> list[tuple[bytes, bytes]]:
    data = pathlib.Path(f"{prefix}.index").read_bytes()
    return [(key, bytes(value)) for key, value in sstable.SortedTable(memoryview(data))]


def test_an_index_is_written_byte_for_byte_as_tensorflow_writes_it() -> None:
    data = pathlib.Path(f"{TYPES}.index").read_bytes()
    entries = index_entries(TYPES)
    assert sstable.encode(entries) == data
    assert Header.decode(entries[0][1]).encode() == entries[0][1]
    plain = [value for key, value in entries[1:] if key != b"sliced"]
    assert [BundleEntry.decode(value).encode() for value in plain] == plain


@pytest.mark.parametrize("shards", [1, 2, 5, 12])
def test_any_number_of_shards(tmp_path: pathlib.Path, shards: int) -> None:
    prefix = small(tmp_path, shards)
    assert len(list(tmp_path.glob("*.data-*"))) == shards
    checkpoint = open_checkpoint(prefix)
    assert checkpoint.num_shards == shards
    for i in range(6):
        np.testing.assert_array_equal(checkpoint[f"layer{i}/w"].numpy(), np.full((4, 3), i, np.float32))
    assert checkpoint["names"].numpy().tolist() == [b"cat", b"dog"]


def test_a_big_endian_machine_wrote_it(tmp_path: pathlib.Path) -> None:
    floats, counts = np.arange(3, dtype=">f4").tobytes(), np.array([1 + 2j], ">c8").tobytes()
    text = b"\x03" + struct.pack(">I", crc32c.masked(crc32c.checksum(struct.pack(">I", 3)))) + b"abc"
    lengths = crc32c.checksum(struct.pack(">I", 3))
    text_crc = crc32c.masked(crc32c.checksum(text[1:], lengths))
    crcs = [crc32c.masked(crc32c.checksum(data)) for data in (floats, counts)]
    entries = {
        "c": BundleEntry(8, (1,), 0, 12, 8, crcs[1]).encode(),
        "f": BundleEntry(1, (3,), 0, 0, 12, crcs[0]).encode(),
        "s": BundleEntry(7, (1,), 0, 20, len(text), text_crc).encode(),
    }
    prefix = forged(tmp_path, entries, b"\x08\x01\x10\x01", floats + counts + text)
    checkpoint = open_checkpoint(prefix)
    np.testing.assert_array_equal(checkpoint["f"].numpy(), [0, 1, 2])
    np.testing.assert_array_equal(checkpoint["c"].numpy(), [1 + 2j])
    assert checkpoint["s"].numpy().tolist() == [b"abc"]


def test_a_missing_shard_is_named(tmp_path: pathlib.Path) -> None:
    prefix = small(tmp_path, 3)
    (tmp_path / "model.ckpt-7.data-00001-of-00003").unlink()
    checkpoint = open_checkpoint(prefix)
    lost = [name for name in checkpoint if checkpoint.entry(name).shard == 1]
    with pytest.raises(FormatError, match=r"data-00001-of-00003: the data file is missing.* 3 data files 2 exist"):
        checkpoint[lost[0]]


def test_a_corrupt_byte_is_found_when_it_is_read(tmp_path: pathlib.Path) -> None:
    prefix = small(tmp_path)
    file = tmp_path / "model.ckpt-7.data-00000-of-00001"
    data = bytearray(file.read_bytes())
    data[48 + 5] ^= 1  # in the second tensor
    file.write_bytes(bytes(data))
    checkpoint = open_checkpoint(prefix)
    checkpoint["layer0/w"].numpy()
    damaged = checkpoint["layer1/w"]
    with pytest.raises(
        FormatError, match=r"data-00000-of-00001: tensor 'layer1/w' at offset 48: checksum does not match"
    ):
        damaged.numpy()


@pytest.mark.parametrize("at", [-1, -4, -8, -10])
def test_corrupt_strings_are_found(tmp_path: pathlib.Path, at: int) -> None:
    prefix = small(tmp_path)
    file = tmp_path / "model.ckpt-7.data-00000-of-00001"
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(FormatError, match="'names' at offset"):
        open_checkpoint(prefix)["names"].numpy()


def test_a_truncated_data_file(tmp_path: pathlib.Path) -> None:
    prefix = small(tmp_path)
    file = tmp_path / "model.ckpt-7.data-00000-of-00001"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(FormatError, match="which has only 100; the file was cut off"):
        open_checkpoint(prefix)["layer5/w"]
    file.write_bytes(b"")
    with pytest.raises(FormatError, match="which has only 0"):
        open_checkpoint(prefix)["layer0/w"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (BundleEntry(1, (2, 3), 0, 0, 20), "stored size 20; expected size 24"),
        (BundleEntry(1, (2**40, 2**40), 0, 0, 24), "expected size 4835703278458516698824704"),
        (BundleEntry(1, (6,), 5, 0, 24), "it lies in shard 5, but there are 1"),
        (BundleEntry(1, (6,), 0, 1 << 40, 24), "which has only 24"),
        (BundleEntry(1, (6,), 0, 8, 24), "which has only 24"),
        (BundleEntry(7, (10**12,), 0, 0, 24), "24 bytes cannot hold 1000000000000 strings"),
        (BundleEntry(26, (6,), 0, 0, 24), "number 26, which is unknown here"),
        (BundleEntry(101, (6,), 0, 0, 24), "its element type is float_ref"),
        (BundleEntry(20, (6,), 0, 0, 24), "tensors of type resource cannot be read"),
        (BundleEntry(1, (1,) * 40, 0, 0, 4), "no sound shape"),
        (BundleEntry(1, (0, 2**62, 2**62), 0, 0, 0, 0xA282EAD8), "no array can have the shape"),
    ],
)
def test_entries_that_lie(tmp_path: pathlib.Path, entry: BundleEntry, message: str) -> None:
    checkpoint = open_checkpoint(forged(tmp_path, {"v": entry.encode()}, data=bytes(24)))
    assert "v" in checkpoint
    with pytest.raises(FormatError, match=message):
        checkpoint["v"].numpy()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\x08\x01\x12\x0b\x12\x09\x08\xff\xff\xff\xff\xff\xff\xff\xff", "not parseable"),
        (b"\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no sound shape"),  # a size of -1
        (b"\x08\x01\x12\x02\x18\x01", "no sound shape"),  # an unknown rank
        (b"\x08\x01\x12\x00\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x04", "it lies in shard -1"),
        (b"\x08\x01\x12\x00\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x04", "bytes -1 to 3"),
        (b"\xff\xff\xff", "not parseable"),
    ],
)
def test_entries_that_no_writer_makes(tmp_path: pathlib.Path, raw: bytes, message: str) -> None:
    checkpoint = open_checkpoint(forged(tmp_path, {"v": raw}, data=bytes(24)))
    with pytest.raises(FormatError, match=message):
        checkpoint["v"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"\x08\x00", "speaks of 0 data files"),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "speaks of -1 data files"),
        (b"\x08\x01\x1a\x02\x10\x09", "reader of format version 9"),
        (b"\x08", "unable to parse header"),
    ],
)
def test_headers_that_lie(tmp_path: pathlib.Path, header: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        open_checkpoint(forged(tmp_path, {}, header))


def test_a_huge_number_of_shards_is_only_a_missing_file(tmp_path: pathlib.Path) -> None:
    prefix = forged(tmp_path, {"v": BundleEntry(1, (1,), 0, 0, 4).encode()}, b"\x08" + b"\xff\xff\xff\xff\x07")
    with pytest.raises(FormatError, match="of the checkpoint's 2147483647 data files 0 exist"):
        open_checkpoint(prefix)["v"]


def test_an_index_without_header_is_no_checkpoint(tmp_path: pathlib.Path) -> None:
    (tmp_path / "f.index").write_bytes(sstable.encode([(b"a", b"b")]))
    with pytest.raises(FormatError, match="no header entry"):
        open_checkpoint(tmp_path / "f")


VECTOR_OF_4 = b"\x12\x04\x12\x02\x08\x04"


def sliced_index(
    tmp_path: pathlib.Path, slices: bytes, parts: dict[bytes, BundleEntry], shape: bytes = VECTOR_OF_4
) -> pathlib.Path:
    whole = b"\x08\x01" + shape + slices
    pairs = {b"": Header(1).encode(), b"v": whole, **{key: entry.encode() for key, entry in parts.items()}}
    (tmp_path / "f.index").write_bytes(sstable.encode(sorted(pairs.items())))
    data = np.arange(4, dtype="<f4").tobytes()
    (tmp_path / "f.data-00000-of-00001").write_bytes(data)
    return tmp_path / "f"


def piece(start: int, length: int) -> tuple[bytes, bytes, BundleEntry]:
    """A slice of a vector: how the whole speaks of it, its key, its entry."""
    from pocketgraph.formats.checkpoints.ordered_code import slice_key

    extent = b"\x08" + bytes([start]) + b"\x10" + bytes([length])
    said = b"\x3a" + bytes([len(extent) + 2]) + b"\x0a" + bytes([len(extent)]) + extent
    data = np.arange(4, dtype="<f4").tobytes()[start * 4 : (start + length) * 4]
    crc = crc32c.masked(crc32c.checksum(data))
    return said, slice_key("v", [(start, length)]), BundleEntry(1, (length,), 0, start * 4, length * 4, crc)


def test_slices_that_overlap_or_are_missing(tmp_path: pathlib.Path) -> None:
    a, b, c, d = piece(0, 2), piece(2, 2), piece(1, 2), piece(3, 1)
    prefix = sliced_index(tmp_path, a[0] + b[0], {a[1]: a[2], b[1]: b[2]})
    np.testing.assert_array_equal(open_checkpoint(prefix)["v"].numpy(), [0, 1, 2, 3])
    prefix = sliced_index(tmp_path, a[0] + c[0], {a[1]: a[2], c[1]: c[2]})
    with pytest.raises(FormatError, match="overlap"):
        open_checkpoint(prefix)["v"].numpy()
    prefix = sliced_index(tmp_path, a[0] + d[0], {a[1]: a[2], d[1]: d[2]})
    with pytest.raises(FormatError, match="hold 3 of 4 elements"):
        open_checkpoint(prefix)["v"]
    prefix = sliced_index(tmp_path, a[0] + b[0], {a[1]: a[2]})
    with pytest.raises(FormatError, match="is missing"):
        open_checkpoint(prefix)["v"]
    prefix = sliced_index(tmp_path, a[0] + b[0], {a[1]: a[2], b[1]: a[2]}, b"\x12\x04\x12\x02\x08\x03")
    with pytest.raises(FormatError, match="not inside its shape"):
        open_checkpoint(prefix)["v"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10**6), bit=st.integers(0, 7), in_index=st.booleans())
def test_a_flipped_bit_is_never_believed(tmp_path: pathlib.Path, position: int, bit: int, in_index: bool) -> None:
    prefix = small(tmp_path)
    good = {name: tensor.numpy().tolist() for name, tensor in open_checkpoint(prefix).items()}
    file = tmp_path / ("model.ckpt-7.index" if in_index else "model.ckpt-7.data-00000-of-00001")
    data = bytearray(file.read_bytes())
    data[position % len(data)] ^= 1 << bit
    file.write_bytes(bytes(data))
    try:
        found = {name: tensor.numpy().tolist() for name, tensor in open_checkpoint(prefix).items()}
    except FormatError:
        return
    assert in_index  # only the footer's padding carries nothing
    assert found == good


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 0.999), in_index=st.booleans())
def test_a_cut_file_is_always_found(tmp_path: pathlib.Path, share: float, in_index: bool) -> None:
    prefix = small(tmp_path)
    file = tmp_path / ("model.ckpt-7.index" if in_index else "model.ckpt-7.data-00000-of-00001")
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(FormatError):
        [tensor.numpy() for tensor in open_checkpoint(prefix).values()]


@pytest.mark.parametrize(("name", "shards"), [("", 1), ("\0x", 1), ("x", 0), ("x", 100_000)])
def test_what_no_checkpoint_can_hold(tmp_path: pathlib.Path, name: str, shards: int) -> None:
    with pytest.raises(FormatError):
        write_checkpoint(tmp_path / "c", {name: Tensor.from_numpy(np.zeros(1))}, shards)
    assert not list(tmp_path.iterdir())


def test_string_bytes_of_a_known_tensor() -> None:
    data, _ = bundle_tensor.encode(np.array([b"ab", b""], object), DType.named("string"))
    lengths = crc32c.masked(crc32c.checksum(struct.pack("<II", 2, 0)))
    assert bytes(data) == b"\x02\x00" + struct.pack("<I", lengths) + b"ab"


@needs_shared
def test_real_checkpoints() -> None:
    checkpoint = open_checkpoint(model_dir("ckpt_v2_sharded_little_ruan"))
    assert (len(checkpoint), checkpoint.num_shards) == (18, 2)
    assert sum(tensor.numpy().size for tensor in checkpoint.values()) > 3000
    assert len(open_checkpoint(model_dir("ckpt_v2_enet_chain"))) == 537
