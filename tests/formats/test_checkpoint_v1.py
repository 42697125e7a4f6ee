"""V1 checkpoints that TensorFlow 1.15 wrote (tests/fixtures/make_v1.py), real ones, and damaged ones."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
import random
import shutil

import numpy as np
import pytest

import pocketgraph
from pocketgraph import formats
from pocketgraph.errors import FormatError
from pocketgraph.formats.checkpoints import checkpoint_v1, ordered_code, sstable
from pocketgraph.formats.checkpoints.checkpoint_state import find_prefix
from pocketgraph.formats.tensor_proto import shape_bytes
from pocketgraph.graph import DType, Graph, Node, Shape
from pocketgraph.protobuf import wire
from support import model_dir, needs_shared

V1 = pathlib.Path(__file__).parent.parent / "fixtures" / "checkpoints" / "v1"
NAMES = {"float16": "half", "float32": "float", "float64": "double"}
FULL = ((0, -1),)


def slice_proto(extents: tuple[tuple[int, int], ...]) -> bytes:
    parts = b""
    for start, length in extents:
        extent = wire.number_field(1, start) if start else b""
        parts += wire.bytes_field(1, extent + (wire.number_field(2, length) if length >= 0 else b""))
    return parts


def forged(
    path: pathlib.Path,
    shape: tuple[int, ...],
    slices: dict[tuple[tuple[int, int], ...], list[float]],
    stored: dict[tuple[tuple[int, int], ...], list[float]] | None = None,
) -> pathlib.Path:
    """A file with a float tensor 'w' in these slices; ``stored`` are those that are really there."""
    listed = b"".join(wire.bytes_field(4, slice_proto(extents)) for extents in slices)
    described = wire.bytes_field(1, "w") + wire.bytes_field(2, shape_bytes(shape)) + wire.number_field(3, 1) + listed
    entries = [(b"", wire.bytes_field(1, wire.bytes_field(1, described)))]
    for extents, values in (slices if stored is None else stored).items():
        packed = wire.bytes_field(5, np.array(values, "<f4").tobytes())
        saved = wire.bytes_field(1, "w") + wire.bytes_field(2, slice_proto(extents)) + wire.bytes_field(3, packed)
        entries.append((ordered_code.slice_key("w", extents), wire.bytes_field(2, saved)))
    path.write_bytes(sstable.encode(sorted(entries)))
    return path


@pytest.mark.parametrize(
    "name", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64"]
)
def test_every_type_that_tensorflow_writes(name: str) -> None:
    tensor = formats.open_checkpoint(V1 / "types.ckpt")[name]
    assert (tensor.dtype.name, tensor.shape) == (NAMES.get(name, name), (2, 3))
    expected = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(
        tensor.numpy(), (expected % 2 if name == "bool" else expected).astype(tensor.dtype.numpy)
    )


def test_strings_scalars_and_negative_numbers() -> None:
    store = formats.open_checkpoint(V1 / "types.ckpt")
    assert store["strings"].numpy().tolist() == [[b"", b"abc"], [b"\x00\xff", b"x" * 200]]
    assert store["scalar"].shape == ()
    assert store["scalar"].numpy() == 2.5
    assert store["negative"].numpy().tolist() == [-7, -7]


def test_slices_are_put_together_and_taken_apart() -> None:
    whole = np.arange(200, dtype=np.float32).reshape(100, 2)
    store = formats.open_checkpoint(V1 / "types.ckpt")
    assert isinstance(store, checkpoint_v1.CheckpointV1)
    assert len(store.entry("sliced").slices) == 3
    np.testing.assert_array_equal(store["sliced"].numpy(), whole)
    np.testing.assert_array_equal(store.part("sliced", [(34, 33), (0, 2)]).numpy(), whole[34:67])
    np.testing.assert_array_equal(store.part("sliced", [(3, 60), (1, 1)]).numpy(), whole[3:63, 1:])


@pytest.mark.parametrize(
    "name",
    [
        "sharded.ckpt",
        "sharded.ckpt-?????-of-00002",
        "sharded.ckpt-00001-of-00002",
        "sharded.ckpt.meta",
        "checkpoint",
        "",
    ],
)
def test_a_sharded_one_is_found_by_every_name(name: str, tmp_path: pathlib.Path) -> None:
    for file in V1.glob("sharded*"):
        shutil.copy(file, tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/gone/sharded.ckpt-?????-of-00002"\n')
    store = formats.open_checkpoint(tmp_path / name)
    assert sorted(store) == ["a", "b", "sliced"]
    assert store["sliced"].numpy().ravel().tolist() == list(range(20))
    assert store["b"].numpy().tolist() == [0, 1, 2, 3, 4]


def test_freezing_with_one(tmp_path: pathlib.Path) -> None:
    for file in V1.glob("sharded*"):
        shutil.copy(file, tmp_path)
    for name in ("sharded.ckpt.meta", "sharded.ckpt", "sharded.ckpt-00001-of-00002", ""):
        source = tmp_path / name
        graph = pocketgraph.freeze(source, "y")
        assert pocketgraph.Session(graph).run(["y:0"], {}) == [93.0]  # as TensorFlow says
    variable = Node("negative", "VariableV2", attrs={"dtype": DType.named("int32"), "shape": Shape((2,))})
    frozen = pocketgraph.freeze(Graph([variable, Node("out", "Identity", ["negative"])]), "out", V1 / "types.ckpt")
    assert frozen["negative"].tensor.numpy().tolist() == [-7, -7]


def test_a_missing_shard_is_named(tmp_path: pathlib.Path) -> None:
    shutil.copy(V1 / "sharded.ckpt-00001-of-00002", tmp_path)
    with pytest.raises(FormatError, match=r"of the checkpoint's 2 files 1 are missing, such as .*00000-of-00002"):
        formats.open_checkpoint(tmp_path / "sharded.ckpt")


def test_other_tables_are_not_taken_for_one(tmp_path: pathlib.Path) -> None:
    index = tmp_path / "x"
    shutil.copy(V1.parent / "types.index", index)
    with pytest.raises(FormatError, match="not a checkpoint"):
        find_prefix(index)


def test_the_forged_file_is_sound(tmp_path: pathlib.Path) -> None:
    path = forged(tmp_path / "c", (2, 2), {((0, 1), (0, -1)): [1, 2], ((1, 1), (0, -1)): [3, 4]})
    assert formats.open_checkpoint(path)["w"].numpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("shape", "slices", "stored", "what"),
    [
        ((3,), {((0, 2),): [1, 2]}, None, "its slices hold 2 of 3 elements"),
        ((3,), {((0, 2),): [1, 2], ((1, 2),): [3, 4]}, None, "its slices hold 4 of 3 elements"),
        ((4,), {((0, 2),): [1, 2], ((1, 2),): [3, 4]}, None, "two of its slices overlap"),
        ((3,), {((2, 2),): [1, 2]}, None, "not inside its shape"),
        ((2,), {FULL: [1, 2, 3]}, None, "holds 3 values where its shape asks for 2"),
        ((2,), {FULL: [1]}, None, "holds 1 value where its shape asks for 2"),
        ((2,), {FULL: [1, 2]}, {}, "is listed in .* but not there"),
        ((1 << 40, 1 << 20), {((0, -1), (0, -1)): [1]}, None, "the files are too small to hold"),
        ((-1,), {FULL: [1]}, None, "no sound shape"),
    ],
)
def test_files_that_lie(
    tmp_path: pathlib.Path,
    shape: tuple[int, ...],
    slices: dict[tuple[tuple[int, int], ...], list[float]],
    stored: dict[tuple[tuple[int, int], ...], list[float]] | None,
    what: str,
) -> None:
    with pytest.raises(FormatError, match=what) as caught:
        formats.open_checkpoint(forged(tmp_path / "c", shape, slices, stored))["w"].numpy()
    assert "tensor 'w'" in str(caught.value)


def test_two_variables_of_one_name(tmp_path: pathlib.Path) -> None:
    for shard in range(2):
        forged(tmp_path / f"c-{shard:05d}-of-00002", (1,), {FULL: [shard]})
    with pytest.raises(FormatError, match="the slice - is stored twice"):
        formats.open_checkpoint(tmp_path / "c")
    forged(tmp_path / "c-00001-of-00002", (2,), {FULL: [1, 2]})
    with pytest.raises(FormatError, match="another type or shape"):
        formats.open_checkpoint(tmp_path / "c")


def test_damage_never_gives_other_values(tmp_path: pathlib.Path) -> None:
    content = (V1 / "types.ckpt").read_bytes()
    good = {name: tensor.numpy() for name, tensor in formats.open_checkpoint(V1 / "types.ckpt").items()}
    rng = random.Random(1)
    for round_ in range(60):
        damaged = bytearray(content)
        if round_ % 2:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        else:
            del damaged[rng.randrange(len(damaged)) :]
        path = tmp_path / "damaged.ckpt"
        path.write_bytes(damaged)
        with contextlib.suppress(FormatError):
            for name, tensor in formats.open_checkpoint(path).items():
                np.testing.assert_array_equal(tensor.numpy(), good[name])


@needs_shared
@pytest.mark.parametrize("name", ["half_plus_two_bundle", "neo", "nxt", "traffic_sign"])
def test_real_ones(name: str) -> None:
    folder = model_dir(f"ckpt_v1_{name}")
    for described in json.loads((folder / "model.json").read_text())["checkpoints"]:
        store = formats.open_checkpoint(folder / described["prefix"])
        assert set(store) == set(described["tensors"])
        for key, facts in described["tensors"].items():
            values = store[key].numpy()
            assert (list(values.shape), values.dtype.name) == (facts["shape"], facts["dtype"])
            assert hashlib.sha256(values.tobytes()).hexdigest() == facts["sha256"]


def test_a_directory_that_holds_nothing_else(tmp_path: pathlib.Path) -> None:
    """No state file, no .meta: found by what the file is, whatever its name."""
    shutil.copy(V1 / "types.ckpt", tmp_path / "weights")
    (tmp_path / "notes").write_text("of the run")
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert find_prefix(tmp_path) == str(tmp_path / "weights")
    assert formats.identify(tmp_path).kind is formats.Kind.CHECKPOINT_DIRECTORY
    with pytest.raises(FormatError, match=r"training directory with checkpoints, not a GraphDef.*freeze_graph"):
        pocketgraph.load(tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "gone-5"\n')
    with pytest.raises(FormatError, match=r"gone-5, which is not here.*name another one: weights$"):
        find_prefix(tmp_path)
    (tmp_path / "checkpoint").unlink()
    shutil.copy(V1 / "types.ckpt", tmp_path / "other")
    with pytest.raises(FormatError, match=r"several checkpoints.*other, .*weights"):
        find_prefix(tmp_path)
