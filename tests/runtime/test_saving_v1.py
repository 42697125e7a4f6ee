"""Checkpoints of the older V1 form that graphs save: TensorFlow's entries, byte for byte, inside the allowed folder."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest

from pocketgraph.errors import FormatError, RunError
from pocketgraph.formats import open_checkpoint
from pocketgraph.formats.checkpoints.checkpoint_merge import Saved
from pocketgraph.formats.checkpoints.checkpoint_v1 import CheckpointV1
from pocketgraph.formats.checkpoints.checkpoint_v1_writer import packed, write_checkpoint_v1
from pocketgraph.formats.checkpoints.sstable import SortedTable
from pocketgraph.formats.files import mapped
from pocketgraph.graph import DType, Graph, Tensor
from pocketgraph.graph.text_format import parse
from pocketgraph.protobuf.wire import varint
from pocketgraph.runtime import Session

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "checkpoints" / "v1"
FLOAT = DType.named("float")


def session(graph: Graph, folder: pathlib.Path) -> Session:
    return Session(graph, allow="files", files_dir=folder)


def entries(path: pathlib.Path) -> dict[bytes, bytes]:
    return {bytes(key): bytes(value) for key, value in SortedTable(memoryview(mapped(path)), str(path))}


def test_the_entries_are_those_that_tensorflow_wrote(tmp_path: pathlib.Path) -> None:
    source = FIXTURES / "types.ckpt"
    there = open_checkpoint(source)
    assert len(there) == 14
    assert isinstance(there, CheckpointV1)
    saved = [
        Saved(name, there.entry(name).shape, extents, there.part(name, extents))
        for name in there
        for extents in there.entry(name).slices
    ]
    write_checkpoint_v1(tmp_path / "copy.ckpt", saved)
    assert entries(tmp_path / "copy.ckpt") == entries(source)


def test_slices_are_those_that_tensorflow_wrote(tmp_path: pathlib.Path) -> None:
    there = CheckpointV1(FIXTURES / "sharded.ckpt")
    shards: dict[int, list[Saved]] = {}
    for name in there:
        entry = there.entry(name)
        for extents in entry.slices:
            shard = there._places[name, extents]
            shards.setdefault(shard, []).append(Saved(name, entry.shape, extents, there.part(name, extents)))
    for shard, saved in shards.items():
        file = f"sharded.ckpt-{shard:05d}-of-00002"
        write_checkpoint_v1(tmp_path / file, saved)
        mine, theirs = entries(tmp_path / file), entries(FIXTURES / file)
        assert {k: v for k, v in mine.items() if k} == {k: v for k, v in theirs.items() if k}
    copied = open_checkpoint(tmp_path / "sharded.ckpt")
    assert list(copied) == list(there)
    for name in there:
        np.testing.assert_array_equal(copied[name].numpy(), there[name].numpy())


def test_integers_become_varints() -> None:
    values = [0, 1, 127, 128, 300, -1, 2**62, -(2**63), 2**31 - 1]
    assert packed(np.array(values, np.int64)) == b"".join(varint(value) for value in values)
    assert packed(np.zeros(0, np.int64)) == b""


def test_a_graph_saves_and_restores(tmp_path: pathlib.Path) -> None:
    graph = parse(
        """
        file = Const(string "sub/model.ckpt")
        names = Const(string ["w", "n"])
        w = Const(float [1.5, -2])
        n = Const(int32 7)
        save = Save(file, names, w, n, T=[float, int32])
        w_name = Const(string "w")
        back = Restore(file, w_name, dt=float)
        part = Const(string "2 1,1")
        cut = RestoreSlice(file, w_name, part, dt=float)
        wrong = Restore(file, w_name, dt=int32)
        """
    )
    run = session(graph, tmp_path)
    run.run([], targets=["save"])
    assert os.listdir(tmp_path / "sub") == ["model.ckpt"]
    assert run.run("back")[0].tolist() == [1.5, -2]
    assert run.run("cut")[0].tolist() == [-2]
    assert open_checkpoint(tmp_path / "sub" / "model.ckpt")["n"].numpy() == 7
    with pytest.raises(RunError, match="is float, the graph wants int32"):
        run.run("wrong")


def test_a_graph_saves_slices(tmp_path: pathlib.Path) -> None:
    graph = parse(
        """
        file = Const(string "parts.ckpt")
        names = Const(string ["a", "a", "b"])
        slices = Placeholder(dtype=string)
        top = Const(float [[1, 2]])
        low = Const(float [[3, 4], [5, 6]])
        b = Const(int32 [9])
        save = SaveSlices(file, names, slices, top, low, b, T=[float, float, int32])
        """
    )
    run = session(graph, tmp_path)
    run.run([], {"slices": np.array([b"3 2 0,1:-", b"3 2 1,2:-", b""], object)}, targets=["save"])
    found = open_checkpoint(tmp_path / "parts.ckpt")
    assert found["a"].numpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found["b"].numpy().tolist() == [9]
    before = (tmp_path / "parts.ckpt").read_bytes()
    for slices, problem in (
        ([b"3 2 0,2:-", b"3 2 1,2:-", b""], "has not the value's shape"),
        ([b"3 2 0,1:-", b"4 2 1,2:-", b""], "unlike shapes or types"),
        ([b"3 2 0,1:-", b"nonsense", b""], "no shape and slice"),
    ):
        with pytest.raises((RunError, FormatError), match=problem):
            run.run([], {"slices": np.array(slices, object)}, targets=["save"])
    assert (tmp_path / "parts.ckpt").read_bytes() == before


@pytest.mark.parametrize("op", ["Save", "SaveSlices", "Restore", "RestoreSlice"])
def test_outside_of_the_folder_is_refused(op: str, tmp_path: pathlib.Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    rest = {
        "Save": "names, w, T=[float]",
        "SaveSlices": "names, whole, w, T=[float]",
        "Restore": "one, dt=float",
        "RestoreSlice": "one, whole_one, dt=float",
    }[op]
    graph = parse(
        f"""
        file = Const(string "../out.ckpt")
        names = Const(string ["w"])
        one = Const(string "w")
        whole = Const(string [""])
        whole_one = Const(string "")
        w = Const(float [1])
        it = {op}(file, {rest})
        """
    )
    with pytest.raises(RunError, match="may not do unasked"):
        Session(graph).run([], targets=["it"])
    with pytest.raises(RunError, match="needs a directory"):
        Session(graph, allow="files").run([], targets=["it"])
    with pytest.raises(RunError, match="outside of"):
        session(graph, inside).run([], targets=["it"])
    assert os.listdir(tmp_path) == ["inside"]


RESTORING = """
    file = Placeholder(dtype=string)
    name = Const(string "sliced")
    back = Restore(file, name, dt=float)
"""


@pytest.mark.parametrize(
    "name", [b"s.ckpt", b"s.ckpt-?????-of-00002", b"s.ckpt-?????-of-?????", b"s.ckpt-00001-of-00002"]
)
def test_shards_are_restored_by_their_pattern(name: bytes, tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    folder = tmp_path / "folder"
    elsewhere.mkdir()
    folder.mkdir()
    for number in (0, 1):
        ending = f"ckpt-{number:05d}-of-00002"
        (folder / f"s.{ending}").write_bytes((FIXTURES / f"sharded.{ending}").read_bytes())
    run = session(parse(RESTORING), folder)
    feeds = {"file": np.array(name, object)}
    expected = open_checkpoint(FIXTURES / "sharded.ckpt")["sliced"].numpy()
    np.testing.assert_array_equal(run.run("back", feeds)[0], expected)
    os.replace(folder / "s.ckpt-00000-of-00002", elsewhere / "shard")
    os.symlink(elsewhere / "shard", folder / "s.ckpt-00000-of-00002")
    with pytest.raises(RunError, match="outside of"):
        run.run("back", feeds)


def test_what_the_form_cannot_hold(tmp_path: pathlib.Path) -> None:
    one = Tensor.from_numpy(np.float32([1]), FLOAT)
    with pytest.raises(FormatError, match="saved twice"):
        write_checkpoint_v1(tmp_path / "x", [Saved("w", (1,), None, one), Saved("w", (1,), None, one)])
    with pytest.raises(FormatError, match="has no name"):
        write_checkpoint_v1(tmp_path / "x", [Saved("", (1,), None, one)])
    wide = Tensor.from_numpy(np.uint64([1]), DType.named("uint64"))
    with pytest.raises(FormatError, match="cannot hold the uint64 tensor 'w'"):
        write_checkpoint_v1(tmp_path / "x", [Saved("w", (1,), None, wide)])
    assert os.listdir(tmp_path) == []
